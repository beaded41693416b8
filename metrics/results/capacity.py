"""The capacity of an 802.11 network with every term of the model; docs/capacity.md explains the names.

Times are in µs, rates in bit/s, shares from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SweptRate = Literal["x_t", "x_m", "x_fair"]
"""The rate of a point that is printed and drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTerms:
    """The constants of a network that do not depend on its stations; sizes in bits, rates in Mb/s."""

    preset: str
    phy: str
    band_ghz: float
    preamble: str
    width_mhz: int
    short_gi: bool
    s_t_bits: int
    s_bits: int
    cw_min: int
    ack_mbps: float | None
    basic_mbps: tuple[float, ...] | None
    """None if all ACKs have one rate."""
    cts_mbps: float | None
    jam: str
    jam_backoff: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderTerms:
    """The terms of contenders that are alike, and the share of time that the frames of each take."""

    count: int
    role: str
    rate: str
    mbps: float
    is_greedy: bool
    load_bps: float | None
    content_us: float
    t_ov_us: float
    t_us: float
    time_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBounds:
    """The bounds of MTFRC in one layer, and with TFRC's rate what is sent and which of them it is."""

    layer: str
    x_tfrc_bps: float | None
    x_t_bps: float
    x_fair_bps: float | None
    x_send_bps: float | None
    bound: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTerms:
    """Every term of the model."""

    x_m_bps: float
    x_t_bps: float
    x_fair_bps: float | None
    n_contenders: int
    uploads: int
    downloads: int
    slot_us: float
    sifs_us: float
    difs_us: float
    p_c: float
    t_cont_us: float
    t_jam_us: float
    t_col_us: float
    sum_t_us: float
    u: float
    t_us: float | None
    collision_share: float
    contenders: tuple[ContenderTerms, ...]
    bounds: RateBounds


@dataclass(frozen=True, slots=True)
class CapacityStep:
    """The terms while the stations stay the same."""

    from_s: float
    until_s: float | None
    terms: CapacityTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """The terms with so many stations."""

    stations: int
    x_m_bps: float
    x_t_bps: float
    x_fair_bps: float | None
    n_contenders: int
    p_c: float
    t_us: float | None

    def bps(self, rate: SweptRate) -> float | None:
        """Return one of the rates."""
        return {"x_t": self.x_t_bps, "x_m": self.x_m_bps, "x_fair": self.x_fair_bps}[rate]


@dataclass(frozen=True, slots=True)
class MixCurve:
    """The terms of a mix of rates over the number of stations."""

    mix: str
    """As it was written."""
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True, slots=True)
class CapacitySweep:
    """The terms of several mixes over the number of stations."""

    stations: tuple[int, ...]
    mixes: tuple[MixCurve, ...]
