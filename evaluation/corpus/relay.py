"""Carry packets between two Ethernet ends and harm exactly those that a case names.

`relay.py END_A END_B CASE.json MIDDLE.pcap HARMED.json` runs in the namespace between the two hosts. It
writes what a capture in the middle of the path saw, and how many packets it harmed. Rules with
`"tap": "before"` act before that capture, the others after it (seen along the data's way).
"""

from __future__ import annotations

import heapq
import json
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from frames import FIN, RST, SYN, header, pcap_record, pcap_start

FORWARD, BACK = 0, 1
OUTGOING = 4
"""Packet type of our own frames (PACKET_OUTGOING)."""

SNAP_BYTES = 128
"""Headers with all options, of IPv6 too."""


@dataclass
class Frame:
    """A TCP packet on its way through the relay."""

    data: bytearray
    way: int
    seq: int = 0
    payload: int = 0
    flags: int = -1
    """-1: not TCP, carried without a look."""
    segment: int = -1
    """Which original segment it carries first, counted from 0; for a pure acknowledgement its own number."""
    attempt: int = 0
    """How often this segment has been sent by now."""
    copy: bool = False
    extra_delay: list[float] = field(default_factory=lambda: [0.0, 0.0])


def decode(data: bytes, way: int) -> Frame:
    """Keep the fields that the rules ask for."""
    frame = Frame(bytearray(data), way)
    if (seen := header(data)) is not None:
        frame.seq, frame.payload, frame.flags = seen.seq, seen.payload, seen.flags
    return frame


def mark_congestion_experienced(frame: Frame) -> None:
    """Set CE (RFC 3168 section 5) in an IPv4 packet, and mend its header checksum (RFC 1624 equation 3)."""
    old = struct.unpack_from("!H", frame.data, 14)[0]
    new = old | 3
    checksum = ~struct.unpack_from("!H", frame.data, 24)[0] & 0xFFFF
    total = checksum + (~old & 0xFFFF) + new
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", frame.data, 14, new)
    struct.pack_into("!H", frame.data, 24, ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)


class Numbering:
    """Numbers the segments of one direction by the first time that their first byte is sent."""

    def __init__(self) -> None:
        self.number_of: dict[int, int] = {}
        self.attempts: Counter[int] = Counter()
        self.acknowledgements = 0

    def number(self, frame: Frame) -> None:
        if frame.payload == 0:
            frame.segment = self.acknowledgements
            self.acknowledgements += frame.flags & (SYN | FIN | RST) == 0
            return
        known = [n for seq, n in self.number_of.items() if (seq - frame.seq) % 2**32 < frame.payload]
        frame.segment = min(known, default=len(self.number_of))
        self.number_of.setdefault(frame.seq, frame.segment)
        self.attempts[frame.segment] += 1
        frame.attempt = self.attempts[frame.segment]


class Rule:
    """One harm: `do` is drop, hold, copy, mark, outage (drops all for a while) or stall (keeps all)."""

    def __init__(self, described: dict[str, Any], chance: random.Random) -> None:
        self.do: str = described["do"]
        self.way = BACK if described.get("way") == "back" else FORWARD
        self.before_tap = described.get("tap") == "before"
        self.only: str = described.get("only", "data")
        self.segments = {int(n) for a, b in described.get("segments", []) for n in range(a, b + 1)}
        self.share: float = described.get("share", 0.0)
        self.times: int = described.get("times", 1)
        self.seconds: float = described.get("seconds", 0.0)
        self.both_ways: bool = described.get("both_ways", False)
        self.chance = chance
        self.until: float = 0.0
        self.left: int = self.times

    def concerns(self, frame: Frame, now: float) -> bool:
        """Say whether the rule acts on this packet."""
        if self.do in ("outage", "stall") and self.until:
            return now < self.until and (self.both_ways or frame.way == self.way)
        if frame.way != self.way or not self._kind(frame):
            return False
        if self.only in ("syn", "fin"):
            self.left -= 1
            return self.left >= 0
        if self.share:
            return self.chance.random() < self.share
        return frame.segment in self.segments and frame.attempt <= self.times

    def _kind(self, frame: Frame) -> bool:
        kinds = {
            "data": frame.payload > 0,
            "ack": frame.payload == 0 and frame.flags & (SYN | FIN | RST) == 0,
            "syn": frame.flags & SYN != 0,
            "fin": frame.flags & FIN != 0,
        }
        return kinds[self.only]


