"""The stretch of time that is read of a trace: its ends for the core, and the note about the rest."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from tfrctrace.base.errors import STANDARD_INPUT, UsageError, input_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.stretch import Stretch
    from tfrctrace.parsers._native import Progress, Source, SourceSummary
    from tfrctrace.parsers.reading_settings import ReadSettings


def with_ends(sources: Sequence[Source], settings: ReadSettings, progress: Progress) -> ReadSettings:
    """Return the settings with the ends of the stretch in the trace that `sources` are.

    What is given by time of day or from the end needs a reading of its own, without flows.
    """
    stretch = settings.stretch
    if stretch is None:
        return settings
    if not stretch.needs_start:
        return replace(settings, span=(*stretch.ends_ns, False))
    if not all(map(_is_read_twice, sources)):
        return replace(settings, span=_span_of_pipe(stretch))
    from tfrctrace.parsers._native import time_span

    # offsets of a pair count on the clock of its first capture
    first = sources[:1] if settings.pair else sources
    span = time_span(first, settings, whole=stretch.needs_end, progress=progress)
    return replace(settings, span=(*stretch.resolve(*span), False)) if span else settings


def _is_read_twice(source: Source) -> bool:
    """Return whether it is no pipe; a file that is missing is reported by the reading."""
    path = source if isinstance(source, str) else source[1]
    if not isinstance(path, str) or path == STANDARD_INPUT:
        return False
    return os.path.isfile(path) or not os.path.exists(path)


def _span_of_pipe(stretch: Stretch) -> tuple[int | None, int | None, bool]:
    """Return the ends for a trace whose start is not known before it is read."""
    bounds = stretch.since, stretch.until
    if stretch.last_ns is not None:
        raise UsageError(
            "the last part of a pipe is not known before it ends", hint="write it to a file first"
        )
    if any(bound and bound.kind != "offset" for bound in bounds):
        raise UsageError(
            "the day of a pipe is not known before it is read",
            hint="write the start and end as dates, or both as times since the start",
        )
    return (*stretch.ends_ns, True)


def outside_note(
    settings: ReadSettings, sources: Sequence[SourceSummary], cut: tuple[int, int]
) -> list[Problem]:
    """Return a note on what the stretch leaves out; `cut` flows began before it and went on after it."""
    stretch = settings.stretch
    left_out = sum(source["outside_packets"] for source in sources)
    if stretch is None or not left_out:
        return []
    inside = sum(source["packets"] + source["filtered_packets"] for source in sources)
    if not inside:
        return [_nothing_inside(settings, sources, left_out)]
    flows = [
        f"{count:,} flow{'s' * (count > 1)} {what}"
        for count, what in zip(cut, ("began before it", "went on after it"), strict=True)
        if count
    ]
    words = f"{left_out:,} of {left_out + inside:,} packets are outside of the stretch of time"
    message = "; ".join(filter(None, (words, " and ".join(flows))))
    return [input_problem(sources[0]["source"], "outside", message, severity="note")]


def _nothing_inside(settings: ReadSettings, sources: Sequence[SourceSummary], left_out: int) -> Problem:
    from tfrctrace.base.stretch import time_text
    from tfrctrace.parsers._native import Progress, time_span

    names = [source["source"] for source in sources]
    hint = None
    if settings.stretch and all(map(_is_read_twice, names)):
        span = time_span(names, settings, whole=True, progress=Progress())
        ends = [time_text(ns, settings.stretch.zone) for ns in span or ()]
        hint = f"they are from {' to '.join(ends)}" if ends else None
    return input_problem(
        names[0],
        "no_packets",
        f"all {left_out:,} packets are outside of the stretch of time",
        severity="warning",
        hint=hint,
    )
