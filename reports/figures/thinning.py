"""Fewer points for a curve without losing a peak: of each stretch the smallest and the largest stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.reports.elements import Curve

_Value = TypeVar("_Value")

_KEPT_OF_STRETCH: Final = 4
"""Lowest and highest value (or edge of the band), a break, and the first point."""


def thinned(curve: Curve, most: int) -> Curve:
    """Return `curve` with at most `most` points, and as many as have a ring.

    The lowest and the highest of each stretch of points stay where they are, so no spike disappears. Its
    first break, the last point and every ring stay too.
    """
    if len(curve.x) <= most:
        return curve
    kept = sorted({*_kept(curve, most), *curve.marked})
    place = {index: number for number, index in enumerate(kept)}
    return replace(
        curve,
        x=_at(curve.x, kept),
        values=_at(curve.values, kept),
        low=_at(curve.low, kept) if curve.low else (),
        high=_at(curve.high, kept) if curve.high else (),
        marked=tuple(place[index] for index in curve.marked),
    )


def _kept(curve: Curve, most: int) -> Iterator[int]:
    """Give the indices of what stays of each stretch of points; the stretches have equal numbers of them."""
    count = len(curve.x)
    stretches = max((most - 1) // _KEPT_OF_STRETCH, 1)
    for stretch in range(stretches):
        indices = range(stretch * count // stretches, (stretch + 1) * count // stretches)
        yield from indices[:1]
        breaks = (index for index in indices if curve.values[index] is None)
        yield from islice(breaks, 1)
        for pick, edges in ((min, curve.low or curve.values), (max, curve.high or curve.values)):
            # edges that rounding has made equal may have values that differ: the value decides then
            known = [
                (edge, value, index)
                for index in indices
                if (edge := edges[index]) is not None and (value := curve.values[index]) is not None
            ]
            if known:
                yield pick(known)[-1]
    yield count - 1


def _at(column: Sequence[_Value], indices: Sequence[int]) -> tuple[_Value, ...]:
    return tuple(column[index] for index in indices)
