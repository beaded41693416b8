"""What a report takes of a trace."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.flow.causes import CAUSE_COURSE
from tfrctrace.reports.files.saved_results import load, save

TWO_FLOWS = str(Path(__file__).resolve().parents[3] / "sample_traces" / "two-flows.pcapng.gz")


def test_results_have_the_rounds_of_the_direction_with_most_data_alone() -> None:
    trace = tfrctrace.open(TWO_FLOWS)
    results = trace.results()
    flows = results.flows.filter(pl.col("rounds") > 0)
    largest = flows.filter(pl.col("unique_bytes") == pl.col("unique_bytes").max()).select("flow", "direction")
    assert flows.height > 1
    # what was let go is read again
    own = trace.rounds.join(largest, on=["flow", "direction"], maintain_order="left")
    assert results.table("rounds").equals(own)
    assert own.height == flows.filter(pl.col("flow") == largest["flow"][0])["rounds"].max()


def test_frames_of_losses_are_those_of_flows_that_a_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace may have a million flows with losses."""
    monkeypatch.setattr("tfrctrace.reports.report_content.MOST_FLOWS", 1)
    trace = tfrctrace.open(TWO_FLOWS)
    totals = trace.flows.group_by("flow").agg(pl.col("wire_bytes").sum()).sort("wire_bytes")
    shown = trace.results().first_losses
    assert shown is not None
    assert trace.losses["flow"].n_unique() > 1
    assert set(shown["flow"]) == {totals["flow"][-1]}


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_rounds_beyond_the_limit_are_named_on_the_page() -> None:
    results = tfrctrace.open(TWO_FLOWS, max_samples=20).results()
    words = [str(problem["message"]) for problem in results.problems]
    assert any("rounds left out" in text for text in words)
    assert results.table("rounds").height <= 20


def test_causes_are_kept_as_they_are_drawn_without_what_decided_for_them(tmp_path: Path) -> None:
    trace = tfrctrace.open(TWO_FLOWS)
    results = trace.results()
    assert results.tables["causes"].equals(trace.causes.select(CAUSE_COURSE))
    save(results, str(tmp_path), title="t", version="1")
    assert load(str(tmp_path))[0].tables["causes"].equals(results.tables["causes"])
