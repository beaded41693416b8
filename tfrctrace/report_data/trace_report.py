"""The results of one trace and its report, each made when it is first asked for, and figures of one kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.timezones import UTC_ZONE
from tfrctrace.report_data.gather_results import gather_results, loss_course_of
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.elements import TIME
from tfrctrace.reports.figures.kinds import OF_SETS, WINDOWED, check_found, check_kind, figures_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.metrics.results.closed_loop import ClosedLoopReplays
    from tfrctrace.reports.elements import Figure, Report
    from tfrctrace.reports.figures.kinds import PlotKind
    from tfrctrace.reports.results import Results
    from tfrctrace.trace.tables import Tables


class TraceReport:
    """What a report shows of one trace."""

    def __init__(self, trace: Tables) -> None:
        """Take the trace, of which nothing is read yet."""
        self._trace = trace
        self._report: tuple[TimeZone, Report] | None = None
        """The last one, and its time zone."""

    @cached_property
    def results(self) -> Results:
        """Its tables and facts."""
        return gather_results(self._trace)

    def parts(
        self,
        title: str,
        zone: TimeZone = UTC_ZONE,
        objectives: Sequence[ObjectiveResult] = (),
        closed_loops: ClosedLoopReplays | None = None,
    ) -> Report:
        """Return the sections of the report; `objectives` and `closed_loops` are of the same trace."""
        if objectives or closed_loops is not None:
            results = replace(self.results, closed_loops=closed_loops)
            return build_report(results, title=title, zone=zone, objectives=objectives)
        if self._report is None or self._report[0] != zone:
            self._report = zone, build_report(self.results, title="", zone=zone)
        return replace(self._report[1], title=title)

    def figures(self, kind: PlotKind, flow: int | None, window: str | timedelta | None) -> list[Figure]:
        """Return the figures of `kind`, of all flows or of one. Raises `UsageError` if there is none."""
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
        results = self.results if is_of_report else gather_results(self._trace, flow, window_ns)
        if flow is not None and results.flows.is_empty():
            raise UsageError(f"the trace has no flow {flow}", hint="`tfrctrace flows` numbers them")
        if kind == "losses" and results.loss_course is None:
            # a report skips it for very many packets, but here it was requested
            is_one = results.joined or results.clock is not None
            course = loss_course_of(results.flows, self._trace.losses, is_one)
            results = replace(results, loss_course=course)
            is_of_report = False
        name = self._trace.name
        report = self.parts(name) if is_of_report else build_report(results, title=name)
        found = figures_of(report, kind)
        check_found(found, kind)
        # a paper shows how long something took, not at what time of day
        return [replace(figure, axis=TIME) if figure.axis.is_time else figure for figure in found]
