"""What a silence of a link was: the capture stopped, or it ran and nothing passed, by what proves it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

SilenceKind = Literal["link dead", "nobody there", "capture stopped", "unknown"]
SilenceProof = Literal[
    "empty files",
    "other packets",
    "capture running",
    "nothing received",
    "filtered packets",
    "capture filter",
    "missing files",
    "capture ended",
    "dropped packets",
    "all links silent",
    "other links",
    "one file",
]

_TOLERANCE: Final = 1.1
"""Usual lengths of files between the first packets of two files, for each file from one to the other, if none
is missing."""

_LITTLE: Final = 0.1
_MUCH: Final = 0.5
"""Shares of a silence in which no capture ran, up to which it did, and from which it did not."""

_RAN: Final[frozenset[SilenceProof]] = frozenset(
    {"empty files", "other packets", "capture running", "nothing received", "filtered packets"}
)
"""What shows that the capture ran, whatever else was silent."""
_STOPPED: Final[frozenset[SilenceProof]] = frozenset(
    {"missing files", "capture ended", "dropped packets", "all links silent"}
)
_REFUSED: Final[frozenset[SilenceProof]] = frozenset({"filtered packets", "capture filter"})
_PASSED: Final = _RAN | _REFUSED
"""What tells why nothing passed a capture that ran."""
SURE_PROOFS: Final = _RAN | _STOPPED - {"all links silent"}
"""Those by the capture itself: another link may be silent by chance, and a program stand still."""


@dataclass(frozen=True, slots=True)
class CaptureStatistics:
    """What the capturing program says of a file: from when to when it captured, and what it counted."""

    start_ns: int
    end_ns: int
    received: int | None
    """Packets that the interfaces received."""
    accepted: int | None
    """Those of them that the filter let through."""
    dropped: int | None
    recorded: int
    """Packets in the file."""


@dataclass(frozen=True, slots=True)
class FileExtent:
    """A file of a capture, with the times of its packets of any kind."""

    number: int | None
    """In a row of rotated files; None of files that are named by times."""
    start_ns: int | None
    """None of a file without packets."""
    end_ns: int | None
    statistics: CaptureStatistics | None = None
    """None where the file has none."""
    is_filtered: bool = False
    """Whether the capture says that it had a filter."""


@dataclass(frozen=True, slots=True)
class SilenceFacts:
    """What a silence was, and what proves it."""

    kind: SilenceKind
    proofs: tuple[SilenceProof, ...]


def silence_facts(
    begin_ns: int, end_ns: int, files: Sequence[FileExtent], others: Sequence[bool]
) -> SilenceFacts:
    """Return what a silence of a link was.

    `files` are those of its capture in the order of their names, `others` says of each other
    link of the same capture point whether it had packets meanwhile.
    """
    proofs = [*_proofs_of_files(begin_ns, end_ns, files), *_proofs_of_statistics(begin_ns, end_ns, files)]
    if _is_filtered(begin_ns, end_ns, files):
        proofs.append("capture filter")
    if others:
        proofs.append("other links" if any(others) else "all links silent")
    # what a filter refused may have passed all the time
    nothing_passed: SilenceKind = "nobody there" if _REFUSED.intersection(proofs) else "link dead"
    if "dropped packets" in proofs:
        return SilenceFacts("capture stopped", tuple(proof for proof in proofs if proof not in _PASSED))
    if _RAN.intersection(proofs):
        return SilenceFacts(nothing_passed, tuple(proof for proof in proofs if proof not in _STOPPED))
    if _STOPPED.intersection(proofs):
        return SilenceFacts("capture stopped", tuple(proof for proof in proofs if proof not in _REFUSED))
    return SilenceFacts(nothing_passed if "one file" in proofs else "unknown", tuple(proofs))


def is_clock_step(
    begin_ns: int, end_ns: int, every_ns: int, steps_ns: Sequence[tuple[int, int, int]]
) -> bool:
    """Return whether the clock was set ahead in a silence of whole intervals by most of it.

    `steps_ns` are the times of the packets before and after a step, and how far it went.
    """
    set_ns = sum(
        step_ns
        for before_ns, after_ns, step_ns in steps_ns
        if begin_ns - every_ns <= before_ns and after_ns < end_ns + every_ns
    )
    return 2 * set_ns > end_ns - begin_ns


def edges_ns(begin_ns: int, end_ns: int, every_ns: int, files: Sequence[FileExtent]) -> tuple[int, int]:
    """Return when a silence of whole intervals began and ended, by files that end or begin with it."""
    if any(_spans(file, begin_ns, end_ns) for file in files):
        return begin_ns, end_ns
    ends_ns = [file.end_ns for file in files if file.end_ns is not None]
    starts_ns = [file.start_ns for file in files if file.start_ns is not None]
    return (
        max((one for one in ends_ns if begin_ns - every_ns <= one <= begin_ns), default=begin_ns),
        min((one for one in starts_ns if end_ns <= one < end_ns + every_ns), default=end_ns),
    )


def _spans(file: FileExtent, begin_ns: int, end_ns: int) -> bool:
    return (
        file.start_ns is not None
        and file.end_ns is not None
        and file.start_ns < begin_ns < end_ns <= file.end_ns
    )


def _proofs_of_files(begin_ns: int, end_ns: int, files: Sequence[FileExtent]) -> list[SilenceProof]:
    timed = [
        (file.start_ns, file.end_ns)
        for file in files
        if file.start_ns is not None and file.end_ns is not None
    ]
    proofs: list[SilenceProof] = []
    if any(begin_ns < time_ns < end_ns for extent in timed for time_ns in extent):
        proofs.append("other packets")
    if any(_spans(file, begin_ns, end_ns) for file in files):
        proofs.append("one file")
        return proofs
    before = max((place for place, file in enumerate(files) if _is_before(file, begin_ns)), default=None)
    if before is None:
        return proofs
    after = next((place for place in range(before + 1, len(files)) if _is_after(files[place], end_ns)), None)
    if after is None:
        return proofs
    starts_ns = sorted(start_ns for start_ns, _ in timed)
    usual_ns = median(later - sooner for sooner, later in pairwise(starts_ns))
    # the last file may have begun long before its first packet
    is_whole = _between_ns(files[before], files[after]) < _TOLERANCE * (after - before + 1) * usual_ns
    if is_whole and any(file.start_ns is None for file in files[before:after]):
        proofs.append("empty files")
    numbers = files[before].number, files[after].number
    if numbers[0] is not None and numbers[1] is not None and numbers[1] - numbers[0] > after - before:
        proofs.append("missing files")
    return proofs


def _proofs_of_statistics(begin_ns: int, end_ns: int, files: Sequence[FileExtent]) -> list[SilenceProof]:
    runs = sorted(
        (file.statistics for file in files if file.statistics is not None), key=lambda run: run.start_ns
    )
    reached_ns, missing_ns = begin_ns, 0
    for run in runs:
        missing_ns += max(min(run.start_ns, end_ns) - reached_ns, 0)
        reached_ns = max(reached_ns, min(run.end_ns, end_ns))
    missing_ns += end_ns - reached_ns
    proofs: list[SilenceProof] = []
    if missing_ns <= _LITTLE * (end_ns - begin_ns):
        proofs.append("capture running")
    elif missing_ns >= _MUCH * (end_ns - begin_ns) and _are_told_around(begin_ns, end_ns, files):
        proofs.append("capture ended")
    # counters are of the whole of a run
    within = [run for run in runs if _is_mostly_within(run, begin_ns, end_ns)]
    if within:
        dropped = sum(run.dropped or 0 for run in within)
        if dropped > sum(run.recorded for run in within):
            proofs.append("dropped packets")
        elif not any(run.received is None or run.received for run in within):
            proofs.append("nothing received")
        elif any((run.received or 0) > (run.accepted or 0) for run in within if run.accepted is not None):
            proofs.append("filtered packets")
    return proofs


def _is_filtered(begin_ns: int, end_ns: int, files: Sequence[FileExtent]) -> bool:
    """Return whether a file of a silence, or next to it, says that the capture had a filter."""
    before = [file for file in files if _is_before(file, begin_ns)]
    after = [file for file in files if _is_after(file, end_ns)]
    within = [file for file in files if file not in before and file not in after]
    return any(file.is_filtered for file in (*before[-1:], *within, *after[:1]))


def _are_told_around(begin_ns: int, end_ns: int, files: Sequence[FileExtent]) -> bool:
    """Return whether both files next to a silence say when they were captured."""
    before = [file for file in files if _is_before(file, begin_ns)]
    after = [file for file in files if _is_after(file, end_ns)]
    return bool(before and after) and None not in (before[-1].statistics, after[0].statistics)


def _is_mostly_within(run: CaptureStatistics, begin_ns: int, end_ns: int) -> bool:
    shared_ns = min(run.end_ns, end_ns) - max(run.start_ns, begin_ns)
    return shared_ns > 0 and shared_ns >= _MUCH * (run.end_ns - run.start_ns)


def _between_ns(before: FileExtent, after: FileExtent) -> int:
    return (after.start_ns or 0) - (before.start_ns or 0)


def _is_before(file: FileExtent, begin_ns: int) -> bool:
    return file.end_ns is not None and file.end_ns <= begin_ns


def _is_after(file: FileExtent, end_ns: int) -> bool:
    return file.start_ns is not None and file.start_ns >= end_ns
