"""A TCP sender whose rules are known, over a bottleneck, as a capture at the sender shows it.

Segments have 1,000 bytes and are acknowledged one by one, with SACK. A sender is a class that says how its
window grows and what a loss leaves; the rest is the same for all.
"""

from __future__ import annotations

import heapq
import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ip_packets import Socket, ethernet, ipv4, maximum_segment_size

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SENDER: Final[Socket] = ("10.0.0.1", 40_000)
RECEIVER: Final[Socket] = ("10.0.0.2", 80)
SIZE: Final = 1_000
FRAME_BITS: Final = 8 * (SIZE + 66)
START_NS: Final = 1_700_000_000_000_000_000

FIN, SYN, ACK, ECE, CWR = 1, 2, 16, 64, 128


@dataclass
class Sender:
    """Reno (RFC 5681), which other senders change."""

    cwnd: float = 10.0
    ssthresh: float = math.inf
    reacts_to_marks: bool = True

    def on_acknowledged(self, time_s: float, flight: int) -> None:
        """Grow by an acknowledged segment, if the window was full."""
        del time_s
        if flight >= math.floor(self.cwnd):
            self.cwnd += 1.0 if self.cwnd < self.ssthresh else 1.0 / self.cwnd

    def on_loss(self, time_s: float) -> None:
        """Reduce the window."""
        del time_s
        self.cwnd = self.ssthresh = max(self.cwnd / 2, 2.0)


@dataclass
class Bottleneck:
    """A bottleneck with a queue that drops, or marks, and a fixed delay."""

    rate_bps: float = 8e6
    rtt_s: float = 0.05
    buffer: int = 40
    """Segments in its queue."""
    marks_above: int | None = None
    """Segments in the queue above which it marks."""
    free_s: float = 0.0

    def send(self, time_s: float, *, is_kept: bool) -> tuple[float, bool] | None:
        """Return when a segment's acknowledgement comes back and whether it was marked; None if dropped."""
        waits_s = max(self.free_s - time_s, 0.0)
        queued = waits_s * self.rate_bps / FRAME_BITS
        if queued > self.buffer and not is_kept:
            return None
        self.free_s = time_s + waits_s + FRAME_BITS / self.rate_bps
        is_marked = self.marks_above is not None and queued > self.marks_above
        return self.free_s + self.rtt_s, is_marked


