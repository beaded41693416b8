"""State of TFRC flows: allowed rate, receive rate, loss event rate, round-trip time.

Symbols are those of RFC 5348. The values of a receiver's report hold until the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.cells import count_cell, ms_cell, rate_cell, share_cell
from tfrctrace.reports.conversations import (
    largest_directions,
    of_direction,
)
from tfrctrace.reports.elements import (
    FLOW_HEADING,
    Cell,
    Curve,
    Figure,
    Heading,
    Row,
    Section,
    TableView,
    ends_heading,
)
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent
    from tfrctrace.reports.report_input import ReportInput

_MOST_DRAWN: Final = 4
"""TFRC flows of a trace that are drawn; the table has more."""

_MOST_ROWS: Final = 200

_FEWEST_REPORTS: Final = 2
"""Reports of a flow that make a curve."""

_READING: Final = (
    "TFRC's receiver reports its receive rate and loss event rate once per round-trip time; the sender sets "
    "its rate by them. A step lasts from one report to the next. Where X follows the loss event rate p, the "
    "path limits the flow; where it is twice X_recv, the flow sends less than it could."
)

_READING_RTP: Final = (
    "Receivers of RTP report losses and round-trip times by RTCP. Loss events and p are those that TFRC "
    "would count (RFC 5348 section 5)."
)

_HEADINGS: Final = (
    FLOW_HEADING,
    ends_heading("the direction of the data"),
    Heading("Reports", meaning="feedback packets about this direction"),
    Heading("Loss events", meaning="losses within a round-trip time count as one (RFC 5348 section 5.2)"),
    Heading("p", meaning="loss event rate in the last report"),
    Heading("X_recv", meaning="receive rate in the last report: payload"),
    Heading("R", meaning="smoothed round-trip time of the sender at the end"),
    Heading("Goodput", meaning="unique payload over the duration of the direction"),
)


def tfrc_section(content: ReportContent) -> Section:
    """Return figures and table of the flows with reports of a TFRC receiver; empty without any."""
    import polars as pl

    rows = largest_directions(content.flows, pl.col("feedback_packets") > 0, "wire_bytes", _MOST_ROWS)
    if not rows:
        return Section("tfrc", "TFRC state")
    figures = (figure for trace in content.traces for figure in _figures_of(trace, content.results))
    is_rtp = all(map(_is_rtp, rows))
    return Section(
        "tfrc",
        "RTCP reports" if is_rtp else "TFRC state",
        ((_READING_RTP if is_rtp else _READING,),),
        figures=tuple(figures),
        tables=(_table(rows),),
    )


def _is_rtp(row: FlowRow) -> bool:
    return bool(row.transport == "rtp")


def _figures_of(trace: DrawnTrace, results: ReportInput) -> Iterator[Figure]:
    import polars as pl

    has_curve = pl.col("feedback_packets") >= _FEWEST_REPORTS
    rows = largest_directions(trace.flows, has_curve, "wire_bytes", _MOST_DRAWN)
    if not rows:
        return
    reports_of = [(row, of_direction(results.table("feedback"), row).sort("time_ns")) for row in rows]
    for row, reports in reports_of:
        if reports.height >= _FEWEST_REPORTS:
            events = of_direction(results.table("loss_events"), row).sort("time_ns")
            yield _rates(trace, row, reports, events)
    drawn = [(row, reports) for row, reports in reports_of if reports.height >= _FEWEST_REPORTS]
    if drawn:
        yield _loss_event_rates(trace, drawn)
        yield _round_trips(trace, drawn)


def _changes_on_arrival(reports: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the reports that updated `column` at the sender, by arrival time."""
    import polars as pl

    return reports.filter(pl.col("received_ns").is_not_null(), pl.col(column).is_not_null()).sort(
        "received_ns"
    )


