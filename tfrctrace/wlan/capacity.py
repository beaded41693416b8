"""The capacity of one 802.11 network: X_m, X_t and X_fair with every term of the model. Times are µs.

Equation 4 of [Z] is implicit (a sparing station sends X_j/X_m frames for each one of a greedy station)
but linear in X_m. Multiplied by X_m = S/T it becomes X_m = (1 - U) S / (sum of T_i + T_col), where U is the
share of time that sparing stations and the access point's own frames take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.wlan.contention import collision_probability, contention_time_us, jam_time_us
from tfrctrace.wlan.mtfrc import fair_rate_bps

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.phy import Timing
    from tfrctrace.wlan.population import Frames, Population
    from tfrctrace.wlan.rates import Rate

Role = Literal["station", "access point"]

US_PER_S: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One contender with its own terms; times in µs."""

    role: Role
    rate: Rate
    content_us: float
    """S/r: the symbols of a full frame."""
    t_ov_us: float
    t_us: float
    """T_i = S/r + T_ov + t_cont."""
    is_greedy: bool
    load_bps: float | None = None
    """X_j in bit/s of a sparing station, even if it is counted as greedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Capacity of each greedy contender with every term of the model; rates in bit/s, times in µs."""

    contenders: tuple[Contender, ...]
    timing: Timing
    p_c: float
    t_cont_us: float
    t_jam_us: float
    t_col_us: float
    sum_t_us: float
    """Sum of T_i over greedy contenders."""
    u: float
    """U: share of time not available to greedy contenders."""
    x_m_bps: float
    """X_m = S/T of each greedy contender; 0 if U >= 1."""
    x_t_bps: float
    """X_t = S_t/T."""
    downloads: int

    @property
    def is_feasible(self) -> bool:
        """Whether U < 1, so that greedy contenders get anything."""
        return self.u < 1

    @property
    def t_us(self) -> float | None:
        """T in µs, the time in which each greedy contender sends one frame; None if it never does."""
        return (self.sum_t_us + self.t_col_us) / (1 - self.u) if self.is_feasible else None

    @property
    def uploads(self) -> int:
        """Greedy stations, the access point not counted."""
        return sum(contender.is_greedy and contender.role == "station" for contender in self.contenders)

    @property
    def x_fair_bps(self) -> float | None:
        """X_fair in bit/s of whole frames; None without downloads."""
        return fair_rate_bps(self.x_m_bps, self.uploads, self.downloads)


def capacity(cell: Cell, population: Population) -> Capacity:
    """Return the capacity of each greedy contender. Raises `UsageError` if there is none.

    A sparing station that offers at least X_m counts as greedy, the largest load first, so each gets the
    smaller of its load and X_m.
    """
    timing = cell.phy.timing(population.rates)
    number = len(population.rates)
    if not population.has_greedy:
        raise UsageError(
            "no station always has a frame to send", hint="X_m is the rate of such a station: add one"
        )
    t_cont_us = contention_time_us(number, cell.cw_min, timing.slot_us)
    p_c = collision_probability(number, cell.cw_min)
    contenders = _contenders(cell, population, timing, t_cont_us)
    not_in_jam_us = 0.0 if cell.jam_backoff else t_cont_us
    t_jam_us = jam_time_us([contender.t_us - not_in_jam_us for contender in contenders], cell.jam)
    t_col_us = p_c * t_jam_us * number
    access_point = population.access_point
    frames_u = _share_of_frames(cell, timing, access_point.frames if access_point else (), t_cont_us)
    contenders, u, sum_t_us = _shared(contenders, cell.s_bits, t_col_us, frames_u)
    left = max(1 - u, 0.0) * US_PER_S / (sum_t_us + t_col_us)
    return Capacity(
        contenders=contenders,
        timing=timing,
        p_c=p_c,
        t_cont_us=t_cont_us,
        t_jam_us=t_jam_us,
        t_col_us=t_col_us,
        sum_t_us=sum_t_us,
        u=u,
        x_m_bps=cell.s_bits * left,
        x_t_bps=cell.s_t_bits * left,
        downloads=access_point.downloads if access_point else 0,
    )


def _contenders(
    cell: Cell, population: Population, timing: Timing, t_cont_us: float
) -> tuple[Contender, ...]:
    def contender(role: Role, rate: Rate, *, is_greedy: bool, load_bps: float | None = None) -> Contender:
        content_us, t_ov_us = rate.symbols_us(cell.s_bits), cell.overhead_us(rate, timing)
        return Contender(
            role=role,
            rate=rate,
            content_us=content_us,
            t_ov_us=t_ov_us,
            t_us=content_us + t_ov_us + t_cont_us,
            is_greedy=is_greedy,
            load_bps=load_bps,
        )

    stations = [contender("station", rate, is_greedy=True) for rate in population.greedy]
    stations += [
        contender("station", one.rate, is_greedy=False, load_bps=one.load_bps) for one in population.sparing
    ]
    if population.access_point:
        access_point = population.access_point
        stations.append(contender("access point", access_point.rate, is_greedy=access_point.is_greedy))
    return tuple(stations)


def _share_of_frames(cell: Cell, timing: Timing, frames: Iterable[Frames], t_cont_us: float) -> float:
    """Return the share of time (lambda T) of the other frames of the access point."""
    return math.fsum(
        frame.frames_per_s
        * (frame.rate.symbols_us(frame.bits) + cell.overhead_us(frame.rate, timing) + t_cont_us)
        / US_PER_S
        for frame in frames
    )


def _shared(
    contenders: Sequence[Contender], s_bits: int, t_col_us: float, frames_u: float
) -> tuple[tuple[Contender, ...], float, float]:
    """Return the contenders (greedy if they offer at least X_m), U, and the sum of T_i in µs."""
    decided = list(contenders)
    waiting = sorted(
        (one.load_bps, place) for place, one in enumerate(contenders) if one.load_bps is not None
    )
    while True:
        u = frames_u + math.fsum(load / s_bits * decided[place].t_us / US_PER_S for load, place in waiting)
        sum_t_us = math.fsum(one.t_us for one in decided if one.is_greedy)
        x_m_bps = max(1 - u, 0.0) * s_bits / (sum_t_us + t_col_us) * US_PER_S
        if not waiting or waiting[-1][0] < x_m_bps:
            return tuple(decided), u, sum_t_us
        _, largest = waiting.pop()
        decided[largest] = replace(decided[largest], is_greedy=True)
