"""Thresholds that options and functions have as their defaults; it imports nothing, so a start is fast."""

from __future__ import annotations

from typing import Final

LEAST_PACKETS: Final = 20
"""Data packets below which a flow is no competitor: control connections, handshakes, look-ups.

Metrics leave such flows out. Columns, counts, sums and RTT samples mean something of any flow and count all,
unless `least_packets` is given.
"""

SPARSE_SHARE: Final = 0.1
"""Rate of a sparse flow, over the mean of the flows that are not sparse, stays below this."""

TIMES_SHORTER: Final = 10
"""How many times shorter than the handshake the median is of samples that do not span the path."""
