"""Percentiles of round-trip times of any parts taken together are those of all samples, to within 0.8 %."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.flow.quantiles import bucket_quantiles

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
NAMES = ("linux-small-flows-snd", "linux-udp-vs-tcp-snd")
SHARES = (0.0, 0.05, 0.5, 0.95, 0.99, 1.0)


@pytest.fixture(scope="module")
def traces() -> list[tfrctrace.Trace]:
    opened = [tfrctrace.open(CAPTURES / f"{name}.pcap.gz") for name in NAMES]
    for trace in opened:
        trace.read("flows", "rtt", "rtt_buckets")
    return opened


def near_numpys(found: pl.DataFrame, samples: pl.Series) -> None:
    exact = np.quantile(samples.to_numpy(), SHARES, method="inverted_cdf")
    assert found["share"].to_list() == list(SHARES)
    assert (np.abs(found["rtt_ns"].to_numpy() - exact) <= exact / 128).all()


def test_captures_taken_together_have_the_percentiles_of_all_samples(
    traces: list[tfrctrace.Trace],
) -> None:
    samples = pl.concat([trace.rtt.filter(method="ack")["rtt_ns"] for trace in traces])
    buckets = pl.concat([trace.rtt_buckets for trace in traces])
    assert buckets["samples"].sum() == samples.len() > 100
    near_numpys(bucket_quantiles(buckets, SHARES, by=[]), samples)


def test_a_flow_has_its_own_which_its_row_has_too(traces: list[tfrctrace.Trace]) -> None:
    for trace in traces:
        found = bucket_quantiles(trace.rtt_buckets, (0.5, 0.95))
        assert found.height > 2
        rows = {(row["flow"], row["direction"]): row for row in trace.flows.to_dicts()}
        for flow, direction, share, rtt_ns in found.iter_rows():
            row = rows[flow, direction]
            # the row's is never beyond the samples
            expected = min(max(rtt_ns / 1e6, row["rtt_min_ms"]), row["rtt_max_ms"])
            assert row[f"rtt_p{round(100 * share)}_ms"] == pytest.approx(expected)


def test_what_has_no_sample_has_no_percentile(traces: list[tfrctrace.Trace]) -> None:
    none = traces[0].rtt_buckets.clear()
    assert bucket_quantiles(none, SHARES).is_empty()
    assert bucket_quantiles(none, SHARES, by=[]).is_empty()
