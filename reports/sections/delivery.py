"""Delivery and delay, where a trace shows both ends of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.cells import count_cell, ms_cell, share_cell
from tfrctrace.reports.conversations import largest_directions
from tfrctrace.reports.elements import (
    FLOW_HEADING,
    Cell,
    Figure,
    Heading,
    Row,
    Section,
    Span,
    TableView,
    ends_heading,
)
from tfrctrace.reports.figures.delay_and_delivery import delay_figure, delivered_figure, most_delivered
from tfrctrace.reports.flow_rows import known
from tfrctrace.reports.units import counted, format_count, format_ms

if TYPE_CHECKING:
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 200

_HEADINGS: Final = (
    FLOW_HEADING,
    ends_heading("the direction of the packets"),
    Heading("Sent", meaning="packets that left the sender, retransmissions included"),
    Heading("Arrived", meaning="packets that reached the receiver, each counted once"),
    Heading("Lost", meaning="packets that never arrived; below, the drops that the trace shows"),
    Heading("Delivered", meaning="packet delivery ratio: arrived over sent, without packets in flight"),
    Heading("Delay min", meaning="smallest one-way delay"),
    Heading("Mean", meaning="mean one-way delay of the packets that arrived"),
    Heading("95\u00a0%", meaning="95th percentile of the one-way delays"),
    Heading("Max", meaning="largest one-way delay"),
    Heading("Jitter", meaning="interarrival jitter at the end (RFC 3550)"),
    Heading("Dropped at", numeric=False, meaning="place and reason as the trace names them"),
)


def delivery_section(content: ReportContent) -> Section:
    """Return delivery and delay of each direction; empty if the trace shows one end only."""
    import polars as pl

    # a pair of captures has its own section for that
    flows = content.flows.clear() if content.results.clock else content.flows
    outcomes = pl.coalesce("received_packets", "dropped_packets").is_not_null()
    was_sent = (pl.col("sent_packets") > 0) & outcomes
    shown = largest_directions(flows, was_sent, "sent_packets", _MOST_ROWS)
    if not shown:
        return Section("delivery", "Delivery and delay")
    rest = flows.select(was_sent.sum()).item() - len(shown)
    left_out = f" Not shown: {counted(rest, 'direction')} with fewer packets." if rest else ""
    table = TableView(
        "delivery-directions",
        f"One row for each direction with both ends in the trace, most packets first.{left_out}",
        _HEADINGS,
        tuple(_row(row) for row in shown),
        sortable=True,
    )
    figures = (
        figure
        for trace in content.traces
        for figure in (delay_figure(trace), delivered_figure(trace), _spread(trace))
    )
    return Section("delivery", "Delivery and delay", figures=tuple(filter(None, figures)), tables=(table,))


def _spread(trace: DrawnTrace) -> Figure | None:
    drawn = most_delivered(trace.flows)
    if not drawn:
        return None
    spans = tuple(_span(row, style) for style, row in enumerate(drawn, start=1))
    medians = ", ".join(format_ms(span.median) for span in spans)
    packets = sum(row.received_packets or 0 for row in drawn)
    return Figure(
        key=trace.key("delay-spread"),
        title=trace.titled("Spread of the one-way delay"),
        description=f"Range chart of {counted(len(spans), 'direction')}; medians {medians}.",
        caption=(
            "Thin line from the smallest to the largest delay, thick line from the median (ring) to the 95th "
            f"percentile; {counted(packets, 'packet')} that arrived. Lost packets have no delay."
        ),
        unit="ms",
        spans=spans,
    )


def _span(row: FlowRow, style: int) -> Span:
    return Span(
        f"{row.legend} ({counted(row.received_packets or 0, 'packet')})",
        style,
        row.delay_min_ms,
        known(row.delay_p50_ms),
        known(row.delay_p95_ms),
        row.delay_max_ms,
    )


def _row(row: FlowRow) -> Row:
    dropped = row.dropped_packets
    delays = (row.delay_min_ms, row.delay_mean_ms, row.delay_p95_ms, row.delay_max_ms)
    return Row(
        f"delivery-{row.anchor}-{row.direction}",
        (
            Cell(str(row.flow), sort=row.flow),
            Cell(row.ends, str(row.transport).upper()),
            count_cell(row.sent_packets),
            count_cell(row.received_packets),
            Cell(
                format_count(row.lost_packets),
                f"{format_count(dropped)} dropped" if dropped else "",
                row.lost_packets,
            ),
            share_cell(row.pdr),
            *map(ms_cell, (*delays, row.jitter_ms)),
            Cell(row.drop_reasons or ""),
        ),
    )
