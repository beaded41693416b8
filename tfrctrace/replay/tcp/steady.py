"""What a TCP would send in the long run at a given loss event rate: the published formulas.

Rates are packets/s, times seconds, windows packets. p is the loss event rate, R the mean round-trip time, T_0
the retransmission timeout, b the packets that one acknowledgement covers. Without loss (p = 0) none of these
has a value, and the functions return None; so they do where a formula needs a queue and there is none.
"""

from __future__ import annotations

import math
from typing import Final

CUBIC_C: Final = 0.4
"""Growth of CUBIC's window in packets/s^3 (RFC 9438 section 4.1)."""

CUBIC_BETA: Final = 0.7
"""Share of the window that CUBIC keeps after a loss (RFC 9438 section 4.6)."""


def pftk_pps(
    p: float, rtt_s: float, t0_s: float, *, b: float = 1, w_max: float | None = None
) -> float | None:
    """Return the approximation of Padhye et al. (SIGCOMM 1998, eq. 30), at most W_max / R, in packets/s."""
    if not _is_rate(p):
        return None
    timeouts = t0_s * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    rate = 1 / (rtt_s * math.sqrt(2 * b * p / 3) + timeouts)
    return rate if w_max is None else min(rate, w_max / rtt_s)


def pftk_full_pps(p: float, rtt_s: float, t0_s: float, w_max: float, *, b: float = 1) -> float | None:
    """Return the full model of Padhye et al. (SIGCOMM 1998, eq. 32) in packets/s; None at p = 1, too."""
    if not _is_rate(p) or p == 1:
        return None
    grown = (2 + b) / (3 * b)
    mean_window = grown + math.sqrt(8 * (1 - p) / (3 * b * p) + grown**2)
    window = min(mean_window, w_max)
    flat = b * w_max / 8 + (1 - p) / (p * w_max) + 2
    rounds = b * mean_window / 2 + 1 if mean_window < w_max else flat
    q = _timeout_share(p, window)
    backoff = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    packets = (1 - p) / p + window + q / (1 - p)
    return packets / (rtt_s * rounds + q * t0_s * backoff / (1 - p))


def _timeout_share(p: float, window: float) -> float:
    """Return Q(w): the share of loss indications that are timeouts (eq. 24); all of them up to w = 3."""
    if window <= 3:
        return 1.0
    kept = 1 - p
    beyond: float = kept ** (window - 3)
    return min(1.0, (1 - kept**3) * (1 + kept**3 * (1 - beyond)) / (1 - beyond * kept**3))


def mathis_pps(p: float, rtt_s: float, *, b: float = 1) -> float | None:
    """Return sqrt(3 / (2 b p)) / R of Mathis et al. (CCR 1997) in packets/s: no timeouts."""
    return math.sqrt(3 / (2 * b * p)) / rtt_s if _is_rate(p) else None


def newreno_fluid_pps(p: float, rtt_s: float) -> float | None:
    """Return sqrt(2 (1 - p) / p) / R in packets/s: Reno's counterpart of `westwood_pps`, losses by chance."""
    return math.sqrt(2 * (1 - p) / p) / rtt_s if _is_rate(p) else None


def westwood_pps(p: float, rtt_s: float, base_rtt_s: float) -> float | None:
    """Return sqrt((1 - p) / p) / sqrt(R (R - R_min)) of Grieco and Mascolo (CCR 2004) in packets/s.

    The model needs a queue: None where R is not larger than R_min.
    """
    if not _is_rate(p) or rtt_s <= base_rtt_s:
        return None
    return math.sqrt((1 - p) / p) / math.sqrt(rtt_s * (rtt_s - base_rtt_s))


def vegas_bounds_pps(
    rtt_s: float, base_rtt_s: float, *, alpha: float = 2, beta: float = 4
) -> tuple[float, float] | None:
    """Return between which rates (packets/s) Vegas rests without loss: alpha and beta packets in the queue.

    alpha <= cwnd (R - R_min) / R <= beta (Brakmo and Peterson, JSAC 1995). None without a queue.
    """
    queueing_s = rtt_s - base_rtt_s
    return (alpha / queueing_s, beta / queueing_s) if queueing_s > 0 else None


def cubic_mean_window(
    p: float, rtt_s: float, *, c: float = CUBIC_C, beta: float = CUBIC_BETA
) -> float | None:
    """Return CUBIC's mean window in packets: RFC 9438 eq. 6, at least that of Reno, sqrt(3 / (2 p)).

    `c` is the growth in packets/s^3, `beta` the share of the window that a loss leaves.
    """
    if not _is_rate(p):
        return None
    scale = (c * (3 + beta) / (4 * (1 - beta))) ** 0.25
    return float(max(scale * (rtt_s / p) ** 0.75, math.sqrt(3 / (2 * p))))


def cubic_window(elapsed_s: float, w_max: float) -> float:
    """Return W_cubic(t) = C (t - K)^3 + W_max in packets, t seconds after the reduction (RFC 9438 eq. 1)."""
    return CUBIC_C * (elapsed_s - cubic_period_s(w_max)) ** 3 + w_max


def cubic_period_s(w_max: float) -> float:
    """Return K, the seconds in which CUBIC is back at W_max packets (RFC 9438 eq. 2)."""
    return float((w_max * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3))


def aimd_pps(
    p: float,
    rtt_s: float,
    *,
    increase: float = 1,
    gamma: float = 0.5,
    b: float = 1,
    t0_s: float | None = None,
) -> float | None:
    """Return the rate (packets/s) of a window that grows by `increase` per R and keeps `gamma` after a loss.

    With the defaults it is the equation of TFRC (RFC 5348 section 3.1), with gamma = 0.8 that of a Veno whose
    losses are all random. t_RTO is `t0_s`, without it 4 R.
    """
    if not _is_rate(p):
        return None
    t_rto_s = 4 * rtt_s if t0_s is None else t0_s
    effective = b / increase
    cycle = rtt_s * math.sqrt(2 * effective * (1 - gamma) * p / (1 + gamma))
    return 1 / (cycle + t_rto_s * 3 * math.sqrt(effective * (1 - gamma**2) * p / 2) * p * (1 + 32 * p**2))


def _is_rate(p: float) -> bool:
    """Whether p is a loss event rate that the formulas take; without loss they have no bound."""
    if not 0 <= p <= 1:
        raise ValueError(f"a loss event rate of {p:g} is none: it is from 0 to 1")
    return p > 0
