"""MTFRC: the rate of TFRC, bounded by what the MAC can carry and by fairness to downloads. All in bit/s."""

from __future__ import annotations

from typing import Literal

Bound = Literal["x_tfrc", "x_t", "x_fair"]


def fair_rate_bps(x_m_bps: float, uploads: int, downloads: int) -> float | None:
    """Return X_fair = X_m (U + 1) / (U + D), each flow's share of what U stations and the AP carry ([Z] 10).

    None without downloads. Assumes that the total (U + 1) X_m stays constant when uploads slow down, although
    that changes the mix of frames.
    """
    if downloads < 1:
        return None
    return x_m_bps * (uploads + 1) / (uploads + downloads)


def send_rate_bps(x_tfrc_bps: float, x_t_bps: float, x_fair_bps: float | None) -> tuple[float, Bound]:
    """Return X_send = min(X_tfrc, X_t, X_fair) and which of them it is ([Z]), the first of equal ones.

    All three must count the same bytes: payload, or whole MPDUs. X_fair may be None.
    """
    bounds: list[tuple[float, Bound]] = [(x_tfrc_bps, "x_tfrc"), (x_t_bps, "x_t")]
    if x_fair_bps is not None:
        bounds.append((x_fair_bps, "x_fair"))
    return min(bounds, key=lambda bound: bound[0])
