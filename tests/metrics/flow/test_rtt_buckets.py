"""Percentiles of round-trip times of any parts taken together are those of all samples, to within 0.8 %."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tfrctrace

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
NAMES = ("linux-small-flows-snd", "linux-udp-vs-tcp-snd")
SHARES = (0.0, 0.05, 0.5, 0.95, 0.99, 1.0)


@pytest.fixture(scope="module")
def traces() -> list[tfrctrace.Trace]:
    opened = [tfrctrace.open(CAPTURES / f"{name}.pcap.gz") for name in NAMES]
    for trace in opened:
        trace.read("flows", "rtt", "rtt_buckets")
    return opened


def bucket_quantiles(buckets: pl.DataFrame, shares: tuple[float, ...]) -> list[int]:
    """Return the percentiles of all samples in `buckets` by nearest rank, in ns: the middles of buckets."""
    together = buckets.group_by("from_ns", "to_ns").agg(pl.col("samples").sum()).sort("from_ns")
    middle = together["from_ns"] + (together["to_ns"] - together["from_ns"] + 1) // 2
    ranks = np.maximum(np.ceil(np.array(shares) * together["samples"].sum()), 1)
    return middle.gather(together["samples"].cum_sum().search_sorted(ranks)).to_list()


def near_numpys(found: list[int], samples: pl.Series) -> None:
    exact = np.quantile(samples.to_numpy(), SHARES, method="inverted_cdf")
    assert (np.abs(np.array(found) - exact) <= exact / 128).all()


def test_captures_taken_together_have_the_percentiles_of_all_samples(
    traces: list[tfrctrace.Trace],
) -> None:
    samples = pl.concat([trace.rtt["rtt_ns"] for trace in traces])
    buckets = pl.concat([trace.rtt_buckets for trace in traces])
    assert buckets["samples"].sum() == samples.len() > 100
    near_numpys(bucket_quantiles(buckets, SHARES), samples)


def test_a_flow_has_its_own_which_its_row_has_too(traces: list[tfrctrace.Trace]) -> None:
    for trace in traces:
        rows = {(row["flow"], row["direction"]): row for row in trace.flows.to_dicts()}
        parts = trace.rtt_buckets.partition_by("flow", "direction", as_dict=True)
        assert len(parts) > 1
        for (flow, direction), buckets in parts.items():
            row = rows[flow, direction]
            for share, rtt_ns in zip((50, 95), bucket_quantiles(buckets, (0.5, 0.95)), strict=True):
                # the row's is never beyond the samples
                expected = min(max(rtt_ns / 1e6, row["rtt_min_ms"]), row["rtt_max_ms"])
                assert row[f"rtt_p{share}_ms"] == pytest.approx(expected)


def test_what_has_no_sample_has_no_bucket(traces: list[tfrctrace.Trace]) -> None:
    for trace in traces:
        sampled = trace.flows.filter(pl.col("rtt_samples") > 0).select("flow", "direction")
        assert set(trace.rtt_buckets.select("flow", "direction").iter_rows()) == set(sampled.iter_rows())
