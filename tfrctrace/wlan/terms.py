"""The terms of the model that `tfrctrace capacity` prints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tfrctrace.metrics.results.capacity import CapacityTerms, ContenderTerms, NetworkTerms, RateBounds
from tfrctrace.wlan.capacity import US_PER_S
from tfrctrace.wlan.mtfrc import send_rate_bps

if TYPE_CHECKING:
    from tfrctrace.wlan.capacity import Capacity, Contender
    from tfrctrace.wlan.cell import Cell


def network_terms(cell: Cell) -> NetworkTerms:
    """Return the constants of a network that do not depend on its stations; sizes in bits, rates in Mb/s."""
    return NetworkTerms(
        preset=cell.preset,
        phy=cell.phy.standard,
        band_ghz=float(cell.phy.band),
        preamble=cell.phy.preamble,
        width_mhz=int(cell.phy.width),
        short_gi=cell.phy.short_gi,
        s_t_bits=cell.s_t_bits,
        s_bits=cell.s_bits,
        cw_min=cell.cw_min,
        ack_mbps=cell.ack_rate.mbps if cell.ack_rate else None,
        basic_mbps=None if cell.ack_rate else tuple(rate.mbps for rate in cell.basic_rates),
        cts_mbps=cell.cts_rate.mbps if cell.cts_rate else None,
        jam=cell.jam,
        jam_backoff=cell.jam_backoff,
    )


def capacity_terms(cell: Cell, found: Capacity, x_tfrc_bps: float | None = None) -> CapacityTerms:
    """Return every term of the model; times in µs, rates in bit/s, shares from 0 to 1.

    `x_tfrc_bps` is TFRC's rate in bit/s of payload. The bounds of MTFRC count payload as well, except in the
    preset `paper`, where they count whole frames.
    """
    frames_per_us = found.x_m_bps / cell.s_bits / US_PER_S
    return CapacityTerms(
        x_m_bps=found.x_m_bps,
        x_t_bps=found.x_t_bps,
        x_fair_bps=found.x_fair_bps,
        n_contenders=len(found.contenders),
        uploads=found.uploads,
        downloads=found.downloads,
        slot_us=found.timing.slot_us,
        sifs_us=found.timing.sifs_us,
        difs_us=found.timing.difs_us,
        p_c=found.p_c,
        t_cont_us=found.t_cont_us,
        t_jam_us=found.t_jam_us,
        t_col_us=found.t_col_us,
        sum_t_us=found.sum_t_us,
        u=found.u,
        t_us=found.t_us,
        collision_share=found.t_col_us * frames_per_us,
        contenders=tuple(
            _contender_terms(cell, one, count, frames_per_us)
            for one, count in Counter(found.contenders).items()
        ),
        bounds=_bounds(cell, found, x_tfrc_bps),
    )


def _contender_terms(cell: Cell, one: Contender, count: int, frames_per_us: float) -> ContenderTerms:
    """Return the terms of so many equal contenders and the share of time that the frames of each take."""
    if not one.is_greedy:
        # an access point that is not greedy sends only the frames that are part of U
        frames_per_us = (one.load_bps or 0.0) / cell.s_bits / US_PER_S
    return ContenderTerms(
        count=count,
        role=one.role,
        rate=one.rate.name,
        mbps=one.rate.mbps,
        is_greedy=one.is_greedy,
        load_bps=one.load_bps,
        content_us=one.content_us,
        t_ov_us=one.t_ov_us,
        t_us=one.t_us,
        time_share=one.t_us * frames_per_us,
    )


def _bounds(cell: Cell, found: Capacity, x_tfrc_bps: float | None) -> RateBounds:
    """Return the bounds of MTFRC in one layer, and with `x_tfrc_bps` what is sent and which of them it is."""
    layer = cell.bounds_count
    x_t_bps = found.x_t_bps if layer == "payload" else found.x_m_bps
    x_fair_bps = found.x_fair_bps
    if x_fair_bps is not None and layer == "payload":
        x_fair_bps *= cell.s_t_bits / cell.s_bits
    x_send_bps, bound = (None, None) if x_tfrc_bps is None else send_rate_bps(x_tfrc_bps, x_t_bps, x_fair_bps)
    return RateBounds(
        layer=layer,
        x_tfrc_bps=x_tfrc_bps,
        x_t_bps=x_t_bps,
        x_fair_bps=x_fair_bps,
        x_send_bps=x_send_bps,
        bound=bound,
    )
