"""The two programs of a connection: one writes and logs what its kernel says, the other reads.

    python endpoints.py send JSON      python endpoints.py receive JSON

They run in network namespaces of the guest. The writing one logs TCP_INFO every 20 ms, or twice in a round
trip if that is longer, and when its application had something to send and when not; times are those of the
captures.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tcp_info

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_S: Final = 0.02
LARGEST_WRITE: Final = 262_144
"""More than a small send buffer takes: the kernel's clock of it starts only where a write finds no room."""
BLOCK: Final = bytes(LARGEST_WRITE)
TCP_CONGESTION: Final = 13


def pieces(application: dict[str, Any], dice: random.Random) -> Iterator[tuple[int, float]]:
    """Give what the application writes next, and the pause that follows it."""
    kind, size, pause_s, total = (application[key] for key in ("kind", "size", "pause_s", "total"))
    if kind == "bulk":
        yield (total if total is not None else 1 << 62), 0.0
        return
    while True:
        match kind:
            case "interactive":
                yield size, dice.expovariate(1 / pause_s)
            case "bursts" | "on_off":
                yield round(size * dice.uniform(0.5, 1.5)), pause_s * dice.uniform(0.5, 1.5)
            case _:
                yield size, pause_s


class Log:
    """Samples of TCP_INFO, and the stretches in which the application waits with data or has none."""

    def __init__(self, path: Path, connection: socket.socket, *, is_bbr: bool) -> None:
        self._connection = connection
        self._is_bbr = is_bbr
        self._samples = path.with_suffix(".tcp_info.csv").open("w")
        self._states = path.with_suffix(".application.csv").open("w")
        more = ["bbr_bytes_s", "bbr_min_rtt_us", "bbr_pacing_gain", "bbr_cwnd_gain"] if is_bbr else []
        print("time_ns", *tcp_info.LOGGED, *more, sep=",", file=self._samples)
        print("time_ns", "state", sep=",", file=self._states)
        self._state = ""

    def sample(self) -> None:
        """Log what the kernel says of the connection."""
        values = tcp_info.logged(self._connection)
        if self._is_bbr:
            values += tcp_info.bbr_gains(self._connection)
        print(time.time_ns(), *values, sep=",", file=self._samples)

    def state(self, state: str) -> None:
        """Log that the application now has data for the socket (`writes`), or none (`idle`)."""
        if state != self._state:
            self._state = state
            print(time.time_ns(), state, sep=",", file=self._states)

    def close(self) -> None:
        """Write what is not yet written."""
        self.sample()
        self._samples.close()
        self._states.close()


def send(asked: dict[str, Any]) -> None:
    """Connect, write as the application does until the end, and log."""
    time.sleep(asked["start_s"])
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, asked["controller"].encode())
    if asked["send_buffer"] is not None:
        # the kernel doubles what is asked, for its own book-keeping
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, asked["send_buffer"] // 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.bind((asked["address"], asked["port"]))
    connection.connect((asked["server_address"], asked["server_port"]))
    connection.setblocking(False)
    log = Log(Path(asked["log"]), connection, is_bbr=asked["controller"] == "bbr")
    try:
        _write(asked, connection, log)
        _drain(connection, log)
    except OSError as error:
        print(f"{asked['log']}: {error}", file=sys.stderr)
    log.close()
    connection.close()


def _write(asked: dict[str, Any], connection: socket.socket, log: Log) -> None:
    application = asked["application"]
    parts = pieces(application, random.Random(asked["port"]))
    ends = time.monotonic() + asked["duration_s"] - asked["start_s"]
    next_sample = time.monotonic()
    waits_for_request = application["kind"] == "server"
    left, resumes = 0, time.monotonic()
    pause_s = 0.0
    period_s = max(SAMPLE_S, asked["base_rtt_s"] / 2)
    while (now := time.monotonic()) < ends:
        if now >= next_sample:
            log.sample()
            next_sample = max(next_sample + period_s, now)
        if waits_for_request:
            if select.select([connection], [], [], max(next_sample - now, 0))[0]:
                if not connection.recv(65_536):
                    return
                waits_for_request = False
                _, pause_s = 0, application["pause_s"]
                resumes = time.monotonic() + pause_s
            continue
        if left == 0 and now >= resumes:
            left, pause_s = next(parts, (0, 0.0))
            if left == 0:
                return
            log.state("writes")
        if left == 0:
            time.sleep(max(min(resumes, next_sample, ends) - now, 0))
            continue
        try:
            left -= connection.send(BLOCK[: min(left, LARGEST_WRITE)])
        except BlockingIOError:
            select.select([], [connection], [], max(next_sample - now, 0))
            continue
        if left == 0:
            log.state("idle")
            waits_for_request = application["kind"] == "server"
            resumes = time.monotonic() + pause_s
            if application["total"] is not None:
                return


def _drain(connection: socket.socket, log: Log) -> None:
    """Log until all is acknowledged, for at most 5 s; what is not written is left."""
    log.state("idle")
    connection.shutdown(socket.SHUT_WR)
    ends = time.monotonic() + 5
    unacked, notsent = tcp_info.LOGGED.index("unacked"), tcp_info.LOGGED.index("notsent_bytes")
    while time.monotonic() < ends:
        log.sample()
        values = tcp_info.logged(connection)
        if values[unacked] == 0 and values[notsent] == 0:
            return
        time.sleep(SAMPLE_S)


def receive(asked: dict[str, Any]) -> None:
    """Accept one connection and read it; of a server, ask for the next response when one is there."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if asked["receive_buffer"] is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, asked["receive_buffer"] // 2)
    if asked["controller"] == "dctcp":
        # its SYN is ECN-capable, which only a listener that needs ECN too accepts (`tcp_ecn_create_request`)
        listening.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"dctcp")
    listening.bind((asked["server_address"], asked["server_port"]))
    listening.listen(1)
    Path(asked["log"]).with_suffix(".listens").touch()
    connection, _ = listening.accept()
    rate = asked["read_bps"]
    is_server = asked["application"]["kind"] == "server"
    if is_server:
        connection.send(b"GET")
    expected = asked["application"]["size"]
    began, taken = time.monotonic(), 0
    while True:
        if rate is not None:
            ahead_s = taken * 8 / rate - (time.monotonic() - began)
            time.sleep(max(ahead_s, 0))
        content = connection.recv(16_384 if rate is not None else 1 << 20)
        if not content:
            return
        taken += len(content)
        if is_server and taken >= expected:
            taken -= expected
            connection.send(b"GET")


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](json.loads(sys.argv[2]))
