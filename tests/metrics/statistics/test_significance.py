"""Intervals and tests against scipy's numbers, which stand in a file, and the vectors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.statistics.distributions import binomial_tail, chi_squared_tail, t_quantile, t_tail
from tfrctrace.metrics.statistics.significance import (
    bootstrap_interval,
    holm,
    kruskal_wallis,
    mean_interval,
    welch_test,
)

FOLDER = Path(__file__).parents[2] / "data" / "vectors"
VECTORS = json.loads((FOLDER / "metrics.json").read_text())
SCIPY = json.loads((FOLDER / "statistics.json").read_text())

runs = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=15)


def close(expected):
    return pytest.approx(expected, rel=1e-10, abs=1e-300)


def series(values):
    return pl.Series(values, dtype=pl.Float64)


@pytest.mark.parametrize(
    ("count", "trials", "share"), [(1, 5, 0.1), (3, 40, 0.01), (20, 484, 0.002), (7, 7, 0.3)]
)
def test_the_tail_of_a_binomial_distribution_is_the_sum_of_its_terms(count, trials, share):
    terms = (
        math.comb(trials, one) * share**one * (1 - share) ** (trials - one)
        for one in range(count, trials + 1)
    )
    assert binomial_tail(count, trials, share) == pytest.approx(sum(terms), rel=1e-9)
    assert binomial_tail(0, trials, share) == 1
    # a ratio of two counts may exceed 1
    assert binomial_tail(trials + 2, trials, share) == pytest.approx(share**trials)


@pytest.mark.parametrize("entry", SCIPY["t_tail"], ids=str)
def test_tails_of_t_are_scipy_s(entry):
    assert t_tail(entry["t"], entry["degrees"]) == close(entry["p"])


@pytest.mark.parametrize("entry", SCIPY["t_quantile"], ids=str)
def test_quantiles_of_t_are_scipy_s(entry):
    assert t_quantile(entry["share"], entry["degrees"]) == pytest.approx(entry["t"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("entry", SCIPY["chi_squared_tail"], ids=str)
def test_tails_of_chi_squared_are_scipy_s(entry):
    assert chi_squared_tail(entry["x"], entry["degrees"]) == close(entry["p"])


@pytest.mark.parametrize("entry", SCIPY["welch"], ids=str)
def test_welch_s_test_is_scipy_s(entry):
    found = welch_test(series(entry["a"]), series(entry["b"]))
    assert (found.statistic, found.degrees) == close((entry["t"], entry["degrees"]))
    assert found.p_value == pytest.approx(entry["p"], rel=1e-9)


@pytest.mark.parametrize("entry", SCIPY["kruskal"], ids=str)
def test_kruskal_and_wallis_with_ties_are_scipy_s(entry):
    found = kruskal_wallis([series(group) for group in entry["groups"]])
    assert (found.statistic, found.p_value) == pytest.approx((entry["H"], entry["p"]), rel=1e-9)
    assert found.degrees == entry["degrees"]


@pytest.mark.parametrize("entry", SCIPY["holm"], ids=str)
def test_holm_corrects_by_rank(entry):
    assert holm(entry["p"]) == pytest.approx(entry["corrected"])


@pytest.mark.parametrize("entry", VECTORS["confidence_interval"], ids=lambda entry: entry["id"])
def test_student_s_interval_agrees_with_the_vectors(entry):
    found = mean_interval(series(entry["x"]))
    assert (found.n, found.mean) == (entry["n"], pytest.approx(entry["mean"], rel=1e-9))
    assert found.std == pytest.approx(entry["std_sample"], rel=1e-9)
    assert found.high - found.mean == pytest.approx(entry["half_width"], rel=1e-9, abs=1e-12)
    assert found.mean - found.low == pytest.approx(entry["half_width"], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("entry", VECTORS["kruskal"], ids=lambda entry: entry["id"])
def test_kruskal_and_wallis_agree_with_the_vectors(entry):
    found = kruskal_wallis([series(group) for group in entry["groups"]])
    assert (found.statistic, found.p_value) == pytest.approx((entry["H"], entry["p_value"]), rel=1e-9)
    assert found.degrees == entry["df"]


def test_the_interval_of_clustered_values_is_that_of_clusters():
    first = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
    second = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
    values, patients = series([*first, *second]), [*range(10), *range(10)]
    found = mean_interval(values, clusters=patients)
    # statsmodels 0.15: OLS(y, 1).fit(cov_type="cluster", cov_kwds={"groups": patient}, use_t=True).conf_int()
    assert (found.n, found.low, found.high) == pytest.approx((20, 0.2550319, 2.8249681))
    assert mean_interval(values).high < 2.5
    bootstrap = bootstrap_interval(values, clusters=patients)
    assert bootstrap.high - bootstrap.low > 1.2 * (
        bootstrap_interval(values).high - bootstrap_interval(values).low
    )
    alone = mean_interval(series([1.0, 2.0]), clusters=["a", "a"])
    assert (alone.mean, alone.low) == (1.5, None)


@pytest.mark.parametrize("of", [mean_interval, bootstrap_interval])
def test_one_run_says_nothing_of_others(of):
    alone = of(series([3.0]))
    assert (alone.n, alone.mean, alone.std, alone.low, alone.high) == (1, 3.0, None, None, None)
    assert of(series([])) is None
    assert of(series([None])) is None


def test_groups_that_cannot_differ_give_no_test():
    assert kruskal_wallis([series([1, 1]), series([1])]) is None
    assert kruskal_wallis([series([1, 2])]) is None
    assert kruskal_wallis([]) is None
    assert welch_test(series([1, 1]), series([2, 2])) is None
    assert welch_test(series([1]), series([2, 3])) is None


def test_runs_without_a_finite_value_are_refused():
    with pytest.raises(ValueError, match="give null"):
        mean_interval(series([1.0, float("nan")]))


@given(runs)
def test_the_bootstrap_repeats_itself_and_lies_around_the_mean(values):
    one, other = (bootstrap_interval(series(some), resamples=200) for some in (values, values[::-1]))
    assert one == other
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= one.low <= one.high <= max(values) + slack


def test_the_bootstrap_is_near_student_s_interval_for_many_runs():
    values = series([50 + (place * 37) % 23 for place in range(200)])
    student, bootstrap = mean_interval(values), bootstrap_interval(values)
    assert bootstrap.low == pytest.approx(student.low, abs=0.1)
    assert bootstrap.high == pytest.approx(student.high, abs=0.1)


@given(runs, runs)
def test_exchanging_groups_turns_the_sign_only(a, b):
    there, back = welch_test(series(a), series(b)), welch_test(series(b), series(a))
    if there is None:
        assert back is None
    else:
        assert back.statistic == pytest.approx(-there.statistic)
        assert back.p_value == pytest.approx(there.p_value)
