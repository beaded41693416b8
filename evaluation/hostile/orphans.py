"""Commands with workers whose parent is killed: no process outlives it for long."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from case import Case, NotHereError, Words
from killed_runs import lay_inputs

if TYPE_CHECKING:
    import random

    from program import Program

COMMANDS: Final[tuple[Words, ...]] = (
    ("batch", "captures", "-o", "results", "-j", "2", "--chains", "none"),
    ("report", "captures", "--pages", "pages", "-j", "2"),
    ("experiment", "study.toml", "-o", "study", "--cache", "none", "-j", "2"),
    ("compare", "fast-1.tr", "fast-2.tr", "--cache", "none", "-j", "2"),
    ("check", "fast-1.tr", "fast-2.tr", "--require", "packets > 0", "-j", "2"),
    ("audit", "captures", "-o", "audit", "-j", "2", "--profile", "voice"),
)
PATIENCE_S: Final = 60
"""How long what is left may take on a busy machine: it ends within seconds on another."""


class Orphans:
    """All processes of a command end soon after its parent is killed."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        if not Path("/proc/self/stat").exists():
            raise NotHereError("there is no /proc in which to look for processes")
        self.folder = folder
        lay_inputs(folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command and when its parent is killed."""
        return Case(chance.choice(COMMANDS), setting={"ms": chance.randrange(200, 5_000)})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Kill the parent and wait for the others."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        process = program.start(case.line(), folder)
        with contextlib.suppress(Exception):
            process.wait(int(case.setting["ms"]) / 1_000)
        process.kill()
        process.wait()
        until = time.monotonic() + PATIENCE_S
        while (left := alive_in(process.pid)) and time.monotonic() < until:
            time.sleep(0.1)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if left:
            os.killpg(process.pid, signal.SIGKILL)
            return [f"{len(left)} processes outlive their parent by {PATIENCE_S} s"]
        return []


def alive_in(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of_session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has ended meanwhile
        if int(of_session) == session and state != "Z":
            found.append(int(path.parent.name))
    return found
