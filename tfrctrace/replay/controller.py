"""The interface of a rate algorithm: a class with two methods, instantiated for each flow.

    class MyControl:
        def __init__(self, start: Start) -> None: ...
        def on_feedback(self, report: Report) -> Allowed: ...
        def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed: ...

`tfrctrace replay --algorithm mymodule:MyControl` runs it; docs/replay.md has a complete example. Times are
seconds since the flow's first packet, sizes bytes, rates bytes of payload per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Facts about a flow before its first report."""

    segment_bytes: float
    """Payload of a full packet: s of the RFCs, MSS of TCP."""
    time_s: float = 0.0
    """When the first packet was sent."""
    handshake_rtt_s: float | None = None
    """Round-trip time of the handshake; None without one."""
    least_rto_s: float | None = None
    """Minimum retransmission timeout of the recorded sender; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Feedback that the sender received (RFC 5348 section 3.2.2)."""

    time_s: float
    """When it reached the sender."""
    interval_s: float
    """Time since the previous report or the start."""
    rtt_s: float | None
    """Round-trip time sample, if any."""
    p: float
    """Loss event rate; 0 before the first loss event."""
    x_recv: float
    """Rate at which payload arrived, bytes/s."""
    sent_bytes: int = 0
    """Payload sent since the previous report."""
    loss_events: int = 0
    """Loss events that began since the previous report."""
    lost_s: float | None = None
    """When the first of them was detected; up to half an interval after the report, or None if unknown."""
    lost_packets: int = 0
    """Packets lost since the previous report."""
    timeouts: int = 0
    """Retransmission timeouts of a TCP sender since the previous report."""
    acked_bytes: float | None = None
    """Payload of this algorithm acknowledged since the previous report; in closed loop only."""
    marked: float = 0.0
    """Share of acknowledged payload for which marks were echoed; 0 where that is not recorded."""
    is_data_limited: bool = False
    """Whether the application always had less to send than was allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The decision of an algorithm: a rate and how it was derived."""

    x: float
    """Allowed sending rate, bytes/s."""
    timer_s: float | None = None
    """When to call `on_nofeedback` unless a report arrives earlier; None for never."""
    mode: str = ""
    """What determines the rate, such as `slow_start` or `equation`."""
    reason: str = ""
    """Why the rate changed, such as `loss_event`."""
    r_s: float | None = None
    """Smoothed round-trip time."""
    x_calc: float | None = None
    """Rate of the throughput equation, bytes/s; None before the first loss event or without an equation."""
    x_limit: float | None = None
    """Limit derived from the receive rate, bytes/s; None without such a limit."""
    window_bytes: float | None = None
    """Congestion window; None for an algorithm without one."""
    flight_bytes: float | None = None
    """Most that may be in flight at a rate that is paced; None for no limit."""


def refuse_impossible(rate: float) -> float:
    """Return the rate of an algorithm in bytes/s; raises `UsageError` if it is invalid."""
    if not 0 <= rate < math.inf:
        raise UsageError(
            f"an algorithm returned an invalid rate of {rate:g} bytes/s",
            hint="a rate must be at least 0; to keep the rate, return the previous one",
        )
    return rate


@runtime_checkable
class Controller(Protocol):
    """A rate algorithm running on one flow."""

    def on_feedback(self, report: Report) -> Allowed:
        """Process a report and return the new decision."""
        ...

    def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed:
        """Return the new decision when no report arrived before the time set by the last one.

        `is_idle`: nothing was sent since that decision.
        """
        ...


if TYPE_CHECKING:
    MakeController = Callable[..., Controller]
    """A class that takes a `Start`, and parameters with defaults as keyword arguments."""
