"""Contention of 802.11 stations: waiting times and durations of collisions in µs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JamMode = Literal["heusse2", "pairwise", "mean"]
"""How the mean duration of a collision is computed from those of the frames; [Z] does not specify it."""


def collision_probability(contenders: int, cw_min: int) -> float:
    """Return P_c(N_c) = 1 - (1 - 1/CWmin)^(N_c - 1): that another station draws the same slot ([H])."""
    return 1 - (1 - 1 / cw_min) ** (contenders - 1)


def contention_time_us(contenders: int, cw_min: int, slot_us: float) -> float:
    """Return t_cont(N_c) = SLOT (1 + P_c) / (2 N_c) CWmin / 2: idle slots for each frame ([H]), in µs."""
    p_c = collision_probability(contenders, cw_min)
    return slot_us * (1 + p_c) / (2 * contenders) * cw_min / 2


def jam_time_us(times_us: Sequence[float], mode: JamMode) -> float:
    """Return t_jam, the average time of a collision in µs, from T_i in µs of all contenders (at least one).

    `heusse2`: (2/N_c) T_slowest + (1 - 2/N_c) T_next, T_next being the largest that is smaller, as [H] has it
    for one slow station. `pairwise`: mean of max(T_i, T_j) over all pairs. `mean`: mean of T_i. One contender
    has no collision; its own time stands for t_jam, and P_c = 0.
    """
    return _JAM_TIMES[mode](sorted(times_us, reverse=True))


def _heusse2(descending_us: list[float]) -> float:
    slowest = descending_us[0]
    following = next((time for time in descending_us if time < slowest), slowest)
    # of one contender there is no second half
    share = min(2 / len(descending_us), 1.0)
    return share * slowest + (1 - share) * following


def _pairwise(descending_us: list[float]) -> float:
    number = len(descending_us)
    if number == 1:
        return descending_us[0]
    # in descending order the i-th is the larger one of n - i pairs
    larger = math.fsum(time * (number - rank) for rank, time in enumerate(descending_us, start=1))
    return larger / math.comb(number, 2)


def _mean(descending_us: list[float]) -> float:
    return math.fsum(descending_us) / len(descending_us)


_JAM_TIMES: Mapping[JamMode, Callable[[list[float]], float]] = {
    "heusse2": _heusse2,
    "pairwise": _pairwise,
    "mean": _mean,
}
