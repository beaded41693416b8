"""The same command on one processor and on several, with one worker and with several: the same bytes."""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from case import Case, NotHereError, Words
from killed_runs import lay_inputs, written
from program import lay
from traces import LIMITS, content, drawn_command, drawn_trace, plain_name

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from program import Program

WORKERS: Final[tuple[Words, ...]] = (
    ("batch", "captures", "-o", "out", "--chains", "none"),
    ("report", "captures", "--pages", "out"),
    ("experiment", "study.toml", "-o", "out", "--cache", "none", "--format", "csv"),
    ("check", "fast-1.tr", "fast-2.tr", "--require", "packets > 0", "--format", "json"),
    ("compare", "fast-1.tr", "fast-2.tr", "--cache", "none", "--format", "json"),
    ("audit", "captures", "-o", "out", "--limits", "limits.toml"),
)
LONGEST: Final = 4_000_000
"""Bytes of a trace: below some size nothing is divided among threads."""
RANDOM: Final = frozenset({"--anonymize", "--history", "--write-baseline"})
"""Options after which a result has a random key or the time of day."""


class ThreadCounts:
    """Results do not depend on how many processors or workers there are."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Write inputs."""
        if len(os.sched_getaffinity(0)) < 2:
            raise NotHereError("there is one processor")
        self.folder = folder
        lay_inputs(folder)

    def draw(self, chance: random.Random) -> Case:
        """Draw a command for a trace, or one with workers."""
        if chance.random() < 0.25:
            return Case(chance.choice(WORKERS), setting={"jobs": chance.choice((2, 3))})
        command, options = drawn_command(chance)
        trace = drawn_trace(chance)
        options = tuple(option for option in options if option[0] not in RANDOM)
        return Case((*command, plain_name(trace)), options, setting={"trace": trace})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command in both ways, in folders of the same name."""
        ways = ({"jobs": 1}, case.setting) if "jobs" in case.setting else ({"one": 1}, {})
        answers = []
        for way in ways:
            place = folder / "here"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            if "trace" in case.setting:
                trace = content(str(case.setting["trace"]), LONGEST)
                lay(place / case.command[-1], trace)
                lay(place / "trace.same", trace)
                (place / "limits.toml").write_text(LIMITS)
            else:
                shutil.copytree(self.folder, place, dirs_exist_ok=True)
            jobs = ["-j", str(way["jobs"])] if "jobs" in way else []
            one = partial(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
            before = one if "one" in way else int
            if int(way.get("jobs", 1)) > 1:
                ended_here = started(program, [*case.line(), *jobs], place)
            else:
                end = program.run([*case.line(), *jobs], place, before=before)
                ended_here = (end.status, end.out, end.err)
            answers.append((ended_here, written(place)))
        (first, files), (second, others) = answers
        wrong = [] if first[:2] == second[:2] else [f"outputs differ: {first} {second}"]
        wrong += [
            f"the file {name} differs"
            for name in sorted({name for name, _ in files.items() ^ others.items()})
        ]
        return wrong


def started(program: Program, line: list[str], place: Path) -> tuple[int, bytes, str]:
    """Run a command whose workers are spawned, which a fork of this process cannot be."""
    process = program.start(line, place)
    out, err = process.communicate()
    return process.returncode, out, err.decode(errors="replace")
