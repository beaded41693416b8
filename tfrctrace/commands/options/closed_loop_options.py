"""Options of closed loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.api import Trace
    from tfrctrace.metrics.results.closed_loop import ClosedLoopReplays

closed_loop_option: Final = partial(typer.Option, rich_help_panel="Closed loop")

Bottleneck = Annotated[
    list[str] | None,
    closed_loop_option(
        "--bottleneck",
        metavar="NAME=VALUE",
        help="Override a property of the path: capacity=3M, base_rtt=40ms, buffer=20000 (bytes), "
        "loss=0.01 (probability), window=64000 (of the receiver), others=0 (no other flows) or react, "
        "queue=codel (or red, pie), ecn=1 (it marks).",
    ),
]
Sweep = Annotated[
    str | None,
    closed_loop_option(
        "--sweep",
        metavar="NAME=VALUES",
        help="Model each of several values of one property (capacity, base_rtt, buffer, loss, window), "
        "separated by commas, or multiples of what the trace shows: buffer=10000,20000 or buffer=0.5x,1x,2x.",
    ),
]
Together = Annotated[bool, closed_loop_option("--together", help="Let the algorithms share the bottleneck.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLoops:
    """Closed loops that a report shows."""

    loop: Annotated[
        Literal["closed"] | None,
        closed_loop_option(
            "--loop",
            help="closed: show what algorithms would have received in place of each flow, at a model of its "
            "bottleneck (docs/models.md).",
        ),
    ] = None
    algorithm: Annotated[
        str | None,
        closed_loop_option(
            "--algorithm",
            "-a",
            metavar="NAMES",
            show_default="newreno",
            help="Algorithms of `--loop closed`, separated by commas.",
        ),
    ] = None
    bottleneck: Bottleneck = None
    sweep: Sweep = None
    together: Together = False

    def check(self, others: Mapping[str, object]) -> None:
        """Raise for what has no effect, or for invalid values, before a trace is read.

        `others` are options beside which there are no closed loops.
        """
        from tfrctrace.replay.closed_loop.overrides import parse_overrides, parse_sweep
        from tfrctrace.replay.open_loop import select_algorithms

        own = {
            "--algorithm": self.algorithm,
            "--bottleneck": self.bottleneck,
            "--sweep": self.sweep,
            "--together": self.together,
        }
        if self.loop is None:
            for name in (name for name, value in own.items() if value):
                raise UsageError(f"`{name}` needs `--loop closed`")
            return
        for name in (name for name, value in others.items() if value):
            raise UsageError(
                f"`{name}` cannot be used with `--loop`",
                hint="closed loops are of one trace that is read, and are not saved",
            )
        parse_overrides(self.bottleneck or ())
        if self.sweep is not None:
            parse_sweep(self.sweep)
        select_algorithms(self._names, "rfc5348", ())

    @property
    def _names(self) -> list[str]:
        return [name.strip() for name in (self.algorithm or "newreno").split(",") if name.strip()]

    def run(self, trace: Trace) -> ClosedLoopReplays | None:
        """Return what the algorithms did; None if no closed loop was asked for."""
        if self.loop is None:
            return None
        from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays

        bottleneck = self.bottleneck or ()
        loops = trace.closed_loops(
            *self._names, bottleneck=bottleneck, sweep=self.sweep, together=self.together
        )
        return closed_loop_replays(loops)
