"""The table of flows for a terminal: the columns that people look at first, with human units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.errors import printable, source_name
from tfrctrace.reports.conversations import ends
from tfrctrace.reports.units import (
    counted,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table as RichTable
    from rich.text import Text

NS_PER_S: Final = 1_000_000_000

_ROOM_FOR_ALL: Final = 105
"""Columns of a terminal that hold every column of the table with IPv4 addresses."""

_WITHOUT_END: Final = 1000
"""Columns where nothing has to be folded: a pipe or a file."""

_SOURCES_SHOWN: Final = 5


def write_flows(
    file: TextIO,
    flows: Sequence[Sequence[Mapping[str, Any]]],
    sources: Sequence[Mapping[str, Any]],
    *,
    total: int,
    order: str,
    width: int | None = None,
) -> None:
    """Write what was captured and a table of `flows`, each given as the rows of its directions.

    `total` is how many flows there are, `order` how these were chosen. With a `width` (of a terminal, in
    columns) the table is made to fit by folding; without one every flow has its two lines.
    """
    from rich.console import Console

    console = Console(
        file=file, width=width or _WITHOUT_END, highlight=False, markup=False, emoji=False, soft_wrap=True
    )
    for line in _captured([source for source in sources if source["format"]]):
        console.print(line)
    if flows:
        console.print()
        console.print(_table(flows, narrow=width is not None and width < _ROOM_FOR_ALL), soft_wrap=False)
        console.print()
    console.print(_counted(len(flows), total, order))


def _captured(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give a line for each of the first sources."""
    for source in sources[:_SOURCES_SHOWN]:
        yield printable(f"{source_name(source['source'])}: {', '.join(_facts(source))}")
    if len(sources) > _SOURCES_SHOWN:
        packets = format_count(sum(source["packets"] for source in sources))
        yield f"and {len(sources) - _SOURCES_SHOWN} more; {packets} packets in all"


def _facts(source: Mapping[str, Any]) -> Iterator[str]:
    if source["format"]:
        yield " ".join(
            filter(None, (source["format"], source["compression"] and f"in {source['compression']}"))
        )
    if source["link_types"]:
        yield " and ".join(source["link_types"])
    yield f"{counted(source['packets'], 'packet')} with {format_bytes(source['wire_bytes'])}"
    if source["start_ns"] is not None:
        span_s = (source["end_ns"] - source["start_ns"]) / NS_PER_S
        yield f"from {format_time_ns(source['start_ns'])} for {format_duration_s(span_s)}"
    if source["filtered_packets"]:
        yield f"{format_count(source['filtered_packets'])} left out by the filter"


def _table(flows: Sequence[Sequence[Mapping[str, Any]]], *, narrow: bool) -> RichTable:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("flow", justify="right", no_wrap=True, style="bold")
    table.add_column("from → to", overflow="fold")
    for name in ("packets", "bytes", "goodput", "retrans."):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("RTT p50" if narrow else "RTT p50 / p95", justify="right", no_wrap=True)
    for rows in flows:
        _add_flow(table, rows, narrow=narrow)
    return table


def _add_flow(table: RichTable, rows: Sequence[Mapping[str, Any]], *, narrow: bool) -> None:
    """Add a line for the way there, which names the flow, and one for the way back, which tells its state."""
    there = rows[0]
    table.add_row(str(there["flow"]), _plain(ends(there)), *_numbers(there, narrow=narrow))
    for back in rows[1:]:
        table.add_row("", _plain(f"  ← {_kind(there)}"), *_numbers(back, narrow=narrow), style="dim")


def _kind(row: Mapping[str, Any]) -> str:
    """Return transport, state and label of a flow."""
    words = (row["transport"], row["state"], row["label"])
    return ", ".join(word.replace("_", " ") for word in words if word)


def _numbers(row: Mapping[str, Any], *, narrow: bool) -> tuple[str, ...]:
    rtt = format_ms(row["rtt_p50_ms"])
    if not narrow and row["rtt_p50_ms"] is not None:
        rtt = f"{rtt.removesuffix(' ms')} / {format_ms(row['rtt_p95_ms'])}"
    return (
        format_count(row["packets"]),
        format_bytes(row["wire_bytes"]),
        format_rate_bps(row["goodput_bps"]),
        format_count(row["retransmitted_packets"]),
        rtt,
    )


def _plain(text: str) -> Text:
    """Return text of a capture so that nothing in it is taken for markup or for a control sequence."""
    from rich.text import Text

    return Text(printable(text))


def _counted(shown: int, total: int, order: str) -> str:
    if not total:
        return "no TCP or UDP flow"
    if shown == total:
        return counted(total, "flow")
    return (
        f"{format_count(shown)} of {counted(total, 'flow')}, {order}; "
        "`--limit 0` shows all, `--format csv` writes every column of all"
    )
