"""Passes that collect rows of some flows: what a page does not draw takes no memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tfrctrace

TRACES = Path(__file__).resolve().parents[3] / "sample_traces"
TWO_FLOWS = str(TRACES / "two-flows.pcapng.gz")


@pytest.mark.parametrize("inputs", [[TWO_FLOWS], [TWO_FLOWS, TWO_FLOWS]], ids=["one", "two"])
def test_rows_of_chosen_flows_are_those_of_a_whole_pass(inputs: list[str]) -> None:
    trace = tfrctrace.open(inputs)
    flows = trace.flows.filter(pl.col("rounds") > 0)["flow"].unique().to_list()
    sampled, explained = flows[-1:], flows[-1:]
    reading = trace.read_of_flows(sampled, explained, "rounds", "rtt", "causes", "losses")
    for name, chosen in (("rounds", sampled), ("rtt", sampled), ("causes", explained)):
        whole = trace.table(name).frame()
        own = whole.filter(pl.col("flow").is_in(chosen))
        assert 0 < own.height < whole.height
        assert_frame_equal(reading.table(name).frame(), own)
    # losses are drawn of all flows together
    assert_frame_equal(reading.table("losses").frame(), trace.losses)


def test_no_flow_is_chosen_where_none_has_rows() -> None:
    reading = tfrctrace.open(TWO_FLOWS).read_of_flows([], [], "rounds", "causes")
    assert reading.table("rounds").frame().is_empty()
    assert reading.table("causes").frame().is_empty()
