"""Attack the commands with drawn cases, and print a table of cases, commands and findings.

    python evaluation/hostile/run.py [DRIVER...] --seed N [--seconds S | --runs N] [--jobs N]
    python evaluation/hostile/run.py repeat FINDING

A finding is a folder with `case.json`, the smallest case that is still wrong, its files, and `wrong.txt` with
what is wrong and the command that repeats it. The exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from case import Case, NotHereError, smallest
from program import Program, import_everything

if TYPE_CHECKING:
    from case import Driver

DRIVERS: Final = {
    "files": "mutated_files:MutatedFiles",
    "saved": "saved_forms:SavedForms",
    "sums": "consistent_sums:ConsistentSums",
    "anonymity": "anonymity:Anonymity",
    "clocks": "odd_clocks:OddClocks",
    "threads": "thread_counts:ThreadCounts",
    "kills": "killed_runs:KilledRuns",
    "orphans": "orphans:Orphans",
    "folders": "shared_folders:SharedFolders",
    "limits": "system_limits:SystemLimits",
    "interrupts": "interrupts:Interrupts",
    "stores": "lying_stores:LyingStores",
    "cluster": "dying_workers:DyingWorkers",
}
"""Module and class by name: the quick ones first."""

FINDINGS: Final = Path(__file__).resolve().parent / "findings"
FEWEST_SECONDS: Final = 10.0
WIDTHS: Final = {"cases": 8, "commands": 9, "findings": 9, "seconds": 8}
"""Of the columns of the table."""


@dataclass
class Tally:
    """What came of a driver."""

    cases: int = 0
    commands: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    reason: str = ""
    """Why it could not run here."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    seed: int
    seconds: float | None
    runs: int | None
    jobs: int
    findings: Path


def driver_of(name: str) -> Driver:
    """Return a driver."""
    module, _, kind = DRIVERS[name].partition(":")
    driver: Driver = getattr(import_module(module), kind)()
    return driver


