"""Real traces with changed bytes, through every command with random options."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from case import Case, Edit
from edits import changed, drawn_bytes, drawn_place
from program import lay
from traces import LIMITS, content, drawn_command, drawn_trace, plain_name

if TYPE_CHECKING:
    import random

    from program import Program


class MutatedFiles:
    """A changed trace ends in a designed status and a sentence, within bounds of memory and time."""

    def prepare(self, folder: Path, program: Program) -> None:
        """Share nothing."""

    def draw(self, chance: random.Random) -> Case:
        """Draw a trace, a command, and changes."""
        trace = drawn_trace(chance)
        command, options = drawn_command(chance)
        places = [(drawn_place(chance), *drawn_bytes(chance)) for _ in range(chance.choice((1, 1, 2, 4, 9)))]
        edits = tuple(Edit(trace, kind, at, removed, put) for at, kind, removed, put in places)
        setting = {
            "length": chance.choice((300, 3_000, 30_000, 250_000)),
            "gzip": int(chance.random() < 0.1),
        }
        name = plain_name(trace)
        command = (*command, name + ".gz" if setting["gzip"] else name)
        return Case(command, options, edits, {**setting, "trace": trace})

    def judge(self, case: Case, folder: Path, program: Program) -> list[str]:
        """Run the command on the changed trace."""
        original = content(str(case.setting["trace"]))[: int(case.setting["length"])]
        path = folder / Path(case.command[-1]).name
        # a compressed file is changed as it is, so that its decompressor meets the changes
        packed = gzip.compress(original, mtime=0) if case.setting["gzip"] else original
        lay(path, changed(packed, case.edits))
        if case.command[0] == "compare":
            lay(folder / "trace.same", original)
        (folder / "limits.toml").write_text(LIMITS)
        return program.run(case.line(), folder).wrong()
