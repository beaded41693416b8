"""Two tables in parts with the same flows."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tfrctrace.metrics.parts import parts_by_flows

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
