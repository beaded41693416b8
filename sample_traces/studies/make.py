"""Simulate the five studies with ns-2 (`ns`, Debian's package `ns2`), and measure them.

    python3 sample_traces/studies/make.py --out FOLDER [STUDY ...]    # at the papers' own scale
    python3 sample_traces/studies/make.py --scale small [STUDY ...]   # the traces that this folder has

A run that is done is not made again, so it may be stopped at any time, and goes on where it was. One that
fails leaves its message where its trace would be, in a file that ends in `.failed`; the others go on.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from campaign import Campaign  # noqa: E402
from workshop import Workshop  # noqa: E402

if TYPE_CHECKING:
    from types import ModuleType

STUDIES = sorted(path.parent.name for path in HERE.glob("*/runs.py"))


def load_study(study: str) -> ModuleType:
    """Import the list of runs of a study: `runs()`, and FULL_VALUES, the `[values]` of the full scale."""
    spec = importlib.util.spec_from_file_location(f"{study.replace('-', '_')}_runs", HERE / study / "runs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def full_study(text: str, values: dict[str, str]) -> str:
    """Return the text of a study file with these `[values]`."""
    head, found, table = text.partition("[values]\n")
    table, bracket, rest = table.partition("\n[")
    for name, value in values.items():
        table = re.sub(rf'(?m)^{name} = ".*?"', f'{name} = "{value}"', table)
    return head + found + table + bracket + rest


def measure(folder: Path) -> bool:
    """Measure the runs of a study and write its page; return whether that could be done."""
    study = folder / "study.toml"
    study.write_text(
        full_study((HERE / folder.name / study.name).read_text(), load_study(folder.name).FULL_VALUES)
    )
    command = [sys.executable, "-m", "tfrctrace", "experiment", str(study), "-o", str(folder / "results")]
    print(*command, file=sys.stderr)
    return subprocess.run(command, check=False).returncode in {0, 1}


def parse_arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("studies", nargs="*", metavar="STUDY", help=f"default: all of {', '.join(STUDIES)}")
    add(
        "--scale",
        choices=("full", "small"),
        default="full",
        help="the papers' own (default), or that of the shipped traces",
    )
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where traces and pages go (with `--scale small`: this folder)",
    )
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="simulations at a time (default: one per core)",
    )
    add("--only", metavar="PATTERN", default="*", help="only runs whose names match, such as 'mix-reno-*'")
    add("--list", action="store_true", help="print the names of the runs")
    add("--no-pages", action="store_true", help="make the traces only")
    given = parser.parse_args()
    for study in given.studies:
        if study not in STUDIES:
            parser.error(f"there is no study `{study}`; there are {', '.join(STUDIES)}")
    if given.jobs < 1:
        parser.error("--jobs: at least 1")
    if given.out is None and given.scale == "full" and not given.list:
        parser.error("--out FOLDER is missing: the traces of all studies take several GB")
    given.out = given.out or HERE
    return given


def main() -> int:
    """Make the runs that the command line asks for."""
    given = parse_arguments()
    names = given.studies or STUDIES
    listed = {name: load_study(name).runs(small=given.scale == "small") for name in names}
    if given.list:
        print(*(f"{name}/{run.name}" for name in names for run in listed[name]), sep="\n")
        return 0
    if shutil.which("ns") is None:
        print(
            "`ns` is missing: ns-2 simulates these studies (on Debian and Ubuntu: apt install ns2)",
            file=sys.stderr,
        )
        return 2
    shops = [Workshop(given.out / name, listed[name], given.scale) for name in names]
    for shop in shops:
        shop.discard_others()
        shop.runs = [run for run in shop.runs if fnmatch.fnmatch(run.name, given.only)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        failed = Campaign(shops, given.jobs).perform()
    except KeyboardInterrupt:
        return 130
    for shop in shops:
        shop.runs = listed[shop.folder.name]
        shop.write_truth()
    with_pages = given.scale == "full" and not given.no_pages
    measured = [measure(shop.folder) for shop in shops] if with_pages else []
    return 1 if failed or not all(measured) else 0


if __name__ == "__main__":
    sys.exit(main())
