"""One end of a TCP connection that follows a script: `endpoint.py listen|connect ADDRESS PORT STEPS WHEN`.

STEPS are JSON; WHEN is a time at which both ends are ready, in seconds since the epoch. Prints what the
kernel says of the connection (`TCP_INFO`) as JSON when the script has ended.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from typing import Any

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21
SO_MAX_PACING_RATE = 47
"""Of `asm-generic/socket.h`; Python's `socket` has no name for it."""
SEND_QUEUE, REPAIR_OFF_NO_PROBE = 2, -1
TOTAL_RETRANS_OFFSET = 100
"""Of `tcpi_total_retrans` in the kernel's `struct tcp_info`."""
BUSY_TIME_OFFSET = 168
"""Of `tcpi_busy_time`; behind it come `tcpi_rwnd_limited` and `tcpi_sndbuf_limited`."""


class Script:
    """The steps that a case can name."""

    def __init__(self, kind: str, there: tuple[str, int], both_ready: float) -> None:
        self.kind, self.there, self.both_ready = kind, there, both_ready
        self.socket = self._new()
        self.received = 0

    def _new(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.there[0] else socket.AF_INET
        new = socket.socket(family, socket.SOCK_STREAM)
        new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return new

    def again(self) -> None:
        """Close, and begin anew."""
        self.socket.close()
        self.socket = self._new()

    def meet(self) -> None:
        """Wait until the other end is ready, too."""
        time.sleep(max(0.0, self.both_ready - time.time()))

    def call(self, address: str, port: int) -> None:
        self.socket.connect((address, port))

    def option(self, level: str, name: str, value: int) -> None:
        self.socket.setsockopt(getattr(socket, level), getattr(socket, name), value)

    def pace(self, bytes_per_second: int) -> None:
        """Pace as `fq` or BBR do, at most at this rate."""
        self.socket.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, bytes_per_second)

    def control(self, name: str) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())

    def first_number(self, number: int) -> None:
        """Choose the initial sequence number, which only a socket under repair may."""
        for option, value in ((TCP_REPAIR, 1), (TCP_REPAIR_QUEUE, SEND_QUEUE), (TCP_QUEUE_SEQ, number)):
            self.socket.setsockopt(socket.IPPROTO_TCP, option, struct.pack("I", value))
        self.socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, struct.pack("i", REPAIR_OFF_NO_PROBE))

    def bind(self, address: str, port: int) -> None:
        self.socket.bind((address, port))

    def open(self) -> None:
        if self.kind == "connect":
            self.socket.connect(self.there)
            return
        self.socket.bind(self.there)
        self.socket.listen()
        listening, (self.socket, _) = self.socket, self.socket.accept()
        listening.close()

    def send(self, count: int) -> None:
        self.socket.sendall((b"tfrctrace-" * (count // 10 + 1))[:count])

    def read(self, count: int) -> None:
        """Read so many bytes, or to the end of the stream with -1."""
        while count and (got := len(self.socket.recv(min(count, 65536) if count > 0 else 65536))):
            self.received += got
            count -= got if count > 0 else 0

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def shutdown(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close without the usual exchange."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def total_retransmissions(self) -> int:
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return int(struct.unpack_from("I", info, TOTAL_RETRANS_OFFSET)[0])

    def times(self) -> dict[str, int]:
        """How long there was something to send, and what of it the window and the buffer held up, in us."""
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        values = struct.unpack_from("3Q", info, BUSY_TIME_OFFSET)
        return dict(zip(("busy_us", "rwnd_limited_us", "sndbuf_limited_us"), values, strict=True))


def main() -> None:
    """Run the script given on the command line."""
    kind, address, port, steps, both_ready = sys.argv[1:]
    script = Script(kind, (address, int(port)), float(both_ready))
    todo: list[list[Any]] = json.loads(steps)
    for name, *values in todo:
        getattr(script, name)(*values)
    counted = {"received": script.received, "total_retransmissions": script.total_retransmissions()}
    counted |= script.times()
    script.socket.close()
    print(json.dumps(counted))


if __name__ == "__main__":
    main()
