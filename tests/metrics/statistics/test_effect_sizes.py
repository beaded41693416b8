"""How large differences are: against the numbers of scipy and statsmodels, and what theory says of them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfrctrace.metrics.statistics.effect_sizes import difference_interval, epsilon_squared, hedges_g
from tfrctrace.metrics.statistics.significance import kruskal_wallis, welch_test

WITNESS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "statistics.json").read_text())[
    "effects"
]

runs = st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=2, max_size=12)


def series(values):
    return pl.Series(values, dtype=pl.Float64)


@pytest.mark.parametrize("entry", WITNESS, ids=str)
def test_intervals_of_a_difference_are_scipy_s_and_effects_those_of_statsmodels(entry):
    a, b = series(entry["a"]), series(entry["b"])
    expected = (entry["low"], entry["high"])
    assert difference_interval(a, b, level=entry["level"]) == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert hedges_g(a, b) == pytest.approx(entry["g"], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [([1], [2, 3]), ([], [1, 2]), ([1, 1], [2, 2]), ([None, 1], [1, 2])])
def test_what_so_few_or_equal_values_cannot_show_is_null(a, b):
    assert difference_interval(series(a), series(b)) is None
    assert hedges_g(series(a), series(b)) is None


def test_groups_that_do_not_overlap_explain_most_of_the_ranks():
    apart = [series([1, 2, 3]), series([11, 12, 13]), series([21, 22, 23])]
    mixed = [series([1, 22, 13]), series([11, 2, 23]), series([21, 12, 3])]
    assert epsilon_squared(kruskal_wallis(apart).statistic, apart) == pytest.approx(0.9)
    assert epsilon_squared(kruskal_wallis(mixed).statistic, mixed) == pytest.approx(0)


@given(runs, runs)
def test_exchanging_groups_turns_the_sign_only(a, b):
    there, back = hedges_g(series(a), series(b)), hedges_g(series(b), series(a))
    assert (there is None) == (back is None)
    if there is not None:
        assert back == pytest.approx(-there)


@given(runs, runs)
def test_an_interval_leaves_out_0_exactly_if_the_test_says_so(a, b):
    test, interval = welch_test(series(a), series(b)), difference_interval(series(a), series(b))
    assert (test is None) == (interval is None)
    if test is not None:
        assume(abs(test.p_value - 0.05) > 1e-6)
        low, high = interval
        assert (test.p_value < 0.05) == (not low <= 0 <= high)


@given(runs, runs, st.floats(0.001, 1000))
def test_effects_do_not_depend_on_the_unit(a, b, factor):
    one = hedges_g(series(a), series(b))
    other = hedges_g(series(a) * factor, series(b) * factor)
    if one is not None and other is not None:
        assert other == pytest.approx(one, rel=1e-6, abs=1e-6)
