"""The table of flows for a terminal: the columns that people look at first, with human units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.base.errors import printable, source_name
from tfrctrace.reports.conversations import ends, is_near_receiver
from tfrctrace.reports.input_volume import has_packets
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
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone


NS_PER_S: Final = 1_000_000_000

_ROOM_FOR_ALL: Final = 105
"""Columns of a terminal that hold every column of the table with IPv4 addresses."""

_HEADINGS: Final = ("flow", "from → to", "packets", "bytes", "goodput", "retrans.", "RTT p50 / p95")
_DELIVERY_HEADINGS: Final = ("PDR", "delay mean / p95")
"""Width of two more columns, where a trace shows both ends."""
_ENDS: Final = 1
"""The column that names the ends; all others are numbers."""
_GAP: Final = "  "

_SOURCES_SHOWN: Final = 5


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
    columns) the table is made to fit by folding; without one every flow has its two lines.
    """
    lines = list(_captured([source for source in sources if source["format"]], zone))
    if flows and width is None:
        lines += ["", *_unfolded(flows), ""]
    for line in lines:
        file.write(line + "\n")
    if flows and width is not None:
        _write_folded(file, flows, width)
    for line in _seen_from(flows):
        file.write(line + "\n")
    file.write(_counted(len(flows), total, order) + "\n")


def _captured(sources: Sequence[Mapping[str, Any]], zone: TimeZone | None) -> Iterator[str]:
    """Give a line for each of the first sources."""
    for source in sources[:_SOURCES_SHOWN]:
        yield printable(f"{source_name(source['source'])}: {', '.join(_facts(source, zone))}")
    if len(sources) > _SOURCES_SHOWN:
        packets = format_count(sum(source["packets"] for source in sources if has_packets(source)))
        yield f"and {len(sources) - _SOURCES_SHOWN} more; {packets} packets in all"


def _facts(source: Mapping[str, Any], zone: TimeZone | None) -> Iterator[str]:
    if source["format"]:
        yield " ".join(
            filter(None, (source["format"], source["compression"] and f"in {source['compression']}"))
        )
    if source["link_types"]:
        yield enumerated(source["link_types"])
    if source["lines"]:
        yield counted(source["lines"], "line")
    if has_packets(source):
        yield f"{counted(source['packets'], 'packet')} with {format_bytes(source['wire_bytes'])}"
    if source["start_ns"] is not None:
        span_s = (source["end_ns"] - source["start_ns"]) / NS_PER_S
        yield f"from {format_time_ns(source['start_ns'], zone)} for {format_duration_s(span_s)}"
    if source["filtered_packets"]:
        yield f"{format_count(source['filtered_packets'])} left out by the filter"
    if source.get("outside_packets"):
        yield f"{format_count(source['outside_packets'])} outside of the stretch of time"


def _unfolded(flows: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Give the lines of a table for a pipe or a file: as wide as it must be, without styles.

    It does without rich, which takes longer to load than a small capture takes to read.
    """
    lines = [_headings(flows), *_lines(flows, narrow=False)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, cells in enumerate(lines):
        aligned = [
            cell.ljust(width) if index == _ENDS else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield _GAP.join(aligned).rstrip()
        if number == 0:
            yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))


def _write_folded(file: TextIO, flows: Sequence[Sequence[Mapping[str, Any]]], width: int) -> None:
    """Write a table for a terminal of `width` columns: addresses fold, numbers do not."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    narrow = width < _ROOM_FOR_ALL
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for index, heading in enumerate(_headings(flows)):
        if index == _ENDS:
            table.add_column(heading, overflow="fold")
        else:
            style = "bold" if index == 0 else None
            table.add_column(
                _narrow(heading) if narrow else heading, justify="right", no_wrap=True, style=style
            )
    for cells in _lines(flows, narrow=narrow):
        # as text, so that nothing in it is taken for markup; only the first direction has a number
        table.add_row(*map(Text, cells), style=None if cells[0] else "dim")
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    console.print()
    console.print(table)
    console.print()


def _headings(flows: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    return (*_HEADINGS, *_DELIVERY_HEADINGS) if _show_delivery(flows) else _HEADINGS


def _show_delivery(flows: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    return any(row["pdr"] is not None for flow in flows for row in flow)


def _lines(flows: Sequence[Sequence[Mapping[str, Any]]], *, narrow: bool) -> Iterator[tuple[str, ...]]:
    """Give the lines of the table below its headings."""
    delivery = _show_delivery(flows)
    for flow in flows:
        for row, cells in zip(flow, _cells(flow, narrow=narrow), strict=True):
            yield (*cells, *_delivery(row, narrow=narrow)) if delivery else cells


def _cells(flow: Sequence[Mapping[str, Any]], *, narrow: bool) -> Iterator[tuple[str, ...]]:
    """Give a line for each direction; the first names the flow, the second has its state."""
    there = flow[0]
    yield (str(there["flow"]), printable(ends(there)), *_numbers(there, narrow=narrow))
    for back in flow[1:]:
        yield ("", printable(f"  ← {_kind(there)}"), *_numbers(back, narrow=narrow))


def _narrow(heading: str) -> str:
    return heading.removesuffix(" / p95")


def _kind(row: Mapping[str, Any]) -> str:
    """Return transport, state and label of a flow."""
    words = (row["transport"], row["state"], row["label"])
    return ", ".join(word.replace("_", " ") for word in words if word)


def _numbers(row: Mapping[str, Any], *, narrow: bool) -> tuple[str, ...]:
    return (
        format_count(row["packets"]),
        format_bytes(row["wire_bytes"]),
        format_rate_bps(row["goodput_bps"]),
        format_count(row["retransmitted_packets"]),
        _pair_ms(row["rtt_p50_ms"], row["rtt_p95_ms"], narrow=narrow),
    )


def _delivery(row: Mapping[str, Any], *, narrow: bool) -> tuple[str, ...]:
    return (
        format_share(row["pdr"]),
        _pair_ms(row["delay_mean_ms"], row["delay_p95_ms"], narrow=narrow),
    )


def _pair_ms(first: float | None, second: float | None, *, narrow: bool) -> str:
    """Return two times, both known or both unknown; only the first where there is no room."""
    if narrow or first is None or second is None:
        return format_ms(first)
    return f"{format_ms(first).removesuffix(' ms')} / {format_ms(second)}"


def _seen_from(flows: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Give a line with the number of flows captured near the receiver, which limits two columns."""
    near = sum(is_near_receiver(max(flow, key=lambda row: row["wire_bytes"])) for flow in flows)
    if near:
        yield (
            f"{counted(near, 'flow')} captured near the receiver: RTT is its own delay, "
            "retrans. does not count losses on the way"
        )


def _counted(shown: int, total: int, order: str) -> str:
    if not total:
        return "no TCP or UDP flow"
    if shown == total:
        return counted(total, "flow")
    return (
        f"{format_count(shown)} of {counted(total, 'flow')}, {order}; "
        "`--limit 0` shows all, `--format csv` writes every column of all"
    )
