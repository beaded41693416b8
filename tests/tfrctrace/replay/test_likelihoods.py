"""Likelihoods of congestion controls and their parameters, by kernels whose settings are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from any_rounds import A_ROUND
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.parsers.schema import polars_schema
from tfrctrace.replay.controller import Start
from tfrctrace.replay.naming.cubic_growth import growth_constant
from tfrctrace.replay.naming.likelihoods import share_left
from tfrctrace.replay.naming.observations import observations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.replay.naming.observations import Observation

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"


def observed(capture: Path) -> Sequence[Observation]:
    """Return what the rounds of the first flow show, wherever its window was seen."""
    rounds = tfrctrace.open(capture).rounds.filter(flow=1, direction="fwd").sort("time_ns")
    return list(observations(rounds.rows(named=True), 1448.0))


@pytest.mark.parametrize(
    ("run", "beta"), [("conformance/beta", 0.5), ("conformance/fast", 0.7), ("conformance/scale", 0.7)]
)
def test_what_a_loss_leaves_is_what_the_kernel_was_set_to_leave(run: str, beta: float) -> None:
    found = share_left(observed(DATA / run / "sender.pcap.gz"))
    assert found.value == pytest.approx(beta, abs=0.02)
    assert found.low <= beta <= found.high


@pytest.mark.parametrize(("run", "c"), [("beta", 0.4), ("scale", 1.6)])
def test_c_is_that_of_the_kernel(run: str, c: float) -> None:
    """`bic_scale` is 1024 C / 10: 41 in stock Linux, 164 in the kernel of `scale`."""
    found = growth_constant(
        observed(DATA / "conformance" / run / "sender.pcap.gz"), Start(segment_bytes=1448)
    )
    assert found.c == pytest.approx(c, rel=0.1)
    assert found.low <= c <= found.high


@given(st.lists(A_ROUND, max_size=60))
def test_parameters_of_any_rounds_lie_in_their_intervals(rounds: list[dict]) -> None:
    seen = list(observations(rounds, 1448.0))
    for found in (share_left(seen), growth_constant(seen, Start(segment_bytes=1448))):
        if found is not None and found[0] is not None:
            assert found[1] <= found[0] <= found[2]
            # an interval that has all values of C that are looked for tells nothing
            assert found[2] <= 8 * max(found[0], 1)


RUNS = sorted((DATA / "congestion_controls").glob("*/sender.pcap.gz"))


@pytest.mark.parametrize("capture", RUNS, ids=[path.parent.name for path in RUNS])
def test_candidates_stand_by_likelihood_and_the_answer_is_that_of_why(capture: Path) -> None:
    trace = tfrctrace.open(capture)
    rows = trace.congestion_controls
    assert rows.schema == polars_schema("congestion_controls")
    told = trace.why()
    assert [(row.flow, row.direction) for row in told] == rows.select("flow", "direction").unique(
        maintain_order=True
    ).rows()
    for one in told:
        own = rows.filter(flow=one.flow, direction=one.direction)
        assert set(own["congestion_control"]) == {one.congestion_control}
        assert set(own["congestion_control_reason"]) == {one.congestion_control_reason}
        ratios = own["log_ratio_to_best"].drop_nulls()
        assert ratios.is_sorted(descending=True)
        if len(ratios):
            assert ratios[0] == 0
            assert own["compared_rounds"][0] == one.compared_rounds
            assert own["predicted_rounds"][0] == one.predicted_rounds
        if len(ratios) and one.congestion_control is not None:
            names = one.congestion_control.split("|")
            assert own["candidate"][0] in names


def test_convert_writes_the_candidates(run) -> None:
    capture = str(DATA / "congestion_controls" / "38-0021-htcp" / "sender.pcap.gz")
    outcome = run(
        "convert", "-w", "congestion_controls", capture, "-o", "-", "--format", "csv",
        "--columns", "candidate,congestion_control",
    )  # fmt: skip
    lines = outcome.out.splitlines()
    assert lines[:2] == ["candidate,congestion_control", "htcp,htcp"]
    assert len(lines) > 10


def test_a_trace_without_connections_has_no_candidates() -> None:
    found = tfrctrace.open(ROOT / "sample_traces" / "dumbbell.tr.xz").congestion_controls
    assert found.is_empty()
    assert found.schema["c"] == pl.Float64
