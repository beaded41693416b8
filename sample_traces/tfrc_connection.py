"""Make the DCCP sample: one CCID 3 connection over a bottleneck that is simulated here.

A sender and a receiver obey RFC 5348 and RFC 4342; between them lie a link of 800 kbit/s with a short queue
and now and then a loss. Every packet is a real one. The capture is what the receiver's host
sees (`dccp-ccid3.pcap.gz`), or with `--at sender` the sender's. What both ends computed is in
`dccp-ccid3.truth.json`. Reports name losses as Loss Intervals, or with `--losses` otherwise.

Run `python sample_traces/tfrc_connection.py [--at sender] [--losses ack-vectors|rates] FILE.pcap.gz
[TRUTH.json]`; all runs are the same.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import itertools
import json
import math
import random
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))

from dccp_packets import (
    ACK_VECTOR,
    ELAPSED_TIME,
    FIRST,
    LOSS_EVENT_RATE,
    LOSS_INTERVALS,
    RECEIVE_RATE,
    RTT_ESTIMATE,
    SERVICE,
    Kind,
    Packet,
    handshake,
    option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECOND: Final = 1_000_000_000
START_NS: Final = 1_767_268_800 * SECOND
END_NS: Final = 30 * SECOND
SIZE: Final = 1000
"""Payload of a data packet in bytes: s."""
HEADERS: Final = 20 + 16 + 8
"""IP, DCCP and the option of a data packet."""
LINK_BPS: Final = 800_000
QUEUE: Final = 12
ONE_WAY_NS: Final = 20_000_000
RANDOM_LOSS: Final = 0.004
NDUPACK: Final = 3
VECTOR: Final = 100
"""Packets that an Ack Vector covers."""
WEIGHTS: Final = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
LEAST_DISCOUNT: Final = 0.25
T_MBI_S: Final = 64.0
WRAP: Final = 1 << 48


class Clock:
    """Pending events, in order of time (ns since the first packet)."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time_ns: int, action: Callable[[], None]) -> None:
        """Schedule an event."""
        self._count += 1
        heapq.heappush(self._due, (time_ns, self._count, action))

    def run(self, end_ns: int) -> None:
        """Run the events until `end_ns`."""
        while self._due and self._due[0][0] <= end_ns:
            self.now, _, action = heapq.heappop(self._due)
            action()


def f(p: float) -> float:
    """Return what s / (R X) is at this p, with b = 1 and t_RTO = 4 R (RFC 5348 section 3.1)."""
    return math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)


