"""Chains that grow: a batch continues after the files that the one before has read, from its checkpoint.

A checkpoint is the state of a pass after the last file, beside the results of the chain. It is used only by
the same build, with the same options, and for the same files with others after them.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.batch.chains import Chain
    from tfrctrace.runs.cache import Record

_GROWS_FOR_NS: Final = 8 * 86_400 * 10**9
"""A chain whose last file is younger may get another one: many are rotated each week."""

_IS_WRITTEN_NS: Final = 600 * 10**9
"""A younger file may still be written: writers keep what comes on a quiet link for minutes."""


def files_to_keep(chain: Chain) -> int:
    """Return after how many files of a chain a checkpoint is worth it; 0 for none.

    The last file counts if it is complete. A single file is as quickly read again.
    """
    files, written_ns = len(chain.files), chain.files[-1].version
    if files == 1 or not isinstance(written_ns, int):
        return 0
    age_ns = abs(time.time_ns() - written_ns)
    return files - (age_ns < _IS_WRITTEN_NS) if age_ns < _GROWS_FOR_NS else 0


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The results that a chain had before it got more files."""

    key: str
    files: Sequence[Mapping[str, Any]]
    """Those that were read before, without one that was not complete."""
    checkpoint: str
    refusal: str | None
    """Why the chain does not go on from them."""

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file["bytes"] for file in self.files)


def predecessor(
    facts: Record | None,
    checkpoint: tuple[str, int] | None,
    program: str,
    options: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
) -> Predecessor | None:
    """Return what facts and their checkpoint are for a chain of these `files`; None if it has no more."""
    if facts is None or (facts["failed"] and checkpoint is None):
        return None
    path, count = checkpoint or ("", len(facts["files"]))
    known = facts["files"][:count]
    is_same = facts["program"] == program and facts["options"] == options
    if len(known if is_same else facts["files"]) >= len(files):
        return None
    refusal: str | None
    if facts["program"] != program:
        refusal = "another build of this program had read them"
    elif facts["options"] != options:
        refusal = "they were read with other options"
    elif any(_state(one) != _state(other) for one, other in zip(known, files, strict=False)):
        refusal = "one of them changed, or a new file is not after them"
    elif checkpoint is None and len(known) == 1:
        refusal = "of a single file no checkpoint is kept"
    else:
        refusal = _refused_file(path)
    return Predecessor(facts["key"], known, path, refusal)


def _state(file: Mapping[str, Any]) -> tuple[Any, ...]:
    return file["name"], file["bytes"], file["version"]


def _refused_file(path: str) -> str | None:
    """Return why a checkpoint is not read: what it holds is trusted, so it has to be one's own."""
    try:
        status = os.lstat(path)
    except OSError:
        return "there is no checkpoint"
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return None if is_own else "others may have written the checkpoint"
