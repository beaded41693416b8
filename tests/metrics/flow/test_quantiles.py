"""Quantiles and outlines: every number is a sample, and no extreme is lost."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.quantiles import SHARES, envelope, sample_quantiles

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=300)


def frame(samples: list[int], **columns: object) -> pl.DataFrame:
    return pl.DataFrame(
        {"flow": [1] * len(samples), "direction": "fwd", "value": samples, **columns},
        schema_overrides={"flow": pl.UInt32},
    )


@given(SAMPLES)
def test_quantiles_are_those_of_numpy(samples):
    found = sample_quantiles(frame(samples), "value")
    assert found["share"].to_list() == list(SHARES)
    assert found["value"].to_list() == np.quantile(samples, SHARES, method="inverted_cdf").tolist()


def test_each_flow_and_direction_has_quantiles_of_its_own():
    both = pl.concat([frame([1, 2, 3]), frame([10]).with_columns(pl.lit("rev").alias("direction"))])
    largest = (
        sample_quantiles(both, "value").group_by("direction", maintain_order=True).agg(pl.col("value").last())
    )
    assert dict(largest.iter_rows()) == {"fwd": 3, "rev": 10}


def test_without_samples_there_is_no_row():
    assert sample_quantiles(frame([1]).with_columns(pl.lit(None).alias("value")), "value").is_empty()


@given(SAMPLES, st.integers(2, 50))
def test_an_outline_keeps_the_extremes_in_place(samples, most):
    numbered = frame(samples, place=list(range(len(samples))))
    short = envelope(numbered, ("flow", "direction"), "value", most)
    assert len(short) <= most
    assert short["place"].is_sorted()
    assert (short["value"].min(), short["value"].max()) == (min(samples), max(samples))
    assert short.join(numbered, on=numbered.columns, how="anti").is_empty()
    if len(samples) <= most // 2:
        assert short.equals(numbered)


def test_one_spike_in_a_million_stays():
    samples = [1] * 1_000_000
    samples[654_321] = 2
    short = envelope(frame(samples), ("flow",), "value", 1000)
    assert len(short) <= 1000
    assert short["value"].max() == 2


def test_no_samples_have_quantiles_of_the_same_type():
    frame = pl.DataFrame({"flow": [1], "direction": ["fwd"], "rtt_ns": [5]})
    assert sample_quantiles(frame.clear(), "rtt_ns").schema == sample_quantiles(frame, "rtt_ns").schema


def test_the_outline_of_nothing_has_the_same_types():
    frame = pl.DataFrame({"flow": [1], "kind": ["data"], "time_ns": [1], "bytes": [5]})
    assert envelope(frame.clear(), ("flow", "kind"), "bytes", 4).schema == frame.schema
