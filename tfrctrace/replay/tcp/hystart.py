"""HyStart: a slow start that ends when the round-trip time rises, before a loss."""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

Name = Literal["none", "linux", "rfc9406"]

_LEAST_RISE_S: Final = 0.004
_MOST_RISE_S: Final = 0.016
_RISE: Final = 1 / 8
"""Of the shortest round-trip time; a rise is between both bounds (RFC 9406 section 4.2)."""

_LINUX_WINDOW: Final = 16.0
"""Segments below which Linux does not look (`hystart_low_window`)."""

_CSS_GROWTH: Final = 1 / 4
_CSS_ROUNDS: Final = 5
"""Conservative slow start: its growth as a share of slow start's, and its rounds (RFC 9406 section 4.3)."""


class HyStart:
    """Tells for each round of slow start how much of its growth is left; 0 ends it.

    `linux` ends it at the first rise above the shortest round-trip time so far (Ha and Rhee 2011, by delays);
    `rfc9406` (HyStart++) compares with the round before, grows by a quarter for five rounds, and goes on
    doubling if the delay falls again.
    """

    def __init__(self, name: Name) -> None:
        if name not in get_args(Name):
            raise ValueError(f"hystart is {' or '.join(get_args(Name))}")
        self._name = name
        self._last_s: float | None = None
        self._baseline_s = math.inf
        self._css_rounds = 0

    def growth(self, rtt_s: float | None, base_rtt_s: float, cwnd: float) -> float:
        """Return the share of a doubling that a round with this round-trip time is allowed."""
        if self._name == "none" or rtt_s is None:
            return 1.0
        if self._name == "linux":
            return 0.0 if cwnd >= _LINUX_WINDOW and rtt_s >= _risen(base_rtt_s) else 1.0
        before_s, self._last_s = self._last_s, rtt_s
        if self._css_rounds:
            if rtt_s < self._baseline_s:
                self._css_rounds, self._baseline_s = 0, math.inf
                return 1.0
            self._css_rounds += 1
            return 0.0 if self._css_rounds > _CSS_ROUNDS else _CSS_GROWTH
        if before_s is None or rtt_s < _risen(before_s):
            return 1.0
        self._baseline_s, self._css_rounds = rtt_s, 1
        return _CSS_GROWTH


def _risen(rtt_s: float) -> float:
    """Return the round-trip time that is a rise over another one."""
    return rtt_s + min(max(_RISE * rtt_s, _LEAST_RISE_S), _MOST_RISE_S)
