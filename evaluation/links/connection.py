"""Connections, look-ups and pings as a capture between client and server sees them.

A server sends a window, waits until all of it is acknowledged and sends the next, twice as large up to 40
segments. The client acknowledges each second segment, and each one behind a hole with SACK; the third such
acknowledgement, or else a timeout, repeats what was lost.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from packets import ACK, FIN, PSH, RST, SYN, Packet, echo, tcp, udp

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from faults import Path

MSS: Final = 1448
MOST_SEGMENTS: Final = 40
TIMEOUT_S: Final = 0.25
POLICED: Final = 10
"""Segments of a window that a policer lets pass."""
SPACING_S: Final = 0.00012
"""Between segments sent back to back: 100 Mbit/s."""
OPTIONS: Final = bytes.fromhex("020405b4 0101 0402 01 030307")
"""Of a SYN: segment size, SACK permitted, window scale."""
SYN_AGAIN_S: Final = (1.0, 3.0, 7.0)
REPEATS: Final = 6
"""Of data without an acknowledgement, until the client gives up."""
PATIENCE_S: Final = 30.0


@dataclass(slots=True)
class Connection:
    """A client that sends requests and gets responses of so many segments."""

    client: str
    server: str
    port: int
    path: Callable[[float], Path]
    at_s: float
    responses: list[int]


@dataclass(slots=True)
class Resolution:
    """A question to the name server, which is next to the servers."""

    client: str
    path: Path
    at_s: float


@dataclass(slots=True)
class Ping:
    """An echo request."""

    client: str
    server: str
    path: Path
    at_s: float
    number: int


@dataclass(slots=True)
class _Seen:
    """What the capture sees of a connection, and its state."""

    of: Connection
    random: Random
    client_seq: int
    server_seq: int
    packets: list[Packet] = field(default_factory=list)
    latest: dict[tuple[str, bool], float] = field(default_factory=dict)
    """Time of the last packet at a place, in each direction: none overtakes another."""

    def later(self, since_s: float, rtt_s: float, jitter: float, place: str, *, is_client: bool) -> float:
        """Return when a packet that left at a time is at a place, half a round-trip time away."""
        arrives_s = since_s + rtt_s / 2 * (1 + abs(self.random.gauss(0, jitter)))
        arrives_s = max(arrives_s, self.latest.get((place, is_client), 0.0) + 1e-6)
        self.latest[place, is_client] = arrives_s
        return arrives_s

    def show(
        self,
        time_s: float,
        flags: int,
        numbers: tuple[int, int],
        length: int,
        options: bytes,
        *,
        is_client: bool,
    ) -> None:
        """Add a packet at the capture."""
        one = self.of
        ends = (one.client, one.port, one.server, 443)
        if not is_client:
            ends = (one.server, 443, one.client, one.port)
        self.packets.append(tcp(time_s, ends, numbers, flags, payload_bytes=length, options=options))

    def from_client(
        self, at_s: float, flags: int, numbers: tuple[int, int], length: int = 0, options: bytes = b""
    ) -> float:
        """Send a packet from the client; return when the server has it."""
        path = self.of.path(at_s)
        shown_s = self.later(at_s, path.near_rtt_s, path.jitter, "capture", is_client=True)
        self.show(shown_s, flags, numbers, length, options, is_client=True)
        return self.later(shown_s, path.far_rtt_s, path.jitter, "server", is_client=True)

    def from_server(
        self,
        at_s: float,
        flags: int,
        numbers: tuple[int, int],
        length: int = 0,
        options: bytes = b"",
        *,
        may_be_lost: bool = False,
        is_burst: bool = False,
    ) -> float | None:
        """Send a packet from the server; return when the client has it, None if it is lost."""
        path = self.of.path(at_s)
        before = path.loss_before + path.burst_loss * is_burst
        is_lost_before, is_lost_behind = (
            may_be_lost and self.random.random() < share for share in (before, path.loss_behind)
        )
        if is_lost_before:
            return None
        shown_s = self.later(at_s, path.far_rtt_s, path.jitter, "capture", is_client=False)
        self.show(shown_s, flags, numbers, length, options, is_client=False)
        if is_lost_behind:
            return None
        return self.later(shown_s, path.near_rtt_s, path.jitter, "client", is_client=False)


def simulate(one: Connection | Resolution | Ping, random: Random) -> list[Packet]:
    """Return the packets at the capture, by time."""
    if isinstance(one, Connection):
        packets = _connect(one, random)
    elif isinstance(one, Resolution):
        packets = _resolve(one, random)
    else:
        packets = _ping(one, random)
    return sorted(packets, key=lambda packet: packet.time_s)


def _connect(one: Connection, random: Random) -> list[Packet]:
    seen = _Seen(one, random, random.getrandbits(32), random.getrandbits(32))
    at_s = one.at_s
    if not one.path(at_s).is_answered:
        for later_s in (0.0, *SYN_AGAIN_S):
            if one.path(at_s + later_s).is_answered:
                at_s += later_s
                break
            seen.from_client(at_s + later_s, SYN, (seen.client_seq, 0), options=OPTIONS)
        else:
            return seen.packets
    asked_s = seen.from_client(at_s, SYN, (seen.client_seq, 0), options=OPTIONS)
    numbers = (seen.server_seq, seen.client_seq + 1)
    if one.path(at_s).is_refused:
        seen.from_server(asked_s, RST | ACK, (0, seen.client_seq + 1))
        return seen.packets
    answered_s = seen.from_server(asked_s, SYN | ACK, numbers, options=OPTIONS)
    assert answered_s is not None
    seen.client_seq += 1
    seen.server_seq += 1
    seen.from_client(answered_s, ACK, (seen.client_seq, seen.server_seq))
    now_s = answered_s + 1e-4
    for segments in one.responses:
        path = one.path(now_s)
        if not (path.is_answered and path.is_served and path.passes_large):
            return _give_up(seen, now_s, path)
        now_s = _request(seen, now_s, segments) + random.expovariate(2.0)
    return _close(seen, now_s)


def _give_up(seen: _Seen, now_s: float, path: Path) -> list[Packet]:
    """Ask, and close after waiting in vain: for the path, for the server, or for full segments."""
    length = seen.random.randrange(200, 700)
    numbers = (seen.client_seq, seen.server_seq)
    arrived_s = seen.from_client(now_s, PSH | ACK, numbers, length)
    if not path.is_answered:
        for number in range(REPEATS):
            seen.from_client(now_s + TIMEOUT_S * (2 ** (number + 1) - 1), PSH | ACK, numbers, length)
        return seen.packets
    seen.client_seq += length
    seen.from_server(arrived_s, ACK, (seen.server_seq, seen.client_seq))
    if path.is_served:
        for number in range(REPEATS + 1):
            sent_s = arrived_s + path.response_s + TIMEOUT_S * (2**number - 1)
            seen.from_server(sent_s, ACK, (seen.server_seq, seen.client_seq), MSS)
    seen.from_client(now_s + PATIENCE_S, FIN | ACK, (seen.client_seq, seen.server_seq))
    return seen.packets


def _request(seen: _Seen, now_s: float, segments: int) -> float:
    """Ask for a response of so many segments; return when the client has all of it."""
    length = seen.random.randrange(200, 700)
    arrived_s = seen.from_client(now_s, PSH | ACK, (seen.client_seq, seen.server_seq), length)
    seen.client_seq += length
    seen.from_server(arrived_s, ACK, (seen.server_seq, seen.client_seq))
    sent_s = arrived_s + seen.random.expovariate(1 / seen.of.path(arrived_s).response_s)
    window = 10
    while segments:
        count = min(window, segments)
        sent_s, now_s = _round(seen, sent_s, count)
        segments -= count
        window = min(2 * window, MOST_SEGMENTS)
    return now_s


def _round(seen: _Seen, sent_s: float, count: int) -> tuple[float, float]:
    """Send a window; return when the server has all acknowledgements, and when the client has all data."""
    first = seen.server_seq
    seen.server_seq += count * MSS
    arrivals = {number: _segment(seen, sent_s + number * SPACING_S, first, number) for number in range(count)}
    arrived = {number: time_s for number, time_s in arrivals.items() if time_s is not None}
    acknowledged_s, signals = _acknowledge(seen, first, arrived)
    lost = [number for number in range(count) if number not in arrived]
    again_s = signals[2] if len(signals) > 2 else max(acknowledged_s, sent_s) + TIMEOUT_S
    waits_s = TIMEOUT_S
    while lost:
        repeated = {
            number: _segment(seen, again_s + i * SPACING_S, first, number) for i, number in enumerate(lost)
        }
        lost = [number for number, time_s in repeated.items() if time_s is None]
        newly = {number: time_s for number, time_s in repeated.items() if time_s is not None}
        arrived |= newly
        if newly:
            acknowledged_s = _acknowledge_repeated(seen, first, arrived, newly)
        waits_s *= 2
        again_s = max(again_s, acknowledged_s) + waits_s
    return acknowledged_s, max(arrived.values())


def _segment(seen: _Seen, at_s: float, first: int, number: int) -> float | None:
    numbers = (first + number * MSS, seen.client_seq)
    return seen.from_server(at_s, ACK, numbers, MSS, may_be_lost=True, is_burst=number >= POLICED)


def _acknowledge(seen: _Seen, first: int, arrived: dict[int, float]) -> tuple[float, list[float]]:
    """Acknowledge a window; return when the server has the last one, and each one with a SACK block."""
    have: set[int] = set()
    last_s, signals = 0.0, []
    pending = 0
    for number, time_s in sorted(arrived.items(), key=lambda one: one[1]):
        have.add(number)
        upto = _in_order(have)
        pending += 1
        is_behind_hole = number >= upto
        is_last = len(have) == len(arrived)
        if is_behind_hole or pending > 1 or is_last:
            pending = 0
            blocks = _sack(first, have, upto, number)
            last_s = seen.from_client(time_s, ACK, (seen.client_seq, first + upto * MSS), options=blocks)
            if is_behind_hole:
                signals.append(last_s)
    return last_s, signals


def _acknowledge_repeated(
    seen: _Seen, first: int, arrived: dict[int, float], newly: dict[int, float]
) -> float:
    """Acknowledge each repeated segment; return when the server has the last acknowledgement."""
    have = set(arrived) - set(newly)
    last_s = 0.0
    for number, time_s in sorted(newly.items(), key=lambda one: one[1]):
        have.add(number)
        upto = _in_order(have)
        blocks = _sack(first, have, upto, number)
        last_s = seen.from_client(time_s, ACK, (seen.client_seq, first + upto * MSS), options=blocks)
    return last_s


def _in_order(have: set[int]) -> int:
    """Return how many segments have arrived without a hole."""
    upto = 0
    while upto in have:
        upto += 1
    return upto


def _sack(first: int, have: set[int], upto: int, latest: int) -> bytes:
    """Return an option with the blocks behind the first hole, that of the latest segment first (RFC 2018)."""
    behind = sorted(number for number in have if number >= upto)
    if not behind:
        return b""
    blocks: list[tuple[int, int]] = []
    for number in behind:
        if blocks and blocks[-1][1] == number:
            blocks[-1] = (blocks[-1][0], number + 1)
        else:
            blocks.append((number, number + 1))
    blocks.sort(key=lambda block: not block[0] <= latest < block[1])
    edges = b"".join(
        struct.pack(">II", (first + begin * MSS) & 0xFFFF_FFFF, (first + end * MSS) & 0xFFFF_FFFF)
        for begin, end in blocks[:3]
    )
    return bytes((1, 1, 5, 2 + len(edges))) + edges


def _close(seen: _Seen, now_s: float) -> list[Packet]:
    arrived_s = seen.from_client(now_s, FIN | ACK, (seen.client_seq, seen.server_seq))
    answered_s = seen.from_server(arrived_s, FIN | ACK, (seen.server_seq, seen.client_seq + 1))
    assert answered_s is not None
    seen.from_client(answered_s, ACK, (seen.client_seq + 1, seen.server_seq + 1))
    return seen.packets


def _resolve(one: Resolution, random: Random) -> list[Packet]:
    name = b"\x03www\x07example\x03org\x00\x00\x01\x00\x01"
    number, port = random.getrandbits(16), random.randrange(32_768, 61_000)
    ends = (one.client, port, "198.51.100.1", 53)
    asked_s = one.at_s + one.path.near_rtt_s / 2
    packets = [udp(asked_s, ends, struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + name)]
    if one.path.is_answered and one.path.name_server != "silent":
        has_failed = one.path.name_server == "fails"
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 300, 4) + bytes((198, 51, 100, 10))
        # SERVFAIL is 2 (RFC 1035 section 4.1.1)
        head = struct.pack(">HHHHHH", number, 0x8180 | 2 * has_failed, 1, not has_failed, 0, 0)
        ends = ("198.51.100.1", 53, one.client, port)
        answered_s = asked_s + one.path.far_rtt_s + one.path.dns_response_s
        packets.append(udp(answered_s, ends, head + name + (b"" if has_failed else answer)))
    return packets


def _ping(one: Ping, random: Random) -> list[Packet]:
    asked_s = one.at_s + one.path.near_rtt_s / 2
    packets = [echo(asked_s, one.client, one.server, 8, one.number)]
    # of a link without lost pings nothing is drawn
    is_lost = one.path.ping_loss > 0 and random.random() < one.path.ping_loss
    if one.path.is_answered and not is_lost:
        packets.append(echo(asked_s + one.path.far_rtt_s, one.server, one.client, 0, one.number))
    return packets
