"""Frames of pandas: equal to what Polars makes of its frames with pyarrow."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace

VALUES_OF = {
    "uint32": (pl.UInt32, st.integers(0, 2**32 - 1)),
    "uint64": (pl.UInt64, st.integers(0, 2**64 - 1)),
    "int64": (pl.Int64, st.integers(-(2**63), 2**63 - 1)),
    "float": (pl.Float64, st.floats()),
    "text": (pl.String, st.text(st.characters(exclude_categories=["Cs"]))),
    "truth": (pl.Boolean, st.booleans()),
    "time": (pl.Datetime("us"), st.datetimes()),
    "time in zone": (
        pl.Datetime("ns", "Europe/Vienna"),
        st.datetimes(pd.Timestamp(1972, 1, 1), pd.Timestamp(2200, 1, 1)),
    ),
}
SCHEMA = {name: kind for name, (kind, _) in VALUES_OF.items()}
FULL = st.tuples(*(values for _, values in VALUES_OF.values()))
GAPS = st.tuples(*(st.none() | values for _, values in VALUES_OF.values()))


@given(st.lists(FULL, max_size=4) | st.lists(GAPS, max_size=4))
def test_a_frame_is_that_of_polars_and_pyarrow(rows):
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)
    pd.testing.assert_frame_equal(tfrctrace.to_pandas(frame), frame.to_pandas())


def test_pyarrow_is_not_imported(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    frame = pl.DataFrame({"a": [1, None], "text": ["x", None]})
    assert tfrctrace.to_pandas(frame)["a"].sum() == 1
    with pytest.raises(ImportError):
        frame.to_pandas()
