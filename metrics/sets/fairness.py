"""Fairness between flows: Jain's index, max-min, and the comparison of protocols.

Values are rates in any one unit, or bytes in one window; the results have no unit and do not change when all
values are multiplied, nor with their order: sums are exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tfrctrace.metrics.exact_sums import fractions, known_values, mean, ratio
from tfrctrace.metrics.windows import power_sums

if TYPE_CHECKING:
    import polars as pl


def jain_index(rates: pl.Series, demands: pl.Series | None = None) -> float | None:
    """Return (sum x)^2 / (n sum x^2), from 1/n (one has all) to 1 (R. Jain et al., DEC-TR-301, 1984).

    With `demands` x is a rate over what the flow asked for, or its weight. One flow alone has 1. None if
    there is no value, or all are 0.
    """
    values = fractions(rates if demands is None else rates / demands)
    squares = Fraction(sum(value * value for value in values))
    if not squares:
        return None
    total = Fraction(sum(values))
    return float(total * total / (len(values) * squares))


def max_min_ratio(rates: pl.Series) -> float | None:
    """Return the smallest over the largest rate, from 0 to 1 (equation 11 of Casoni and Merani).

    One flow alone has 1. None if there is no value or all are 0.
    """
    # numbers of one type are compared exactly as they are
    values = known_values(rates).to_list()
    largest = max(values, default=0)
    return float(Fraction(min(values)) / Fraction(largest)) if largest else None


def mean_rate(rates: pl.Series) -> float | None:
    """Return B_P, the mean rate over the flows of a protocol, in the unit of `rates` (their equation 9).

    Null rates are left out. None if none is left.
    """
    exact = mean(rates)
    return None if exact is None else float(exact)


def inter_protocol_normalized(own: pl.Series, others: pl.Series) -> float | None:
    """Return B_O / (B_O + B_P): 0.5 is ideal, above it the protocol P of `own` is conservative.

    B_P and B_O are the mean rates of P and of all other flows. This is what equation 10 of Casoni and Merani
    must mean, as they call 0.5 ideal. None if there is no flow of P or no other, or all have 0.
    """
    of_p, of_others = mean(own), mean(others)
    if of_p is None or of_others is None or not of_p + of_others:
        return None
    return float(of_others / (of_others + of_p))


def times_others(normalized: float | None) -> float | None:
    """Return B_P / B_O, how many times the others' rate P has, of `inter_protocol_normalized`.

    None if that is null, or the others have nothing.
    """
    return None if not normalized else (1.0 - normalized) / normalized


def inter_protocol_ratio(own: pl.Series, others: pl.Series) -> float | None:
    """Return B_O / B_P, equation 10 as printed: 1 is ideal, above it the protocol P of `own` is conservative.

    None if there is no flow of P or no other, or B_P is 0 (or so small that no float holds the ratio).
    """
    of_p, of_others = mean(own), mean(others)
    return None if of_p is None or of_others is None else ratio(of_others, of_p)


def jain_over_time(windowed: pl.DataFrame, flows: int) -> pl.DataFrame:
    """Return Jain's index of `flows` flows in each window, as `window` and `jain`.

    A flow without bytes in a window counts as 0; windows in which all are 0 have no row.
    """
    import polars as pl

    sums = power_sums(windowed, "window")
    square = (pl.col("sum") * pl.col("sum")).cast(pl.Float64)
    return sums.select("window", (square / (flows * pl.col("squares")).cast(pl.Float64)).alias("jain"))
