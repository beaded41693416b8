"""Algorithms in the place of recorded flows, at a model of their bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.replay import AlgorithmRun, FlowDirection, Replays

if TYPE_CHECKING:
    from collections.abc import Mapping


SWEPT: Final[Mapping[str, tuple[str, str]]] = {
    "capacity": ("capacity", "bit/s"),
    "base_rtt": ("base RTT", "ms"),
    "buffer": ("buffer", "bytes"),
    "window": ("receive window", "bytes"),
    "loss": ("loss by chance", "%"),
}
"""Properties of a bottleneck that a sweep varies, with their words and units."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """A value with its evidence, or None with the reason why it is unknown."""

    value: float | None
    evidence: str
    low: float | None = None
    high: float | None = None
    """Between which it lies by what was seen; None if it is given, or not known to vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredBottleneck:
    """The bottleneck of a flow; docs/models.md explains the names."""

    capacity_bps: Inferred
    base_rtt_ms: Inferred
    buffer_bytes: Inferred
    random_loss: Inferred
    least_rto_s: Inferred
    background_mean_bps: float
    """Of the other flows."""
    receive_window_bytes: float | None
    outages_s: tuple[tuple[float, float], ...]
    queue: str
    """`tail_drop`, or the discipline that was given."""
    has_ecn: bool
    """Whether that discipline marks, as was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedFlow(FlowDirection):
    """A flow that the algorithms replaced."""

    transport: str
    segment_bytes: float
    start_ns: int
    end_ns: int
    sent_mean_bps: float | None
    """Between the first and the last data packet, with retransmissions."""
    bottleneck: InferredBottleneck
    competitors: tuple[str, ...]
    """Other flows that reacted, with their congestion control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoopRun(AlgorithmRun):
    """Means over the time of the rounds."""

    swept: float | None
    """Value of the property that a sweep varies."""
    rounds: int
    seconds: float
    sent_mean_bps: float | None
    received_mean_bps: float | None
    rtt_mean_ms: float | None
    rtt_p95_ms: float | None
    """Not exceeded in 95 % of the time."""
    received_low_bps: float | None
    received_high_bps: float | None
    rtt_p95_low_ms: float | None
    rtt_p95_high_ms: float | None
    """Between the least and the most that the bottleneck may be; None if all of it was given."""
    queued_mean_bytes: float | None
    losses: int
    p_end: float
    time_in_mode: Mapping[str, float | None]
    """Shares of the time."""


class ClosedLoopReplays(Replays[ReplacedFlow, ClosedLoopRun]):
    """Flows with what replaced them, and flows that nothing can replace."""
