"""Carry Ethernet frames between two interfaces and hold each for a fixed time.

Stands in for a long link where the kernel has no network emulator (netem). Run inside a network
namespace: `python3 delay_line.py IF_A IF_B DELAY_MS [LOSS]`; it ends on SIGTERM. LOSS is the
share of frames from A to B that are lost at random, as on a bad radio link.
"""

from __future__ import annotations

import errno
import fcntl
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import deque

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
SIOCETHTOOL = 0x8946
ETHTOOL_STXCSUM = 0x17
LONGEST_FRAME = 65_600
QUEUE_BYTES = 8 << 20
# Without pause the loop would take a core; 0.1 ms of lateness is far below the delay itself.
NAP_S = 0.0001


class Line:
    """One direction: frames in the order they came in, each with the time it may leave."""

    def __init__(self, entry: socket.socket, leave: socket.socket, delay_s: float, loss: float) -> None:
        self.entry = entry
        self.leave = leave
        self.delay_s = delay_s
        self.loss = loss
        self.chance = random.Random(1)
        self.waiting: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        """Take every frame that has arrived."""
        while True:
            try:
                frame, address = self.entry.recvfrom(LONGEST_FRAME)
            except BlockingIOError:
                return
            # A packet socket also sees what this program itself sends out of the interface.
            if address[2] != PACKET_OUTGOING and self.chance.random() >= self.loss:
                self.waiting.append((time.monotonic() + self.delay_s, frame))

    def give(self) -> None:
        """Send every frame whose time has come; the queue behind the interface may drop it."""
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, frame = self.waiting.popleft()
            try:
                self.leave.send(frame)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise


def checksums_in_software(interface: str) -> None:
    """Make the kernel finish checksums itself, as frames leave here through a socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        value = bytearray(struct.pack("=II", ETHTOOL_STXCSUM, 0))
        pinned = (struct.Struct("16sP")).pack(interface.encode(), _address_of(value))
        fcntl.ioctl(control, SIOCETHTOOL, pinned)


def _address_of(buffer: bytearray) -> int:
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def open_interface(interface: str) -> socket.socket:
    """Open a packet socket that sees and sends whole frames of `interface`."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, QUEUE_BYTES)
    opened.bind((interface, 0))
    opened.setblocking(False)
    return opened


def main(first: str, second: str, delay_ms: float, loss: float) -> None:
    """Carry frames both ways until stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    a, b = open_interface(first), open_interface(second)
    lines = (Line(a, b, delay_ms / 1e3, loss), Line(b, a, delay_ms / 1e3, 0.0))
    while True:
        busy = any(line.waiting for line in lines)
        select.select([a, b], [], [], NAP_S if busy else 0.2)
        for line in lines:
            line.take()
            line.give()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--software-checksums":
        checksums_in_software(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]) if len(sys.argv) > 4 else 0.0)
