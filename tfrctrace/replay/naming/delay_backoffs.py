"""The sign of CDG: its window falls to 0.7 again and again without a loss.

Hayes and Armitage (IFIP Networking 2011) back off by a factor of 0.7 when the gradient of the round-trip
times rises, each time with a probability that grows with it. What is drawn cannot be predicted; how often the
window falls, and to what, can be seen.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.replay.naming.observations import Round

_FALLS: Final = 0.85
"""Of a window over that two rounds before, in which it has also grown: less is a fall."""

_LEAST_FALL: Final = 1.0
"""Segments that a fall is more than, as windows have whole segments."""

_FACTOR: Final = (0.6, 0.75)
"""Median of what falls leave: 0.7 of whole segments, and a segment of growth."""

_LEAST: Final = 6
_LEAST_SHARE: Final = 0.05
"""Falls, and their share of all windows; TCP-LP halves its window, Vegas reduces it by a segment."""


def delay_backoffs(rounds: Sequence[Round], segment_bytes: float) -> int:
    """Return how often the window fell as CDG's does without a loss or a mark; 0 if that is not its sign."""
    left: list[float] = []
    windows = 0
    place = 0
    while place + 2 < len(rounds):
        three = rounds[place : place + 3]
        place += 1
        if not all(row["cwnd_bytes"] and row["repair"] is None and not row["ece_packets"] for row in three):
            continue
        windows += 1
        before, after = three[0]["cwnd_bytes"], three[2]["cwnd_bytes"]
        share = after / before
        if share <= _FALLS and before - after > _LEAST_FALL * segment_bytes:
            left.append(share)
            place += 1
    low, high = _FACTOR
    is_sign = len(left) >= max(_LEAST, _LEAST_SHARE * windows) and low <= median(left) <= high
    return len(left) if is_sign else 0
