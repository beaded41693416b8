"""RTP streams: losses, bursts, reordering and jitter at the capture, and what their receivers report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.conversations import direction_label, ends, flow_anchor, flow_name, of_direction
from tfrctrace.reports.elements import (
    FLOW_HEADING,
    Cell,
    Curve,
    Fact,
    Figure,
    Heading,
    Row,
    Section,
    TableView,
    ends_heading,
)
from tfrctrace.reports.units import counted, format_count, format_ms, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Words
    from tfrctrace.reports.results import Results

_MOST_DRAWN: Final = 4
"""Streams of a trace that are drawn; the table has more."""

_MOST_ROWS: Final = 200

_FEWEST_INTERVALS: Final = 2
"""Intervals of a stream that make a curve."""

_READING: Final = (
    "Losses, bursts, late packets and jitter are those at the capture, by sequence numbers and timestamps. "
    "What is lost after the capture only the receivers know: it is shown as they report it by RTCP, unless "
    "that is encrypted."
)

_HEADINGS: Final = (
    FLOW_HEADING,
    ends_heading("the direction of the packets"),
    Heading("SSRC", numeric=False, meaning="number of the source (RFC 3550)"),
    Heading("Packets", meaning="packets that arrived at the capture, each counted once"),
    Heading("Lost before the capture", meaning="missing numbers at the capture; below, their share"),
    Heading("Bursts", meaning="stretches of consecutive missing numbers; below, the longest"),
    Heading("Reordered", meaning="packets captured after one with a higher number"),
    Heading("Jitter", meaning="interarrival jitter at the capture (RFC 3550 A.8)"),
    Heading(
        "Lost, as reported", meaning="on the whole path, by the receiver's last report; below, their number"
    ),
    Heading("Jitter, as reported", meaning="by the receiver's last report"),
)


def rtp_section(traces: Sequence[DrawnTrace], results: Results, flows: pl.DataFrame) -> Section:
    """Return figures and table of the streams; empty without any."""
    sources = results.table("rtp_sources").sort(
        "received_packets", "flow", "ssrc", descending=[True, False, False]
    )
    if sources.is_empty():
        return Section("rtp", "RTP streams")
    rows = sources.head(_MOST_ROWS).join(flows, on=["flow", "direction"], suffix="_of_flow").to_dicts()
    left_out = sources.height - len(rows)
    rest = f" Not shown: {counted(left_out, 'stream')} with fewer packets." if left_out else ""
    table = TableView(
        "rtp-streams",
        f"One row for each source in each direction, most packets first.{rest}",
        _HEADINGS,
        tuple(_row(row) for row in rows),
        sortable=True,
    )
    figures = (figure for trace in traces for figure in _figures(trace, rows, results.table("rtp_intervals")))
    return Section("rtp", "RTP streams", ((_READING,),), figures=tuple(figures), tables=(table,))


def reported_facts(flows: pl.DataFrame) -> Iterator[Fact]:
    """Yield the share of RTP's packets that its receivers report as lost, if they report."""
    import polars as pl

    known = flows.filter(pl.col("reported_plr").is_not_null())
    if known.is_empty():
        return
    lost = int(known["reported_lost_packets"].clip(lower_bound=0).sum())
    expected = int(known["reported_expected_packets"].sum())
    yield Fact(
        "RTP lost, as RTCP reports",
        format_share(lost / expected),
        f"{format_count(lost)} of {counted(expected, 'packet')} on the whole path",
    )


def reported_losses(flows: pl.DataFrame) -> Words:
    """Return which flow loses most after the capture, as its receivers report."""
    import polars as pl

    hidden = flows.filter(pl.col("reported_plr") > 0, pl.col("plr").is_null()).sort(
        "reported_plr", "flow", descending=[True, False]
    )
    if hidden.is_empty():
        return ()
    row = hidden.row(0, named=True)
    lost = counted(row["reported_lost_packets"], "packet")
    return (
        "Receivers of RTP report losses that the capture does not show: ",
        flow_name(row),
        f" lost {format_share(row['reported_plr'])} ({lost}) by RTCP.",
    )


def _figures(
    trace: DrawnTrace, rows: Sequence[Mapping[str, Any]], intervals: pl.DataFrame
) -> Iterator[Figure]:
    flows = set(trace.flows["flow"])
    drawn = []
    for row in rows:
        own = of_direction(intervals, row)
        own = own.filter(own["ssrc"] == row["ssrc"]).sort("time_ns")
        if row["flow"] in flows and own.height >= _FEWEST_INTERVALS:
            drawn.append((row, own))
    drawn = drawn[:_MOST_DRAWN]
    if not drawn:
        return
    widths = counted(max(own.row(0, named=True)["width_ns"] for _, own in drawn) // 10**9, "second")
    if jitters := _curves(trace, drawn, "jitter_ms"):
        yield trace.over_time(
            "rtp-jitter",
            "Jitter of RTP at the capture",
            jitters,
            unit="ms",
            caption=(
                f"Interarrival jitter (RFC 3550 A.8) at the last packet of each interval of up to {widths}."
            ),
        )
    yield trace.over_time(
        "rtp-lost",
        "RTP packets lost before the capture",
        _curves(trace, drawn, "lost_packets"),
        unit="",
        caption=(
            f"Packets expected less packets that arrived in each interval of up to {widths} (RFC 3550 A.3); "
            "negative where more of an earlier one came late."
        ),
        value_label="packets",
    )


def _curves(
    trace: DrawnTrace, drawn: Sequence[tuple[Mapping[str, Any], pl.DataFrame]], column: str
) -> list[Curve]:
    known = ((row, own.filter(own[column].is_not_null())) for row, own in drawn)
    return [
        trace.steps(
            f"{direction_label(row)}, {row['ssrc']:08x}", style, own["time_ns"].to_list(), own[column]
        )
        for style, (row, own) in enumerate(known, start=1)
        if own.height
    ]


def _row(row: dict[str, Any]) -> Row:
    sent, lost, longest = row["sent_packets"], row["lost_packets"], row["longest_loss_burst"]
    reported = row["reported_lost_packets"]
    return Row(
        f"rtp-{flow_anchor(row['flow'])}-{row['direction']}-{row['ssrc']:08x}",
        (
            Cell(str(row["flow"]), sort=row["flow"]),
            Cell(ends(row), str(row["transport"]).upper()),
            Cell(f"{row['ssrc']:08x}"),
            Cell(format_count(row["received_packets"]), sort=row["received_packets"]),
            Cell(format_count(lost), format_share(lost / sent) if lost else "", lost),
            Cell(
                format_count(row["loss_bursts"]),
                f"longest {counted(longest, 'packet')}" if longest else "",
                row["loss_bursts"],
            ),
            Cell(format_count(row["reordered_packets"]), sort=row["reordered_packets"]),
            Cell(format_ms(row["jitter_ms"]), sort=row["jitter_ms"]),
            Cell(
                format_share(row["reported_plr"]),
                "" if reported is None else counted(reported, "packet"),
                row["reported_plr"],
            ),
            Cell(format_ms(row["reported_jitter_ms"]), sort=row["reported_jitter_ms"]),
        ),
    )
