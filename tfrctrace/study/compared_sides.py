"""The two sides of a comparison over time: each run as groups by link."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError
from tfrctrace.study.compare_runs import FIRST, SECOND, runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.api import Trace
    from tfrctrace.base.grouping import Grouping
    from tfrctrace.reports.comparison_page import ComparedSide
    from tfrctrace.study.definition import MeasuringPlan

_INTERVALS: Final = 100
"""Intervals of the longest run, at most."""

_WIDTHS_NS: Final = tuple(
    step * unit for unit in (10**6, 10**7, 10**8, 10**9, 10**10, 10**11, 10**12) for step in (1, 2, 5)
)


def gather_sides(first: str, second: str, measuring: MeasuringPlan) -> list[ComparedSide]:
    """Return both sides as groups by link over common intervals; runs that cannot be read are left out."""
    from tfrctrace.reports.comparison_page import ComparedSide
    from tfrctrace.trace.gather_groups import gather_groups

    opened = [
        (called, side, _readable(side, called, measuring))
        for called, side in ((FIRST, first), (SECOND, second))
    ]
    longest_ns = max((_duration_ns(trace) for *_, traces in opened for trace in traces), default=0)
    grouping = _grouping(longest_ns)
    return [
        ComparedSide(
            called,
            os.path.basename(os.path.normpath(side)),
            tuple(gather_groups(trace, grouping) for trace in traces),
        )
        for called, side, traces in opened
    ]


def _grouping(longest_ns: int) -> Grouping:
    from tfrctrace.base.grouping import Grouping

    every_ns = next((width for width in _WIDTHS_NS if longest_ns <= width * _INTERVALS), _WIDTHS_NS[-1])
    return Grouping("link", every_ns=every_ns)


def _readable(side: str, called: str, measuring: MeasuringPlan) -> Sequence[Trace]:
    import tfrctrace

    found = []
    runs, _ = runs_of(side, called)
    for run in runs:
        trace = tfrctrace.open(run.path, **measuring.reading)
        with warnings.catch_warnings():
            # measuring has printed them
            warnings.simplefilter("ignore")
            try:
                trace.read("flows")
            except InputError:
                continue
        found.append(trace)
    return found


def _duration_ns(trace: Trace) -> int:
    starts = [source["start_ns"] for source in trace.sources if source["start_ns"] is not None]
    ends = [source["end_ns"] for source in trace.sources if source["end_ns"] is not None]
    return max(ends, default=0) - min(starts, default=0)
