"""Round-trip times: one sample for each acknowledgement, the same in every table, and those of the kernel."""

from __future__ import annotations

import csv
import gzip
import statistics
import warnings
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

if TYPE_CHECKING:
    from tfrctrace.api import Trace

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "data"
EMPTY = ("variant-empty.pcap.gz", "variant-zero-bytes.pcap")
TRACES = (
    *(path for path in sorted((DATA / "captures").glob("*.pcap*")) if path.name not in EMPTY),
    *(ROOT / "sample_traces" / name for name in ("dccp-ccid3.pcap.gz", "dumbbell.tr.xz", "mixed.pcap.zst")),
    DATA / "ns2" / "wired-mix.tr.xz",
    *sorted((DATA / "quic").glob("*.pcap*")),
    *sorted((DATA / "rtp").glob("*.pcap*")),
)
ENDS = ("flow", "direction")
MS = 1e6


@cache
def opened(path: Path) -> Trace:
    trace = tfrctrace.open(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrctraceWarning)
        trace.read("flows", "bins", "rtt", "rtt_buckets")
    return trace


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_an_acknowledgement_has_one_sample(path: Path) -> None:
    samples = opened(path).rtt
    assert not samples.select(*ENDS, "packet").is_duplicated().any()


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_flows_bins_and_buckets_have_the_samples_of_the_table(path: Path) -> None:
    trace = opened(path)
    rtt_ms = pl.col("rtt_ns") / MS
    of_table = trace.rtt.group_by(ENDS).agg(
        pl.len(), rtt_ms.min().alias("min"), rtt_ms.mean().alias("mean"), rtt_ms.max().alias("max")
    )
    theirs = of_table.sort(ENDS).rows()
    columns = ("rtt_samples", "rtt_min_ms", "rtt_mean_ms", "rtt_max_ms")
    ours = trace.flows.filter(pl.col("rtt_samples") > 0).select(*ENDS, *columns).sort(ENDS).rows()
    assert [row[:3] for row in ours] == [row[:3] for row in theirs]
    for row, expected in zip(ours, theirs, strict=True):
        assert row[3:] == pytest.approx(expected[3:])
    counted = {row[:2]: row[2] for row in theirs}
    for table, samples in ((trace.rtt_buckets, "samples"), (trace.bins, "rtt_samples")):
        sums = table.filter(pl.col(samples) > 0).group_by(ENDS).agg(pl.col(samples).sum())
        assert {row[:2]: row[2] for row in sums.rows()} == counted


@cache
def kernels_estimates() -> list[tuple[int, int, int]]:
    """Time, smoothed and smallest round-trip time of TCP_INFO, as often as it was read."""
    with gzip.open(DATA / "kernel_rtt" / "loss.csv.gz", "rt") as file:
        return [
            (int(row["time_ns"]), int(row["rtt_us"]), int(row["min_rtt_us"])) for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def lossy() -> Trace:
    return opened(DATA / "kernel_rtt" / "loss.pcap.gz")


def test_the_smallest_round_trip_is_the_kernels(lossy: Trace) -> None:
    smallest_us = kernels_estimates()[-1][2]
    # the kernel takes its times before a packet reaches the capture, and after
    assert lossy.flows["rtt_min_ms"].max() == pytest.approx(smallest_us / 1e3, abs=0.05)


def test_under_loss_the_samples_go_on_as_the_kernels_estimate_does(lossy: Trace) -> None:
    samples = lossy.rtt.filter(direction="fwd").sort("time_ns")
    assert set(samples["method"]) == {"ack", "sack", "timestamp"}
    times, smoothed_us = samples["time_ns"].to_list(), []
    for rtt_ns in samples["rtt_ns"]:
        before_us = smoothed_us[-1] if smoothed_us else rtt_ns / 1e3
        smoothed_us.append(before_us + (rtt_ns / 1e3 - before_us) / 8)  # RFC 6298 equation 2.3
    known = [
        (time_ns, rtt_us) for time_ns, rtt_us, _ in kernels_estimates() if times[0] < time_ns < times[-1]
    ]
    away = [abs(smoothed_us[bisect_left(times, time_ns) - 1] / rtt_us - 1) for time_ns, rtt_us in known]
    assert statistics.median(away) < 0.03
    # acknowledgements alone leave a second without a sample
    by_ack = samples.filter(method="ack")["time_ns"].diff().max()
    assert by_ack is not None
    assert samples["time_ns"].diff().max() < by_ack / 2
