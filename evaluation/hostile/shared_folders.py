"""Two processes that write to one folder at once."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Final

from case import Case, Words
from killed_runs import lay_inputs, written
from program import CHECK_FAILED, DONE, ended

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

CHECK: Final = ("check", "fast-1.tr", "--require", "sum(goodput_bps) > 0", "--cache", "out/cache")
COMMANDS: Final[tuple[Words, ...]] = (
    ("batch", "captures", "-o", "out", "-j", "1"),
    ("batch", "captures", "-o", "out", "-j", "2", "--chains", "none"),
    ("audit", "captures", "-o", "out", "-j", "1", "--limits", "limits.toml"),
    ("lake", "results", "-o", "out"),
    ("merge", "results", "-o", "out"),
    ("report", "fast-1.tr", "-o", "out/page.md", "--results", "out/saved", "--csv"),
    ("report", "captures", "--pages", "out", "-j", "1"),
    ("experiment", "study.toml", "-o", "out", "--cache", "out/cache", "-j", "1", "--format", "csv"),
    (*CHECK, "--write-baseline", "out/baseline.json"),
    (*CHECK, "--history", "out/history", "--build", "now"),
    ("convert", "captures", "-o", "out/packets.parquet"),
)
TIMES: Final = "history/"
"""Files that hold when a check was made."""


class SharedFolders:
    """Two commands in one folder end as one does; neither leaves half of a file."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        self.folder = folder
        lay_inputs(folder)
        program.run(("batch", "captures", "-o", "results", "-j", "1"), folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command, and how much later the second one starts."""
        return Case(chance.choice(COMMANDS), setting={"ms": chance.choice((0, 0, 50, 300, 1_000))})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command once alone and twice at once, and compare."""
        alone, shared = folder / "alone", folder / "shared"
        for place in (alone, shared):
            shutil.copytree(self.folder, place)
            (place / "out").mkdir()
        wrong = program.run(case.line(), alone).wrong()
        first = program.start(case.line(), shared)
        time.sleep(int(case.setting["ms"]) / 1_000)
        second = program.start(case.line(), shared)
        for end in (ended(first), ended(second)):
            wrong += end.wrong()
            # one may be told that the other is at it, in a sentence
            if end.status not in {DONE, CHECK_FAILED} and "another" not in end.err:
                wrong.append(f"ends with {end.status} beside another: {end.err}")
        of_one, of_two = (
            {name: text for name, text in written(place / "out").items() if TIMES not in name}
            for place in (alone, shared)
        )
        if of_one != of_two:
            wrong.append(f"files differ: {sorted({name for name, _ in of_one.items() ^ of_two.items()})[:5]}")
        parts = [str(path) for path in (shared / "out").rglob("*.part")]
        wrong += [f"parts are left: {parts[:3]}"] if parts else []
        return wrong + entries(shared / "out" / "history" / "history.jsonl")


def entries(history: Path) -> list[str]:
    """Return what is wrong with a history that two checks wrote: each has a line, whole."""
    if not history.exists():
        return []
    lines = history.read_text("utf-8").splitlines()
    try:
        builds = [json.loads(line)["build"] for line in lines]
    except ValueError as error:
        return [f"the history is broken: {error}"]
    return [] if builds == ["now", "now"] else [f"the history has the builds {builds}"]
