"""Read the files of a chain in one pass, of one that has grown only those after its checkpoint."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tfrctrace.base.errors import FilterError, InputError, input_problem, printable
from tfrctrace.base.interruptible import in_thread
from tfrctrace.parsers.sources import natural_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.batch.capture_files import CaptureFile
    from tfrctrace.batch.growing_chains import Predecessor
    from tfrctrace.parsers._native import Analysis, Source
    from tfrctrace.parsers.reading_settings import ReadSettings


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """Where a checkpoint is written: after so many files of the chain of a key."""

    path: str
    key: str
    files: int


@dataclass(frozen=True, slots=True)
class ChainReading:
    """The pass over a chain, and the digests of its files as far as they are known."""

    analysis: Analysis
    digests: list[str | None]
    was_lost: bool
    """Whether a store failed."""
    is_saved: bool
    """Whether a checkpoint was written."""
    goes_on: bool
    """Whether it began after the checkpoint of the predecessor."""
    again: dict[str, int] = field(default_factory=dict)
    """Bytes that were read before, by the reason why they had to be read again."""


class _RefusedError(Exception):
    """The files do not go on from the checkpoint."""


def read_chain(
    files: Sequence[CaptureFile],
    settings: ReadSettings,
    before: Predecessor | None,
    checkpoint: NewCheckpoint | None,
    *,
    causes: bool = False,
) -> ChainReading:
    """Read the files after those of the predecessor if they go on from them, else all.

    With `causes` groups have times by cause.
    """
    collect = frozenset(("flows", "rtp_sources", *(("causes",) if causes else ())))
    if before is None:
        return _read_behind(None, files, settings, checkpoint, collect)
    refusal = before.refusal
    if refusal is None:
        try:
            return _read_behind(before, files, settings, checkpoint, collect)
        except _RefusedError as error:
            refusal = str(error)
    return replace(_read_behind(None, files, settings, checkpoint, collect), again={refusal: before.size})


def _read_behind(
    before: Predecessor | None,
    files: Sequence[CaptureFile],
    settings: ReadSettings,
    checkpoint: NewCheckpoint | None,
    collect: frozenset[str],
) -> ChainReading:
    from tfrctrace.parsers._native import Progress, analyse_chain
    from tfrctrace.parsers.stretches import with_ends

    progress = Progress(digests=True)
    known = before.files if before else ()
    new = files[len(known) :]
    by_name = sorted(new, key=lambda file: natural_key(file.name))
    sources = [_source(file, settings) for file in by_name]
    resume = (before.checkpoint, _stamp(before.key, len(known))) if before else None
    save = None
    if checkpoint is not None and checkpoint.files >= len(known):
        left_out = None if checkpoint.files == len(files) else by_name.index(files[-1])
        save = checkpoint.path, _stamp(checkpoint.key, checkpoint.files), left_out
    try:
        analysis, refusal = in_thread(
            lambda: analyse_chain(
                sources,
                with_ends(sources, settings, progress),
                collect=collect,
                progress=progress,
                resume=resume,
                save=save,
            )
        )
    except FilterError as error:
        text = f"filter `{error.expression}` does not fit its link type: {error.reason}"
        raise InputError([input_problem(by_name[0].name, "filter", text, hint=error.hint)]) from error
    if analysis is None:
        raise _RefusedError(refusal)
    was_lost = any(
        isinstance(source, tuple) and getattr(source[1], "has_failed", False) for source in sources
    )
    digests = [*(one["xxh64"] for one in known), *(_digest(file, progress.digest(file.path)) for file in new)]
    is_saved = save is not None and refusal is None
    return ChainReading(analysis, digests, was_lost, is_saved, goes_on=before is not None)


def _source(file: CaptureFile, settings: ReadSettings) -> Source:
    """Return what the core reads, under the name that results have on every machine."""
    if file.is_remote:
        from tfrctrace.parsers.remote import RemoteFile

        return printable(file.name), RemoteFile(file.path, settings.store, etag=str(file.version) or None)
    return printable(file.name), os.fspath(file.path)


def _stamp(key: str, files: int) -> str:
    """Return what a checkpoint after so many files of a chain is made of."""
    return f"{key} {files}"


def _digest(file: CaptureFile, found: tuple[int, str] | None) -> str | None:
    """Return the digest of a file that was read whole."""
    return found[1] if found is not None and found[0] == file.size else None
