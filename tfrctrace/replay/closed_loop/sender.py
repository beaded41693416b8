"""One algorithm at work in the model: what it sends in a round, what is lost of it, when it learns that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.closed_loop.loss_counter import LossCounter
from tfrctrace.replay.closed_loop.receiver import LossHistory
from tfrctrace.replay.controller import Report, refuse_impossible
from tfrctrace.replay.tcp.window import rfc3390_window
from tfrctrace.replay.tfrc import TfrcVariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.replay.closed_loop.loss_counter import LostPackets
    from tfrctrace.replay.closed_loop.path import Path
    from tfrctrace.replay.closed_loop.queue import Dropped
    from tfrctrace.replay.controller import Allowed, Controller

DUPLICATE_ACKS: Final = 3
"""Acknowledgements that a fast retransmission needs (RFC 5681 section 3.2); with fewer the timer expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a sender did from one decision to the next. Times are seconds, sizes bytes of payload."""

    time_s: float
    duration_s: float
    rtt_s: float
    """Round-trip time of what was sent when the round began."""
    queued_bytes: float
    """What waited then, of all flows."""
    sent_bytes: float
    arrived_bytes: float
    lost_packets: int
    """Losses that became known at its end."""
    p: float
    """Loss event rate at its end, as a receiver of TFRC has it."""
    allowed: Allowed | None
    """The decision that it followed; None for the first, which is the initial window."""


class Sender:
    """A controller, and what is under way between it and its receiver.

    A round ends when the acknowledgements of what was sent at its beginning are back; before that, when a
    loss becomes known, a round-trip time after it happened; later, if the timer must expire. In an outage a
    rate goes on until its timer expires or the first packet after the outage is reported.
    """

    def __init__(
        self, controller: Controller, path: Path, segment_bytes: float, *, begins_s: float = 0.0
    ) -> None:
        self._controller = controller
        # ns-2's rules begin with the first packet, and their timers look at the clock when one is sent
        self._on_sent = getattr(controller, "on_sent", None)
        self._path = path
        self._segment_bytes = segment_bytes
        # a sender of TFRC has a receiver of its own kind; for others p is what RFC 5348's would report
        chosen: TfrcVariant = getattr(controller, "chosen", TfrcVariant())
        self._history = LossHistory(chosen.for_core(segment_bytes, None))
        self._by_chance = LossCounter()
        self._by_queue = LossCounter()
        self._by_mark = LossCounter()
        self._marked_packets = 0
        self._marked_before = 0.0
        """Share of what the round before sent that got marks, which its acknowledgements echo now."""
        self._allowed: Allowed | None = None
        self._is_silent = False
        self._arrived_bytes = 0.0
        self._unheard_packets = 0.0
        """What a rate sent in an outage, which no report tells of yet."""
        self._unheard_s = (begins_s, begins_s)
        self._forget_losses()
        # RFC 3390 and RFC 5348 section 4.2 begin with the same
        self._begin(begins_s, 0.0, rfc3390_window(segment_bytes) * segment_bytes / path.base_rtt_s)

    def _begin(self, time_s: float, queued_bytes: float, rate: float, until_s: float | None = None) -> None:
        self._time_s = time_s
        self._queued_bytes = queued_bytes
        self._rtt_s = self._path.rtt_s(queued_bytes)
        self._sent_bytes = 0.0
        # a packet may be lost of which most was sent in the round before: what is owed is not forgotten
        self._arrived_bytes = min(self._arrived_bytes, 0.0)
        self._ends_s = time_s + self._rtt_s if until_s is None else until_s
        self.rate = rate
        """What is being sent, bytes/s."""
        if self._on_sent is not None:
            self._on_sent(time_s, round(self._segment_bytes))

    def _forget_losses(self) -> None:
        self._lost_packets = 0
        self._loss_events = 0
        self._known_at_s = math.inf

    def stop(self) -> None:
        """Send no more."""
        self.rate = 0.0
        self._ends_s = self._known_at_s = math.inf

    @property
    def next_s(self) -> float:
        """When the next decision falls."""
        return min(self._ends_s, self._known_at_s)

    def send(self, begins_s: float, ends_s: float, dropped: Sequence[Dropped]) -> None:
        """Count what is sent in a span of time and what of it is lost, by chance or in the queue."""
        if not self.rate:
            return
        sent_bytes = self.rate * (ends_s - begins_s)
        self._sent_bytes += sent_bytes
        packets_per_s = self.rate / self._segment_bytes
        if self._has_rate and self._path.is_down(begins_s):
            since_s = self._unheard_s[0] if self._unheard_packets else begins_s
            self._unheard_s = (since_s, ends_s)
            self._unheard_packets += packets_per_s * (ends_s - begins_s)
            return
        self._arrived_bytes += sent_bytes
        arriving_pps = packets_per_s * (1 - min(sum(one.share for one in dropped if not one.are_marks), 1.0))
        counted_s = begins_s
        for lost, rtt_s, is_mark in self._losses(begins_s, ends_s, dropped, packets_per_s):
            self._history.sent(packets_per_s * (lost.at_s - counted_s))
            counted_s = lost.at_s
            begins_event = self._history.lost(lost.at_s, rtt_s, arriving_pps)
            if is_mark:
                self._marked_packets += lost.packets
                continue
            self._loss_events += begins_event
            self._lost_packets += lost.packets
            self._arrived_bytes -= lost.packets * self._segment_bytes
            # known when the acknowledgements of those after it are back
            self._known_at_s = min(self._known_at_s, lost.at_s + rtt_s)
        self._history.sent(packets_per_s * (ends_s - counted_s))

    @property
    def _has_rate(self) -> bool:
        return self._allowed is None or self._allowed.window_bytes is None

    def _learn_of_outage(self, time_s: float) -> None:
        """Take in what an outage lost once a packet after it is reported: before, nothing shows a gap."""
        if self._is_silent or self._unheard_packets < 1 or self._arrived_bytes <= 0:
            return
        lost_packets = round(self._unheard_packets)
        arriving_pps = self.rate / self._segment_bytes
        self._lost_packets += lost_packets
        self._loss_events += self._history.lost_run(lost_packets, self._unheard_s, self._rtt_s, arriving_pps)
        self._known_at_s = time_s
        self._unheard_packets = 0.0

    def _losses(
        self, begins_s: float, ends_s: float, dropped: Sequence[Dropped], packets_per_s: float
    ) -> list[tuple[LostPackets, float, bool]]:
        """Return losses and marks of a span in order of time, each with the round-trip time that it met."""
        losses = []
        if self._path.random_loss:
            by_chance = self._by_chance.lose(begins_s, ends_s, packets_per_s * self._path.random_loss)
            losses += [(by_chance, self._rtt_s, False)] if by_chance else []
        for one in dropped:
            counter = self._by_mark if one.are_marks else self._by_queue
            lost = counter.lose(one.begins_s, ends_s, packets_per_s * one.share)
            losses += [(lost, one.rtt_s, one.are_marks)] if lost else []
        return sorted(losses, key=_time_of)

    def decide(self, time_s: float, queued_bytes: float) -> Round:
        """End the round, report it to the controller, and begin the next; return the one ended."""
        self._learn_of_outage(time_s)
        is_known = time_s >= self._known_at_s
        lost_packets = self._lost_packets if is_known else 0
        ended = Round(
            time_s=self._time_s,
            duration_s=time_s - self._time_s,
            rtt_s=self._rtt_s,
            queued_bytes=self._queued_bytes,
            sent_bytes=self._sent_bytes,
            arrived_bytes=max(self._arrived_bytes, 0.0),
            lost_packets=lost_packets,
            p=self._history.p,
            allowed=self._allowed,
        )
        timer_s = self._silent_until_s(ended)
        if timer_s is not None and timer_s > time_s:
            heard_s = self._heard_s(time_s)
            self._is_silent = timer_s <= heard_s
            # a window waits; a rate goes on
            self._begin(
                time_s, queued_bytes, self.rate if self._has_rate else 0.0, until_s=min(timer_s, heard_s)
            )
        else:
            # what was sent last arrives later by as much as the queue grew
            delivering_s = ended.duration_s + self._path.rtt_s(queued_bytes) - ended.rtt_s
            self._allowed = self._decided(ended, time_s, delivering_s, self._loss_events if is_known else 0)
            self._begin(time_s, queued_bytes, self._rate_of(self._allowed, queued_bytes))
        if is_known:
            self._forget_losses()
        sent_packets = max(ended.sent_bytes / self._segment_bytes, 1.0)
        self._marked_before = min(self._marked_packets / sent_packets, 1.0)
        self._marked_packets = 0
        return ended

    def _silent_until_s(self, ended: Round) -> float | None:
        """Return when the timer expires, if too few packets of a window arrive to reveal the losses."""
        allowed = self._allowed
        if self._is_silent or allowed is None:
            return None
        if allowed.window_bytes is None:
            return allowed.timer_s if ended.arrived_bytes <= 0 < ended.sent_bytes else None
        if not ended.lost_packets:
            return None
        arriving = allowed.window_bytes / self._segment_bytes - ended.lost_packets
        return allowed.timer_s if arriving < DUPLICATE_ACKS else None

    def _heard_s(self, time_s: float) -> float:
        """Return when the first packet that a rate sends after an outage is reported; infinite for others."""
        up_s = self._path.up_after(time_s)
        if up_s <= time_s or not self._has_rate or not self.rate:
            return math.inf
        return up_s + self._segment_bytes / self.rate + self._path.base_rtt_s

    def _decided(self, ended: Round, time_s: float, delivering_s: float, loss_events: int) -> Allowed:
        if self._is_silent:
            self._is_silent = False
            return self._controller.on_nofeedback(time_s, is_idle=False)
        return self._controller.on_feedback(
            Report(
                time_s=time_s,
                interval_s=ended.duration_s,
                rtt_s=ended.rtt_s,
                p=ended.p,
                x_recv=ended.arrived_bytes / delivering_s if delivering_s > 0 else 0.0,
                sent_bytes=round(ended.sent_bytes),
                loss_events=loss_events,
                lost_packets=ended.lost_packets,
                acked_bytes=ended.arrived_bytes,
                marked=self._marked_before,
            )
        )

    def _rate_of(self, allowed: Allowed, queued_bytes: float) -> float:
        """Return what is sent: a window in each round-trip time, or the rate of an algorithm without one."""
        rtt_s = self._path.rtt_s(queued_bytes)
        most_bytes = math.inf if self._path.window_bytes is None else self._path.window_bytes
        if allowed.window_bytes is not None:
            return refuse_impossible(min(allowed.window_bytes, most_bytes) / rtt_s)
        if allowed.flight_bytes is not None:
            return refuse_impossible(min(allowed.x, min(allowed.flight_bytes, most_bytes) / rtt_s))
        return refuse_impossible(allowed.x)


def _time_of(loss: tuple[LostPackets, float, bool]) -> float:
    return loss[0].at_s
