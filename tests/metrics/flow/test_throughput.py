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
from simulated import simulated_row

from tfrctrace.metrics.flow.throughput import mean_rate_bps, throughput_series
from tfrctrace.metrics.windows import Windows, windowed

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "windowed_throughput.json"
NS = 1_000_000_000

packets = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 65_535)), min_size=2, max_size=40)


def ns(seconds: float) -> int:
    return round(seconds * NS)


def events_of(rows: list[list[float]]) -> list[tuple[int, int]]:
    """Events 1 ns earlier, but not before 0: the paper's windows include their end, ours their start."""
    return [(max(ns(time_s) - 1, 0), int(size)) for time_s, size in rows]


def window_bytes(rows: list[tuple[int, int]], windows: Windows) -> list[int]:
    times_ns, sizes = zip(*rows, strict=True)
    columns = {"flow": [1] * len(rows), "time_ns": times_ns, "unique_bytes": sizes}
    types = {"flow": pl.UInt32, "unique_bytes": pl.UInt64}
    found = windowed(pl.DataFrame(columns, schema_overrides=types), windows, "unique_bytes")
    by_window = dict(found.select("window", "bytes").iter_rows())
    return [by_window.get(place, 0) for place in range(windows.count)]


def vector(name: str) -> dict:
    return next(entry for entry in json.loads(VECTORS.read_text()) if entry["id"] == name)


@pytest.mark.parametrize(("divisor", "column"), [("paper", 2), ("ramp", 3)])
def test_windows_agree_with_the_vectors(divisor, column):
    given_ = vector("w1")
    for end_s, byte_count, *rates in given_["expect"]:
        width_s = given_["delta"] if divisor == "paper" else min(given_["delta"], end_s - given_["t0"])
        windows = Windows(ns(end_s - width_s), ns(width_s), 1)
        assert window_bytes(events_of(given_["events"]), windows) == [byte_count]
        assert windows.bps(byte_count) == pytest.approx(8 * rates[column - 2], rel=1e-9)


def test_mean_agrees_with_the_vectors():
    given_ = vector("w1")
    duration_s = given_["t_end"] - given_["t0"]
    mean = mean_rate_bps(sum(int(size) for _, size in given_["events"]), duration_s)
    assert mean == pytest.approx(8 * given_["B_f"], rel=1e-9)
    row = simulated_row([(ns(time_s), ns(time_s) + 1, size) for time_s, size in given_["events"]])
    assert row["throughput_bps"] == pytest.approx(8 * given_["B_f"], rel=1e-9)


def test_warm_up_agrees_with_the_vectors():
    given_ = vector("w_warm")
    start_s = given_["t0"] + given_["warmup"]
    windows = Windows(ns(start_s), NS // 4, round((given_["t_end"] - start_s) * 4))
    byte_count = sum(window_bytes(events_of(given_["events"]), windows))
    assert byte_count == given_["expect_bytes"]
    assert mean_rate_bps(byte_count, windows.duration_s) == pytest.approx(8 * given_["B_f"], rel=1e-9)
    assert mean_rate_bps(byte_count, windows.duration_s) == 8 * given_["expect_bytes"] / windows.duration_s


def test_throughput_of_one_packet_or_of_packets_at_one_time_is_null():
    assert simulated_row([(NS, NS + 1, 1500)])["throughput_bps"] is None
    assert simulated_row([(NS, NS + 1, 1500), (NS, NS + 1, 1500)])["throughput_bps"] is None


def test_bytes_beyond_the_precision_of_a_float_are_summed_exactly():
    huge = 2**53
    assert window_bytes([(0, huge), (NS - 1, 1)], Windows(0, NS, 1)) == [huge + 1]


@given(packets, st.integers(10**7, 10**9))
def test_every_window_is_what_counting_by_hand_gives(rows, width_ns):
    windows = Windows(min(rows)[0], width_ns, (max(rows)[0] - min(rows)[0]) // width_ns + 1)
    found = window_bytes(rows, windows)
    starts = [windows.start_ns + place * width_ns for place in range(windows.count)]
    expected = [sum(size for at, size in rows if start <= at < start + width_ns) for start in starts]
    assert found == expected
    rates_bps = [float(Fraction(8 * byte_count * NS, width_ns)) for byte_count in expected]
    assert [windows.bps(byte_count) for byte_count in found] == pytest.approx(rates_bps, rel=1e-12)
    # windows that do not overlap hold each byte once
    assert sum(found) == sum(size for _, size in rows)


@given(packets, st.randoms(use_true_random=True))
def test_the_order_of_rows_does_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    windows = Windows(0, 10**8, 101)
    assert window_bytes(rows, windows) == window_bytes(shuffled, windows)


@given(packets, st.integers(10**7, 10**9))
def test_half_the_speed_is_half_the_throughput(rows, width_ns):
    slower = [(2 * at, size) for at, size in rows]
    windows = Windows(0, width_ns, 10**10 // width_ns + 1)
    slow = Windows(0, 2 * width_ns, windows.count)
    assert window_bytes(rows, windows) == window_bytes(slower, slow)
    byte_count = sum(size for _, size in rows)
    assert mean_rate_bps(byte_count, slow.duration_s) == mean_rate_bps(byte_count, windows.duration_s) / 2


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
