"""Tables of the core in parts, and frames put together from them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.parsers.frames import joined_frame, parts_by_flows

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


FLOWS = st.lists(st.lists(st.integers(1, 6)), min_size=1)


@given(FLOWS, FLOWS)
def test_parts_by_flows_have_all_rows_of_their_flows(first, second):
    """Witness: the rows of each flow, counted in the whole tables."""

    def in_order(parts: list[list[int]]) -> list[pl.DataFrame]:
        rest = iter(sorted(flow for part in parts for flow in part))
        numbered = enumerate([[next(rest) for _ in part] for part in parts])
        schema = {"flow": pl.UInt32, "frame": pl.Int64}
        return [pl.DataFrame({"flow": flows, "frame": place}, schema=schema) for place, flows in numbered]

    frames, others = in_order(first), in_order(second)
    parts = list(parts_by_flows(frames, others))
    for place, whole in enumerate((frames, others)):
        assert_frame_equal(pl.concat(part[place] for part in parts), pl.concat(whole))
    of_frames = [set(rows["flow"]) for rows, _ in parts]
    of_others = [set(rows["flow"]) for _, rows in parts]
    for number, flows in enumerate(of_frames):
        for other, own in enumerate(of_others):
            assert number == other or not flows & own


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
