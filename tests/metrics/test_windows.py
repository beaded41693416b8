"""Windows of the life of each flow: the bytes are those of the bins, however many flows are taken at once."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics import windows
from tfrctrace.metrics.windows import FlowBins

WIDTH_NS, WINDOW_NS = 10, 30


@given(
    cells=st.sets(st.tuples(st.integers(1, 6), st.integers(0, 40)), min_size=1),
    wanted=st.lists(st.integers(1, 8), unique=True),
    rows_of_part=st.integers(1, 30),
)
def test_each_flow_has_the_bytes_of_its_bins_in_its_own_windows(cells, wanted, rows_of_part):
    rows = [(flow, 1_000 + WIDTH_NS * place, WIDTH_NS, place % 7) for flow, place in sorted(cells)]
    bins = pl.DataFrame(rows, schema=["flow", "time_ns", "width_ns", "payload_bytes"], orient="row")
    flows = pl.Series(wanted, dtype=pl.Int64)
    begins = pl.Series([1_000 + flow for flow in wanted], dtype=pl.Int64)
    flow_bins = FlowBins(bins)
    own = flow_bins.life_windows(flows, begins, begins + 333, WINDOW_NS)
    with patch.object(windows, "_ROWS_OF_PART", rows_of_part):
        found = flow_bins.life_windowed(flows, own, "payload_bytes")
    expected = Counter[tuple[int, int]]()
    for flow, time_ns, _, size in rows:
        if flow in wanted and size:
            place = wanted.index(flow)
            window = (time_ns - int(own.starts_ns[place])) // WINDOW_NS
            if 0 <= window < own.counts[place]:
                expected[place, window] += size
    assert {(flow, window): size for flow, window, size in found.rows()} == expected
    assert found.height == len(expected)
    assert found["flow"].is_sorted()


def test_windows_far_apart_stay_those_of_their_flows():
    far = 2**33  # 0.1 s windows of 27 years
    rows = [(flow, place, WIDTH_NS, flow) for flow in (2, 1) for place in (far * WIDTH_NS, 0, 0)]
    bins = pl.DataFrame(rows, schema=["flow", "time_ns", "width_ns", "bytes"], orient="row")
    found = windows.windowed(bins, windows.Windows(0, WIDTH_NS, far + 1), "bytes")
    assert found.rows() == [(1, 0, 2), (1, far, 1), (2, 0, 4), (2, far, 2)]
