"""Harm as Ware et al. (HotNets 2019) define it, and the interval of a ratio by what it covers."""

from __future__ import annotations

import random

import polars as pl
import pytest

from tfrctrace.metrics.statistics.harm import harm, ratio_interval
from tfrctrace.metrics.statistics.significance import benjamini_hochberg, holm, welch_test

HEART_ATTACKS = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
    0.7590, 1.000,
)  # fmt: skip
"""p values of the example of Benjamini and Hochberg (1995), section 4."""


def test_harm_is_the_part_that_is_lost():
    # section 4: of 10 Mbit/s alone 4 are left, and a delay of 20 ms becomes 80 ms
    assert harm([10, 10], [4, 4], more_is_better=True).value == pytest.approx(0.6)
    assert harm([20, 20], [80, 80], more_is_better=False).value == pytest.approx(0.75)
    assert harm([10], [10], more_is_better=True).value == 0
    assert harm([10], [12], more_is_better=True).value == pytest.approx(-0.2)


def test_harm_of_runs_has_an_interval_and_of_one_run_none():
    found = harm([10.1, 9.9, 10.0], [4.2, 3.9, 4.1], more_is_better=True)
    assert found.low < found.value < found.high
    one = harm([10.0], [4.0], more_is_better=True)
    assert (one.low, one.high) == (None, None)
    same = harm([10, 10], [4, 4], more_is_better=True)
    assert same.low == same.high == pytest.approx(0.6)


def test_what_divides_by_nothing_is_unknown():
    assert harm([], [1.0], more_is_better=True) is None
    assert harm([0.0, 0.0], [1.0, 1.0], more_is_better=True) is None
    assert ratio_interval([1.0, 2.0], [-1.0, 1.5]) == (None, None)


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says():
    dice = random.Random(1)
    covered = 0
    for _ in range(400):
        top = [dice.gauss(3, 0.6) for _ in range(4)]
        bottom = [dice.gauss(2, 0.2) for _ in range(4)]
        low, high = ratio_interval(top, bottom)
        covered += low is not None and low <= 1.5 <= high
    # 95 %, with four standard errors of 400 draws
    assert covered / 400 == pytest.approx(0.95, abs=0.045)


def test_a_bound_of_the_interval_is_where_welch_s_test_begins_to_differ():
    top, bottom = [3.1, 2.7, 3.4, 3.0], [2.0, 2.2, 1.9, 2.1]
    low, high = ratio_interval(top, bottom)
    for bound in (low, high):
        found = welch_test(pl.Series(top), pl.Series([bound * one for one in bottom]))
        # the degrees of freedom are those at the ratio itself
        assert found.p_value == pytest.approx(0.05, abs=0.01)


def test_the_example_of_benjamini_and_hochberg_rejects_four_at_5_percent():
    # "controlling the FDR at 0.05 ... we reject the four hypotheses"; Bonferroni's method rejects three
    assert [p <= 0.05 for p in benjamini_hochberg(HEART_ATTACKS)].count(True) == 4
    assert [p <= 0.05 for p in holm(HEART_ATTACKS)].count(True) == 3


def test_corrected_p_values_keep_their_order_and_places():
    assert benjamini_hochberg([0.02, 0.01, 0.5]) == pytest.approx([0.03, 0.03, 0.5])
    assert benjamini_hochberg([]) == []
