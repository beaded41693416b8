"""Commands below limits of open files, sizes of files, and memory (`ulimit`)."""

from __future__ import annotations

import resource
import shutil
from typing import TYPE_CHECKING, Final

from case import Case, Words
from killed_runs import COMMANDS, halves, lay_inputs, written
from program import CHECK_FAILED, DESIGNED, DONE, NO_RESOURCES, ended

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from program import Program

MEBIBYTE: Final = 1 << 20
LIMITS: Final[dict[str, tuple[int, ...]]] = {
    # with 4, Python itself ends in a traceback before it runs any program
    "RLIMIT_NOFILE": (5, 6, 8, 10, 12, 16, 20, 32, 64),
    "RLIMIT_FSIZE": (0, 1, 100, 4_096, 20_000, 100_000),
    "RLIMIT_AS": tuple(size * MEBIBYTE for size in (60, 100, 150, 200, 300, 400, 700, 1_000)),
}

MORE: Final[tuple[Words, ...]] = (
    ("batch", "captures", "-o", "out/results", "-j", "2", "--chains", "none"),
    ("experiment", "study.toml", "-o", "out", "--cache", "none", "-j", "2"),
)


class SystemLimits:
    """A command below a limit does its work, or ends with a sentence and 71, and leaves no half of a file."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        self.folder = folder
        lay_inputs(folder)
        program.run(("batch", "captures", "-o", "results", "-j", "1"), folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command and a limit."""
        which = chance.choice(sorted(LIMITS))
        setting: dict[str, int | str] = {"which": which, "most": chance.choice(LIMITS[which])}
        return Case(chance.choice((*COMMANDS, *MORE)), setting=setting)

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command with and without the limit."""
        free, limited = folder / "free", folder / "limited"
        for place in (free, limited):
            shutil.copytree(self.folder, place)
            (place / "out").mkdir()
        program.run(case.line(), free)
        which, most = str(case.setting["which"]), int(case.setting["most"])
        process = program.start(case.line(), limited, before=limit(which, most))
        end = ended(process)
        wrong = end.wrong(DESIGNED | {NO_RESOURCES})
        if end.status == NO_RESOURCES and "hint:" not in end.err:
            wrong.append(f"ends with {end.status} without a hint: {end.err}")
        expected, left = written(free / "out"), written(limited / "out")
        wrong += halves(left, expected)
        if end.status in {DONE, CHECK_FAILED} and left != expected:
            wrong.append(f"files differ: {sorted({name for name, _ in left.items() ^ expected.items()})[:5]}")
        return wrong


def limit(which: str, most: int) -> Callable[[], None]:
    """Return what limits a child before it becomes the program."""

    def lower() -> None:
        number = getattr(resource, which)
        resource.setrlimit(number, (most, resource.getrlimit(number)[1]))

    return lower
