"""Where a series of repeated measurements changes its mean.

Student's t test compares each part of a segment with the rest of it: those up to a place, and those between
two places, since a mean that goes and comes back divides nothing by one cut (circular binary segmentation,
Olshen et al., Biostatistics 5, 2004). The largest t of each kind counts if its p, corrected for how many
parts were looked at (Bonferroni), is below `significance`; the segments that it makes are looked at in turn.

A part has at least three values. Where a change has fewer after it yet, the best place would take values
from before it, which are not like the others: such a place does not count, and the change waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

LEAST: Final = 3
"""Values on each side of a change, so that a single outlier is none."""

_ROUNDING: Final = 1e-12
"""Share of the squares within parts below which each part is constant."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The mean changes with the value at `index`."""

    index: int
    before: float
    """Mean from the change before, or from the start."""
    after: float
    """Mean up to the next change, or to the end."""
    p_value: float
    """Corrected for the places that were looked at; 0 where neither side varies."""


def change_points(values: Sequence[float], *, significance: float = 0.01) -> list[ChangePoint]:
    """Return where the mean of `values` changes, in order."""
    found = sorted(_divided(values, 0, len(values), significance))
    bounds = [0, *(index for index, _ in found), len(values)]
    means = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(bounds) if b > a]
    return [
        ChangePoint(index, before, after, p_value)
        for (index, p_value), before, after in zip(found, means, means[1:], strict=False)
    ]


def _divided(
    values: Sequence[float], start: int, end: int, significance: float
) -> Iterator[tuple[int, float]]:
    """Give the indices that divide `values[start:end]`, each with its p value, in any order."""
    pending = [(start, end)]
    while pending:
        start, end = pending.pop()
        p_value, cuts = _best_cuts(values[start:end])
        if p_value < significance:
            bounds = [start, *(start + cut for cut in cuts), end]
            yield from ((bound, p_value) for bound in bounds[1:-1])
            pending += pairwise(bounds)


@dataclass(frozen=True, slots=True)
class _Cuts:
    """The best way to divide a segment, of several that were looked at."""

    between: float
    """Sum of squares between the part and the rest."""
    places: tuple[int, ...]
    looked_at: int


def _best_cuts(values: Sequence[float]) -> tuple[float, tuple[int, ...]]:
    """Return the corrected p value of the best division of a segment, and its places."""
    import numpy as np

    count = len(values)
    if count < 2 * LEAST:
        return 1.0, ()
    centred = np.array(values) - math.fsum(values) / count
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    found = [_best_part(sums, 0)]
    if count >= 3 * LEAST:
        found.append(_two_cuts(sums))
    kinds = [one for one in found if one.places]
    squares = float(centred @ centred)
    return min(
        (
            (min(_p_value(kind.between, squares, count) * kind.looked_at * len(found), 1.0), kind.places)
            for kind in kinds
        ),
        default=(1.0, ()),
    )


def _two_cuts(sums: NDArray[np.float64]) -> _Cuts:
    """Return the best division into a middle, and what is before and after it."""
    count = len(sums) - 1
    found = [_best_part(sums, first) for first in range(LEAST, count - 2 * LEAST + 1)]
    best = max(found, key=lambda one: one.between)
    return _Cuts(best.between, best.places, sum(one.looked_at for one in found))


def _best_part(sums: NDArray[np.float64], first: int) -> _Cuts:
    """Return the best end of a part that begins at `first`, of parts and rests that are long enough."""
    import numpy as np

    count = len(sums) - 1
    ends = np.arange(first + LEAST, count - LEAST + 1)
    sizes = ends - first
    between = (sums[ends] - sums[first]) ** 2 * count / (sizes * (count - sizes))
    while True:
        best = int(between.argmax())
        end = int(ends[best])
        places = (first, end) if first else (end,)
        if between[best] < 0:
            return _Cuts(0.0, (), len(ends))
        if not _borrows(sums, places):
            return _Cuts(float(between[best]), places, len(ends))
        between[best] = -1.0


def _borrows(sums: NDArray[np.float64], places: tuple[int, ...]) -> bool:
    """Return whether a short part has a value at a cut that is nearer to the mean of the part beside it."""
    bounds = (0, *places, len(sums) - 1)
    parts = list(pairwise(bounds))
    for (start, cut), (_, end) in pairwise(parts):
        for part, other, at in (((cut, end), (start, cut), cut), ((start, cut), (cut, end), cut - 1)):
            length = part[1] - part[0]
            if length >= 2 * LEAST:
                continue  # the best place has its values where they belong
            value = sums[at + 1] - sums[at]
            own = (sums[part[1]] - sums[part[0]] - value) / (length - 1)
            beside = (sums[other[1]] - sums[other[0]]) / (other[1] - other[0])
            if abs(value - beside) < abs(value - own):
                return True
    return False


def _p_value(between: float, squares: float, count: int) -> float:
    """Return the p value of a sum of squares between two parts, of `squares` of all values."""
    from tfrctrace.metrics.statistics.distributions import t_tail

    within = squares - between
    if within <= _ROUNDING * squares:
        return 0.0 if squares else 1.0
    return t_tail(math.sqrt(between * (count - 2) / within), count - 2)
