"""The sign of BBR: it measures the base round-trip time with four segments in flight."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.bbr import PROBE_S, PROBE_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.replay.naming.observations import Round

_LEAST_S: Final = 0.75 * PROBE_S
"""The rounds at its beginning and end are in part of another window."""

_ROUNDS_AROUND: Final = 2

_LEAST_AROUND: Final = 4 * PROBE_SEGMENTS
"""Segments that are more before and after: a slow start has them two rounds later at the earliest."""


def rtt_probes(rounds: Sequence[Round], segment_bytes: float) -> int:
    """Return how often the window went down to four segments for 200 ms, without a loss, and at once back.

    No other congestion control of Linux does that.
    """
    found = 0
    place = 0
    for is_low, group in groupby(rounds, lambda row: _is_low(row, segment_bytes)):
        lasted = list(group)
        before, after = rounds[max(place - _ROUNDS_AROUND, 0) : place], rounds[place + len(lasted) :]
        place += len(lasted)
        if not is_low or sum(row["duration_ms"] for row in lasted) < 1e3 * _LEAST_S:
            continue
        around = (before, after[:_ROUNDS_AROUND])
        least = min(max((row["flight_bytes"] for row in part), default=0) for part in around)
        found += least > _LEAST_AROUND * segment_bytes
    return found


def _is_low(row: Round, segment_bytes: float) -> bool:
    """Return whether the window was four segments in a round: a whole one less does not fit any more."""
    most = PROBE_SEGMENTS * segment_bytes
    window = row["cwnd_least_bytes"]
    return row["repair"] is None and window is not None and most - segment_bytes < window <= most