def judged(driver: Driver, case: Case, place: Path, program: Program) -> list[str]:
    """Run a case in a folder of its own and return what is wrong; a driver that fails is a finding, too."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        return driver.judge(case, place, program)
    except Exception:
        return [f"the driver failed: {traceback.format_exc()}"]


def kinds(problems: list[str]) -> set[str]:
    """Return problems without their numbers and quotes: what stays the same in smaller cases."""
    return {re.sub(r"\d+|`[^`]*`", "#", problem)[:80] for problem in problems}


class Worker:
    """Runs every so-manieth case of a driver and writes a line for each."""

    def __init__(self, name: str, index: int, asked: Asked, shared: Path) -> None:
        self.name, self.index, self.asked = name, index, asked
        self.driver, self.program = driver_of(name), Program()
        self.shared = shared
        self.place = shared / f"case-{index}"
        self.seen: set[str] = set()

    def work(self) -> None:
        """Run cases until their number or the time is over."""
        started = time.monotonic()
        number = self.index
        with (self.shared / f"lines-{self.index}").open("w", encoding="utf-8") as lines:
            while (self.asked.runs is None or number < self.asked.runs) and (
                self.asked.seconds is None or time.monotonic() - started < self.asked.seconds
            ):
                finding = self.one(number)
                number += self.asked.jobs
                print(json.dumps([self.program.runs, finding]), file=lines, flush=True)
                self.program.runs = 0

    def prepare(self) -> None:
        """Write what the cases share."""
        prepared = self.shared / f"shared-{self.index}"
        prepared.mkdir()
        self.driver.prepare(prepared, self.program)

    def one(self, number: int) -> str | None:
        """Run one case; return the folder of a finding of a new kind."""
        case = self.driver.draw(random.Random(f"{self.asked.seed} {self.name} {number}"))
        problems = judged(self.driver, case, self.place, self.program)
        found = kinds(problems)
        if not found or found <= self.seen:
            return None
        self.seen |= found

        def is_wrong(one: Case) -> bool:
            return bool(found & kinds(judged(self.driver, one, self.place, self.program)))

        least = smallest(case, is_wrong)
        problems = judged(self.driver, least, self.place, self.program) or problems
        return str(self.save(number, least, problems))

    def save(self, number: int, case: Case, problems: list[str]) -> Path:
        """Keep a finding: the case, its files, what is wrong, and how to repeat it."""
        folder = self.asked.findings / f"{self.name}-{self.asked.seed}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.place, folder, symlinks=True)
        (folder / "case.json").write_text(case.as_json(), encoding="utf-8")
        again = f"python evaluation/hostile/run.py repeat {folder}"
        line = " ".join(case.line())
        (folder / "wrong.txt").write_text("\n".join([*problems, line, again, ""]), encoding="utf-8")
        return folder


def perform(name: str, asked: Asked) -> Tally:
    """Run a driver in as many processes as asked; each is a fork, whose cases are forks again."""
    tally, started = Tally(), time.monotonic()
    with TemporaryDirectory(prefix="hostile-") as made:
        shared = Path(made)
        children = []
        for index in range(asked.jobs):
            sys.stdout.flush()
            child = os.fork()
            if not child:
                _work_and_end(Worker(name, index, asked, shared))
            children.append(child)
        for child in children:
            _wait(name, child, shared)
        tally.seconds = time.monotonic() - started
        for index in range(asked.jobs):
            lines, reason = shared / f"lines-{index}", shared / f"reason-{index}"
            tally.reason = tally.reason or (reason.read_text("utf-8") if reason.exists() else "")
            for line in lines.read_text("utf-8").splitlines() if lines.exists() else ():
                commands, finding = json.loads(line)
                tally.cases += 1
                tally.commands += commands
                tally.findings += [finding] if finding else []
    return tally


def _work_and_end(worker: Worker) -> None:
    status = 1
    try:
        worker.prepare()
        worker.work()
        status = 0
    except NotHereError as error:
        (worker.shared / f"reason-{worker.index}").write_text(str(error), encoding="utf-8")
    except BaseException:
        text = traceback.format_exc()
        (worker.shared / f"reason-{worker.index}").write_text(f"it failed: {text}", encoding="utf-8")
    finally:
        os._exit(status)


def _wait(name: str, child: int, shared: Path) -> None:
    """Wait for a process, and show on a terminal how many cases are done."""
    while not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.2)
        if sys.stderr.isatty():
            done = sum(path.read_bytes().count(b"\n") for path in shared.glob("lines-*"))
            print(f"\r{name}: {done} cases ", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def repeat(folder: Path) -> int:
    """Run the case of a finding again and print what is wrong."""
    name = folder.name.partition("-")[0]
    case = Case.from_json((folder / "case.json").read_text("utf-8"))
    driver, program = driver_of(name), Program()
    with TemporaryDirectory(prefix="hostile-") as made:
        shared = Path(made, "shared")
        shared.mkdir()
        driver.prepare(shared, program)
        problems = judged(driver, case, Path(made, "case"), program)
    print(*(problems or ["nothing is wrong any more"]), sep="\n")
    return int(bool(problems))


def campaign(names: list[str], asked: Asked) -> int:
    """Run drivers, print a line for each, and return the exit status."""
    asked.findings.mkdir(parents=True, exist_ok=True)
    total: Counter[str] = Counter()
    failed = False
    print(f"{'driver':<12}", *(f"{column:>{width}}" for column, width in WIDTHS.items()), flush=True)
    for name in names:
        tally = perform(name, asked)
        numbers = (tally.cases, tally.commands, len(tally.findings), round(tally.seconds))
        counts = dict(zip(WIDTHS, numbers, strict=True))
        total.update(counts)
        print(f"{name:<12}", *(f"{counts[column]:>{width},}" for column, width in WIDTHS.items()), flush=True)
        if tally.reason:
            print(f"  not run: {tally.reason}", flush=True)
            failed |= tally.reason.startswith("it failed")
        for finding in tally.findings:
            first = (Path(finding) / "wrong.txt").read_text("utf-8").splitlines()[0]
            print(f"  {finding}: {first}", flush=True)
    of_all = [f"{total[name]:>{width},}" for name, width in WIDTHS.items()]
    print(f"{'all':<12}", *of_all)
    return int(bool(total["findings"]) or failed)


def main() -> int:
    """Run drivers, or repeat a finding."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "drivers", nargs="*", metavar="DRIVER", help=f"of {', '.join(DRIVERS)} (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other cases (default: 1)")
    parser.add_argument("--seconds", type=float, help=f"time of each driver (default: {FEWEST_SECONDS:.0f})")
    parser.add_argument("--runs", type=int, help="cases of each driver")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time (default: 1)")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="where findings are kept")
    given = parser.parse_args()
    import_everything()
    if given.drivers[:1] == ["repeat"] and len(given.drivers) == 2:
        return repeat(Path(given.drivers[1]))
    unknown = sorted(set(given.drivers) - set(DRIVERS))
    if unknown:
        parser.error(f"no driver `{unknown[0]}`; there are {', '.join(DRIVERS)}")
    seconds = FEWEST_SECONDS if given.seconds is None and given.runs is None else given.seconds
    asked = Asked(given.seed, seconds, given.runs, given.jobs, given.findings.resolve())
    return campaign(given.drivers or list(DRIVERS), asked)


if __name__ == "__main__":
    sys.exit(main())
