"""QUIC connections: names, versions, handshakes, and what the spin bit shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.cells import count_cell, ms_cell
from tfrctrace.reports.conversations import largest_directions
from tfrctrace.reports.elements import FLOW_HEADING, Cell, Heading, Row, Section, TableView
from tfrctrace.reports.units import MISSING, counted, format_count

if TYPE_CHECKING:
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 200

_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("From → to", numeric=False, meaning="the direction of the packets"),
    Heading(
        "Server name", numeric=False, meaning="name that the client asks for; below, the protocols it offers"
    ),
    Heading("Version", numeric=False, meaning="of the last packet that shows it; below, paths if several"),
    Heading("Handshake", meaning="round-trip time of the first packets of both sides"),
    Heading("To the other side", meaning="the part of it between the capture and the receiver"),
    Heading("Spin bit", numeric=False, meaning="what the spin bit of the direction shows"),
    Heading("Spin RTT", meaning="median time between its edges: round trips of the whole path"),
    Heading("95\u00a0%", meaning="95th percentile of these times"),
    Heading("0-RTT", meaning="packets with data that did not wait for the handshake"),
    Heading("ECT(1)", meaning="packets that ask for the service of L4S; below, those with ECT(0)"),
    Heading("Marked", meaning="packets with a congestion mark"),
)


def quic_section(content: ReportContent) -> Section:
    """Return what is known of each direction of QUIC; empty without any."""
    import polars as pl

    key, title = "quic", "QUIC"
    flows = content.flows
    is_quic = (pl.col("transport") == "quic") & (pl.col("packets") > 0)
    # a page of results that were saved by an earlier version
    if "quic_version" not in flows.columns:
        return Section(key, title)
    shown = largest_directions(flows, is_quic, "wire_bytes", _MOST_ROWS)
    if not shown:
        return Section(key, title)
    rest = flows.select(is_quic.sum()).item() - len(shown)
    left_out = f" Not shown: {counted(rest, 'direction')} with fewer bytes." if rest else ""
    caption = (
        "One row for each direction, most bytes first. Losses and retransmissions are encrypted, so they "
        f"are unknown.{left_out}"
    )
    table = TableView("quic-directions", caption, _HEADINGS, tuple(map(_row, shown)), sortable=True)
    return Section(key, title, tables=(table,))


def _row(row: FlowRow) -> Row:
    paths = row.quic_paths or 1
    verdict = row.spin_verdict
    return Row(
        f"quic-{row.anchor}-{row.direction}",
        (
            Cell(str(row.flow), sort=row.flow),
            Cell(row.ends),
            Cell(row.shown_name or MISSING, row.alpn or ""),
            Cell(row.quic_version or MISSING, counted(paths, "path") if paths > 1 else ""),
            *map(ms_cell, (row.handshake_rtt_ms, row.syn_rtt_ms)),
            Cell(verdict.replace("_", "-") if verdict else MISSING),
            *map(ms_cell, (row.spin_rtt_p50_ms, row.spin_rtt_p95_ms)),
            count_cell(row.quic_0rtt_packets),
            Cell(
                format_count(row.ect1_packets),
                format_count(row.ect0_packets) if row.ect0_packets else "",
                row.ect1_packets,
            ),
            count_cell(row.ce_packets),
        ),
    )
