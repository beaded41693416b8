"""Ctrl-C at a random import of a command, or at a random moment of one with workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from case import Case, Words
from killed_runs import lay_inputs
from orphans import COMMANDS as WITH_WORKERS
from program import DESIGNED, INTERRUPTED, ended
from traces import options_of

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

AT_IMPORT: Final = """
import os, signal, sys
from itertools import count
imports, moment = count(), int(sys.argv.pop(1))
def watch(event, arguments):
    if event == "import" and next(imports) == moment:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(watch)
from tfrctrace.__main__ import main
main()
"""
FIRST_IMPORT: Final = 12
"""The interpreter and the modules with which the program can catch an interrupt come before."""
MOST_IMPORTS: Final = 900

ALONE: Final[tuple[Words, ...]] = tuple(
    (*words, *(("--kind", "throughput") if name == "plot" else ()), "fast-1.tr")
    for name, (words, _) in options_of().items()
    if name != "compare"
)
MOST_LINES: Final = 1


class Interrupts:
    """A command that is interrupted ends with 130, a line, and no traceback of it or of its workers."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        self.folder = folder
        lay_inputs(folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command and when it is interrupted."""
        if chance.random() < 0.6:
            moment = FIRST_IMPORT + int((MOST_IMPORTS - FIRST_IMPORT) * chance.random() ** 2)
            return Case(chance.choice(ALONE), setting={"import": moment})
        return Case(chance.choice(WITH_WORKERS), setting={"ms": chance.randrange(500, 5_000)})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Interrupt the command, and its workers as a terminal does."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        if "import" in case.setting:
            command = (sys.executable, "-c", AT_IMPORT, str(case.setting["import"]))
            process = program.start(case.line(), folder, command=command)
        else:
            process = program.start(case.line(), folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(int(case.setting["ms"]) / 1_000)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        end = ended(process)
        if end.status in DESIGNED:
            return end.wrong()  # it was over before
        lines = [line for line in end.err.splitlines() if "interrupt" in line.lower() or "File" in line]
        wrong = end.wrong(frozenset({INTERRUPTED}))
        if "Traceback" in end.err or len(lines) > MOST_LINES:
            wrong.append(f"prints {len(lines)} lines about the interrupt: {end.err[-1_000:]}")
        return wrong
