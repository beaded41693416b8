"""Delivery and delay, where a trace shows both ends of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.conversations import direction_label, ends, flow_anchor, largest_directions
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
from tfrctrace.reports.units import counted, format_count, format_ms, format_share

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace

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


def delivery_section(traces: list[DrawnTrace], flows: pl.DataFrame) -> Section:
    """Return delivery and delay of each direction; empty if the trace shows one end only."""
    import polars as pl

    was_sent = pl.col("sent_packets") > 0
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
        for trace in traces
        for figure in (delay_figure(trace), delivered_figure(trace), _spread(trace))
    )
    return Section("delivery", "Delivery and delay", figures=tuple(filter(None, figures)), tables=(table,))


def _spread(trace: DrawnTrace) -> Figure | None:
    drawn = most_delivered(trace.flows)
    if not drawn:
        return None
    spans = tuple(_span(row, style) for style, row in enumerate(drawn, start=1))
    medians = ", ".join(format_ms(span.median) for span in spans)
    packets = sum(row["received_packets"] for row in drawn)
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


def _span(row: dict[str, Any], style: int) -> Span:
    low, median, high, top = (row[f"delay_{name}_ms"] for name in ("min", "p50", "p95", "max"))
    return Span(
        f"{direction_label(row)} ({counted(row['received_packets'], 'packet')})",
        style,
        low,
        median,
        high,
        top,
    )


def _row(row: dict[str, Any]) -> Row:
    dropped = row["dropped_packets"]
    times = ("delay_min_ms", "delay_mean_ms", "delay_p95_ms", "delay_max_ms", "jitter_ms")
    return Row(
        f"delivery-{flow_anchor(row['flow'])}-{row['direction']}",
        (
            Cell(str(row["flow"]), sort=row["flow"]),
            Cell(ends(row), str(row["transport"]).upper()),
            Cell(format_count(row["sent_packets"]), sort=row["sent_packets"]),
            Cell(format_count(row["received_packets"]), sort=row["received_packets"]),
            Cell(
                format_count(row["lost_packets"]),
                f"{format_count(dropped)} dropped" if dropped else "",
                row["lost_packets"],
            ),
            Cell(format_share(row["pdr"]), sort=row["pdr"]),
            *(Cell(format_ms(row[name]), sort=row[name]) for name in times),
            Cell(row["drop_reasons"] or ""),
        ),
    )
