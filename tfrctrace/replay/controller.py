"""What a rate algorithm is: a class with two methods, made anew for each flow.

    class MyControl:
        def __init__(self, start: Start) -> None: ...
        def on_feedback(self, report: Report) -> Allowed: ...
        def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed: ...

`tfrctrace replay --algorithm mymodule:MyControl` runs it; docs/replay.md has a complete one. Times are
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
    """What is known of a flow before its first report."""

    segment_bytes: float
    """Payload of a full packet: s of the RFCs, MSS of TCP."""
    time_s: float = 0.0
    """When the first packet was sent."""
    handshake_rtt_s: float | None = None
    """Round-trip time of the handshake; None without one."""
    least_rto_s: float | None = None
    """Least retransmission timeout of the sender whose place is taken; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the sender learnt at one time of how its data fared (RFC 5348 section 3.2.2)."""

    time_s: float
    """When it reached the sender."""
    interval_s: float
    """Since the report before, or since the start."""
    rtt_s: float | None
    """Round-trip time sample; None if it gave none."""
    p: float
    """Loss event rate; 0 before the first loss event."""
    x_recv: float
    """Rate at which payload arrived, bytes/s."""
    sent_bytes: int = 0
    """Payload sent since the report before."""
    loss_events: int = 0
    """Loss events that began since the report before."""
    lost_packets: int = 0
    """Packets lost since the report before."""
    timeouts: int = 0
    """Retransmission timeouts of a TCP sender since the report before."""
    acked_bytes: float | None = None
    """Payload acknowledged since the report before, where it was this algorithm that sent: in closed loop."""
    is_data_limited: bool = False
    """Whether the application had less to send than was allowed, all of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What an algorithm decides: a rate, and what can be told of how it came about."""

    x: float
    """Allowed sending rate, bytes/s."""
    timer_s: float | None = None
    """When `on_nofeedback` is to be called if no report comes before; None is never."""
    mode: str = ""
    """What governs the rate, such as `slow_start` or `equation`."""
    reason: str = ""
    """Why it is what it is now, such as `loss_event`."""
    r_s: float | None = None
    """Smoothed round-trip time."""
    x_calc: float | None = None
    """What the throughput equation gives, bytes/s; None before the first loss event, or without one."""
    x_limit: float | None = None
    """The limit by what was received, bytes/s; None without such a limit."""
    window_bytes: float | None = None
    """Congestion window; None for an algorithm without one."""


def refuse_impossible(rate: float) -> float:
    """Return a rate in bytes/s that an algorithm allowed itself; raises `UsageError` if it is none."""
    if not 0 <= rate < math.inf:
        raise UsageError(
            f"an algorithm allowed itself {rate:g} bytes/s, at which nothing can be sent",
            hint="a rate is a number from 0 on; without an opinion an algorithm returns its last one",
        )
    return rate


@runtime_checkable
class Controller(Protocol):
    """A rate algorithm at work on one flow."""

    def on_feedback(self, report: Report) -> Allowed:
        """Take in a report, and return what may be sent from now on."""
        ...

    def on_nofeedback(self, time_s: float, *, is_idle: bool) -> Allowed:
        """Return what may be sent after the time that the last decision named passed without a report.

        `is_idle`: nothing was sent since that decision.
        """
        ...


if TYPE_CHECKING:
    MakeController = Callable[..., Controller]
    """A class, which takes a `Start`, and parameters with defaults as keyword arguments."""
