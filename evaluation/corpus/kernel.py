"""What the sending kernel itself says: why it sent each segment again, and its counters.

The tracepoints of TCP fire at each retransmission; the stack at that moment names the cause.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truth import Key, Sending

MOUNTED_AT = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
EVENTS = ("tcp_retransmit_skb", "tcp_retransmit_synack", "tcp_cong_state_set")
CONGESTION_STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""`enum tcp_ca_state`, in order."""

EVENT_LINE = re.compile(r"^\s*\S.*?\s(?P<time>\d+\.\d+): (?P<event>\w+): (?P<rest>.*)$")
CLOCKS_ROUND_SECONDS = 2e-6
"""Captures and the kernel's trace have the same clock, and print microseconds of it."""

STACK_LINE = re.compile(r"^ => (\w+)")


@dataclass
class Retransmission:
    """One retransmission as the kernel traced it."""

    time: float
    """Seconds since the epoch."""
    sport: int
    cause: str
    """As in `truth.Sending`."""
    first: bool
    """The first of its recovery."""


class Tracing:
    """Records the kernel's TCP events of one port while in use."""

    def __init__(self, port: int) -> None:
        root = next(path for path in MOUNTED_AT if (path / "events/tcp").exists())
        self.instance = root / "instances" / f"corpus{port}"
        self.port = port
        self.lines: list[str] = []

    def __enter__(self) -> Tracing:
        """Begin to record."""
        self.instance.mkdir()
        self._set("trace_clock", "tai")
        self._set("buffer_size_kb", "8192")
        self._set("options/stacktrace", "1")
        for event in EVENTS:
            self._set(f"events/tcp/{event}/filter", f"sport=={self.port} || dport=={self.port}")
            self._set(f"events/tcp/{event}/enable", "1")
        return self

    def __exit__(self, *_: object) -> None:
        """Keep what was recorded, and take the recorder away."""
        self.lines = (self.instance / "trace").read_text().splitlines()
        self.instance.rmdir()

    def _set(self, name: str, value: str) -> None:
        (self.instance / name).write_text(value)

    def retransmissions(self) -> list[Retransmission]:
        """Return all retransmissions in order, each with its cause."""
        # atomic time has no leap seconds
        offset = round(time.clock_gettime(time.CLOCK_TAI) - time.time())
        found: list[Retransmission] = []
        state: dict[str, str] = {}
        repaired: set[str] = set()
        for event, when, rest, stack in self._events():
            fields = dict(part.split("=", 1) for part in rest.split() if "=" in part)
            sport = fields["sport"]
            if event == "tcp_cong_state_set":
                state[sport] = CONGESTION_STATES[int(fields["cong_state"])]
                repaired.discard(sport)
                continue
            cause = "timer" if event == "tcp_retransmit_synack" else _cause(stack, state.get(sport, "open"))
            first = cause == "recovery" and sport not in repaired
            repaired.update([sport] if cause == "recovery" else [])
            found.append(Retransmission(when - offset, int(sport), cause, first))
        return found

    def _events(self) -> list[tuple[str, float, str, list[str]]]:
        events: list[tuple[str, float, str, list[str]]] = []
        for line in self.lines:
            if stack := STACK_LINE.match(line):
                events[-1][3].append(stack[1])
            elif (found := EVENT_LINE.match(line)) and found["event"] in EVENTS:
                events.append((found["event"], float(found["time"]), found["rest"], []))
        return events


def _cause(stack: list[str], state: str) -> str:
    if "tcp_send_loss_probe" in stack:
        return "probe"
    if "tcp_retransmit_timer" in stack:
        return "timer"
    # what the timeout declared lost goes out as acknowledgements let it
    return "loss" if state == "loss" else "recovery"


def name_repetitions(traced: list[Retransmission], sendings: list[Sending], times: dict[Key, float]) -> None:
    """Give each repetition the kernel's cause, and see that each that the kernel traced is there.

    The kernel traces when it has sent, and once for neighbours that it keeps in one buffer.
    """
    waiting = deque(traced)
    event, used, top = None, True, 0
    for sending in sendings:
        if not sending.kind and not sending.answers and sending.start < top:
            time = times[sending.header.key]
            while event is None or event.time < time - CLOCKS_ROUND_SECONDS:
                if not (used and waiting):
                    raise ValueError(f"the kernel traced otherwise: {sending} at {time}, {event}")
                event, used = waiting.popleft(), False
            sending.cause, sending.begins_recovery, used = event.cause, event.first and not used, True
        top = max(top, sending.stop)
    if waiting or not used:
        raise ValueError(f"the capture has {len(waiting)} retransmissions less than the kernel traced")


def counters(inside: tuple[str, ...]) -> dict[str, int]:
    """Return the TCP counters of a namespace that are not 0."""
    output = subprocess.run((*inside, "nstat", "-as"), capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in output.splitlines() if not line.startswith("#"))
    kept = ("TcpRetransSegs", "TcpOutRsts", "TcpExtTCP", "TcpExtPAWS")
    return {name: int(value) for name, value, _ in rows if name.startswith(kept) and int(value)}
