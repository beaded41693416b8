"""The hops between more than two captures of one clock: where packets were lost, and how long each took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.sets.hop_totals import HopRow, hop_rows, hop_totals
from tfrctrace.reports.cells import count_cell, ms_cell, share_cell
from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView
from tfrctrace.reports.flow_rows import FlowRow, flow_anchor
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tfrctrace.metrics.sets.hop_totals import HopTotals
    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 300
"""Hops of flows in the table, those with most losses; the table `hops` has all."""

_FOLLOWED: Final = (
    "Each packet is followed from capture to capture, by one clock. It was lost after the last capture that "
    "has it, before the next one of the usual route of its flow and direction. A hop from one device of a "
    "router to another is its queue, a hop between routers the link."
)

_COUNTS: Final = (
    Heading("Packets", meaning="packets at the start of the hop"),
    Heading("Lost", meaning="packets that no capture after the start has"),
    Heading("Share", meaning="of the packets whose outcome is known"),
    Heading("In flight", meaning="the capture at the end was not running for certain"),
    Heading("Missed", meaning="packets that the capture at the end missed: a later one has them"),
)
_OF_ALL: Final = (
    Heading("From", numeric=False, meaning="capture at the start of the hop"),
    Heading("To", numeric=False, meaning="capture at its end"),
    Heading("Directions", meaning="directions of flows that take the hop"),
    *_COUNTS,
    Heading("Delay min", meaning="smallest delay"),
    Heading("Mean", meaning="mean delay"),
    Heading("Max", meaning="largest delay"),
)
_OF_FLOWS: Final = (
    Heading("Direction", numeric=False, meaning="flow and its ends"),
    Heading("Hop", meaning="number on the way from the sender"),
    Heading("From", numeric=False, meaning="capture at the start of the hop"),
    Heading("To", numeric=False, meaning="capture at its end"),
    *_COUNTS,
    Heading("Delay median", meaning="median delay"),
    Heading("95\u00a0%", meaning="95th percentile"),
)


def hops_section(content: ReportContent) -> Section:
    """Return the section on the hops; it is empty without any."""
    key, title = "hops", "Hops between the captures"
    hops = content.results.table("hops")
    if hops.is_empty():
        return Section(key, title)
    rows = hop_rows(hops.iter_rows(named=True))
    legends = {row.key: row.legend for row in records(content.flows, FlowRow)}
    lossy = sorted(rows, key=lambda row: (-row.lost_packets, row.flow, row.direction, row.hop))
    left_out = len(rows) - _MOST_ROWS
    rest = f" Not shown: {counted(left_out, 'hop')} with fewer losses." if left_out > 0 else ""
    tables = (
        TableView(
            "hops-all",
            "All flows on each hop.",
            _OF_ALL,
            tuple(_row_of_all(number, one) for number, one in enumerate(hop_totals(rows), start=1)),
            sortable=True,
        ),
        TableView(
            "hops-flows",
            f"Each direction of a flow on each hop, most losses first.{rest}",
            _OF_FLOWS,
            tuple(_row_of_flow(row, legends) for row in lossy[:_MOST_ROWS]),
            sortable=True,
        ),
    )
    return Section(key, title, paragraphs=((_FOLLOWED,),), tables=tables)


def _row_of_all(number: int, one: HopTotals) -> Row:
    return Row(
        f"hop-{number}",
        (
            Cell(one.from_capture),
            Cell(one.to_capture),
            count_cell(one.flows),
            *_counts(one.packets, one.lost, one.in_flight, one.missed),
            *map(ms_cell, (one.delay_min_ms, one.delay_mean_ms, one.delay_max_ms)),
        ),
    )


def _row_of_flow(row: HopRow, legends: Mapping[tuple[int, str], str]) -> Row:
    key = row.flow, row.direction
    return Row(
        f"hop-{flow_anchor(row.flow)}-{row.direction}-{row.hop}",
        (
            Cell(legends.get(key, f"{row.flow} {row.direction}"), sort=row.flow),
            Cell(str(row.hop), sort=row.hop),
            Cell(row.from_capture),
            Cell(row.to_capture),
            *_counts(row.packets, row.lost_packets, row.in_flight_packets, row.missed_packets),
            *map(ms_cell, (row.delay_p50_ms, row.delay_p95_ms)),
        ),
    )


def _counts(packets: int, lost: int, in_flight: int, missed: int) -> Iterator[Cell]:
    known = packets - in_flight
    share = lost / known if known else None
    yield count_cell(packets)
    yield count_cell(lost)
    yield share_cell(share)
    yield count_cell(in_flight)
    yield count_cell(missed)
