"""Convergence on rates that were made to converge."""

from __future__ import annotations

import math
import statistics

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.convergence import (
    aggressiveness,
    fairness_settling_time_s,
    rate_shapes,
    response_time_s,
    steady_rate,
)

rates = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


def shapes(flows, width_s=1.0, hold_s=5.0):
    """Return the shape of several flows, each given by its bytes in each window."""
    known = [
        (flow, window, size) for flow, sizes in enumerate(flows) for window, size in enumerate(sizes) if size
    ]
    schema = {"flow": pl.Int64, "window": pl.Int64, "bytes": pl.UInt64}
    counts = np.array([len(sizes) for sizes in flows], dtype=np.int64)
    return rate_shapes(
        pl.DataFrame(known, schema=schema, orient="row"), counts, width_s, hold_s=hold_s
    ).to_dicts()


def shape(sizes, width_s=1.0, hold_s=5.0):
    (found,) = shapes([sizes], width_s, hold_s)
    return found


def by_definition(sizes, width_s, hold_s):
    """Return the same with loops, as the definitions read."""
    late = sizes[len(sizes) // 2 :]
    level = sum(late) / len(late) if late else 0
    found = {"windows": len(sizes), "convergence_s": None, "rise_s": None, "stability": None}
    if level:
        needed = math.ceil(hold_s / width_s)
        good = [abs(size - level) <= 0.2 * level for size in sizes]
        starts = [at for at in range(len(sizes) - needed + 1) if all(good[at : at + needed])]
        found["convergence_s"] = starts[0] * width_s if starts else None
        risen = [at for at, size in enumerate(sizes) if size >= 0.9 * level]
        found["rise_s"] = risen[0] * width_s
        found["stability"] = pytest.approx(statistics.pstdev(late) / level)
    return found


@given(st.lists(rates | st.just([]), max_size=8), st.sampled_from([0.5, 1.0, 2.0]))
def test_shapes_of_many_flows_are_those_of_the_definitions(flows, width_s):
    assert shapes(flows, width_s) == [by_definition(sizes, width_s, 5.0) for sizes in flows]


def test_a_step_converges_where_it_is():
    sizes = [10] * 7 + [100] * 33
    assert shape(sizes, 0.5) == {"windows": 40, "convergence_s": 3.5, "rise_s": 3.5, "stability": 0}
    assert steady_rate(pl.Series(sizes)) == 100


def test_a_constant_rate_has_converged_from_the_start():
    assert shape([5] * 10)["convergence_s"] == 0
    assert aggressiveness(pl.Series([5] * 10)) == 0


def test_a_dip_puts_convergence_off():
    sizes = [100] * 3 + [10] + [100] * 20
    assert shape(sizes)["convergence_s"] == 4
    assert shape(sizes, hold_s=3)["convergence_s"] == 0


def test_a_rate_that_swings_never_converges():
    assert shape([10, 100] * 20)["convergence_s"] is None


def test_what_is_too_short_to_hold_has_not_converged():
    assert shape([5] * 4)["convergence_s"] is None


@pytest.mark.parametrize("windows", [0, 2, 20])
def test_silence_does_not_converge(windows):
    unknown = {"convergence_s": None, "rise_s": None, "stability": None}
    assert shape([0] * windows) == {"windows": windows, **unknown}


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
    once = shape(values)
    times = ("convergence_s", "rise_s")
    in_other_unit, doubled = shape([factor * value for value in values]), shape(values, 2.0, hold_s=10.0)
    for name in times:
        assert in_other_unit[name] == once[name]
        assert doubled[name] == (None if once[name] is None else 2 * once[name])