class Relay:
    """Moves frames: in, along half of the path, past the tap, along the other half, out."""

    def __init__(self, case: dict[str, Any], ends: list[socket.socket], tap: BinaryIO) -> None:
        self.half_path: float = case["rtt"] / 4
        self.rate: float = case.get("rate", 0.0)
        self.queue_packets: int = case.get("queue", 50)
        chance = random.Random(case.get("seed", 1))
        self.rules = [Rule(rule, chance) for rule in case["harm"]]
        self.numbering = (Numbering(), Numbering())
        self.ends, self.tap = ends, tap
        self.waiting: list[tuple[float, int, int, Frame]] = []
        self.pushed = 0
        self.harmed: Counter[str] = Counter()
        self.departures: list[float] = []
        self.no_earlier = [[0.0, 0.0], [0.0, 0.0]]
        tap.write(pcap_start(SNAP_BYTES))

    def run(self) -> None:
        """Carry packets until terminated."""
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
        while not stopped:
            self.move_on(time.time())
            timeout = min(0.1, max(0.0, self.waiting[0][0] - time.time())) if self.waiting else 0.1
            for end in select.select(self.ends, [], [], timeout)[0]:
                self.take_in(end)

    def take_in(self, end: socket.socket) -> None:
        data, address = end.recvfrom(70000)
        if address[2] == OUTGOING:
            return
        now = time.time()
        frame = decode(data, self.ends.index(end))
        if frame.flags >= 0:
            self.numbering[frame.way].number(frame)
        self.pass_rules(frame, now, stage=0)

    def pass_rules(self, frame: Frame, now: float, stage: int) -> None:
        """Stage 0 is before the tap on the frame's own way; the data's way decides which rules that are."""
        along_data = frame.way == FORWARD
        for rule in self.rules if frame.flags >= 0 and not frame.copy else []:
            on_first_half = rule.before_tap if along_data else not rule.before_tap
            acts = on_first_half == (stage == 0) and rule.concerns(frame, now)
            if acts and self.harm(frame, rule, now, stage):
                return
        due = now + self.half_path + frame.extra_delay[stage]
        if stage == 1 and along_data and self.rate and frame.payload:
            due = self.shaped(frame, now)
            if not due:
                return
        if frame.extra_delay[stage] == 0.0:
            # a constant delay keeps the order, whatever the clock's hiccups
            due = max(due, self.no_earlier[frame.way][stage])
            self.no_earlier[frame.way][stage] = due
        self.push(due, stage, frame)

    def shaped(self, frame: Frame, now: float) -> float:
        """When a queue in front of a slow link lets go of the frame; 0.0 if the queue is full."""
        self.departures = [t for t in self.departures if t > now]
        if len(self.departures) >= self.queue_packets:
            self.harmed["drop"] += 1
            return 0.0
        free = max([now, *self.departures[-1:]])
        self.departures.append(free + len(frame.data) / self.rate)
        return self.departures[-1] + self.half_path

    def harm(self, frame: Frame, rule: Rule, now: float, stage: int) -> bool:
        """Do what the rule says; true if that ends the packet."""
        if rule.do in ("outage", "stall") and not rule.until:
            rule.until = now + rule.seconds
        self.harmed[rule.do] += 1
        if rule.do in ("drop", "outage"):
            return True
        if rule.do == "mark":
            mark_congestion_experienced(frame)
        elif rule.do == "hold":
            frame.extra_delay[stage] += rule.seconds
        elif rule.do == "stall":
            released = rule.until + self.half_path
            self.no_earlier[frame.way][stage] = max(self.no_earlier[frame.way][stage], released)
        elif rule.do == "copy":
            twin = Frame(**{**frame.__dict__, "copy": True, "extra_delay": [0.0, 0.0]})
            self.push(now + self.half_path + rule.seconds, stage, twin)
        return False

    def push(self, due: float, stage: int, frame: Frame) -> None:
        self.pushed += 1
        heapq.heappush(self.waiting, (due, self.pushed, stage, frame))

    def move_on(self, now: float) -> None:
        """Take every frame whose time has come past the tap, or out."""
        while self.waiting and self.waiting[0][0] <= now:
            _, _, stage, frame = heapq.heappop(self.waiting)
            if stage == 0:
                self.show_tap(frame)
                self.pass_rules(frame, time.time(), stage=1)
            else:
                self.ends[1 - frame.way].send(frame.data)

    def show_tap(self, frame: Frame) -> None:
        self.tap.write(pcap_record(time.time_ns(), bytes(frame.data[:SNAP_BYTES]), len(frame.data)))


def main() -> None:
    """Carry packets between the two interfaces named."""
    ends = []
    for name in sys.argv[1:3]:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        end.bind((name, 0))
        ends.append(end)
    with open(sys.argv[3]) as file:
        case = json.load(file)
    with open(sys.argv[4], "wb") as tap:
        relay = Relay(case, ends, tap)
        relay.run()
    with open(sys.argv[5], "w") as file:
        json.dump(relay.harmed, file)


if __name__ == "__main__":
    main()
