"""What a capture at the sender shows of retransmissions that were not needed.

Not every needless one leaves a sign: its acknowledgement may be lost, and without SACK and timestamps the
receiver says the same whether it got a segment once or twice. The signs are those of RFC 2883, RFC 3522,
RFC 5682, and the time that the path takes at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from frames import ACK, SYN

if TYPE_CHECKING:
    from frames import Header

Seen = list[tuple[int, float, "Header"]]

NEARLY = 0.9
"""Of the handshake's time; a simulated path may be a segment's length longer for data."""


@dataclass
class Answer:
    """An acknowledgement, with numbers counted from the segment in question."""

    time: float
    position: int
    echo: int
    blocks: list[tuple[int, int]]

    def reports(self, start: int, stop: int) -> bool:
        """Return whether it covers a range, by position or by a block."""
        return self.position >= stop or any(left <= start and stop <= right for left, right in self.blocks)

    def doubles(self, start: int, stop: int) -> bool:
        """Return whether its first block reports data received twice (RFC 2883 section 4)."""
        if not self.blocks:
            return False
        left, right = self.blocks[0]
        within = any(other[0] <= left and right <= other[1] for other in self.blocks[1:])
        return (right <= self.position or within) and left < stop and start < right


def find_signs(capture: Seen, needless: dict[int, str]) -> set[int]:
    """Return the needless packets at their sender whose needlessness its capture shows.

    They are given by their number, with the cause (`truth.Sending.cause`).
    """
    found = set()
    for number, time, header in capture:
        cause = needless.get(number)
        if cause is not None and (
            is_shown(time, header, capture) or (cause == "timer" and is_forward_rto(time, header, capture))
        ):
            found.add(number)
    return found


def is_shown(time: float, header: Header, capture: Seen) -> bool:
    """Say whether a needless packet has a sign."""
    start, stop = 0, header.space
    answers = [answer_of(other, header.seq) for other in capture if other[2].sport != header.sport]
    before = [answer for answer in answers if answer.time <= time]
    behind = [answer for answer in answers if answer.time > time]
    if any(answer.position >= stop for answer in before) or any(
        answer.doubles(start, stop) for answer in behind
    ):
        return True
    covering = next((answer for answer in behind if answer.reports(start, stop)), None)
    if covering is None:
        return False
    return covering.time - time < shortest_path(capture) or is_older(covering.echo, header.tsval)


def is_forward_rto(time: float, header: Header, capture: Seen) -> bool:
    """Say whether two acknowledgements move on while nothing else is sent again (RFC 5682 section 2.1).

    With timestamps their echo decides instead.
    """
    if header.tsval:
        return False
    top = max(signed(other.seq - header.seq) + other.space for _, at, other in capture
              if other.sport == header.sport and at <= time)  # fmt: skip
    moves, position = 0, 0
    for seen in capture:
        _, at, other = seen
        if at <= time:
            continue
        if other.sport == header.sport and other.space and signed(other.seq - header.seq) < top:
            return False
        if other.sport != header.sport and (reported := answer_of(seen, header.seq).position) > position:
            moves, position = moves + 1, reported
        if moves == 2:
            return True
    return False


def answer_of(seen: tuple[int, float, Header], first: int) -> Answer:
    """Return what a packet of the other side acknowledges, counted from a number of the sender's."""
    _, time, header = seen
    position = signed(header.ack - first) if header.flags & ACK else -1
    blocks = [(signed(left - first), signed(right - first)) for left, right in header.sack]
    return Answer(time, position, header.tsecr, blocks)


def signed(difference: int) -> int:
    """Return a difference of sequence numbers (RFC 9293 section 3.4)."""
    return (difference + 2**31) % 2**32 - 2**31


def is_older(echo: int, stamp: int) -> bool:
    """Say whether an echo is of an earlier time (RFC 3522 section 3.2)."""
    return bool(echo and stamp) and signed(echo - stamp) < 0


def shortest_path(capture: Seen) -> float:
    """Return the time in which nothing can be answered: nearly all that a SYN took to its answer."""
    syns = [(time, header.sport, header.flags & ACK) for _, time, header in capture if header.flags & SYN]
    turns = (later[0] - sooner[0] for sooner, later in pairwise(syns) if later[1] != sooner[1] and later[2])
    return NEARLY * max(turns, default=0.0)