def _rates(trace: DrawnTrace, row: FlowRow, reports: pl.DataFrame, events: pl.DataFrame) -> Figure:
    allowed = _changes_on_arrival(reports, "x_bps")
    curves = []
    if allowed.height:
        times = allowed["received_ns"].to_list()
        rings = _first_reports_after(times, events["time_ns"].to_list())
        curves.append(trace.steps("X, allowed sending rate", 1, times, allowed["x_bps"], marked=rings))
    received = reports.filter(reports["x_recv_bps"].is_not_null())
    if received.height:
        curves.append(
            trace.steps("X_recv, receive rate", 2, received["time_ns"].to_list(), received["x_recv_bps"])
        )
    words = " A ring marks the first report after a loss event." if any(c.marked for c in curves) else ""
    return trace.over_time(
        f"tfrc-rate-{row.flow}-{row.direction}",
        f"{'Rate by RTCP reports' if _is_rtp(row) else 'TFRC rate'}, flow {row.legend}",
        curves,
        unit="bit/s",
        caption=(
            "Payload, from the reports (RFC 5348 sections 3.2.2 and 4.3), "
            f"{counted(reports.height, 'report')} and {counted(events.height, 'loss event')}. X holds from "
            f"when a report reached the sender, X_recv from when it left the receiver.{words}"
        ),
    )


def _loss_event_rates(trace: DrawnTrace, drawn: Sequence[tuple[FlowRow, pl.DataFrame]]) -> Figure:
    curves = [
        trace.steps(row.legend, style, reports["time_ns"].to_list(), reports["p"])
        for style, (row, reports) in enumerate(drawn, start=1)
    ]
    return trace.over_time(
        "tfrc-p",
        "Loss event rate p",
        curves,
        unit="",
        caption=(
            "Share of packets that start a loss event, from the receiver's weighted mean of the last "
            "intervals (RFC 5348 section 5.4); 0 before the first loss event. A step at each of "
            f"{_all_reports(curves)}."
        ),
        value_label="p",
    )


def _round_trips(trace: DrawnTrace, drawn: Sequence[tuple[FlowRow, pl.DataFrame]]) -> Figure:
    curves = [
        trace.steps(row.legend, style, arrived["received_ns"].to_list(), arrived["r_ms"])
        for style, (row, reports) in enumerate(drawn, start=1)
        if (arrived := _changes_on_arrival(reports, "r_ms")).height
    ]
    return trace.over_time(
        "tfrc-r",
        "Round-trip time R of senders"
        if all(_is_rtp(row) for row, _ in drawn)
        else "Round-trip time R of TFRC's senders",
        curves,
        unit="ms",
        caption=(
            "The smoothed round-trip time in the throughput equation (RFC 5348 section 4.3), "
            f"after each of {_all_reports(curves)} that arrived."
        ),
    )


def _all_reports(curves: Sequence[Curve]) -> str:
    return counted(sum(len(curve.x) for curve in curves), "report")


def _first_reports_after(reports_ns: list[int], events_ns: list[int]) -> tuple[int, ...]:
    """Return the places of the reports that were the first to arrive after a loss event."""
    from bisect import bisect_left

    places = {bisect_left(reports_ns, event_ns) for event_ns in events_ns}
    return tuple(sorted(place for place in places if place < len(reports_ns)))


def _table(rows: Sequence[FlowRow]) -> TableView:
    return TableView(
        "tfrc-flows",
        "One row for each direction with reports of a receiver, largest first.",
        _HEADINGS,
        tuple(_row(row) for row in rows),
        sortable=True,
    )


def _row(row: FlowRow) -> Row:
    return Row(
        f"tfrc-{row.anchor}-{row.direction}",
        (
            Cell(str(row.flow), sort=row.flow),
            Cell(row.ends, row.transport.upper()),
            count_cell(row.feedback_packets),
            count_cell(row.loss_events),
            share_cell(row.loss_event_rate),
            rate_cell(row.x_recv_bps),
            ms_cell(row.srtt_ms),
            rate_cell(row.goodput_bps),
        ),
    )
