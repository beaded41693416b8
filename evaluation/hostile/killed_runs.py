"""Commands that a signal ends at a random file operation: what they leave is whole, and is completed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from case import Case, Words
from program import CHECK_FAILED, DONE, lay
from saved_forms import STUDY
from traces import LIMITS, content

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

CHECK: Final = ("check", "fast-1.tr", "--require", "sum(goodput_bps) > 0", "--cache", "out/cache")
COMMANDS: Final[tuple[Words, ...]] = (
    ("flows", "fast-1.tr", "-o", "out/flows.csv", "--format", "csv"),
    ("flows", "fast-1.tr", "-o", "out/flows.parquet", "--format", "parquet"),
    ("groups", "captures", "-o", "out/groups.json", "--format", "json"),
    ("convert", "captures", "-o", "out/packets.csv"),
    ("convert", "captures", "-o", "out/packets.arrow"),
    ("plot", "fast-1.tr", "--kind", "throughput", "-o", "out/figure.svg"),
    ("report", "fast-1.tr", "-o", "out/page.md", "--results", "out/saved", "--csv"),
    ("report", "captures", "--pages", "out/pages", "-j", "1"),
    (
        *CHECK,
        "--write-baseline",
        "out/baseline.json",
        "--junit",
        "out/junit.xml",
        "--summary",
        "out/summary.md",
    ),
    ("compare", "fast-1.tr", "fast-2.tr", "-o", "out/page.html", "--format", "html", "--cache", "out/cache"),
    ("experiment", "study.toml", "-o", "out", "--cache", "out/cache", "-j", "1", "--format", "csv"),
    ("batch", "captures", "-o", "out/results", "-j", "1"),
    ("audit", "captures", "-o", "out/audit", "-j", "1", "--limits", "limits.toml"),
    ("merge", "results", "-o", "out/merged"),
    ("lake", "results", "-o", "out/lake"),
)
SIGNALS: Final = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
TOUCHES: Final = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.chmod"})
"""Audit events of files, between which a write can be cut."""
DIFFERS: Final = ("cache/", "facts.json", "checkpoint")
"""Parts of the names of files in which times of day or of processors stand."""
LAST_MOMENT: Final = 80


class KilledRuns:
    """A killed command leaves whole files or none; the next one completes them to the byte."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        self.folder = folder
        lay_inputs(folder)
        program.run(("batch", "captures", "-o", "results", "-j", "1"), folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command, and when which signal ends it, twice."""
        # the first operations write more than the later ones, which a short command does not reach
        moments = [int(LAST_MOMENT * chance.random() ** 2) + 1 for _ in range(2)]
        signals = [chance.choice(SIGNALS) for _ in range(2)]
        setting: dict[str, int | str] = {"first": moments[0], "second": moments[1]}
        return Case(chance.choice(COMMANDS), setting={**setting, "by": signals[0], "then": signals[1]})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Kill the command twice in one folder, let it end, and compare with one that nobody killed."""
        whole, cut = folder / "whole", folder / "cut"
        for place in (whole, cut):
            shutil.copytree(self.folder, place)
            (place / "out").mkdir()
        wrong = program.run(case.line(), whole).wrong()
        expected = written(whole / "out")
        for moment, name in (("first", "by"), ("second", "then")):
            number = signal.Signals[str(case.setting[name])]
            end_at = partial(end_by, number, int(case.setting[moment]), str(cut / "out"))
            ended = program.run(case.line(), cut, before=end_at)
            if "Traceback" in ended.err:
                wrong.append(f"{name} {number.name}: {ended.err}")
            wrong += halves(written(cut / "out"), expected)
        last = program.run(case.line(), cut)
        if last.status not in {DONE, CHECK_FAILED}:
            wrong.append(f"after kills it ends with {last.status}: {last.err}")
        elif written(cut / "out") != expected:
            names = {name for name, _ in written(cut / "out").items() ^ expected.items()}
            wrong.append(f"after kills files differ: {sorted(names)[:5]}")
        return wrong


def lay_inputs(folder: Path) -> None:
    """Write small inputs of each kind: traces of a study, captures, limits."""
    for number in (1, 2):
        lay(folder / f"fast-{number}.tr", content("tests/data/ns2/probes-mixed.tr.gz", 30_000 * number))
        capture = content("tests/data/captures/linux-small-flows-snd.pcap.gz", 15_000 * number)
        lay(folder / "captures" / f"link-{number}.pcap", capture)
    (folder / "study.toml").write_text(STUDY)
    (folder / "limits.toml").write_text(LIMITS)


def end_by(number: signal.Signals, moment: int, folder: str) -> None:
    """Have this process sent a signal at its so-manieth operation on files of a folder."""
    for caught in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(caught, _end)
    touched = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal touched
        if event in TOUCHES and arguments and folder in os.path.abspath(str(arguments[0])):
            touched += 1
            if touched == moment:
                os.kill(os.getpid(), number)

    sys.addaudithook(watch)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)  # as the program does


def written(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder that every run writes alike, without those that are not yet whole."""
    return {
        name: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(part in (name := str(path.relative_to(folder))) for part in DIFFERS)
        if ".part" not in name
    }


def halves(left: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return the files that are neither whole nor of an earlier state: shorter, and the beginning of it."""
    return [
        f"`{name}` is half written"
        for name, text in left.items()
        if name in expected and text != expected[name] and expected[name].startswith(text)
    ]
