"""Figures of one kind for a trace, of all flows or of one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.elements import TIME
from tfrctrace.reports.figures.kinds import OF_SETS, WINDOWED, check_found, check_kind, figures_of
from tfrctrace.trace.report_data import gather_results, loss_course_of

if TYPE_CHECKING:
    from datetime import timedelta

    from tfrctrace.reports.elements import Figure
    from tfrctrace.reports.figures.kinds import PlotKind
    from tfrctrace.trace.trace import Trace


def figures(trace: Trace, kind: PlotKind, flow: int | None, window: str | timedelta | None) -> list[Figure]:
    """Return the figures of `kind` for `Trace.plot`. Raises `UsageError` if there is none."""
    check_kind(kind)
    if flow is not None and kind in OF_SETS:
        raise UsageError(f"a figure of kind `{kind}` shows all flows", hint="leave the flow out")
    if window is not None and kind not in WINDOWED:
        raise UsageError(
            f"a figure of kind `{kind}` has no windows",
            hint=f"kinds with windows: {', '.join(sorted(WINDOWED))}",
        )
    window_ns = None if window is None else parse_duration_ns(window, "window")
    is_of_report = flow is None and window_ns is None
    results = trace.results() if is_of_report else gather_results(trace, flow, window_ns)
    if flow is not None and results.flows.is_empty():
        raise UsageError(f"the trace has no flow {flow}", hint="`tfrctrace flows` numbers them")
    if kind == "losses" and results.loss_course is None:
        # a report skips it for very many packets, but here it was requested
        is_one = results.joined or results.clock is not None
        results = replace(results, loss_course=loss_course_of(results.flows, trace.losses, is_one))
        is_of_report = False
    report = trace.report_parts() if is_of_report else build_report(results, title=trace.name)
    found = figures_of(report, kind)
    check_found(found, kind)
    # a paper shows how long something took, not at what time of day
    return [replace(figure, axis=TIME) if figure.axis.is_time else figure for figure in found]
