"""The capacity over the number of stations, for several mixes of rates."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.results.capacity import CapacitySweep, MixCurve, SweepPoint
from tfrctrace.wlan.capacity import capacity
from tfrctrace.wlan.population import MAX_STATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.wlan.cell import Cell
    from tfrctrace.wlan.population import Description

_COUNTS: Final = re.compile(r"([0-9]{1,4}):([0-9]{1,4})(?::([0-9]{1,4}))?", re.ASCII)
_FILLING: Final = "Nx"
_HINT: Final = "write the rates of all stations, `Nx` before that of the many: `Nx11`, or `5.5,Nx11`"


@dataclass(frozen=True, slots=True)
class Mix:
    """Stations of given rates, and as many at another rate as make up the number."""

    text: str
    fixed: tuple[str, ...]
    filling: str
    """Rate of the others."""

    def stations(self, count: int) -> tuple[str, ...]:
        """Return `count` stations, as options name them."""
        others = count - len(self.fixed)
        if others < 0:
            raise UsageError(
                f"`--mix {self.text}` has {len(self.fixed)} stations, and the sweep begins at {count}"
            )
        return (*self.fixed, *([f"{others}x{self.filling}"] if others else []))


def parse_counts(text: str) -> range:
    """Return the numbers of stations of `4:30` or `4:30:2`. Raises `UsageError` for others."""
    match = _COUNTS.fullmatch(text)
    first, last, step = (int(match[i] or 1) for i in (1, 2, 3)) if match else (0, 0, 0)
    if not 1 <= first <= last <= MAX_STATIONS or step < 1:
        raise UsageError(
            f"`{text}` is not a range of stations",
            hint=f"write the first and the last number, from 1 to {MAX_STATIONS}: `4:30`, or `4:30:2`",
        )
    return range(first, last + 1, step)


def parse_mix(text: str) -> Mix:
    """Return the stations of `5.5,Nx11`. Raises `UsageError` for others."""
    rates = [rate.strip() for rate in text.split(",")]
    filling = [rate.removeprefix(_FILLING) for rate in rates if rate.startswith(_FILLING)]
    fixed = tuple(rate for rate in rates if not rate.startswith(_FILLING))
    if len(filling) != 1 or any("x" in rate for rate in fixed):
        raise UsageError(f"`{text}` is not a mix of stations", hint=_HINT)
    return Mix(text, fixed, filling[0])


def sweep_terms(
    cell: Cell, described: Description, counts: Sequence[int], mixes: Sequence[Mix]
) -> CapacitySweep:
    """Return the rates of each mix over the numbers of stations; `described` has the access point."""
    return CapacitySweep(
        stations=tuple(counts),
        mixes=tuple(
            MixCurve(mix.text, tuple(_point(cell, described, mix, count) for count in counts))
            for mix in mixes
        ),
    )


def _point(cell: Cell, described: Description, mix: Mix, count: int) -> SweepPoint:
    population = replace(described, stations=mix.stations(count)).population(cell.phy)
    found = capacity(cell, population)
    if not found.is_feasible:
        raise UsageError(
            f"the access point's own frames take {found.u:.4g} of the time, which leaves none (U >= 1)",
            hint="use fewer, shorter or faster frames",
        )
    return SweepPoint(
        stations=count,
        x_m_bps=found.x_m_bps,
        x_t_bps=found.x_t_bps,
        x_fair_bps=found.x_fair_bps,
        n_contenders=len(found.contenders),
        p_c=found.p_c,
        t_us=found.t_us,
    )
