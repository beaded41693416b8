"""Closed loops as text: what `tfrctrace replay --loop closed` prints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.metrics.results.closed_loop import SWEPT
from tfrctrace.reports.printers.aligned import fitted, noted
from tfrctrace.reports.printers.replay import algorithm_name, flow_blocks, flow_title, indented, modes_words
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.results.closed_loop import (
        ClosedLoopReplays,
        ClosedLoopRun,
        InferredBottleneck,
        ReplacedFlow,
    )

_COLUMNS: Final = (
    *("algorithm", "received", "between", "sent", "lost", "p", "mean RTT", "p95 RTT", "between"),
    "time in each mode",
)


def write_closed_loop_text(file: TextIO, replays: ClosedLoopReplays, *, width: int | None = None) -> None:
    """Write a block for each flow: its bottleneck, and a line for each algorithm.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in flow_blocks(replays, partial(_block, sweep=replays.head.sweep), width):
        file.write(printable(line) + "\n")


def _block(
    flow: ReplacedFlow, runs: Sequence[ClosedLoopRun], room: int | None, *, sweep: str | None
) -> Iterator[str]:
    seconds = (flow.end_ns - flow.start_ns) / 1e9
    yield (
        f"{flow_title(flow)}, {flow.transport}: {seconds:.1f} s in closed loop, "
        f"s = {flow.segment_bytes:.0f} bytes; actually sent {format_rate_bps(flow.sent_mean_bps)}"
    )
    yield from indented(noted(list(_bottleneck(flow.bottleneck)), left={0}, width=room))
    if flow.competitors:
        yield f"  reacting: {', '.join(flow.competitors)}"
    rows: list[tuple[str, ...]] = [_COLUMNS, *map(_cells, runs)]
    keys = 1
    if sweep is not None:
        words, unit = SWEPT[sweep]
        values = (words, *(format_value(run.swept, unit) for run in runs))
        rows = [(value, *cells) for value, cells in zip(values, rows, strict=True)]
        keys = 2
    yield from indented(fitted(rows, left={keys - 1, len(rows[0]) - 1}, keys=keys, width=room))
    for run in runs:
        if run.seconds < seconds * (1 - 1e-6):
            rounds = counted(run.rounds, "round")
            yield f"  note: {run.algorithm} was modelled for {run.seconds:.1f} s, {rounds}"


def _bottleneck(found: InferredBottleneck) -> Iterator[tuple[str, str, str]]:
    """Give each number of the bottleneck with its evidence."""
    for words, number, form in (
        ("capacity", found.capacity_bps, format_rate_bps),
        ("base RTT", found.base_rtt_ms, format_ms),
        ("buffer", found.buffer_bytes, format_bytes),
        ("loss by chance", found.random_loss, _share),
        ("least timeout", found.least_rto_s, format_duration_s),
    ):
        yield words, MISSING if number.value is None else form(number.value), number.evidence
    yield "others", format_rate_bps(found.background_mean_bps), "on average, as recorded"
    down_s = sum(until_s - from_s for from_s, until_s in found.outages_s)
    if down_s:
        times = counted(len(found.outages_s), "time")
        yield "outages", format_duration_s(down_s), f"{times} nothing arrived of what was sent"
    if found.queue != "tail_drop":
        yield "queue", found.queue, "as given, with marks" if found.has_ecn else "as given"
    if found.receive_window_bytes is not None:
        yield "receive window", format_bytes(found.receive_window_bytes), "the largest, or as given"


def _share(value: float) -> str:
    return f"{value:.3g}"


def between(low: str, high: str) -> str:
    """Return an interval of formatted values."""
    return MISSING if low == MISSING else f"{low} to {high}"


def _cells(run: ClosedLoopRun) -> tuple[str, ...]:
    return (
        algorithm_name(run),
        format_rate_bps(run.received_mean_bps),
        between(format_rate_bps(run.received_low_bps), format_rate_bps(run.received_high_bps)),
        format_rate_bps(run.sent_mean_bps),
        counted(run.losses, "packet"),
        f"{run.p_end:.4g}",
        format_ms(run.rtt_mean_ms),
        format_ms(run.rtt_p95_ms),
        between(format_ms(run.rtt_p95_low_ms), format_ms(run.rtt_p95_high_ms)),
        modes_words(run.time_in_mode),
    )
