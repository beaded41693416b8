"""Predicted decisions of window algorithms as text: what `tfrctrace replay` prints of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.base.errors import printable
from tfrctrace.reports.printers.aligned import fitted
from tfrctrace.reports.printers.replay import flow_blocks, flow_title, indented
from tfrctrace.reports.units import MISSING, counted, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.metrics.results.one_step import ObservedFlow, OneStepRun, OneSteps

_EVENTS: Final = {
    "slow_start": "slow start",
    "congestion_avoidance": "avoidance",
    "loss": "losses",
    "mark": "marks",
}
_COLUMNS: Final = ("algorithm", "decisions", "as predicted", "median deviation", *_EVENTS.values(), "variant")
_LEFT: Final = frozenset({0, len(_COLUMNS) - 1})


def write_one_step_text(file: TextIO, steps: OneSteps, *, width: int | None = None) -> None:
    """Write a block for each direction with a line per algorithm, the best first, then the flows without.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in flow_blocks(steps, _block, width):
        file.write(printable(line) + "\n")


def _block(flow: ObservedFlow, runs: Sequence[OneStepRun], room: int | None) -> Iterator[str]:
    yield (
        f"{flow_title(flow)}, {flow.transport}: window of segments of {flow.segment_bytes:.0f} bytes, "
        f"{flow.segments_per_ack:.2g} for each acknowledgement"
    )
    best_first = sorted(runs, key=lambda run: -run.within_share)
    yield from indented(fitted([_COLUMNS, *map(_cells, best_first)], left=_LEFT, keys=1, width=room))


def _cells(run: OneStepRun) -> tuple[str, ...]:
    shares = (run.by_event.get(event) for event in _EVENTS)
    return (
        run.algorithm,
        counted(run.decisions, "round"),
        format_share(run.within_share),
        f"{run.deviation_median_segments:+.2f} segments",
        *(MISSING if one is None else f"{one.within} of {one.decisions}" for one in shares),
        ", ".join(
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in run.settings.items()
        )
        or MISSING,
    )
