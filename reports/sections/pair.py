"""Two captures of the same packets: their clocks, delay over time, and where packets were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.reports.cells import count_cell, ms_cell
from tfrctrace.reports.conversations import largest_directions
from tfrctrace.reports.elements import Cell, Fact, Heading, Row, Section, TableView, Words
from tfrctrace.reports.figures.delay_and_delivery import delay_figure, delivered_figure
from tfrctrace.reports.records import record
from tfrctrace.reports.units import counted, format_count, format_ms, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 50
"""Directions in the table; the table of flows has more."""

_NS_PER_MS: Final = 1e6

_HEADINGS: Final = (
    Heading("Direction", numeric=False, meaning="flow and its ends"),
    Heading("Sent", meaning="packets at the capture nearer to the sender"),
    Heading("Lost before", meaning="TCP: retransmitted before the nearer capture had seen them"),
    Heading("Lost between", meaning="in the nearer capture, but not in the other"),
    Heading("Lost behind", meaning="TCP: in both captures, and retransmitted as the receiver asked for them"),
    Heading("Missed", meaning="arrived, and one of the captures missed it"),
    Heading("Delay min", meaning="smallest one-way delay"),
    Heading("Median", meaning="median of the one-way delays"),
    Heading("95\u00a0%", meaning="95th percentile"),
    Heading("99\u00a0%", meaning="99th percentile"),
    Heading("Max", meaning="largest one-way delay"),
    Heading("Jitter", meaning="interarrival jitter at the end (RFC 3550)"),
)


class _Clock(NamedTuple):
    """What the core says of the second clock (`Clock`, which explains each field)."""

    is_given: bool
    has_delays: bool
    offset_ns: int
    offset_low_ns: int | None
    offset_high_ns: int | None
    drift_ppm: float | None
    drift_low_ppm: float | None
    drift_high_ppm: float | None
    packets: int


def pair_section(content: ReportContent) -> Section:
    """Return the section on a pair of captures, which is one trace; it is empty without a clock."""
    import polars as pl

    key, title = "between", "Between the two captures"
    if content.results.clock is None:
        return Section(key, title)
    trace, clock = content.traces[0], record(content.results.clock, _Clock)
    # directions of which both captures can show packets
    rows = largest_directions(trace.flows, pl.col("sent_packets") > 0, "sent_packets", trace.flows.height)
    figures = (delay_figure(trace), delivered_figure(trace))
    return Section(
        key,
        title,
        paragraphs=(_on_the_clocks(clock),),
        facts=tuple(_facts(rows, clock)),
        figures=tuple(filter(None, figures)),
        tables=(_table(rows),) if rows else (),
    )


def _facts(rows: list[FlowRow], clock: _Clock) -> Iterator[Fact]:
    sent, lost = (sum(row.sent_packets or 0 for row in rows), sum(row.lost_packets or 0 for row in rows))
    yield Fact("In both captures", counted(clock.packets, "packet"), f"of {format_count(sent)} sent")
    yield Fact("Lost between", format_count(lost), format_share(lost / sent) if sent else "")
    if not clock.has_delays:
        yield Fact("Second clock", "not known", "packets of one direction only")
        return
    yield Fact(
        f"Second clock {'ahead' if clock.offset_ns >= 0 else 'behind'}",
        _offset(clock),
        "as given" if clock.is_given else f"{_offset_words(clock)} at the first packet in both",
    )
    if not clock.is_given:
        drift = clock.drift_ppm
        value = "not known" if drift is None else f"{drift:+.1f} ppm"
        yield Fact("Clock drift", value, _drift_words(clock))


def _offset(clock: _Clock) -> str:
    """Return the offset to the microsecond, or millisecond if it is not known as well."""
    low_ns, high_ns = clock.offset_low_ns or 0, clock.offset_high_ns or 0
    is_coarse = not clock.is_given and high_ns - low_ns > _NS_PER_MS
    seconds = abs(clock.offset_ns) / 1e9
    return f"{seconds:,.3f} s" if is_coarse else f"{seconds:,.6f} s"


def _offset_words(clock: _Clock) -> str:
    low_ns, high_ns = clock.offset_low_ns, clock.offset_high_ns
    if low_ns is None or high_ns is None:
        return "estimated"
    return f"± {format_ms((high_ns - low_ns) / 2 / _NS_PER_MS)}"


def _drift_words(clock: _Clock) -> str:
    low, high = clock.drift_low_ppm, clock.drift_high_ppm
    if low is None or high is None:
        return "the clock was adjusted in between"
    return f"possible: {low:+.1f} to {high:+.1f} ppm"


def _on_the_clocks(clock: _Clock) -> Words:
    if not clock.has_delays:
        return (
            "Both captures have packets of one direction only. Delays cannot be separated from the clock "
            "offset then; only their changes (jitter) are known. If the clocks agree, use "
            "`--clock-offset 0s`.",
        )
    if clock.is_given:
        return ("Delays are differences of the two clocks, corrected by the given offset.",)
    half_ms = _offset_words(clock).removeprefix("± ")
    return (
        "The clock offset is estimated from the packets: no packet may arrive before it was sent, and of the "
        "possible offsets the middle one is used, as if the shortest delay were equal in both directions. If "
        f"it is not, delays of one direction are up to {half_ms} too long and those of the other as "
        "much too short; delay changes and losses are not affected. If the clocks agree, `--clock-offset 0s` "
        "gives exact delays.",
    )


def _table(rows: list[FlowRow]) -> TableView:
    shown = rows[:_MOST_ROWS]
    left_out = len(rows) - len(shown)
    rest = f" Not shown: {counted(left_out, 'direction')} with fewer packets." if left_out else ""
    return TableView(
        "between-directions",
        f"Each direction at both captures, most packets first.{rest}",
        _HEADINGS,
        tuple(_row(row) for row in shown),
        sortable=True,
    )


def _row(row: FlowRow) -> Row:
    lost = (row.lost_before_packets, row.lost_packets, row.lost_behind_packets)
    delays = (row.delay_min_ms, row.delay_p50_ms, row.delay_p95_ms, row.delay_p99_ms, row.delay_max_ms)
    return Row(
        f"between-{row.anchor}-{row.direction}",
        (
            Cell(row.legend),
            *map(count_cell, (row.sent_packets, *lost, row.missed_packets)),
            *map(ms_cell, (*delays, row.jitter_ms)),
        ),
    )
