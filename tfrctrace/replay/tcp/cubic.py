"""CUBIC (RFC 9438): the window is a cubic function of the time since the last loss event."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.tcp.window import WindowControl, at_least, share_kept

if TYPE_CHECKING:
    from typing import Unpack

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.tcp.window import WindowParameters

CUBIC_C: Final = 0.4
"""Growth of the window in segments/s^3 (section 4.1)."""

CUBIC_BETA: Final = 0.7
"""Factor of the window after a loss (section 4.6)."""

_MOST_GROWTH: Final = 1.5
"""The target is at most this times the window (section 4.2)."""


class Cubic(WindowControl):
    """Concave towards the window of the last loss, flat there, convex beyond; never below Reno's window."""

    def __init__(
        self,
        start: Start,
        *,
        c: float = CUBIC_C,
        beta: float = CUBIC_BETA,
        fast_convergence: float = 1,
        increase_beyond: float = 1,
        least_growth: float = 0,
        **window: Unpack[WindowParameters],
    ) -> None:
        """Set C in segments/s^3, the factor of the window after a loss, and whether to converge fast.

        `increase_beyond` is alpha_cubic once the window of the last loss is reached again; 0 keeps that from
        before, as Linux does, which follows RFC 8312 there. `least_growth` is the share of the window by
        which it grows in a round at least, before the first loss and after a timeout; Linux has 0.05, as the
        function may be too conservative without a W_max (`last_max_cwnd == 0` in its `tcp_cubic.c`). The
        Linux TCP of ns-2.35 uses beta = 0.8 (819/1024 there).
        """
        super().__init__(start, **window)
        if not c > 0 or fast_convergence not in (0, 1):
            raise ValueError("c must be above 0, and fast_convergence 0 or 1")
        self._c = c
        self._beta = share_kept("beta", beta)
        self._converges_fast = bool(fast_convergence)
        # alpha_cubic: with it and beta an AIMD has Reno's mean window (section 4.3)
        self._reno_increase = 3 * (1 - beta) / (1 + beta)
        self._is_linux = increase_beyond == 0
        self._least_growth = at_least("least_growth", least_growth, 0.0)
        self._increase_beyond = at_least("increase_beyond", increase_beyond, 0.0) or self._reno_increase
        self.is_reno_friendly = True
        """Whether the window is that of the AIMD beside the cubic function (section 4.3)."""
        self._w_max = 0.0
        self._has_lost = False
        """Whether W_max is that of a loss."""
        self._w_est = 0.0
        self._period_s = 0.0
        self._elapsed_s: float | None = None

    def avoid_congestion(self, share: float) -> None:
        """Approach W_cubic a round-trip time ahead (section 4.2), or follow Reno's window if that is larger.

        Each acknowledgement adds (target - cwnd) / cwnd, so that a round covers 1 - 1/e of the distance;
        Linux approaches Reno's window so, too.
        """
        elapsed_s = self._begin_epoch() if self._elapsed_s is None else self._elapsed_s
        round_s = self.rtt_s or 0.0
        self._elapsed_s = elapsed_s + share * round_s
        middle_s = elapsed_s + (share / 2 + 1) * round_s
        target = cubic_window(middle_s, self._w_max, self._period_s, c=self._c)
        target = min(target, _MOST_GROWTH * self.cwnd)
        # beyond W_max it grows as Reno does (section 4.3)
        is_below = self._w_est < self._w_max
        self._w_est += share * (self._reno_increase if is_below else self._increase_beyond)
        self.is_reno_friendly = target <= self._w_est
        if self._is_linux:
            target = max(target, self._w_est)
        growth = max(target - self.cwnd, 0.0) * -math.expm1(-share)
        if not self._has_lost:
            growth = max(growth, self._least_growth * self.cwnd * share)
        self.cwnd += growth
        if not self._is_linux:
            self.cwnd = max(self.cwnd, self._w_est)

    def after_loss(self) -> float:
        """Return beta_cubic times the window, and lower W_max if the window had not reached it again."""
        falls = self._converges_fast and self.cwnd < self._w_max
        self._w_max = self.cwnd * (1 + self._beta) / 2 if falls else self.cwnd
        self._elapsed_s = None
        self._has_lost = True
        return self.cwnd * self._beta

    def after_timeout(self) -> float:
        """Return beta_cubic times the window (section 4.8); with `least_growth`, W_max is forgotten."""
        left = self.after_loss()
        if self._least_growth:
            self._w_max, self._has_lost = 0.0, False
        return left

    def _begin_epoch(self) -> float:
        """Start a congestion avoidance epoch with K of eq. 2; return its elapsed time, 0 s."""
        self._w_max = max(self._w_max, self.cwnd)
        self._w_est = self.cwnd
        self._period_s = cubic_period_s(self._w_max, self.cwnd, c=self._c)
        return 0.0


def cubic_window(elapsed_s: float, w_max: float, period_s: float, *, c: float = CUBIC_C) -> float:
    """Return W_cubic(t) = C (t - K)^3 + W_max in segments, t seconds after the reduction (eq. 1)."""
    return c * (elapsed_s - period_s) ** 3 + w_max


def cubic_period_s(w_max: float, window: float, *, c: float = CUBIC_C) -> float:
    """Return K, the seconds in which it grows from `window` to W_max segments (eq. 2)."""
    return float(((w_max - window) / c) ** (1 / 3))
