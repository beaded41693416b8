"""RTP streams: losses, bursts, reordering and jitter at the capture, and what their receivers report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.reports.cells import count_cell, ms_cell
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
from tfrctrace.reports.flow_rows import FlowRow, flow_name
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted, format_count, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Words
    from tfrctrace.reports.report_content import ReportContent

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


class _Source(NamedTuple):
    """A source of RTP in one direction of a flow."""

    flow: int
    direction: str
    ssrc: int
    sent_packets: int
    received_packets: int
    lost_packets: int
    loss_bursts: int
    longest_loss_burst: int | None
    reordered_packets: int
    jitter_ms: float | None
    reported_lost_packets: int | None
    reported_plr: float | None
    reported_jitter_ms: float | None


class _Stream(NamedTuple):
    source: _Source
    row: FlowRow

    @property
    def legend(self) -> str:
        return f"{self.row.legend}, {self.source.ssrc:08x}"


def rtp_section(content: ReportContent) -> Section:
    """Return figures and table of the streams; empty without any."""
    key, title = "rtp", "RTP streams"
    sources = content.results.table("rtp_sources")
    if sources.is_empty():
        return Section(key, title)
    streams = _largest_streams(sources, content.flows)
    left_out = sources.height - len(streams)
    rest = f" Not shown: {counted(left_out, 'stream')} with fewer packets." if left_out else ""
    table = TableView(
        "rtp-streams",
        f"One row for each source in each direction, most packets first.{rest}",
        _HEADINGS,
        tuple(map(_row, streams)),
        sortable=True,
    )
    intervals = content.results.table("rtp_intervals")
    figures = (figure for trace in content.traces for figure in _figures(trace, streams, intervals))
    return Section(key, title, ((_READING,),), figures=tuple(figures), tables=(table,))


def _largest_streams(sources: pl.DataFrame, flows: pl.DataFrame) -> list[_Stream]:
    ordered = sources.sort("received_packets", "flow", "ssrc", descending=[True, False, False])
    largest = ordered.head(_MOST_ROWS)
    own = flows.join(largest, on=["flow", "direction"], how="semi")
    rows = {row.key: row for row in records(own, FlowRow)}
    return [
        _Stream(source, rows[source.flow, source.direction])
        for source in records(largest, _Source)
        if (source.flow, source.direction) in rows
    ]


def reported_facts(flows: pl.DataFrame) -> Iterator[Fact]:
    """Yield the share of RTP's packets that its receivers report as lost, if they report."""
    known = flows.drop_nulls("reported_plr")
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
    for flow, plr, lost in hidden.select("flow", "reported_plr", "reported_lost_packets").iter_rows():
        return (
            "Receivers of RTP report losses that the capture does not show: ",
            flow_name(flow),
            f" lost {format_share(plr)} ({counted(lost, 'packet')}) by RTCP.",
        )
    return ()


def _figures(trace: DrawnTrace, streams: Sequence[_Stream], intervals: pl.DataFrame) -> Iterator[Figure]:
    flows = set(trace.flows["flow"])
    own = ((stream, _of_source(intervals, stream.source)) for stream in streams if stream.row.flow in flows)
    drawn = [(stream, rows) for stream, rows in own if rows.height >= _FEWEST_INTERVALS][:_MOST_DRAWN]
    if not drawn:
        return
    widths = counted(max(rows["width_ns"][0] for _, rows in drawn) // 10**9, "second")
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


def _of_source(intervals: pl.DataFrame, source: _Source) -> pl.DataFrame:
    flow, direction, ssrc, *_ = source
    return intervals.filter(flow=flow, direction=direction, ssrc=ssrc).sort("time_ns")


def _curves(trace: DrawnTrace, drawn: Sequence[tuple[_Stream, pl.DataFrame]], column: str) -> list[Curve]:
    known = ((stream, rows.drop_nulls(column)) for stream, rows in drawn)
    return [
        trace.steps(stream.legend, style, rows["time_ns"].to_list(), rows[column])
        for style, (stream, rows) in enumerate(known, start=1)
        if rows.height
    ]


def _row(stream: _Stream) -> Row:
    source, row = stream
    lost, longest, reported = source.lost_packets, source.longest_loss_burst, source.reported_lost_packets
    return Row(
        f"rtp-{row.anchor}-{row.direction}-{source.ssrc:08x}",
        (
            Cell(str(row.flow), sort=row.flow),
            Cell(row.ends, row.transport.upper()),
            Cell(f"{source.ssrc:08x}"),
            count_cell(source.received_packets),
            count_cell(lost, format_share(lost / source.sent_packets) if lost else ""),
            count_cell(source.loss_bursts, f"longest {counted(longest, 'packet')}" if longest else ""),
            count_cell(source.reordered_packets),
            ms_cell(source.jitter_ms),
            Cell(
                format_share(source.reported_plr),
                "" if reported is None else counted(reported, "packet"),
                source.reported_plr,
            ),
            ms_cell(source.reported_jitter_ms),
        ),
    )
