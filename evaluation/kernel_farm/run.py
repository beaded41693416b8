"""Run drawn scenarios in real kernels, and keep captures with what the kernels knew.

    python evaluation/kernel_farm/run.py RUNS --seed 1 --runs 40

A kernel is Debian's user-mode-linux (6.1) with 17 congestion controls. It boots in two seconds, needs no
rights and has the host's files as its root. Runs that are done are not made again. Each folder below RUNS
gets

    scenario.json                     what was drawn
    sender, middle, receiver.pcap.gz  captures
    flow.tcp_info.csv.gz              TCP_INFO every 20 ms; the last row has the kernel's sums
    flow.application.csv.gz           when the application had data for the socket, and when not
    counters.json                     `nstat` of the ends and `tc -s` of the queues, before and after
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from boot import add_options, find_kernel, make_all
from scenario import CONTROLLERS, DURATION_S, LIMITS, draw

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs_folder", metavar="RUNS", type=Path, help="folder of the runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw")
    parser.add_argument("--runs", type=int, default=len(LIMITS), metavar="N", help="number of runs")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first run")
    parser.add_argument(
        "--limit", action="append", choices=LIMITS, help="only what is limited so; repeatable"
    )
    parser.add_argument(
        "--controller", action="append", choices=CONTROLLERS, help="only this one; repeatable"
    )
    parser.add_argument("--duration", type=float, default=DURATION_S, metavar="SECONDS", help="of each run")
    parser.add_argument("--jobs", "-j", type=int, default=2 * (os.cpu_count() or 1), help="kernels at a time")
    add_options(parser)
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="MODULE.NAME=VALUE",
        help="of a congestion control, such as tcp_cubic.beta=512; repeatable",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the scenarios and run none")
    asked = parser.parse_args(arguments)
    scenarios = [
        draw(
            asked.seed,
            number,
            limits=tuple(asked.limit or LIMITS),
            controllers=tuple(asked.controller or CONTROLLERS),
            duration_s=asked.duration,
        )
        for number in range(asked.first, asked.first + asked.runs)
    ]
    if asked.list:
        for scenario in scenarios:
            path = f"{scenario.rate_bps / 1e6:.1f} Mbit/s, {scenario.base_rtt_s * 1e3:.0f} ms"
            print(f"{scenario.name}: {path}, {scenario.queue} of {scenario.buffer_bytes} bytes")
        return 0
    kernel = find_kernel(asked.kernel, simulated_time=asked.simulated_time)
    runs = asked.runs_folder.resolve()
    folders = {runs / scenario.name: scenario for scenario in scenarios}
    return 1 if make_all(folders, kernel, asked.parameter, asked.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
