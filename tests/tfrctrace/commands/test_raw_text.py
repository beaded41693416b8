"""`--raw`: CSV of every command is safe for spreadsheets and terminals unless that is asked for."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

FORMULA = "=cmd\u202e.pcap"
SAFE = "'=cmd\\u202e.pcap"


@pytest.fixture
def capture(write_capture, conversation):
    return write_capture(FORMULA, conversation()).name


def sources(text: str) -> set[str]:
    return {row["source"] for row in csv.DictReader(text.splitlines())}


def test_flows_are_safe_as_csv_and_exact_as_json(run, capture):
    assert sources(run("flows", capture, "--format", "csv").out) == {SAFE}
    assert sources(run("flows", capture, "--format", "csv", "--raw").out) == {FORMULA}
    assert json.loads(run("flows", capture, "--format", "json").out)["flows"][0]["source"] == FORMULA


def test_tables_and_saved_results_are_safe(run, capture, tmp_path):
    assert sources(run("convert", capture, "--what", "flows", "-o", "-", "--format", "csv").out) == {SAFE}
    for options, expected in (((), SAFE), (("--raw",), FORMULA)):
        run("report", capture, "-o", "x.html", "--results", "saved", "--csv", *options)
        assert sources((tmp_path / "saved" / "flows.csv").read_text()) == {expected}


@pytest.mark.parametrize(
    "arguments",
    [
        ("flows", "--format", "json"),
        ("metrics",),
        ("replay", "-o", "x.parquet"),
        ("convert", "-o", "x.parquet"),
        ("report", "-o", "x.html"),
    ],
)
def test_raw_without_csv_is_refused(run, capture, arguments):
    command, *options = arguments
    outcome = run(command, capture, *options, "--raw")
    assert outcome.status == 2
    assert "CSV only" in outcome.err


def test_groups_of_a_comparison_are_safe(run):
    trace = str(next((Path(__file__).parents[2] / "data" / "study" / "runs").iterdir()))
    for options, group in (((), "'@x"), (("--raw",), "@x")):
        label = ("--label", "@x=transport tfrc", "--only-labelled", "-m", "rate_bps")
        out = run("compare", trace, trace, *label, "--format", "csv", *options).out
        assert {row["group"] for row in csv.DictReader(out.splitlines())} == {group}, out
