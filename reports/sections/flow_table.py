"""The tables of a report: flows, and the inputs they were read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView, ends_heading
from tfrctrace.reports.inputs import inputs_of
from tfrctrace.reports.sections.why import CAUSE_HEADING, cause_cell
from tfrctrace.reports.units import (
    MISSING,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.inputs import Input
    from tfrctrace.reports.report_content import ReportContent

_HEADINGS: Final = (
    Heading("Flow", numeric=True, meaning="number of the conversation, in order of first packet"),
    ends_heading(
        "the direction that carried more bytes; transport, state at the end, label, and the trace of several"
    ),
    Heading("Start", meaning="first packet, from the start of its trace"),
    Heading("Duration", meaning="from first to last packet of the direction"),
    Heading("Packets", meaning="packets in the capture"),
    Heading("Bytes", meaning="whole frames on the wire"),
    Heading("Throughput", meaning="bytes on the wire over the duration of the direction"),
    Heading("Goodput", meaning="unique payload over the duration of the direction"),
    Heading(
        "Retransmitted",
        meaning="data segments with bytes that the capture already has, and their share of all",
    ),
    Heading(
        "RTT median",
        meaning="median of the round-trip times of the data of the direction; none beside their receiver",
    ),
    Heading("RTT 95\u00a0%", meaning="95th percentile of the round-trip times"),
)

_DELIVERY_HEADINGS: Final = (
    Heading("Lost", meaning="packets that never reached the receiver"),
    Heading("Delivered", meaning="packet delivery ratio: received of those sent"),
    Heading("Delay mean", meaning="mean one-way delay of the packets that arrived"),
    Heading("Delay 95\u00a0%", meaning="95th percentile of the one-way delays"),
)
"""Where a trace shows both ends."""


def flows_section(content: ReportContent) -> Section:
    """Return the table of the largest flows; empty without any."""
    conversations = content.conversations
    if not conversations:
        return Section("flows", "Flows")
    several = len(content.starts_ns) > 1
    delivery = any(pair.lead.pdr is not None for pair in conversations)
    rows = tuple(
        Row(
            pair.lead.anchor,
            (
                *_flow_cells(pair, content.starts_ns, several=several),
                *((cause_cell(content, pair),) if content.causes else ()),
                *(_delivery_cells(pair) if delivery else ()),
            ),
        )
        for pair in conversations
    )
    caption = _flow_caption(len(rows), content.flows["flow"].n_unique())
    causes = (CAUSE_HEADING,) if content.causes else ()
    headings = (*_HEADINGS, *causes, *(_DELIVERY_HEADINGS if delivery else ()))
    return Section("flows", "Flows", tables=(TableView("flows", caption, headings, rows, sortable=True),))


def _flow_caption(shown: int, flows: int) -> str:
    caption = (
        "One row for each flow, largest first. The first line of a row is the direction that carried more "
        "bytes, the second line the reverse direction."
    )
    if shown == flows:
        return caption
    return (
        f"{caption} Shown are the {format_count(shown)} largest of {format_count(flows)} flows, "
        f"{format_count(flows - shown)} are left out; `tfrctrace flows --format csv` lists all."
    )


def _flow_cells(pair: Conversation, starts_ns: Mapping[str, int], *, several: bool) -> tuple[Cell, ...]:
    lead = pair.lead
    begins = [row.start_ns for row in (lead, pair.back) if row and row.start_ns is not None]
    started_s = (min(begins) - starts_ns[lead.source]) / 1e9 if begins and lead.source in starts_ns else None
    return (
        Cell(str(lead.flow), sort=lead.flow),
        Cell(lead.ends, _kind(lead, several=several)),
        Cell(MISSING if started_s is None else format_duration_s(started_s), sort=started_s),
        _both_directions(pair, "duration_s", format_duration_s),
        _both_directions(pair, "packets", format_count),
        _both_directions(pair, "wire_bytes", format_bytes),
        _both_directions(pair, "throughput_bps", format_rate_bps),
        _both_directions(pair, "goodput_bps", format_rate_bps),
        Cell(_retransmitted(lead), _retransmitted(pair.back), _number(lead.retransmitted_segments)),
        _path_rtts(pair, "rtt_p50_ms"),
        _path_rtts(pair, "rtt_p95_ms"),
    )


def _delivery_cells(pair: Conversation) -> tuple[Cell, ...]:
    return (
        _both_directions(pair, "lost_packets", format_count),
        _both_directions(pair, "pdr", format_share),
        _both_directions(pair, "delay_mean_ms", format_ms),
        _both_directions(pair, "delay_p95_ms", format_ms),
    )


def _path_rtts(pair: Conversation, column: str) -> Cell:
    """Return the same of round-trip times, of the directions that show that of the path."""
    lead, *back = (getattr(row, column) if row.shows_path_rtt else None for row in pair.directions)
    return Cell(format_ms(lead), "".join(map(format_ms, back)), _number(lead))


def _both_directions(pair: Conversation, column: str, written: Callable[[Any], str]) -> Cell:
    """Return a cell with `column` of the leading direction and, below, of the reverse one."""
    lead, *back = (getattr(row, column) for row in pair.directions)
    return Cell(written(lead), "".join(map(written, back)), _number(lead))


def _kind(row: FlowRow, *, several: bool) -> str:
    """Return transport, state, server name and label of a flow, and its trace if there are several."""
    state = row.state and row.state.replace("_", "-")
    names = (row.shown_name, row.label, row.source if several else None)
    words = (row.transport.upper(), state, *names)
    return ", ".join(word for word in words if word)


def _retransmitted(row: FlowRow | None) -> str:
    """Return retransmitted segments and their share of all data segments: `345 (1.20 %)`."""
    if row is None:
        return ""
    retransmitted, data = row.retransmitted_segments, row.data_segments
    if not retransmitted:
        return format_count(retransmitted)
    return (
        f"{format_count(retransmitted)} ({format_share(retransmitted / data)})"
        if data
        else format_count(retransmitted)
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def inputs_section(content: ReportContent) -> Section:
    """Return the table of inputs: what each file was and what it held."""
    headings = (
        Heading("Input", numeric=False),
        Heading("Format", numeric=False, meaning="with compression, if any"),
        Heading("Link type", numeric=False, meaning="or the number of lines of a text"),
        Heading("Interfaces", numeric=False),
        Heading("First packet", numeric=False),
        Heading("Duration"),
        Heading("Packets"),
        Heading("TCP"),
        Heading("UDP"),
        Heading("Other IP"),
        Heading("Not IP"),
        Heading("Bytes on the wire"),
        Heading("Bytes in the file", meaning="of packets, as captured"),
    )
    # this table has the whole names
    rows = tuple(
        Row(f"source-{n}", _input_cells(source, content.zone))
        for n, source in enumerate(inputs_of(content.results.sources), start=1)
    )
    table = TableView("sources", "What was read, one row for each input.", headings, rows)
    return Section("inputs", "Inputs", tables=(table,) if rows else ())


def _input_cells(source: Input, zone: TimeZone) -> tuple[Cell, ...]:
    return (
        Cell(source.name),
        Cell(_format(source)),
        Cell(_link_types(source)),
        Cell(_interfaces(source.interfaces)),
        Cell(format_time_ns(source.start_ns, zone)),
        Cell(format_duration_s(span_s(source.start_ns, source.end_ns))),
        Cell(format_count(source.packets)),
        Cell(format_count(source.tcp_packets)),
        Cell(format_count(source.udp_packets)),
        Cell(format_count(source.other_ip_packets)),
        Cell(format_count(source.non_ip_packets)),
        Cell(format_bytes(source.wire_bytes)),
        Cell(format_bytes(source.captured_bytes)),
    )


def _link_types(source: Input) -> str:
    if source.lines:
        return f"{format_count(source.lines)} lines"
    return ", ".join(source.link_types) or MISSING


def span_s(start_ns: int | None, end_ns: int | None) -> float | None:
    """Return the time between two times in seconds, None if one is not known."""
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e9


def _format(source: Input) -> str:
    if not source.format:
        return "not recognised"
    return f"{source.format}, {source.compression}" if source.compression else source.format


def _interfaces(interfaces: Sequence[Mapping[str, Any]]) -> str:
    """Return the named interfaces, at most eight of them."""
    names = [str(interface["name"]) for interface in interfaces if interface["name"]]
    if len(names) > 8:
        return f"{', '.join(names[:8])} and {len(names) - 8} more"
    return ", ".join(names) or MISSING
