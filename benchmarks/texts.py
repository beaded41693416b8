"""Make text traces of any size: an ns-2 wired trace, and what tcpdump prints of a capture.

The ns-2 trace is of a dumbbell with two routers: a TFRC flow, TCP flows and constant bit rate, each packet
with the nine lines of its three hops, some dropped at the bottleneck. All of it is arithmetic on the number
of the packet, so the same arguments always give the same bytes.

`texts.py FILE ns2 LINES` or `texts.py FILE tcpdump CAPTURE` writes one.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

HOP_S: Final = 0.010
PACKET_S: Final = 0.0004
DROP_EVERY: Final = 97
AGENTS: Final = (("tcpFriend", 1032), ("tcp", 1040), ("cbr", 500), ("tcp", 1040))
"""What the senders 2, 4, 6 and 8 send to the nodes after them."""
PACKETS_AT_ONCE: Final = 64
"""Packets whose lines are sorted together: more than are on their way at one time."""


def packet(uid: int) -> Iterator[tuple[float, str]]:
    """Give the lines of one packet with their times."""
    kind, size = AGENTS[uid % len(AGENTS)]
    fid = uid % len(AGENTS) + 1
    source, sink = 2 * fid, 2 * fid + 1
    tail = f"{kind} {size} ------- {fid} {source}.0 {sink}.0 {uid // len(AGENTS)} {uid}"
    time = uid * PACKET_S
    for hop, (here, there) in enumerate(((source, 0), (0, 1), (1, sink))):
        yield time, f"+ {written(time)} {here} {there} {tail}"
        if hop == 1 and uid % DROP_EVERY == 0:
            yield time, f"d {written(time)} {here} {there} {tail}"
            return
        leaves = time + 0.0001 * (uid % 7)
        yield leaves, f"- {written(leaves)} {here} {there} {tail}"
        time = leaves + HOP_S
        yield time, f"r {written(time)} {here} {there} {tail}"


def written(time: float) -> str:
    """Return a time as ns-2 prints it: six digits behind the point, without zeros at the end."""
    return f"{time:.6f}".rstrip("0").rstrip(".")


def write_ns2(file: TextIO, lines: int) -> None:
    """Write at least `lines` lines, ordered by time as a simulator writes them."""
    count, uid = 0, 0
    waiting: list[tuple[float, str]] = []
    while count < lines:
        for _ in range(PACKETS_AT_ONCE):
            waiting += packet(uid)
            uid += 1
        waiting.sort()
        now = uid * PACKET_S
        ready = [line for time, line in waiting if time < now]
        waiting = waiting[len(ready) :]
        file.write("\n".join(ready) + "\n")
        count += len(ready)


def main() -> int:
    """Write the file that the arguments name."""
    path, kind, what = sys.argv[1:]
    with open(path, "w") as file:
        if kind == "ns2":
            write_ns2(file, int(what))
        else:
            subprocess.run(["tcpdump", "-nn", "-tt", "-r", what], stdout=file, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