def f_inverse(value: float) -> float:
    """Return the p of which f is `value`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < value else (low, middle)
    return high


@dataclass
class Event:
    """A loss event: the first and the last number lost, and when the first would have come."""

    start: int
    time_s: float
    last: int

    def lossy(self) -> int:
        """Return the length of its part with losses (RFC 4342 section 6.1.1)."""
        return self.last - self.start + 1


@dataclass
class Receiver:
    """RFC 5348 sections 5 and 6. Numbers here begin with 0 and do not wrap."""

    arrivals: list[tuple[int, float]] = field(default_factory=list)
    r_s: float = 0.0
    events: list[Event] = field(default_factory=list)
    first_interval: float = 0.0
    discounts: list[float] = field(default_factory=list)
    x_recv_most: float = 0.0
    reported_s: float | None = None
    reported_p: float = 0.0

    def take(self, number: int, time_s: float, r_s: float) -> bool:
        """Take in a packet; return whether a report is due at once."""
        self.r_s = r_s
        self.arrivals.append((number, time_s))
        x_recv = self.rate(time_s - r_s, time_s) if len(self.arrivals) > 1 else 0.0
        for lost, lost_s in self._newly_lost():
            self._lose(lost, lost_s)
        self.x_recv_most = max(self.x_recv_most, x_recv)
        return self.reported_s is None or self.p() > self.reported_p

    def rate(self, since_s: float, until_s: float) -> float:
        """Return the bytes per second that came after `since_s`."""
        count = 0
        for _, time_s in reversed(self.arrivals):
            if time_s <= since_s:
                break
            count += 1
        return count * SIZE / (until_s - since_s)

    def _newly_lost(self) -> list[tuple[int, float]]:
        """Return the missing numbers that have three later packets now (no packet overtakes another)."""
        if len(self.arrivals) <= NDUPACK:
            return []
        (before, before_s), (after, after_s) = self.arrivals[-NDUPACK - 1], self.arrivals[-NDUPACK]
        step_s = (after_s - before_s) / (after - before)
        return [(lost, before_s + step_s * (lost - before)) for lost in range(before + 1, after)]

    def _lose(self, number: int, lost_s: float) -> None:
        if self.events and lost_s - self.events[-1].time_s <= self.r_s + 1e-9:
            self.events[-1].last = number
            return
        if not self.events:
            x_target = self.x_recv_most or SIZE / (2 * self.r_s)
            self.first_interval = 1 / f_inverse(SIZE / (self.r_s * x_target))
        else:
            open_discount = self._open_discount(number - self.events[-1].start)
            self.discounts = [discount * open_discount for discount in self.discounts]
        self.discounts = [1.0, *self.discounts][: len(WEIGHTS)]
        self.events.append(Event(number, lost_s, number))

    def closed(self) -> list[float]:
        """Return I_1 and so on."""
        starts = [event.start for event in self.events]
        lengths = [float(after - before) for before, after in itertools.pairwise(starts)]
        return [*reversed(lengths), self.first_interval][: len(WEIGHTS)] if starts else []

    def open_length(self) -> int:
        """Return I_0."""
        return self.arrivals[-1][0] - self.events[-1].start + 1

    def _open_discount(self, length: float) -> float:
        closed = self.closed()
        weights = [weight * discount for weight, discount in zip(WEIGHTS, self.discounts, strict=False)]
        mean = sum(a * b for a, b in zip(closed, weights, strict=True)) / sum(weights)
        return max(2 * mean / length, LEAST_DISCOUNT) if length > 2 * mean else 1.0

    def p(self) -> float:
        """Return the loss event rate (section 5.4 and 5.5)."""
        if not self.events:
            return 0.0
        closed, length = self.closed(), self.open_length()
        discount = self._open_discount(length)
        old = [weight * one for weight, one in zip(WEIGHTS, self.discounts, strict=False)]
        total_1 = sum(a * b for a, b in zip(closed, old, strict=True))
        shifted = zip(WEIGHTS[1 : len(closed)], self.discounts, strict=False)
        new = [WEIGHTS[0], *(weight * one * discount for weight, one in shifted)]
        total_0 = sum(a * b for a, b in zip([length, *closed], new, strict=False))
        return 1 / max(total_0 / sum(new), total_1 / sum(old))


@dataclass
class Sender:
    """RFC 5348 section 4, of an application that always has more to send."""

    x: float
    r_s: float
    tld_s: float
    initial_rate: float
    r_sqmean: float
    r_sample_s: float
    p: float = 0.0
    x_bps: float | None = None
    x_recv_set: list[tuple[float, float]] = field(default_factory=list)
    timer_s: float = 2.0

    def x_inst(self) -> float:
        """Return the rate with the damping of section 4.5."""
        return max(self.x * self.r_sqmean / math.sqrt(self.r_sample_s), SIZE / T_MBI_S)

    def on_report(self, now_s: float, r_sample_s: float, x_recv: float, p: float) -> None:
        """Process a report (section 4.3)."""
        self.r_sample_s = r_sample_s
        self.r_s = 0.9 * self.r_s + 0.1 * r_sample_s
        self.r_sqmean = 0.9 * self.r_sqmean + 0.1 * math.sqrt(r_sample_s)
        rto_s = max(4 * self.r_s, 2 * SIZE / self.x)
        self.x_recv_set = [entry for entry in self.x_recv_set if entry[1] >= now_s - 2 * self.r_s]
        self.x_recv_set.append((x_recv, now_s))
        self._limit(now_s, p, 2 * max(rate for rate, _ in self.x_recv_set))
        self.timer_s = now_s + rto_s

    def _limit(self, now_s: float, p: float, recv_limit: float) -> None:
        self.p = p
        if p > 0:
            self.x_bps = SIZE / (self.r_s * f(p))
            self.x = max(min(self.x_bps, recv_limit), SIZE / T_MBI_S)
        elif now_s - self.tld_s >= self.r_s:
            self.x = max(min(2 * self.x, recv_limit), self.initial_rate)
            self.tld_s = now_s

    def on_no_feedback(self) -> None:
        """Process an expired nofeedback timer of a sender that is not idle (section 4.4)."""
        now_s = self.timer_s
        x_recv = max(rate for rate, _ in self.x_recv_set)
        if self.x_bps is None:
            self.x = max(self.x / 2, SIZE / T_MBI_S)
        else:
            limit = max(x_recv if self.x_bps > 2 * x_recv else self.x_bps / 2, SIZE / T_MBI_S)
            self.x_recv_set = [(limit / 2, now_s)]
            self._limit(now_s, self.p, limit)
        self.timer_s = now_s + max(4 * self.r_s, 2 * SIZE / self.x)


class Connection:
    """Both ends, the path between them, and a capture."""

    def __init__(self, *, at_sender: bool, losses: str = "loss-intervals") -> None:
        self.clock = Clock()
        self.losses = losses
        self.random = random.Random(5348)
        self.at_sender = at_sender
        self.captured: list[tuple[int, Packet]] = []
        self.truth: list[dict[str, Any]] = []
        self.taken: dict[int, dict[str, Any]] = {}
        self.receiver = Receiver()
        self.next = 2
        self.reports = 101
        self.sent_ns: dict[int, int] = {}
        self.link_free_ns = 0
        self.counter, self.counter_ns = 0, 0
        self.drops = 0
        self.sender = self._shake_hands()
        self.clock.at(self.clock.now, self._send)

    def capture(self, sent_ns: int, arrived_ns: int | None, what: Packet, *, back: bool = False) -> None:
        """Keep a packet as the host of the capture sees it, if it does."""
        time_ns = sent_ns if self.at_sender != back else arrived_ns
        if time_ns is not None:
            self.captured.append((time_ns, what))

    def _shake_hands(self) -> Sender:
        request, response, ack = handshake()
        self.capture(0, ONE_WAY_NS, request)
        self.capture(ONE_WAY_NS, 2 * ONE_WAY_NS, response, back=True)
        self.capture(2 * ONE_WAY_NS, 3 * ONE_WAY_NS, ack)
        self.clock.now = 2 * ONE_WAY_NS
        r_s = 2 * ONE_WAY_NS / SECOND
        rate = min(4 * SIZE, max(2 * SIZE, 4380)) / r_s
        now_s = self.clock.now / SECOND
        root = math.sqrt(r_s)
        return Sender(rate, r_s, now_s, rate, root, r_s, x_recv_set=[(math.inf, now_s)], timer_s=now_s + 2.0)

    def _send(self) -> None:
        now_ns, sender = self.clock.now, self.sender
        while sender.timer_s < now_ns / SECOND:
            sender.on_no_feedback()
        self._advance_counter(now_ns)
        number, r_us = self.next, round(sender.r_s * 1e6)
        self.next += 1
        self.sent_ns[number] = now_ns
        what = Packet(
            Kind.Data,
            seq=(FIRST + number) % WRAP,
            ccval=self.counter % 16,
            payload=bytes(SIZE),
            options=option(RTT_ESTIMATE, r_us, bytes_of=3),
        )
        arrived_ns = self._cross(now_ns)
        self.capture(now_ns, arrived_ns, what)
        if arrived_ns is not None:
            self.clock.at(arrived_ns, lambda: self._arrive(number, r_us / 1e6))
        self.clock.at(now_ns + round(SIZE / sender.x_inst() * SECOND), self._send)

    def _advance_counter(self, now_ns: int) -> None:
        """Count quarters of a round-trip time, at most five at once (RFC 4342 section 8.1)."""
        quarters = int(4 * (now_ns - self.counter_ns) / SECOND / self.sender.r_s)
        if quarters > 0:
            self.counter += min(quarters, 5)
            self.counter_ns = now_ns

    def _cross(self, now_ns: int) -> int | None:
        """Return when a data packet arrives over the bottleneck, if it does."""
        transmission_ns = (SIZE + HEADERS) * 8 * SECOND // LINK_BPS
        waiting_ns = max(0, self.link_free_ns - now_ns)
        if waiting_ns > QUEUE * transmission_ns or self.random.random() < RANDOM_LOSS:
            self.drops += 1
            return None
        self.link_free_ns = now_ns + waiting_ns + transmission_ns
        return self.link_free_ns + ONE_WAY_NS

    def _arrive(self, number: int, r_s: float) -> None:
        receiver, now_ns = self.receiver, self.clock.now
        is_first = receiver.reported_s is None
        if receiver.take(number, now_ns / SECOND, r_s):
            self._report()
        if is_first:
            self.clock.at(now_ns + round(receiver.r_s * SECOND), lambda: self._feedback_timer(now_ns))

    def _feedback_timer(self, set_ns: int) -> None:
        """Report once per round-trip time in which data came (section 6.2)."""
        receiver, now_ns = self.receiver, self.clock.now
        reported_ns = round((receiver.reported_s or 0.0) * SECOND)
        if reported_ns > set_ns:
            # the report of a loss event has set the timer anew
            due_ns, since_ns = reported_ns + round(receiver.r_s * SECOND), reported_ns
            self.clock.at(due_ns, lambda: self._feedback_timer(since_ns))
            return
        if round(receiver.arrivals[-1][1] * SECOND) > set_ns:
            self._report()
        self.clock.at(now_ns + round(receiver.r_s * SECOND), lambda: self._feedback_timer(now_ns))

    def _report(self) -> None:
        receiver, now_ns = self.receiver, self.clock.now
        now_s = now_ns / SECOND
        last_s = receiver.reported_s
        since_s = last_s if last_s is not None and now_s - last_s >= receiver.r_s else now_s - receiver.r_s
        x_recv, p = receiver.rate(since_s, now_s), receiver.p()
        receiver.reported_s, receiver.reported_p = now_s, p
        number, arrived_s = receiver.arrivals[-1]
        elapsed = round((now_s - arrived_s) * 1e5)
        inverse = math.ceil(1 / p) if p else 0xFFFF_FFFF
        options = option(ELAPSED_TIME, elapsed, bytes_of=4) + option(LOSS_EVENT_RATE, inverse)
        options += option(RECEIVE_RATE, round(x_recv)) + self._losses_option()
        seq, self.reports = self.reports, self.reports + 1
        what = Packet(Kind.Ack, back=True, seq=seq, ack=(FIRST + number) % WRAP, options=options)
        self.capture(now_ns, now_ns + ONE_WAY_NS, what, back=True)
        row = {"seq": seq, "p": p, "x_recv": x_recv, "events": len(receiver.events)}
        self.truth.append(row)
        p_taken = 1 / inverse if p else 0.0
        self.clock.at(
            now_ns + ONE_WAY_NS, lambda: self._take_report(row, number, elapsed, round(x_recv), p_taken)
        )

    def _losses_option(self) -> bytes:
        names = {"loss-intervals": self._intervals_option, "ack-vectors": self._ack_vector}
        return names[self.losses]() if self.losses in names else b""

    def _ack_vector(self) -> bytes:
        """Return what came of the latest packets, the highest first (RFC 4340 section 11.4)."""
        numbers = [number for number, _ in self.receiver.arrivals[-VECTOR:]]
        runs = []
        for higher, lower in itertools.pairwise(reversed([-1, *numbers] if numbers[0] == 0 else numbers)):
            runs += [(0, 1)] + [(3, higher - lower - 1)] * (higher - lower > 1)
        return option(ACK_VECTOR, bytes(state << 6 | length - 1 for state, length in runs))

    def _intervals_option(self) -> bytes:
        """Return the intervals, each with its lossless part first (RFC 4342 section 8.6)."""
        events = self.receiver.events
        if not events:
            return b""
        lengths = [(self.receiver.open_length(), events[-1].lossy())]
        pairs = itertools.pairwise(events)
        lengths += [(after.start - before.start, before.lossy()) for before, after in pairs][:-9:-1]
        rows = [struct.pack("!III", all_of - lossy, lossy, all_of) for all_of, lossy in lengths]
        return option(LOSS_INTERVALS, b"\0" + b"".join(row[1:4] + row[5:8] + row[9:12] for row in rows))

    def _take_report(self, row: dict[str, Any], number: int, elapsed: int, x_recv: int, p: float) -> None:
        sender, now_ns = self.sender, self.clock.now
        while sender.timer_s < now_ns / SECOND:
            sender.on_no_feedback()
        r_sample_s = (now_ns - self.sent_ns[number]) / SECOND - elapsed * 1e-5
        sender.on_report(now_ns / SECOND, r_sample_s, x_recv, p)
        row |= {"r_sample_s": r_sample_s, "r_s": sender.r_s, "x": sender.x, "x_inst": sender.x_inst()}

    def close(self) -> None:
        """Add Close and Reset."""
        end_ns = END_NS + SECOND
        last = (FIRST + self.next) % WRAP
        close = Packet(Kind.Close, seq=last, ack=self.reports - 1)
        reset = Packet(Kind.Reset, back=True, seq=self.reports, ack=last, code=1 << 24)
        self.capture(end_ns, end_ns + ONE_WAY_NS, close)
        self.capture(end_ns + ONE_WAY_NS, end_ns + 2 * ONE_WAY_NS, reset, back=True)
        self.captured.sort(key=lambda entry: entry[0])


def write_capture(path: Path, captured: list[tuple[int, Packet]]) -> None:
    """Write a pcap of raw IP with nanoseconds, compressed without a time in its header."""
    records = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)]
    for time_ns, what in captured:
        content = bytes(what)
        seconds, rest = divmod(START_NS + time_ns, SECOND)
        records.append(struct.pack("<IIII", seconds, rest, len(content), len(content)) + content)
    path.write_bytes(gzip.compress(b"".join(records), mtime=0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Make what the command line asks for, or `arguments`."""
    parser = argparse.ArgumentParser(description="Make the DCCP sample.")
    parser.add_argument("--at", choices=["receiver", "sender"], default="receiver")
    parser.add_argument(
        "--losses", choices=["loss-intervals", "ack-vectors", "rates"], default="loss-intervals"
    )
    parser.add_argument("capture", type=Path)
    parser.add_argument("truth", type=Path, nargs="?")
    chosen = parser.parse_args(arguments)
    connection = Connection(at_sender=chosen.at == "sender", losses=chosen.losses)
    connection.clock.run(END_NS)
    connection.close()
    write_capture(chosen.capture, connection.captured)
    if chosen.truth is not None:
        document = {
            "service": SERVICE,
            "packets_sent": connection.next - 2,
            "packets_lost": connection.drops,
            "loss_events": len(connection.receiver.events),
            "reports": connection.truth,
        }
        chosen.truth.write_text(json.dumps(document, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
