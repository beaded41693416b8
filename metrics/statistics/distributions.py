"""Tails and quantiles of Student's t, chi-squared and the binomial distribution.

The incomplete beta and gamma functions are summed as continued fractions (modified Lentz) and series, as in
M. Abramowitz and I. Stegun, 26.5.8, 6.5.29 and 6.5.31; relative errors are below 1e-12.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION: Final = 1e-16
_TINY: Final = 1e-300
_MOST_TERMS: Final = 100_000


def t_tail(t: float, degrees: float) -> float:
    """Return P(|T| > |t|) of Student's t with `degrees` (> 0) of freedom."""
    x = degrees / (degrees + t * t)
    return _incomplete_beta(x, degrees / 2, 0.5)


@lru_cache(maxsize=1024)  # a search; every cell of a study needs the same few
def t_quantile(share: float, degrees: float) -> float:
    """Return t with P(T <= t) = `share`, which is between 0.5 and 1."""
    tail = 2 * (1 - share)
    high = 1.0
    while t_tail(high, degrees) > tail:
        high *= 2
    return _root(lambda t: t_tail(t, degrees) - tail, 0.0, high)


def chi_squared_tail(x: float, degrees: int) -> float:
    """Return P(X > x) of chi-squared with `degrees` (> 0) of freedom."""
    return _upper_incomplete_gamma(degrees / 2, x / 2)


def binomial_tail(count: float, trials: float, share: float) -> float:
    """Return P(X >= `count`) of so many trials (A. and S., 26.5.24); neither has to be an integer.

    More than all is taken for all: a ratio of two counts may exceed 1.
    """
    count = min(count, trials)
    return _incomplete_beta(share, count, trials - count + 1) if count > 0 else 1.0


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function crosses 0 between `low` and `high`, by bisection."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if function(middle) > 0:
            low = middle
        else:
            high = middle


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly, its mirror does not
        return 1 - _incomplete_beta(1 - x, b, a)
    logarithm = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    logarithm += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def term(n: int) -> float:
        if n == 1:
            return 1.0
        m = (n - 1) // 2
        if n % 2:
            return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))

    return math.exp(logarithm) * _continued_fraction(term, lambda _: 1.0)


def _upper_incomplete_gamma(a: float, x: float) -> float:
    """Return the regularised Q(a, x)."""
    if x <= 0:
        return 1.0
    factor = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x >= a + 1:
        return factor * _continued_fraction(
            lambda n: 1.0 if n == 1 else -(n - 1) * (n - 1 - a), lambda n: x + 2 * n - 1 - a
        )
    part = total = 1 / a
    for n in range(1, _MOST_TERMS):
        part *= x / (a + n)
        total += part
        if part < total * _PRECISION:
            break
    return 1 - factor * total


def _continued_fraction(numerator: Callable[[int], float], denominator: Callable[[int], float]) -> float:
    """Return a1/(b1 + a2/(b2 + ...)) with a_n and b_n of the two functions."""
    value, c, d = _TINY, _TINY, 0.0
    for n in range(1, _MOST_TERMS):
        d = 1 / (denominator(n) + numerator(n) * d or _TINY)
        c = denominator(n) + numerator(n) / c or _TINY
        value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value
