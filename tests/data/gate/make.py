"""Run ns-2 for each run of the gate's tests, into `runs/` and `truth.csv`; needs `ns` and `xz`."""

import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PATHS = {
    "before": (range(1, 11), "1Mb", "0.02"),
    "again": (range(11, 21), "1Mb", "0.02"),
    "half": (range(21, 26), "0.5Mb", "0.02"),
    "lossy": (range(31, 36), "1Mb", "0.04"),
}
"""Seeds, rate and loss of the runs of each name: the same path twice, and what became of it."""


def main() -> None:
    """Make the runs anew; the simulator gives the same bytes each time."""
    lines = ["file,data_packets,retransmitted_packets,sink_bytes\n"]
    (FOLDER / "runs").mkdir(exist_ok=True)
    for name, (seeds, rate, loss) in PATHS.items():
        for seed in seeds:
            trace = FOLDER / "runs" / f"{name}-{seed}.tr"
            command = ["ns", str(FOLDER / "path.tcl"), str(seed), rate, loss, str(trace)]
            counted = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            lines.append(f"{trace.name},{counted.strip().replace(' ', ',')}\n")
            # what left a queue says nothing that its arrival does not
            kept = [line for line in trace.read_text().splitlines(keepends=True) if line[0] != "-"]
            trace.write_text("".join(kept))
            subprocess.run(["xz", "-9e", "--force", str(trace)], check=True)
    (FOLDER / "truth.csv").write_text("".join(lines))


if __name__ == "__main__":
    main()
