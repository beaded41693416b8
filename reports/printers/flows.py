"""The table of flows for a terminal: the columns that people look at first, with human units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.base.errors import printable, source_name
from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.inputs import inputs_of
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.terminal import DIM, coloured, has_colours
from tfrctrace.reports.records import record
from tfrctrace.reports.units import (
    counted,
    enumerated,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.reports.inputs import Input


NS_PER_S: Final = 1_000_000_000

_INDENT: Final = " " * 6
"""Before the ends of a flow on a line of their own."""

_SOURCES_SHOWN: Final = 5

Flow = Sequence["FlowRow"]
"""The rows of the directions of one flow, the larger first."""


def write_flows(
    file: TextIO,
    flows: Sequence[Sequence[Mapping[str, Any]]],
    sources: Sequence[Mapping[str, Any]],
    *,
    total: int,
    order: str,
    width: int | None = None,
    zone: TimeZone | None = None,
) -> None:
    """Write the sources and a table of `flows`, each given as the rows of its directions.

    `total` is how many flows there are, `order` how these were chosen. With a `width` (of a terminal, in
    columns) the table is made to fit by further lines and fewer columns; addresses and numbers stay whole.
    """
    shown = [
        sorted((record(row, FlowRow) for row in flow), key=lambda row: -row.wire_bytes) for flow in flows
    ]
    lines = list(_captured([source for source in inputs_of(sources) if source.format], zone))
    if shown:
        lines += ["", *_fitting_table(shown, width, dim=has_colours(file)), ""]
    for line in (*lines, *_seen_from(shown), _counted(len(shown), total, order)):
        file.write(line + "\n")


def _captured(inputs: Sequence[Input], zone: TimeZone | None) -> Iterator[str]:
    """Give a line for each of the first inputs."""
    for source in inputs[:_SOURCES_SHOWN]:
        yield printable(f"{source_name(source.name)}: {', '.join(_facts(source, zone))}")
    if len(inputs) > _SOURCES_SHOWN:
        packets = format_count(sum(source.packets for source in inputs if source.has_packets))
        yield f"and {len(inputs) - _SOURCES_SHOWN} more; {packets} packets in all"


def _facts(source: Input, zone: TimeZone | None) -> Iterator[str]:
    if source.format:
        yield " ".join(filter(None, (source.format, source.compression and f"in {source.compression}")))
    if source.link_types:
        yield enumerated(source.link_types)
    if source.lines:
        yield counted(source.lines, "line")
    if source.has_packets:
        yield f"{counted(source.packets, 'packet')} with {format_bytes(source.wire_bytes)}"
    if source.span_ns is not None:
        start_ns, end_ns = source.span_ns
        lasted = format_duration_s((end_ns - start_ns) / NS_PER_S)
        yield f"from {format_time_ns(start_ns, zone)} for {lasted}"
    if source.filtered_packets:
        yield f"{format_count(source.filtered_packets)} left out by the filter"
    if source.outside_packets:
        yield f"{format_count(source.outside_packets)} outside of the stretch of time"


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns with numbers."""

    percentiles: bool
    """Whether p95 stands beside a median or a mean."""
    pdr: bool = False
    delay: bool = False
    """Whether these are among them, which only a trace of both ends shows."""

    def headings(self) -> tuple[str, ...]:
        p95 = " / p95" if self.percentiles else ""
        headings = ("packets", "bytes", "goodput", "retrans.", f"RTT p50{p95}")
        return (*headings, *(("PDR",) if self.pdr else ()), *((f"delay mean{p95}",) if self.delay else ()))

    def cells(self, row: FlowRow) -> tuple[str, ...]:
        delay = self._times_ms(row.delay_mean_ms, row.delay_p95_ms)
        return (
            format_count(row.packets),
            format_bytes(row.wire_bytes),
            format_rate_bps(row.goodput_bps),
            format_count(row.retransmitted_segments),
            self._times_ms(row.rtt_p50_ms, row.rtt_p95_ms),
            *((format_share(row.pdr),) if self.pdr else ()),
            *((delay,) if self.delay else ()),
        )

    def _times_ms(self, first: float | None, p95: float | None) -> str:
        """Return two times, both known or both unknown."""
        if not self.percentiles or first is None or p95 is None:
            return format_ms(first)
        return f"{format_ms(first).removesuffix(' ms')} / {format_ms(p95)}"


