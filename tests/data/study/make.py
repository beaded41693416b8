"""Run ns-2 for each run of the study, into `runs/` and `truth.csv`; needs `ns` and `xz`."""

import subprocess
from itertools import product
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
QUEUES = {"droptail": "DropTail", "red": "RED"}


def main() -> None:
    """Make the runs anew; the simulator gives the same bytes each time."""
    lines = ["file,flow_id,sent_packets,sink_bytes\n"]
    for (name, queue), pairs, run in product(QUEUES.items(), (1, 2), (1, 2, 3)):
        trace = FOLDER / "runs" / f"{name}-n{2 * pairs}-{run}.tr"
        command = ["ns", str(FOLDER / "dumbbell.tcl"), queue, str(pairs), str(run), str(trace)]
        lines.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        subprocess.run(["xz", "-9e", "--force", str(trace)], check=True)
    (FOLDER / "truth.csv").write_text("".join(lines))


if __name__ == "__main__":
    main()
