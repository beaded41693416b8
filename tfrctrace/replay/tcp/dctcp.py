"""DCTCP (RFC 8257): congestion marks cut the window by their share; else it is Reno."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.sack import Sack

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Report, Start
    from tfrctrace.replay.tcp.window import WindowParameters

_GAIN: Final = 1 / 16
"""g: weight of the newest round (section 4.2)."""


class Dctcp(Sack):
    """Keeps 1 - alpha / 2 of its window after a mark, where alpha is the smoothed share of marked bytes."""

    def __init__(self, start: Start, **window: Unpack[WindowParameters]) -> None:
        """Begin with alpha = 1, to cut by half as long as little is known (section 4.2)."""
        super().__init__(start, **window)
        self._alpha = 1.0

    def measure(self, report: Report) -> None:
        """Take the share of a round that was marked, too (section 3.3, step 6)."""
        super().measure(report)
        self._alpha += _GAIN * (report.marked - self._alpha)

    def after_mark(self) -> float:
        """Return the window less half of alpha of it (section 3.3, step 9)."""
        return self.cwnd * (1 - self._alpha / 2)
