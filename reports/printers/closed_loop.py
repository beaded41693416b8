"""Closed loops as text: what `tfrctrace replay --loop closed` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.printers.aligned import fitted, noted
from tfrctrace.reports.printers.replay import algorithm_name, flow_blocks, flow_title, indented, modes_words
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_duration_s,
    format_ms,
    format_rate_bps,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COLUMNS: Final = ("algorithm", "received", "sent", "lost", "p", "mean RTT", "time in each mode")
_LEFT: Final = frozenset({0, 6})


def write_closed_loop_text(file: TextIO, document: Mapping[str, Any], *, width: int | None = None) -> None:
    """Write a block for each flow: its bottleneck, and a line for each algorithm.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in flow_blocks(document, _block, width):
        file.write(printable(line) + "\n")


def _block(flow: Mapping[str, Any], replays: Sequence[Mapping[str, Any]], room: int | None) -> Iterator[str]:
    seconds = (flow["end_ns"] - flow["start_ns"]) / 1e9
    yield (
        f"{flow_title(flow)}, {flow['transport']}: {seconds:.1f} s in closed loop, "
        f"s = {flow['segment_bytes']:.0f} bytes; actually sent {format_rate_bps(flow['sent_mean_bps'])}"
    )
    yield from indented(noted(list(_bottleneck(flow["bottleneck"])), left={0}, width=room))
    yield from indented(fitted([_COLUMNS, *map(_cells, replays)], left=_LEFT, keys=1, width=room))
    for one in replays:
        if one["seconds"] < seconds * (1 - 1e-6):
            rounds = counted(one["rounds"], "round")
            yield f"  note: {one['algorithm']} was modelled for {one['seconds']:.1f} s, {rounds}"


def _bottleneck(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Give each number of the bottleneck with its evidence."""
    for name, words, form in _NUMBERS:
        value = found[name]["value"]
        yield words, MISSING if value is None else form(value), found[name]["evidence"]
    yield "others", format_rate_bps(found["background_mean_bps"]), "on average, as recorded"
    down_s = sum(until_s - from_s for from_s, until_s in found["outages_s"])
    if down_s:
        times = counted(len(found["outages_s"]), "time")
        yield "outages", format_duration_s(down_s), f"{times} nothing arrived of what was sent"
    window_bytes = found["receive_window_bytes"]
    if window_bytes is not None:
        yield "receive window", format_bytes(window_bytes), "the largest, or as given"


def _share(value: float) -> str:
    return f"{value:.3g}"


_NUMBERS: Final = (
    ("capacity_bps", "capacity", format_rate_bps),
    ("base_rtt_ms", "base RTT", format_ms),
    ("buffer_bytes", "buffer", format_bytes),
    ("random_loss", "loss by chance", _share),
    ("least_rto_s", "least timeout", format_duration_s),
)


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        algorithm_name(one),
        format_rate_bps(one["received_mean_bps"]),
        format_rate_bps(one["sent_mean_bps"]),
        counted(one["losses"], "packet"),
        f"{one['p_end']:.4g}",
        format_ms(one["rtt_mean_ms"]),
        modes_words(one["time_in_mode"]),
    )