def _fitting_table(flows: Sequence[Flow], width: int | None, *, dim: bool) -> Iterator[str]:
    """Give the lines of the fullest table that `width` holds; where none fits, of the narrowest."""
    pdr, delay = (
        any(getattr(row, column) is not None for flow in flows for row in flow)
        for column in ("pdr", "delay_mean_ms")
    )
    complete = _Columns(True, pdr, delay)
    table = _with_ends_beside(flows, complete)
    if width is not None:
        for columns in (complete, _Columns(False, pdr, delay), _Columns(False)):
            if _width(table) <= width:
                break
            table = _with_ends_above(flows, columns, width)
    room = _width(table)
    for number, line in enumerate(table):
        is_back = line.lstrip().startswith("←")
        yield coloured(line, DIM) if dim and is_back else line
        if number == 0:
            yield "─" * room
    if (pdr and "PDR" not in table[0]) or (delay and "delay" not in table[0]):
        yield ""
        yield "PDR and delay need a wider terminal; `| less -S` shows them"


def _width(table: Sequence[str]) -> int:
    return max(map(len, table))


def _with_ends_beside(flows: Sequence[Flow], columns: _Columns) -> list[str]:
    """Return headings and a line for each direction: the first names the flow, the second has its state."""
    rows: list[tuple[str, ...]] = [("flow", "from → to", *columns.headings())]
    for there, *back in flows:
        rows.append((str(there.flow), printable(there.ends), *columns.cells(there)))
        rows += (("", printable(f"  ← {_kind(there)}"), *columns.cells(row)) for row in back)
    return aligned(rows, left={1})


def _with_ends_above(flows: Sequence[Flow], columns: _Columns, width: int) -> list[str]:
    """Return headings and for each flow a line with its ends, and a line for each direction below it."""
    rows = [("flow", "", *columns.headings())]
    rows += (
        ("", arrow, *columns.cells(row)) for flow in flows for arrow, row in zip("→←", flow, strict=False)
    )
    heading, *directions = aligned(rows, left={1})
    numbers = iter(directions)
    lines = [heading]
    for flow in flows:
        lines += _named(flow[0], width)
        lines += (next(numbers) for _ in flow)
    return lines


def _named(row: FlowRow, width: int) -> Iterable[str]:
    """Give number, ends and kind of a flow: on one line if it fits, else on as few as hold them whole."""
    line = f"{row.flow:>4}"
    separator = "  "
    sender, receiver = printable(row.ends).split(" → ", 1)
    for part in (f"{sender} →", receiver, f"({printable(_kind(row))})"):
        if len(line) + len(separator) + len(part) > width and line.strip():
            yield line
            line, separator = _INDENT, ""
        line += separator + part
        separator = " "
    yield line


def _kind(row: FlowRow) -> str:
    """Return transport, state, server name and label of a flow."""
    state = (row.state or "").replace("_", " ")
    return ", ".join(filter(None, (row.transport, state, row.shown_name, row.label)))


def _seen_from(flows: Sequence[Flow]) -> Iterator[str]:
    """Give a line with the number of flows captured near the receiver, which limits two columns."""
    near = [flow[0] for flow in flows if flow[0].is_near_receiver]
    if near:
        hides_losses = any(row.retransmitted_segments is not None for row in near)
        retransmissions = ", retrans. does not count losses on the way" if hides_losses else ""
        flows_near = counted(len(near), "flow")
        yield f"{flows_near} captured near the receiver: RTT is its own delay{retransmissions}"


def _counted(shown: int, total: int, order: str) -> str:
    if not total:
        return "no TCP or UDP flow"
    if shown == total:
        return counted(total, "flow") if total == 1 else f"{counted(total, 'flow')}, {order}"
    return (
        f"{format_count(shown)} of {counted(total, 'flow')}, {order}; "
        "`--rows 0` shows all, `--format csv` writes every column of all"
    )
