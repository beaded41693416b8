"""Make the capture at the other end of a path from a generated one, with the same clock.

`far.py FILE CAPTURE`: packets of clients arrive 20 ms later, packets of servers left 20 ms earlier, and the
capture misses one in a thousand packets of the clients. Clients are those of `captures.py`, in 10.0.0.0/8.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np

WAY_US: Final = 20_000
MISSED_EVERY: Final = 1000
GLOBAL_HEADER: Final = 24
RECORD_HEADER: Final = 16
SOURCE: Final = RECORD_HEADER + 14 + 12
"""Where the sender's address stands in a record: behind the Ethernet header and 12 bytes of IP."""
CLIENTS: Final = 10


def seen_at_the_far_end(near: bytes) -> bytes:
    """Return the bytes of the other capture; `near` is a little-endian pcap file in microseconds."""
    every = np.frombuffer(near, dtype=np.uint8)
    starts = [GLOBAL_HEADER]
    while (start := starts[-1]) < len(near):
        starts.append(start + RECORD_HEADER + int.from_bytes(near[start + 8 : start + 12], "little"))
    bounds = np.array(starts)
    start, length = bounds[:-1], np.diff(bounds)
    stamp = every[start[:, None] + np.arange(8)].reshape(-1).view("<u4").reshape(-1, 2).astype(np.int64)
    is_client = every[start + SOURCE] == CLIENTS
    time_us = stamp[:, 0] * 1_000_000 + stamp[:, 1] + np.where(is_client, WAY_US, -WAY_US)
    kept = ~is_client | (np.cumsum(is_client) % MISSED_EVERY != 0)
    order = np.argsort(time_us, kind="stable")
    order = order[kept[order]]
    parts = [near[:GLOBAL_HEADER]]
    for at in order.tolist():
        seconds, us = divmod(int(time_us[at]), 1_000_000)
        parts.append(seconds.to_bytes(4, "little") + us.to_bytes(4, "little"))
        parts.append(near[start[at] + 8 : start[at] + length[at]])
    return b"".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(seen_at_the_far_end(Path(sys.argv[2]).read_bytes()))
