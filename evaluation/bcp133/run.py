"""Run the scenarios of the study `bcp133` for one congestion control, in real kernels or in ns-2.

    python evaluation/bcp133/run.py --controller cubic -o RUNS
    python evaluation/bcp133/run.py --controller tfrc --ns2 -o SIMULATIONS

The kernels and what each run leaves are those of `evaluation/kernel_farm`. A run is the folder
RUNS/CONTROLLER/SCENARIO/SEED; runs that are done are not made again, so the same command goes on. Runs of
kernels and of ns-2 belong into different folders: they are not the same place.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernels
import simulations

from tfrctrace.study.file.study_file import find_study, read_study

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = dict.fromkeys((*kernels.CONTROLLERS, *simulations.CONTROLLERS))
    parser.add_argument("--controller", required=True, choices=known, help="the newcomer")
    parser.add_argument("--ns2", action="store_true", help="simulate in place of kernels")
    parser.add_argument("--output", "-o", required=True, type=Path, metavar="RUNS", help="folder of the runs")
    parser.add_argument("--name", help="what its runs are called; default: the controller")
    parser.add_argument(
        "--scenario", action="append", metavar="NAME", help="only this one; repeatable; default: all"
    )
    parser.add_argument("--seed", action="append", type=int, help="repeatable; default: 1, 2 and 3")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="kernels at a time")
    kernels.add_options(parser)
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="MODULE.NAME=VALUE",
        help="of a congestion control, such as tcp_bic.beta=1000; in ns-2 of the newcomer: beta=1000",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the scenarios and run none")
    asked = parser.parse_args(arguments)
    judging = read_study(find_study("bcp133")).judging
    assert judging is not None
    places = {place.name: place for place in judging.places}
    if wrong := [name for name in asked.scenario or () if name not in places]:
        parser.error(f"no scenario is named {wrong[0]!r}; there are {', '.join(places)}")
    chosen = [places[name] for name in asked.scenario or places]
    if asked.list:
        for place in chosen:
            print(f"{place.name}: {place.says}; {place.path_text()}")
        return 0
    root = asked.output.resolve() / (asked.name or asked.controller)
    folders = {
        # all scenarios of one seed first, so that an early end leaves repetitions of all alike
        root / place.name / str(seed): (place, asked.controller, seed)
        for seed in asked.seed or (1, 2, 3)
        for place in chosen
    }
    if asked.ns2:
        failed = simulations.make_runs(folders, judging, asked.parameter)
    else:
        kernel = kernels.find_kernel(asked.kernel, simulated_time=asked.simulated_time)
        failed = kernels.make_runs(folders, judging, asked.parameter, asked.jobs, kernel)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
