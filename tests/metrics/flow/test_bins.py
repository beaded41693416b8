"""Joining and evening of time bins: nothing may be lost, invented or averaged wrongly."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.bins import (
    COUNTS,
    bin_width_for,
    coarser_bins,
    evenly_spaced,
    summed_over_flows,
    time_span_ns,
)
from tfrctrace.parsers.schema import TABLES, polars_schema

WIDTH = 10


def bins_of(rows: list[dict]) -> pl.DataFrame:
    default = {"flow": 1, "direction": "fwd", "width_ns": WIDTH, **dict.fromkeys(COUNTS, 0)}
    names = [column.name for column in TABLES["bins"]]
    full = [{name: {**default, **row}.get(name) for name in names} for row in rows]
    return pl.DataFrame(full, schema=polars_schema("bins"), orient="row")


@st.composite
def tables(draw):
    """Bins of up to three flows with RTT samples in whole milliseconds, so that sums are exact.

    Only which bins there are is worth a search; what they hold is drawn at random, which is much cheaper.
    """
    random = draw(st.randoms(use_true_random=True))
    rows = []
    cells = draw(
        st.sets(st.tuples(st.integers(1, 3), st.sampled_from(["fwd", "rev"]), st.integers(0, 60)), min_size=1)
    )
    for flow, direction, place in sorted(cells):
        row = {"flow": flow, "direction": direction, "time_ns": 1000 + place * WIDTH}
        row |= {name: random.choice([0, random.randint(0, 2**40), 2**40]) for name in COUNTS}
        samples = [random.randint(1, 5000) for _ in range(random.randint(0, 4))]
        row["rtt_samples"] = len(samples)
        if samples:
            row |= {"rtt_min_ms": min(samples), "rtt_max_ms": max(samples)}
            row["rtt_mean_ms"] = sum(samples) / len(samples)
        rows.append(row)
    return bins_of(rows)


@given(tables(), st.integers(1, 12))
def test_joined_bins_hold_the_same_counts(bins, factor):
    joined = coarser_bins(bins, WIDTH * factor)
    assert joined.select(COUNTS).sum().row(0) == bins.select(COUNTS).sum().row(0)
    assert joined.schema == bins.schema


@given(tables(), st.integers(1, 12))
def test_joined_bins_keep_the_smallest_and_largest_rtt(bins, factor):
    joined = coarser_bins(bins, WIDTH * factor)
    assert joined["rtt_min_ms"].min() == bins["rtt_min_ms"].min()
    assert joined["rtt_max_ms"].max() == bins["rtt_max_ms"].max()


@given(tables(), st.integers(1, 12))
def test_mean_rtt_of_joined_bins_is_the_mean_of_all_samples(bins, factor):
    def total_ms(table: pl.DataFrame) -> float:
        return table.select((pl.col("rtt_mean_ms") * pl.col("rtt_samples")).sum()).item()

    assert total_ms(coarser_bins(bins, WIDTH * factor)) == pytest.approx(total_ms(bins), rel=1e-12)


@given(tables(), st.integers(1, 5), st.integers(1, 5))
def test_joining_twice_is_joining_once(bins, first, second):
    once = coarser_bins(bins, WIDTH * first * second)
    origin = bins["time_ns"].min()
    twice = coarser_bins(coarser_bins(bins, WIDTH * first, origin_ns=origin), WIDTH * first * second)
    exact = [name for name in bins.columns if name != "rtt_mean_ms"]
    assert once.select(exact).equals(twice.select(exact))


@given(tables())
def test_evened_bins_stand_one_width_apart_and_hold_the_same_counts(bins):
    even = evenly_spaced(bins)
    steps = even.select(pl.col("time_ns").diff().over("flow", "direction")).drop_nulls().to_series()
    assert steps.is_in([WIDTH]).all()
    assert even.select(COUNTS).sum().row(0) == bins.select(COUNTS).sum().row(0)
    assert even.filter(pl.col("packets") > 0).equals(
        bins.filter(pl.col("packets") > 0).sort("flow", "direction", "time_ns")
    )


@given(tables())
def test_the_sum_over_flows_holds_the_same_counts(bins):
    together = summed_over_flows(bins)
    assert together["time_ns"].is_unique().all()
    assert together.select(COUNTS).sum().row(0) == bins.select(COUNTS).sum().row(0)


def test_a_bin_without_samples_has_no_mean_rtt():
    bins = bins_of([{"time_ns": 0, "packets": 1}, {"time_ns": 10, "packets": 1}])
    assert coarser_bins(bins, 20)["rtt_mean_ms"].to_list() == [None]


def test_mean_rtt_is_weighted_with_the_number_of_samples():
    bins = bins_of(
        [
            {"time_ns": 0, "rtt_samples": 1, "rtt_mean_ms": 100.0},
            {"time_ns": 10, "rtt_samples": 3, "rtt_mean_ms": 20.0},
        ]
    )
    assert coarser_bins(bins, 20)["rtt_mean_ms"].to_list() == [40.0]


def test_bins_before_the_origin_are_joined_downwards():
    bins = bins_of([{"time_ns": 90, "packets": 1}, {"time_ns": 100, "packets": 1}])
    assert coarser_bins(bins, 20, origin_ns=100)["time_ns"].to_list() == [80, 100]


@pytest.mark.parametrize("width_ns", [0, -10, 5, 15])
def test_a_width_that_would_cut_bins_is_refused(width_ns):
    with pytest.raises(ValueError, match="not a multiple"):
        coarser_bins(bins_of([{"time_ns": 0}]), width_ns)


def test_bins_of_two_widths_cannot_be_evened():
    with pytest.raises(ValueError, match="different widths"):
        evenly_spaced(bins_of([{"time_ns": 0}, {"time_ns": 10, "width_ns": 20}]))


def test_an_empty_table_stays_empty():
    empty = bins_of([])
    assert coarser_bins(empty, 20).equals(empty)
    assert evenly_spaced(empty).equals(empty)


def test_the_span_reaches_to_the_end_of_the_last_bin():
    assert time_span_ns(bins_of([{"time_ns": 50}, {"time_ns": 20}])) == (20, 60)


@given(st.integers(0, 10**18), st.integers(1, 10**9), st.integers(1, 1000))
def test_the_chosen_width_is_the_smallest_nice_one(span_ns, base_ns, most):
    width_ns = bin_width_for(span_ns, base_ns, most)
    factor = width_ns // base_ns
    assert width_ns % base_ns == 0
    assert str(factor).rstrip("0") in {"1", "2", "5"}
    assert width_ns * most >= span_ns
    smaller = {"1": factor // 2, "2": factor // 2, "5": factor * 2 // 5}[str(factor)[0]]
    assert smaller == 0 or smaller * base_ns * most < span_ns


@pytest.mark.parametrize(("base_ns", "most"), [(0, 1), (1, 0)])
def test_a_width_of_nothing_is_refused(base_ns, most):
    with pytest.raises(ValueError, match="must be positive"):
        bin_width_for(100, base_ns, most)


def test_an_even_course_makes_up_no_losses_of_a_flow_of_which_only_one_end_is_seen():
    known = {"delay_samples": 1, "lost_packets": 2}
    bins = bins_of(
        [
            {"time_ns": 0, **known},
            {"time_ns": 20, **known},
            {"time_ns": 0, "flow": 2},
            {"time_ns": 20, "flow": 2},
        ]
    )
    even = evenly_spaced(bins).sort("flow", "time_ns")
    assert even["lost_packets"].to_list() == [2, 0, 2, None, None, None]
