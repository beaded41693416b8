"""Fairness against vectors, and what theory says of it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tfrctrace.metrics.sets.fairness import (
    inter_protocol_normalized,
    inter_protocol_ratio,
    jain_index,
    jain_over_time,
    max_min_ratio,
    mean_rate,
)

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "metrics.json").read_text())

rates = st.lists(st.floats(0, 1e12), min_size=1, max_size=20)


def series(values):
    return pl.Series(values, dtype=pl.Float64)


def close(expected):
    return expected if expected is None else pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["fairness_sets"], ids=lambda entry: entry["id"])
def test_jain_and_max_min_agree_with_the_vectors(entry):
    assert jain_index(series(entry["x"])) == close(entry["jain"])
    assert max_min_ratio(series(entry["x"])) == close(entry["max_min"])


@pytest.mark.parametrize("entry", VECTORS["inter_protocol_fairness"], ids=lambda entry: entry["id"])
def test_inter_protocol_fairness_agrees_with_the_vectors(entry):
    own, others = series(entry["P"]), series(entry["others"])
    assert mean_rate(own) == close(entry["B_P"])
    assert inter_protocol_ratio(own, others) == close(entry["ratio"])
    assert inter_protocol_normalized(own, others) == close(entry["normalized"])
    if (literal := entry["paper_literal_over_mean_all"]) is not None:
        # the words of Casoni and Merani taken literally, which fit neither their figures nor their 0.5
        assert mean_rate(others) / mean_rate(pl.concat([own, others])) == close(literal)


@given(rates)
def test_jain_lies_between_one_over_n_and_one(values):
    index = jain_index(series(values))
    assert index is None if not any(values) else 1 / len(values) <= index <= 1


@given(rates, st.integers(-20, 20))
def test_indices_do_not_change_with_the_unit(values, exponent):
    assume(all(value == 0 or value > 1e-200 for value in values))
    # a power of two, so that the multiplication itself is exact
    scaled = series([value * 2.0**exponent for value in values])
    assert jain_index(scaled) == jain_index(series(values))
    assert max_min_ratio(scaled) == max_min_ratio(series(values))


@given(rates, st.randoms(use_true_random=True))
def test_indices_do_not_change_with_the_order(values, random):
    shuffled = random.sample(values, len(values))
    for index in (jain_index, max_min_ratio, mean_rate):
        assert index(series(shuffled)) == index(series(values))


@given(rates, rates)
def test_two_protocols_share_one(first, second):
    one = inter_protocol_normalized(series(first), series(second))
    other = inter_protocol_normalized(series(second), series(first))
    if any((*first, *second)):
        assert one + other == pytest.approx(1)
        ratio = inter_protocol_ratio(series(first), series(second))
        assert ratio is None or one == pytest.approx(ratio / (1 + ratio))
    else:
        assert one is other is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=9), st.floats(0.1, 1e6))
def test_with_demands_equal_satisfaction_is_fair(demands, share):
    satisfied = series([share * demand for demand in demands])
    assert jain_index(satisfied, series(demands)) == pytest.approx(1)


def test_a_protocol_without_flows_cannot_be_compared():
    nobody, somebody = series([]), series([1.0])
    for compared in (inter_protocol_normalized, inter_protocol_ratio):
        assert compared(nobody, somebody) is None
        assert compared(somebody, nobody) is None
    assert jain_index(nobody) is max_min_ratio(nobody) is mean_rate(nobody) is None


def test_unknown_rates_are_left_out_and_impossible_ones_refused():
    assert jain_index(pl.Series([1.0, None, 1.0])) == 1
    for wrong in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="cannot be"):
            jain_index(series([1.0, wrong]))


@given(st.lists(st.lists(st.integers(0, 2**40), min_size=3, max_size=3), min_size=1, max_size=8))
def test_jain_over_time_is_jain_in_each_window(windows):
    rows = [
        (flow, window, size)
        for window, sizes in enumerate(windows)
        for flow, size in enumerate(sizes)
        if size
    ]
    frame = pl.DataFrame(
        rows, schema={"flow": pl.UInt32, "window": pl.Int64, "bytes": pl.UInt64}, orient="row"
    )
    found = dict(jain_over_time(frame, 3).iter_rows())
    expected = {window: jain_index(pl.Series(sizes)) for window, sizes in enumerate(windows) if any(sizes)}
    assert found == pytest.approx(expected, rel=1e-12)
