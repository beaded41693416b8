"""Burstiness, smoothness and likeness of rates in windows, against vectors and plain arithmetic."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.burstiness import cov_by_timescale, rate_variation
from tfrctrace.metrics.flow.smoothness import equivalence_ratios, rate_changes
from tfrctrace.metrics.windows import Windows, joined, whole_windows, windowed

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "metrics.json").read_text())

sizes = st.lists(st.integers(0, 2**40), min_size=1, max_size=40)


def frame_of(*flows):
    """Return the windowed frame of flows 0, 1, ... with these bytes in their windows."""
    rows = [(flow, window, size) for flow, own in enumerate(flows) for window, size in enumerate(own) if size]
    return pl.DataFrame(
        rows, schema={"flow": pl.UInt32, "window": pl.Int64, "bytes": pl.UInt64}, orient="row"
    )


def close(expected):
    return expected if expected is None else pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["burstiness"], ids=lambda entry: entry["id"])
def test_burstiness_agrees_with_the_vectors(entry):
    found = rate_variation(frame_of(entry["rates"]), len(entry["rates"]))
    if entry["burstiness"] is None:
        assert found.is_empty(), "a flow without bytes has no burstiness"
        return
    row = found.row(0, named=True)
    assert row["mean"] == close(entry["mean"])
    assert row["std"] == close(entry["std_pop"])
    assert row["burstiness"] == close(entry["burstiness"])
    assert row["cov_sample"] == close(entry["cov_sample"])


def test_cov_by_timescale_agrees_with_the_vectors():
    (entry,) = VECTORS["cov_timescale"]
    rates = entry["base_rates"]
    found = cov_by_timescale(frame_of(rates), len(rates), [one["k"] for one in entry["expect"]])
    assert found["cov"].to_list() == close([one["cov"] for one in entry["expect"]])
    assert found["windows"].to_list() == [len(one["rates"]) for one in entry["expect"]]
    for one in entry["expect"]:
        coarse = joined(frame_of(rates), one["k"], len(rates))
        found_bytes = dict(coarse.select("window", "bytes").iter_rows())
        means = [found_bytes.get(place, 0) / one["k"] for place in range(len(one["rates"]))]
        assert means == close(one["rates"])


def test_smoothness_agrees_with_the_vectors():
    (entry,) = VECTORS["smoothness"]
    (row,) = rate_changes(frame_of(entry["rates"]), len(entry["rates"])).rows(named=True)
    assert row["mean_relative_change"] == close(entry["mean_abs_rel_change"])
    assert row["worst_ratio"] == close(entry["worst_ratio"])
    assert row["zero_pairs"] == entry["zero_pairs"]


@pytest.mark.parametrize("entry", VECTORS["equivalence_ratio"], ids=lambda entry: entry["id"])
def test_equivalence_ratios_agree_with_the_vectors(entry):
    (row,) = equivalence_ratios(frame_of(entry["a"], entry["b"]), [0, 1]).rows(named=True)
    assert row["ratio"] == close(entry["mean"])
    assert row["windows"] == sum(one is not None for one in entry["e"])


@given(sizes)
def test_burstiness_is_sigma_over_the_mean(own):
    found = rate_variation(frame_of(own), len(own))
    if not any(own):
        assert found.is_empty()
        return
    mean = sum(own) / len(own)
    sigma = math.sqrt(math.fsum((size - mean) ** 2 for size in own) / len(own))
    row = found.row(0, named=True)
    assert row["std"] == pytest.approx(sigma, rel=1e-9, abs=1e-3)
    assert row["burstiness"] == pytest.approx(sigma / mean, rel=1e-9, abs=1e-9)


@given(sizes, st.integers(1, 1000))
def test_burstiness_does_not_change_with_the_unit(own, factor):
    one, other = (
        rate_variation(frame_of(rates), len(own)) for rates in (own, [factor * size for size in own])
    )
    assert one["burstiness"].to_list() == pytest.approx(other["burstiness"].to_list(), rel=1e-12)


@given(st.lists(sizes, min_size=1, max_size=4), st.randoms(use_true_random=True))
def test_the_order_of_rows_changes_nothing(flows, random):
    count = max(map(len, flows))
    bins = frame_of(*flows).rename({"window": "time_ns", "bytes": "unique_bytes"})
    order = random.sample(range(len(bins)), len(bins))
    frame, shuffled = (
        windowed(some, Windows(0, 1, count), "unique_bytes")
        for some in (bins, bins[order] if order else bins)
    )
    for of in (rate_variation, rate_changes):
        assert of(shuffled, count).sort("flow").equals(of(frame, count).sort("flow"))
    pairs = [equivalence_ratios(one, range(len(flows))) for one in (frame, shuffled)]
    assert pairs[0].equals(pairs[1])


@given(sizes)
def test_smoothness_is_what_a_loop_counts(own):
    pairs = list(pairwise(own))
    changes = [abs(after - before) / before for before, after in pairs if before]
    ratios = [max(pair) / min(pair) for pair in pairs if all(pair)]
    found = rate_changes(frame_of(own), len(own))
    if not any(own):
        assert found.is_empty()
        return
    row = found.row(0, named=True)
    mean = pytest.approx(math.fsum(changes) / len(changes), rel=1e-9) if changes else None
    assert row["mean_relative_change"] == mean
    assert row["worst_ratio"] == (max(ratios) if ratios else None)
    assert (row["changes"], row["zero_pairs"]) == (len(changes), len(pairs) - len(ratios))


@given(sizes, sizes)
def test_the_equivalence_ratio_is_the_same_both_ways(a, b):
    there, back = (equivalence_ratios(frame_of(*pair), [0, 1])["ratio"][0] for pair in ((a, b), (b, a)))
    assert there == back
    assert there is None or 0 <= there <= 1


def test_a_flow_is_equivalent_to_itself():
    own = [3, 0, 5, 7]
    assert equivalence_ratios(frame_of(own, own), [0, 1])["ratio"].to_list() == [1.0]
    assert equivalence_ratios(frame_of(own), [0]).is_empty()


@given(
    st.integers(-(10**6), 10**6), st.integers(1, 1000), st.integers(-(10**5), 10**5), st.integers(0, 10**5)
)
def test_whole_windows_fill_an_interval_on_the_grid(origin, width, start, length):
    windows = whole_windows(origin, width, start, start + length)
    assert (windows.start_ns - origin) % width == 0
    assert start <= windows.start_ns < start + width
    if windows.count:
        assert start + length - width < windows.end_ns <= start + length


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 9)), max_size=60),
    st.integers(0, 60),
)
def test_shards_merged_are_the_whole(rows, cut):
    schema = {"flow": pl.UInt32, "time_ns": pl.Int64, "unique_bytes": pl.UInt64}
    bins = pl.DataFrame(rows, schema=schema, orient="row")
    windows = Windows(10, 7, 11)
    whole = windowed(bins, windows, "unique_bytes")
    shards = [windowed(part, windows, "unique_bytes") for part in (bins[:cut], bins[cut:])]
    merged = pl.concat(shards).group_by("flow", "window").agg(pl.col("bytes").sum()).sort("flow", "window")
    assert merged.equals(whole)
    inside = sum(size for _, time, size in rows if 10 <= time < 10 + 77)
    assert whole["bytes"].sum() == inside
