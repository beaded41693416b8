"""Weighted sums of means: against R's numbers for the data of Student's paper on sleep (Biometrika, 1908)."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.statistics.contrasts import (
    clustered_contrast,
    contrast,
    paired_contrast,
    trend_weights,
)
from tfrctrace.metrics.statistics.significance import welch_test

FIRST = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SECOND = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
"""Hours of sleep that two drugs gave ten patients: R's data set `sleep`."""

runs = st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 3)), min_size=2, max_size=8)


def test_a_difference_of_two_groups_is_welch_s_test():
    # R: t.test(extra ~ group, data = sleep): t = -1.8608, df = 17.776, p-value = 0.07939
    found = contrast([FIRST, SECOND], [1.0, -1.0])
    assert found.estimate / found.error == pytest.approx(-1.8608, abs=5e-5)
    assert found.degrees == pytest.approx(17.776, abs=5e-4)
    assert 2 * found.p_below() == pytest.approx(0.07939, abs=5e-6)
    assert found.p_above() == pytest.approx(1 - 0.07939 / 2, abs=5e-6)


def test_of_runs_that_belong_together_it_is_the_paired_test():
    # R: t.test(sleep$extra[1:10], sleep$extra[11:20], paired = TRUE): t = -4.0621, df = 9, p-value = 0.002833
    found = paired_contrast(list(zip(FIRST, SECOND, strict=True)), [1.0, -1.0])
    assert found.estimate / found.error == pytest.approx(-4.0621, abs=5e-5)
    assert found.degrees == pytest.approx(9)
    assert 2 * found.p_below() == pytest.approx(0.002833, abs=5e-7)


def test_one_group_is_tested_against_a_number():
    # R: t.test(sleep$extra[11:20], mu = 0): t = 3.6799, df = 9, p-value = 0.005076
    found = contrast([SECOND], [1.0])
    assert found.estimate / found.error == pytest.approx(3.6799, abs=5e-5)
    assert 2 * found.p_above() == pytest.approx(0.005076, abs=5e-7)
    assert found.p_above(2.33) == pytest.approx(0.5)


def clustered(*groups):
    return [list(enumerate(group)) for group in groups]


FOUR = clustered(
    (25.1, 24.0, 27.3, 22.2, 26.0),
    (280.0, 291.0, 275.0, 288.0, 301.0),
    (94.0, 56.0, 93.0, 107.0, 81.0),
    (286.0, 283.0, 290.0, 284.0, 299.0),
)


@pytest.mark.parametrize(
    ("second", "mean", "error", "p_value"),
    [
        # statsmodels 0.15: OLS(y, 1).fit(cov_type="cluster", cov_kwds={"groups": patient}, use_t=True)
        (SECOND, 1.54, 0.5680277770985812, 0.023952942034306517),
        (SECOND[:8], 1.2666666666666662, 0.6108242249664152, 0.06795537300131674),
    ],
)
def test_values_of_one_cluster_do_not_repeat_each_other(second, mean, error, p_value):
    together = [pair for group in clustered(FIRST, second) for pair in group]
    found = clustered_contrast([together], [1.0])
    assert (found.estimate, found.error, found.degrees) == pytest.approx((mean, error, 9))
    assert 2 * found.p_above() == pytest.approx(p_value)


def test_ratios_of_ratios_are_compared_by_the_logarithms_of_means():
    # statsmodels 0.15: GLM(y, cells, family=Poisson()).fit(cov_type="cluster", use_correction=False), its
    # covariances times G/(G-1) for G = 5 clusters, 4 degrees of freedom
    found = clustered_contrast(FOUR, [1.0, -1.0, -1.0, 1.0], of_logs=True)
    assert found.estimate == pytest.approx(-1.2361332940992256)
    assert (found.error, found.degrees) == (pytest.approx(0.10773530058778563), 4)
    assert found.p_below() == pytest.approx(0.00016466959637514089)
    one = clustered_contrast(FOUR, [1.0, -1.0, 0.0, 0.0], of_logs=True)
    assert (one.estimate, one.error) == pytest.approx((-2.44381152184037, 0.04192714213618351))


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=8))
def test_clusters_of_one_value_each_are_the_paired_test(rows):
    found = clustered_contrast(clustered(*zip(*rows, strict=True)), [1.0, -1.0])
    expected = paired_contrast(rows, [1.0, -1.0])
    assert (found.estimate, found.degrees) == pytest.approx((expected.estimate, len(rows) - 1), abs=1e-6)
    assert found.error == pytest.approx(expected.error, rel=1e-6, abs=1e-6)


def test_without_two_clusters_or_a_logarithm_there_is_no_contrast():
    assert clustered_contrast([[("a", 1.0), ("a", 2.0)]], [1.0]) is None
    assert clustered_contrast([[(None, 1.0)]], [1.0]) is None
    assert clustered_contrast(clustered((0.0, 0.0), (1.0, 2.0)), [1.0, -1.0], of_logs=True) is None


@given(runs, runs)
def test_two_groups_have_the_degrees_and_p_value_of_the_test_of_two(a, b):
    found, expected = contrast([a, b], [1.0, -1.0]), welch_test(pl.Series(a), pl.Series(b))
    if expected is None:
        assert found.error == 0
        return
    assert found.degrees == pytest.approx(expected.degrees, rel=1e-9)
    assert 2 * min(found.p_above(), found.p_below()) == pytest.approx(expected.p_value, rel=1e-9, abs=1e-15)


def test_values_that_do_not_vary_decide_by_themselves():
    same = contrast([[2.0, 2.0], [1.0, 1.0]], [1.0, -1.0])
    assert (same.error, same.degrees, same.p_above(), same.p_below()) == (0, math.inf, 0, 1)


def test_of_one_run_nothing_is_told():
    assert contrast([[1.0], [2.0, 3.0]], [1.0, -1.0]) is None
    assert paired_contrast([(1.0, 2.0)], [1.0, -1.0]) is None


def test_weights_of_a_trend_are_ranks_around_zero():
    assert trend_weights(4) == [-1.5, -0.5, 0.5, 1.5]
