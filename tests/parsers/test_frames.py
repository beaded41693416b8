"""Tables of the core in parts, and frames put together from them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.parsers.frames import joined_frame

TRACES = Path(__file__).parents[2] / "sample_traces"
SCHEMA = {"number": pl.UInt64, "text": pl.String, "real": pl.Float64}
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from(["", "a", "a text longer than twelve bytes"]),
        st.none() | st.floats(allow_nan=False),
    )
)


@given(st.lists(ROWS))
def test_joined_frames_are_the_same_rows(parts):
    frames = [pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in parts]
    empty = pl.DataFrame(schema=SCHEMA)
    assert_frame_equal(joined_frame(iter(frames), empty), pl.concat([empty, *frames]))


@pytest.fixture
def table():
    names = ["two-flows.pcapng.gz", "tcp-loss.pcap.gz"]
    paths = [path for name in names if (path := TRACES / name).exists()]
    return tfrctrace.open([*paths, *paths]).table("bins")


def test_a_table_in_parts_is_the_table(table, monkeypatch):
    monkeypatch.setattr("tfrctrace.parsers.reading.FRAME_ROWS", 7)
    columns = ["flow", "direction", "wire_bytes"]
    whole = table.frame()
    assert len(whole) > 7
    assert_frame_equal(pl.concat(table.frames()), whole)
    assert_frame_equal(table.small_frame(columns), whole.select(columns))


@pytest.mark.parametrize("step", [1, 3, 70, 200])
def test_rows_are_taken_by_their_places_in_several_traces(table, step):
    whole = table.frame()
    places = list(range(0, len(whole), step))
    assert_frame_equal(table.take(places), whole[places])
    assert_frame_equal(table.take([]), whole.clear())
