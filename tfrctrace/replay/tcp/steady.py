"""Published formulas for the steady-state rate of TCP variants.

Rates are packets/s, times seconds, windows packets. p is the loss event rate, R the mean round-trip time, T_0
the retransmission timeout, b the packets per acknowledgement. The functions return None without loss (p = 0),
and without a queue if the formula needs one.
"""

from __future__ import annotations

import math
from typing import Final

CUBIC_C: Final = 0.4
"""Growth of CUBIC's window in packets/s^3 (RFC 9438 section 4.1)."""

CUBIC_BETA: Final = 0.7
"""CUBIC multiplies its window by this after a loss (RFC 9438 section 4.6)."""


def pftk_pps(
    p: float, rtt_s: float, t0_s: float, *, b: float = 1, w_max: float | None = None
) -> float | None:
    """Return the approximation of Padhye et al. (SIGCOMM 1998, eq. 30), at most W_max / R, in packets/s."""
    if not _is_rate(p):
        return None
    timeouts = t0_s * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    rate = 1 / (rtt_s * math.sqrt(2 * b * p / 3) + timeouts)
    return rate if w_max is None else min(rate, w_max / rtt_s)


def westwood_pps(p: float, rtt_s: float, base_rtt_s: float) -> float | None:
    """Return sqrt((1 - p) / p) / sqrt(R (R - R_min)) of Grieco and Mascolo (CCR 2004) in packets/s.

    None without a queue (R <= R_min).
    """
    if not _is_rate(p) or rtt_s <= base_rtt_s:
        return None
    return math.sqrt((1 - p) / p) / math.sqrt(rtt_s * (rtt_s - base_rtt_s))


def vegas_bounds_pps(
    rtt_s: float, base_rtt_s: float, *, alpha: float = 2, beta: float = 4
) -> tuple[float, float] | None:
    """Return the range of rates (packets/s) at which Vegas is stable without loss.

    It keeps alpha <= cwnd (R - R_min) / R <= beta packets queued (Brakmo and Peterson, JSAC 1995). None
    without a queue.
    """
    queueing_s = rtt_s - base_rtt_s
    return (alpha / queueing_s, beta / queueing_s) if queueing_s > 0 else None


def cubic_mean_window(
    p: float, rtt_s: float, *, c: float = CUBIC_C, beta: float = CUBIC_BETA
) -> float | None:
    """Return CUBIC's mean window in packets: RFC 9438 eq. 6, at least that of Reno, sqrt(3 / (2 p)).

    `c` is the growth in packets/s^3, `beta` the factor of the window after a loss.
    """
    if not _is_rate(p):
        return None
    scale = (c * (3 + beta) / (4 * (1 - beta))) ** 0.25
    return float(max(scale * (rtt_s / p) ** 0.75, _reno_mean_window(p)))


def cubic_window(elapsed_s: float, w_max: float, period_s: float, *, c: float = CUBIC_C) -> float:
    """Return W_cubic(t) = C (t - K)^3 + W_max in packets, t seconds after the reduction (RFC 9438 eq. 1)."""
    return c * (elapsed_s - period_s) ** 3 + w_max


def cubic_period_s(w_max: float, window: float, *, c: float = CUBIC_C) -> float:
    """Return K, the seconds in which CUBIC grows from `window` to W_max packets (RFC 9438 eq. 2)."""
    return float(((w_max - window) / c) ** (1 / 3))


def aimd_pps(
    p: float,
    rtt_s: float,
    *,
    increase: float = 1,
    gamma: float = 0.5,
    b: float = 1,
    t0_s: float | None = None,
) -> float | None:
    """Return the rate (packets/s) of a window that grows by `increase` per R and is cut to `gamma` by a loss.

    The defaults give TFRC's equation (RFC 5348 section 3.1), gamma = 0.8 that of a Veno whose losses are all
    random, and `t0_s` = 0 the formula of Mathis et al. (CCR 1997). t_RTO is `t0_s`, by default 4 R.
    """
    if not _is_rate(p):
        return None
    t_rto_s = 4 * rtt_s if t0_s is None else t0_s
    effective = b / increase
    cycle = rtt_s * math.sqrt(2 * effective * (1 - gamma) * p / (1 + gamma))
    return 1 / (cycle + t_rto_s * 3 * math.sqrt(effective * (1 - gamma**2) * p / 2) * p * (1 + 32 * p**2))


def high_speed_mean_window(p: float) -> float | None:
    """Return HighSpeed TCP's mean window in packets: 0.12 / p^0.835 (RFC 3649 section 5), at least Reno's."""
    return max(0.12 / p**0.835, _reno_mean_window(p)) if _is_rate(p) else None


def scalable_mean_window(p: float, *, a: float = 0.01, gamma: float = 7 / 8) -> float | None:
    """Return Scalable TCP's mean window in packets, a / ((1 - gamma) p) (Kelly, CCR 2003), or Reno's."""
    return max(a / ((1 - gamma) * p), _reno_mean_window(p)) if _is_rate(p) else None


def _reno_mean_window(p: float) -> float:
    return math.sqrt(3 / (2 * p))


def _is_rate(p: float) -> bool:
    """Return whether p is above 0; without loss the formulas have no value."""
    if not 0 <= p <= 1:
        raise ValueError(f"a loss event rate is from 0 to 1, not {p:g}")
    return p > 0
