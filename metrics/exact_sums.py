"""Sums that do not depend on order: numbers as the exact fractions that they are, divided once at the end."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl


def known_values(values: pl.Series) -> pl.Series:
    """Return the values that are not null. Raises `ValueError` for NaN, infinities and negatives."""
    known = values.drop_nulls()
    for value in known.filter(~(known.is_finite() & (known >= 0))):
        raise ValueError(f"a rate or count cannot be {value}")
    return known


def fractions(values: pl.Series) -> list[Fraction] | list[int]:
    """Return the values that are not null, exactly. Raises `ValueError` for NaN, infinities and negatives."""
    known = known_values(values)
    # whole numbers add up much faster
    return known.to_list() if known.dtype.is_integer() else [Fraction(value) for value in known]


def mean(values: pl.Series) -> Fraction | None:
    """Return the exact mean; None if there is no value."""
    exact = fractions(values)
    return exact_sum(exact) / len(exact) if exact else None


def exact_sum(values: Sequence[Fraction] | Sequence[int]) -> Fraction:
    """Return the exact sum: whole numbers over one denominator add up much faster than fractions."""
    common = math.lcm(*{value.denominator for value in values})
    return Fraction(sum(value.numerator * (common // value.denominator) for value in values), common)


def ratio(over: Fraction, under: Fraction) -> float | None:
    """Return `over` divided by `under`; None if that is no number, or larger than any that a float holds."""
    try:
        return float(over / under)
    except (ZeroDivisionError, OverflowError):
        return None


def nearest_rank(values: Iterable[float], share: float) -> float | None:
    """Return the percentile by nearest rank, the ceil(q n)-th smallest value; None if there is none."""
    ordered = sorted(values)
    if not ordered:
        return None
    # 0.95 x 20 is 19 and not the next float above it
    rank = math.ceil(Fraction(str(share)) * len(ordered))
    return float(ordered[max(rank, 1) - 1])
