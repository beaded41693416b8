"""Throughput against published vectors, exact rationals and numpy's histogram."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.throughput import mean_throughput, throughput_series, windowed_throughput

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "windowed_throughput.json"
NS = 1_000_000_000

packets = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 65_535)), min_size=2, max_size=40)


def ns(seconds: float) -> int:
    return round(seconds * NS)


def events_of(rows: list[tuple[float, int]] | list[list[float]]) -> pl.DataFrame:
    return events_ns([(ns(time_s), int(size)) for time_s, size in rows])


def events_ns(rows: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"time_ns": pl.Int64, "bytes": pl.UInt64}, orient="row")


def vector(name: str) -> dict:
    return next(entry for entry in json.loads(VECTORS.read_text()) if entry["id"] == name)


@pytest.mark.parametrize(("divisor", "column"), [("paper", 2), ("ramp", 3)])
def test_windows_agree_with_the_vectors(divisor, column):
    given_ = vector("w1")
    found = windowed_throughput(
        events_of(given_["events"]),
        window_ns=ns(given_["delta"]),
        step_ns=ns(given_["step"]),
        start_ns=ns(given_["t0"]),
        end_ns=ns(given_["t_end"]),
        divisor=divisor,
    )
    assert found["time_ns"].to_list() == [ns(row[0]) for row in given_["expect"]]
    assert found["bytes"].to_list() == [row[1] for row in given_["expect"]]
    expected_bps = [8 * row[column] for row in given_["expect"]]
    assert found["throughput_bps"].to_list() == pytest.approx(expected_bps, rel=1e-9)


def test_mean_agrees_with_the_vectors():
    given_ = vector("w1")
    mean = mean_throughput(events_of(given_["events"]), start_ns=ns(given_["t0"]), end_ns=ns(given_["t_end"]))
    assert mean == pytest.approx(8 * given_["B_f"], rel=1e-9)


def test_warm_up_agrees_with_the_vectors():
    given_ = vector("w_warm")
    mean = mean_throughput(
        events_of(given_["events"]),
        start_ns=ns(given_["t0"]),
        end_ns=ns(given_["t_end"]),
        warmup_ns=ns(given_["warmup"]),
    )
    assert mean == pytest.approx(8 * given_["B_f"], rel=1e-9)
    assert mean == 8 * given_["expect_bytes"] / (given_["t_end"] - given_["t0"] - given_["warmup"])


def test_mean_of_one_packet_is_null():
    assert mean_throughput(events_of([(1.0, 1500)])) is None


def test_mean_of_packets_at_one_time_is_null():
    assert mean_throughput(events_of([(1.0, 1500), (1.0, 1500)])) is None


def test_mean_is_null_when_the_warm_up_is_as_long_as_the_flow():
    events = events_of([(0.0, 1500), (2.0, 1500)])
    assert mean_throughput(events, warmup_ns=2 * NS) is None
    assert mean_throughput(events, warmup_ns=3 * NS) is None


def test_mean_is_zero_when_a_common_interval_continues_after_silence():
    assert mean_throughput(events_of([(0.0, 9), (0.5, 9)]), end_ns=4 * NS, warmup_ns=NS) == 0.0


def test_no_packets_have_no_windows():
    assert windowed_throughput(events_of([]), window_ns=NS).height == 0


@pytest.mark.parametrize(("window_ns", "step_ns"), [(0, None), (-1, None), (NS, 0)])
def test_windows_without_width_are_refused(window_ns, step_ns):
    with pytest.raises(ValueError, match="must be positive"):
        windowed_throughput(events_of([(0.0, 1)]), window_ns=window_ns, step_ns=step_ns)


def test_a_negative_warm_up_is_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        mean_throughput(events_of([(0.0, 1), (1.0, 1)]), warmup_ns=-1)


def test_bytes_beyond_the_precision_of_a_float_are_summed_exactly():
    huge = 2**53
    found = windowed_throughput(events_ns([(0, huge), (NS, 1)]), window_ns=NS)
    assert found["bytes"].to_list() == [huge + 1]


@given(packets, st.integers(1, 10**9), st.integers(1, 10**9), st.sampled_from(["paper", "ramp"]))
def test_every_window_is_what_counting_by_hand_gives(rows, window_ns, step_ns, divisor):
    step_ns = max(step_ns, 10**7)  # at most a thousand windows
    found = windowed_throughput(events_ns(rows), window_ns=window_ns, step_ns=step_ns, divisor=divisor)
    first, last = min(rows)[0], max(rows)[0]
    ends = range(first + step_ns, last + 1, step_ns)
    assert found["time_ns"].to_list() == list(ends)
    rates_bps = []
    for end, counted, _ in found.iter_rows():
        from_start = end - window_ns <= first
        expected = sum(
            size for at, size in rows if at <= end and (at > end - window_ns or (from_start and at >= first))
        )
        assert counted == expected
        elapsed = window_ns if divisor == "paper" else min(window_ns, end - first)
        rates_bps.append(float(Fraction(8 * expected * NS, elapsed)))
    assert found["throughput_bps"].to_list() == pytest.approx(rates_bps, rel=1e-12)


@given(packets, st.randoms(use_true_random=True))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert mean_throughput(events_ns(rows)) == mean_throughput(events_ns(shuffled))
    assert windowed_throughput(events_ns(rows), window_ns=10**8).equals(
        windowed_throughput(events_ns(shuffled), window_ns=10**8)
    )


@given(packets)
def test_half_the_speed_is_half_the_throughput(rows):
    slower = [(2 * at, size) for at, size in rows]
    mean = mean_throughput(events_ns(rows))
    # half of a float is exact
    assert mean_throughput(events_ns(slower)) == (None if mean is None else mean / 2)


@given(packets)
def test_windows_that_do_not_overlap_hold_each_byte_once(rows):
    window_ns = 10**8
    found = windowed_throughput(events_ns(rows), window_ns=window_ns)
    last_end = found["time_ns"].max()
    covered = 0 if last_end is None else sum(size for at, size in rows if at <= last_end)
    assert found["bytes"].sum() == covered


def bins_of(rows: list[tuple[int, int]], width_ns: int) -> pl.DataFrame:
    """Bins of one flow as the core makes them: no row for a bin without a packet."""
    counted: dict[int, list[int]] = {}
    for at, size in rows:
        counted.setdefault(at // width_ns * width_ns, []).append(size)
    unknown = {
        f"{kind}_{name}": pl.UInt64 if name == "samples" else pl.Float64
        for kind in ("rtt", "delay")
        for name in ("samples", "min_ms", "mean_ms", "max_ms")
    } | {"lost_packets": pl.UInt64}
    return pl.DataFrame(
        {
            "flow": [1] * len(counted),
            "direction": ["fwd"] * len(counted),
            "time_ns": list(counted),
            "width_ns": [width_ns] * len(counted),
            "packets": [len(sizes) for sizes in counted.values()],
            "wire_bytes": [sum(sizes) for sizes in counted.values()],
            "payload_bytes": [0] * len(counted),
            "unique_bytes": [max(sizes) for sizes in counted.values()],
            "retransmitted_packets": [0] * len(counted),
            "rtt_samples": [0] * len(counted),
            **{name: [None] * len(counted) for name in unknown if name != "rtt_samples"},
        },
        schema_overrides=unknown,
    )


@given(packets)
def test_the_series_of_bins_is_the_histogram_that_numpy_makes(rows):
    width_ns = 10**8
    series = throughput_series(bins_of(rows, width_ns))
    first = min(rows)[0] // width_ns * width_ns
    edges = np.arange(first, max(rows)[0] // width_ns * width_ns + 2 * width_ns, width_ns)
    times, sizes = zip(*rows, strict=True)
    # numpy counts the last edge to the last bin; no packet lies on it, since it is beyond them all
    expected, _ = np.histogram(times, edges, weights=sizes)
    assert series["time_ns"].to_list() == edges[:-1].tolist()
    assert series["wire_bytes"].to_list() == expected.tolist()
    assert series["throughput_bps"].to_list() == pytest.approx((expected * 8 / 0.1).tolist(), rel=1e-12)


def test_silence_within_a_flow_is_a_measured_zero_without_rtt():
    series = throughput_series(bins_of([(0, 100), (3 * NS, 100)], NS))
    assert series["throughput_bps"].to_list() == [800.0, 0.0, 0.0, 800.0]
    assert series["packets"].to_list() == [1, 0, 0, 1]
    assert series["rtt_mean_ms"].to_list() == [None] * 4


def test_goodput_counts_unique_bytes_and_throughput_whole_frames():
    series = throughput_series(bins_of([(0, 100), (0, 60)], NS))
    assert series["throughput_bps"].to_list() == [1280.0]
    assert series["goodput_bps"].to_list() == [800.0]
