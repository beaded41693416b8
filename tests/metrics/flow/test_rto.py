"""The retransmission timer against vectors, and what RFC 6298 says of any samples."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.flow.rto import rto_series, timer_states
from tfrctrace.parsers.schema import polars_schema

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "rto_rfc6298.json").read_text())

MS = 10**6


def table(samples: list[tuple[int, str, int, int, str]]) -> pl.DataFrame:
    names = ("flow", "direction", "time_ns", "rtt_ns", "method")
    rows = [dict(zip(names, sample, strict=True)) for sample in samples]
    return pl.DataFrame(rows, schema_overrides=polars_schema("rtt"), schema=list(polars_schema("rtt")))


@pytest.mark.parametrize("vector", VECTORS)
def test_the_timer_is_that_of_the_vectors(vector):
    rtts_ms = [1e3 * rtt for rtt in vector["samples"]]
    found = list(timer_states(rtts_ms, min_rto_ms=1e3 * vector["min_rto"], max_rto_ms=60_000))
    for state, expected in zip(found, vector["expect"], strict=True):
        assert state == pytest.approx([1e3 * value for value in expected], rel=1e-9)


def test_each_direction_has_a_timer_of_its_own():
    rtt = table(
        [
            (1, "fwd", 10, 100 * MS, "ack"),
            (1, "rev", 20, 8 * MS, "ack"),
            (1, "fwd", 40, 200 * MS, "timestamp"),
        ]
    )
    series = rto_series(rtt, min_rto_ms=0)
    assert series.columns == ["flow", "direction", "time_ns", "srtt_ms", "rttvar_ms", "rto_ms"]
    assert series.filter(direction="fwd")["srtt_ms"].to_list() == [100, 112.5]
    assert series.filter(direction="rev").row(0)[2:] == (20, 8, 4, 24)


def test_no_samples_make_an_empty_table():
    assert rto_series(table([])).columns[-1] == "rto_ms"


@given(st.lists(st.floats(0.001, 1e5), min_size=1, max_size=50), st.floats(0.01, 100))
def test_the_timer_scales_with_time_and_stays_within_its_samples(rtts, factor):
    plain = list(timer_states(rtts, min_rto_ms=0, max_rto_ms=float("inf")))
    scaled = list(timer_states([factor * rtt for rtt in rtts], min_rto_ms=0, max_rto_ms=float("inf")))
    for (srtt, rttvar, rto), other in zip(plain, scaled, strict=True):
        assert other == pytest.approx([factor * srtt, factor * rttvar, factor * rto], rel=1e-6)
        assert min(rtts) * (1 - 1e-9) <= srtt <= max(rtts) * (1 + 1e-9)
        assert rto >= srtt
