"""Convergence on rates that were made to converge."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.convergence import (
    aggressiveness,
    convergence_time_s,
    fairness_settling_time_s,
    response_time_s,
    rise_time_s,
    stability,
    steady_rate,
)

rates = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


def step(low, high, at, length):
    return pl.Series([low] * at + [high] * (length - at))


def test_a_step_converges_where_it_is():
    series = step(10, 100, 7, 40)
    assert convergence_time_s(series, 0.5) == 3.5
    assert rise_time_s(series, 0.5) == 3.5
    assert steady_rate(series) == 100
    assert stability(series) == 0


def test_a_constant_rate_has_converged_from_the_start():
    assert convergence_time_s(pl.Series([5] * 10), 1.0) == 0
    assert aggressiveness(pl.Series([5] * 10)) == 0


def test_a_dip_puts_convergence_off():
    series = pl.Series([100] * 3 + [10] + [100] * 20)
    assert convergence_time_s(series, 1.0) == 4
    assert convergence_time_s(series, 1.0, hold_s=3) == 0


def test_a_rate_that_swings_never_converges():
    assert convergence_time_s(pl.Series([10, 100] * 20), 1.0) is None


def test_what_is_too_short_to_hold_has_not_converged():
    assert convergence_time_s(pl.Series([5] * 4), 1.0) is None


@pytest.mark.parametrize("of", [convergence_time_s, rise_time_s])
def test_silence_does_not_converge(of):
    assert of(pl.Series([0] * 20), 1.0) is None
    assert of(pl.Series([], dtype=pl.Int64), 1.0) is None
    assert stability(pl.Series([0, 0])) is None


def test_fairness_settles_when_the_index_stays():
    jain = pl.Series([0.5, 0.99, None, 0.96, 0.97, 1.0, 0.95, 0.99, 0.2])
    assert fairness_settling_time_s(jain, 1.0) == 3
    assert fairness_settling_time_s(jain, 1.0, hold_s=6) is None


def test_the_response_to_a_step_ends_at_the_last_window_that_is_off():
    series = pl.Series([100] * 10 + [100, 80, 55, 50, 70] + [50] * 15)
    assert response_time_s(series, 1.0, 10.0) == 5
    assert response_time_s(series, 1.0, 30.0) is None
    # the windows are the same, and the step is earlier
    assert response_time_s(series, 1.0, 9.5) == 5.5
    assert response_time_s(series, 1.0, 0.0) is response_time_s(series, 1.0, -3.0) is None
    assert response_time_s(pl.Series([1] * 5 + [10, 0] * 10), 1.0, 5.0) is None


def test_aggressiveness_is_the_largest_increase():
    assert aggressiveness(pl.Series([1, 4, 2, 9, 0])) == 7
    assert aggressiveness(pl.Series([9, 4, 1])) == 0
    assert aggressiveness(pl.Series([9])) is None


@given(rates, st.integers(1, 100))
def test_times_do_not_change_with_the_unit_and_grow_with_the_width(values, factor):
    for of in (convergence_time_s, rise_time_s):
        one = of(pl.Series(values), 1.0)
        assert of(pl.Series([factor * value for value in values]), 1.0) == one
    doubled = convergence_time_s(pl.Series(values), 2.0, hold_s=10.0)
    once = convergence_time_s(pl.Series(values), 1.0, hold_s=5.0)
    assert doubled == (None if once is None else 2 * once)
