"""The index of many captures: a row for each, with a link to its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.conversations import largest_conversations
from tfrctrace.reports.elements import Cell, Fact, Heading, Report, Row, Section, TableView
from tfrctrace.reports.inputs import inputs_of, volume
from tfrctrace.reports.sections.caveats import problem_note
from tfrctrace.reports.sections.flow_table import span_s
from tfrctrace.reports.sections.summary import first_with_rtt, retransmitted_segments
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_share,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.reports.results import Results

INDEX_NAME: Final = "index.html"

_LARGEST: Final = 20
"""Largest flows among which the first with RTT samples is shown."""

_HEADINGS: Final = (
    Heading("Capture", numeric=False, meaning="link to its page"),
    Heading("First packet", meaning="UTC, or seconds of a simulation"),
    Heading("Duration"),
    Heading("Packets"),
    Heading("Bytes", meaning="whole frames on the wire"),
    Heading("Flows"),
    Heading("Retransmitted", meaning="share of the TCP data segments, as captured"),
    Heading("RTT", meaning="median of the largest flow that has one"),
    Heading("Caveats", meaning="errors and warnings about the input"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEntry:
    """The row of one capture; `page` is empty if it could not be read."""

    name: str
    page: str
    path: str = ""
    """Below the folder of all captures: two folders may have captures of the same name."""
    start_ns: int | None = None
    duration_s: float | None = None
    packets: int = 0
    wire_bytes: int = 0
    flows: int = 0
    retransmitted_share: float | None = None
    rtt_p50_ms: float | None = None
    problems: tuple[Mapping[str, Any], ...] = ()


def capture_entry(results: Results, *, name: str, path: str, page: str) -> CaptureEntry:
    """Return the entry of a capture whose page has these results."""
    inputs = inputs_of(results.sources)
    starts = [source.start_ns for source in inputs if source.start_ns is not None]
    ends = [source.end_ns for source in inputs if source.end_ns is not None]
    packets, wire_bytes = volume(results.flows, inputs)
    retransmitted, data = retransmitted_segments(results.flows)
    sampled = first_with_rtt(largest_conversations(results.flows, _LARGEST))
    return CaptureEntry(
        name=name,
        page=page,
        path=path,
        start_ns=min(starts, default=None),
        duration_s=span_s(min(starts, default=None), max(ends, default=None)),
        packets=packets,
        wire_bytes=wire_bytes,
        flows=results.flows["flow"].n_unique(),
        retransmitted_share=retransmitted / data if data else None,
        rtt_p50_ms=None if sampled is None else sampled.rtt_p50_ms,
        problems=tuple(problem for problem in results.problems if problem["severity"] != "note"),
    )


def index_report(entries: Sequence[CaptureEntry], *, title: str) -> Report:
    """Return the index of captures in the order in which they were read."""
    table = TableView(
        "captures-table",
        "One row for each capture; its name links to its page.",
        _HEADINGS,
        tuple(_row(number, entry) for number, entry in enumerate(entries, start=1)),
        sortable=True,
    )
    unread = [note for entry in entries if not entry.page for note in map(problem_note, entry.problems)]
    read = [entry for entry in entries if entry.page]
    sections = (
        Section(
            "summary",
            "Summary",
            paragraphs=((f"{counted(len(read), 'capture')}, each with its own page.",),),
            facts=(
                Fact("Packets", format_count(sum(entry.packets for entry in read))),
                Fact("On the wire", format_bytes(sum(entry.wire_bytes for entry in read))),
                Fact("Flows", format_count(sum(entry.flows for entry in read))),
            ),
        ),
        *((Section("unread", "Not read", notes=tuple(unread)),) if unread else ()),
        Section("captures", "Captures", tables=(table,)),
    )
    return Report(title, sections)


def _row(number: int, entry: CaptureEntry) -> Row:
    return Row(
        f"capture-{number}",
        (
            Cell(entry.name, back="" if entry.path == entry.name else entry.path, page=entry.page),
            Cell(format_time_ns(entry.start_ns), sort=entry.start_ns),
            Cell(format_duration_s(entry.duration_s), sort=entry.duration_s),
            *_counts(entry),
            Cell(format_share(entry.retransmitted_share), sort=entry.retransmitted_share),
            Cell(format_ms(entry.rtt_p50_ms), sort=entry.rtt_p50_ms),
            Cell(format_count(len(entry.problems)), sort=len(entry.problems)),
        ),
    )


def _counts(entry: CaptureEntry) -> tuple[Cell, ...]:
    """Return the counts of a capture, unknown if it could not be read."""
    if not entry.page:
        return (Cell(MISSING),) * 3
    return (
        Cell(format_count(entry.packets), sort=entry.packets),
        Cell(format_bytes(entry.wire_bytes), sort=entry.wire_bytes),
        Cell(format_count(entry.flows), sort=entry.flows),
    )
