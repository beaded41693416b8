"""The five studies that ship: their claims are as they say, and their flows are what the agents counted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.experiment import perform_study
from tfrctrace.experiment.cells import fits
from tfrctrace.experiment.study import TablePlan

STUDIES = Path(__file__).parents[1] / "sample_traces" / "studies"
NAMES = sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))
MOST_BYTES = 10_000_000


def traces_of(study: str) -> dict[str, Path]:
    """Return the packet trace of each run."""
    folder = STUDIES / study / "traces"
    return {path.name.removesuffix(".tr.xz"): path for path in sorted(folder.rglob("*.tr.xz"))}


def test_there_are_five_and_they_stay_small():
    assert len(NAMES) == 5
    assert sum(path.stat().st_size for path in STUDIES.parent.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("study", NAMES)
def test_every_claim_of_a_study_is_as_it_says(study, tmp_path):
    results = perform_study(STUDIES / study / "study.toml", cache=tmp_path)
    assert len(results.runs) == len(traces_of(study))
    assert results.problems == []
    assert results.verdicts
    for verdict in results.verdicts:
        assert verdict.finding == ("holds" if verdict.expectation.holds else "fails"), verdict
    # every table and figure has something to tell
    for plan in (*results.study.tables, *results.study.figures):
        names = plan.columns if isinstance(plan, TablePlan) else (plan.y,)
        for name in {*names} - {"rate", "cwnd"}:
            cells = [cell for cell in results.cells if cell.quantity == name and fits(cell, plan.where)]
            assert any(cell.values for cell in cells), (plan.name, name)


@pytest.mark.parametrize("study", NAMES)
def test_packets_sent_are_those_that_the_agents_counted(study):
    truth = json.loads((STUDIES / study / "truth.json").read_text())
    traces = traces_of(study)
    assert set(traces) == set(truth)
    # every seventh run: all of them are read by the study
    for name in list(truth)[::7]:
        flows = tfrctrace.open(traces[name]).flows.filter(
            pl.col("direction") == "fwd", pl.col("transport").is_in(["tcp", "tfrc"])
        )
        counted = [flow["sent_packets"] for flow in truth[name].values() if "sent_packets" in flow]
        assert sorted(flows["packets"]) == sorted(counted), name