@dataclass
class Connection:
    """Runs a sender; `frames` has what its capture shows."""

    sender: Sender
    path: Bottleneck
    available: Iterable[tuple[float, int]] = ((0.0, 1 << 30),)
    """When the application writes how many segments."""
    frames: list[tuple[float, bytes]] = field(default_factory=list)
    _next: int = 0
    _first: int = 0
    _written: int = 0
    _sacked: set[int] = field(default_factory=set)
    _repaired: set[int] = field(default_factory=set)
    _recover: int | None = None
    _arrived: set[int] = field(default_factory=set)
    _expected: int = 0
    _echoes: bool = False
    _cwr_until: int = 0
    _owes_cwr: bool = False
    _events: list[tuple[float, int, int, bool, bool]] = field(default_factory=list)
    _count: int = 0

    def run(self, duration_s: float) -> Connection:
        """Run for a time."""
        self._handshake()
        for time_s, segments in self.available:
            self._push(time_s, -segments, is_marked=False)
        while self._events and self._events[0][0] <= duration_s:
            time_s, _, number, is_marked, is_reset = heapq.heappop(self._events)
            if number < 0:
                self._written += -number
            else:
                self._on_arrival(time_s, number, is_marked=is_marked, ends_echo=is_reset)
            self._send_all(time_s)
        return self

    def _push(self, time_s: float, number: int, *, is_marked: bool, ends_echo: bool = False) -> None:
        self._count += 1
        heapq.heappush(self._events, (time_s, self._count, number, is_marked, ends_echo))

    def _handshake(self) -> None:
        ecn = (ECE | CWR, ECE) if self.path.marks_above is not None else (0, 0)
        options = maximum_segment_size(SIZE) + bytes((4, 2, 1, 1)) + bytes((3, 3, 7, 1))
        self._frame(-self.path.rtt_s - 0.001, 0, SYN | ecn[0], 0, options=options, is_syn=True)
        self._frame(-0.001, 0, SYN | ACK | ecn[1], 1, options=options, is_back=True, is_syn=True)
        self._frame(-0.0009, 1, ACK, 1)

    def _on_arrival(self, time_s: float, number: int, *, is_marked: bool, ends_echo: bool) -> None:
        """Take the acknowledgement of a segment."""
        self._echoes = is_marked or (self._echoes and not ends_echo)
        self._arrived.add(number)
        while self._expected in self._arrived:
            self._arrived.discard(self._expected)
            self._expected += 1
        flight = self._flight()
        self._sacked |= {number}
        edge = self._block(number)
        flags = ACK | (ECE if self._echoes else 0)
        self._frame(time_s, 1, flags, 1 + SIZE * self._expected, options=edge, is_back=True)
        self._first = max(self._first, self._expected)
        self._sacked = {one for one in self._sacked if one >= self._first}
        if self._recover is not None and self._first >= self._recover:
            self._recover = None
            self._repaired.clear()
        elif self._recover is None and len(self._sacked) >= 3:
            self._recover = self._next
            self.sender.on_loss(time_s)
        elif self._echoes and self._recover is None:
            self._on_echo(time_s)
        elif self._recover is None:
            self.sender.on_acknowledged(time_s, flight)

    def _on_echo(self, time_s: float) -> None:
        if self.sender.reacts_to_marks and self._first >= self._cwr_until:
            self.sender.on_loss(time_s)
            self._cwr_until = self._next
            self._owes_cwr = True

    def _block(self, number: int) -> bytes:
        """Return the SACK option of the block in which a segment arrived."""
        if number < self._expected:
            return b""
        first = last = number
        while first - 1 in self._arrived:
            first -= 1
        while last + 1 in self._arrived:
            last += 1
        return struct.pack("!BBBBII", 1, 1, 5, 10, 1 + SIZE * first, 1 + SIZE * (last + 1))

    def _lost(self) -> list[int]:
        """Return segments below those that arrived, which are not sent again yet."""
        if self._recover is None or not self._sacked:
            return []
        highest = max(self._sacked)
        return [
            one for one in range(self._first, highest - 2)
            if one not in self._sacked and one not in self._repaired
        ]  # fmt: skip

    def _flight(self) -> int:
        lost = len(self._lost())
        return self._next - self._first - len(self._sacked) - lost

    def _send_all(self, time_s: float) -> None:
        while self._flight() < math.floor(self.sender.cwnd):
            lost = self._lost()
            if lost:
                number = lost[0]
                self._repaired.add(number)
            elif self._next < self._written:
                number = self._next
                self._next += 1
            else:
                return
            self._segment(time_s, number)

    def _segment(self, time_s: float, number: int) -> None:
        flags = ACK | (CWR if self._owes_cwr else 0)
        is_reset, self._owes_cwr = self._owes_cwr, False
        self._frame(time_s, 1 + SIZE * number, flags, 1, payload=True)
        # what is sent again is never lost: there is no timer
        sent = self.path.send(time_s, is_kept=number in self._repaired)
        if sent is not None:
            self._push(sent[0], number, is_marked=sent[1], ends_echo=is_reset)

    def _frame(
        self,
        time_s: float,
        seq: int,
        flags: int,
        ack: int,
        *,
        options: bytes = b"",
        payload: bool = False,
        is_back: bool = False,
        is_syn: bool = False,
    ) -> None:
        src, dst = (RECEIVER, SENDER) if is_back else (SENDER, RECEIVER)
        words = 5 + len(options) // 4
        window = 65_535
        fields = (src[1], dst[1], seq, ack, words << 4, flags, window, 0, 0)
        segment = struct.pack("!HHIIBBHHH", *fields) + options + bytes(SIZE if payload else 0)
        tos = 2 if self.path.marks_above is not None and payload else 0
        packet = ipv4(6, src[0], dst[0], segment, tos=tos, ttl=63 if is_back else 64)
        self.frames.append((time_s + 1.0, ethernet(packet)))


def write(path: Path, frames: Iterable[tuple[float, bytes]]) -> Path:
    """Write frames as a capture with a snap length of 96 bytes."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1))
        for time_s, frame in frames:
            time_ns = START_NS + round(time_s * 1e9)
            kept = frame[:96]
            file.write(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(kept), len(frame)) + kept)
    return path
