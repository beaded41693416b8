"""Runs measured in processes: a process that dies takes nothing but its own run with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.runs.engine import MeasuredRuns, measure_runs
from tfrctrace.runs.problems import merge_problems
from tfrctrace.runs.workers import processes
from tfrctrace.study.definition import MeasuringPlan
from tfrctrace.study.find_runs import Run
from tfrctrace.study.run_record import record_run, study_tasks

RUNS = sorted((Path(__file__).parents[2] / "data" / "study" / "runs").iterdir())


class Deadly:
    """What ends the process that unpacks it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_process_that_dies_is_named_and_the_others_are_done():
    runs = [Run(str(path), path.name, {"x": Deadly()} if path == RUNS[1] else {}) for path in RUNS[:3]]
    measured = measure_runs(study_tasks(runs, MeasuringPlan(), ()), workers=processes(2))
    assert [record["failed"] for record in measured.records] == [False, True, False]
    (problem,) = measured.records[1]["problems"]
    assert problem["source"] == RUNS[1].name
    assert "the process that measured it ended" in problem["message"]


def test_progress_counts_up_to_all_runs():
    class Seen:
        def __init__(self):
            self.steps = []

        def advance(self, done, of, cached):
            self.steps.append((done, of, cached))

    seen = Seen()
    runs = [Run(str(path), path.name, {}) for path in RUNS[:2]]
    measure_runs(study_tasks(runs, MeasuringPlan(), ()), workers=processes(1), progress=seen)
    assert seen.steps == [(0, 2, 0), (1, 2, 0), (2, 2, 0)]


def test_a_run_with_more_flows_than_a_record_holds_has_those_with_most_data(monkeypatch):
    whole = record_run(str(RUNS[0]), "whole", MeasuringPlan(), ["rate"])
    monkeypatch.setattr("tfrctrace.study.run_record.MAX_FLOWS", 1)
    record = record_run(str(RUNS[0]), "run", MeasuringPlan(), ["rate"])
    packets = sorted((flow["numbers"]["data_packets"] for flow in whole["flows"]), reverse=True)
    assert len(packets) == 2
    assert sorted((flow["numbers"]["data_packets"] for flow in record["flows"]), reverse=True) == packets[:1]
    (problem,) = record["problems"]
    assert "flows left out beside the 1 with most data packets: 1" in problem["message"]
    assert problem["source"] == "run"
    assert len({flow for metric in record["metrics"] for flow in metric["flows"]}) == 1


def test_a_run_with_more_curves_than_a_figure_shows_says_which_are_kept(monkeypatch):
    monkeypatch.setattr("tfrctrace.study.time_series.MAX_CURVES", 1)
    record = record_run(str(RUNS[0]), "run", MeasuringPlan(labels=("any=port 0",)), ["rate"])
    groups = [curve["group"] for curve in record["series"]["rate"]]
    assert len(groups) == len(set(groups))
    (problem,) = [one for one in record["problems"] if one["kind"] == "curves"]
    assert "kept of the 1 flows of each label with most data packets" in problem["message"]


def test_algorithms_are_replayed_on_the_runs_that_are_meant():
    from tfrctrace.study.replayed_rates import parse_replay_plan, plan_for_run

    zhang = Path(__file__).parents[3] / "sample_traces" / "studies" / "zhang" / "traces"
    plan = parse_replay_plan(
        {
            "algorithms": ["tfrc", "mtfrc"],
            "profile": "ns2",
            "stations": ["{setting}x11"],
            "downloads": "{setting}",
            "preset": "paper",
            "where": {"scenario": "updown"},
        },
        ("scenario", "setting"),
    )
    assert plan_for_run(plan, {"scenario": "up", "setting": 4}) is None
    own = plan_for_run(plan, {"scenario": "updown", "setting": 3})
    assert (own.stations, own.downloads) == (("3x11",), "3")
    record = record_run(str(zhang / "updown-3-tfrc-1.tr.xz"), "run", MeasuringPlan(replay=own), [])
    uploads = [flow["replayed"] for flow in record["flows"] if flow["numbers"]["src_port"] == 10]
    # docs/validation.md, kbit/s
    for name, known in (("tfrc", (1141, 1530, 1978)), ("mtfrc", (852, 1016, 1030))):
        assert [rate / 1e3 for rate in sorted(one[name] for one in uploads)] == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"algorithms": ["mtfrc"]}, "`stations` say who shares the medium"),
        ({"algorithms": ["tfrc"], "stations": ["11"]}, "`stations` say who shares the medium"),
        ({"algorithms": ["mtfrc"], "stations": ["{n}x11"]}, "there is no `n`"),
        ({"algorithms": ["nothing"]}, "nothing"),
        ({"profile": "mine"}, "profile"),
        ({"where": {"n": 1}}, "there is no `n`"),
        ({"speed": 1}, "speed"),
    ],
)
def test_what_cannot_be_replayed_is_refused_before_the_first_run(table, words):
    from tfrctrace.study.replayed_rates import parse_replay_plan

    with pytest.raises(UsageError, match=words):
        parse_replay_plan(table, ("setting",))


def test_two_labels_for_one_flow_are_reported_once_for_all_runs():
    runs = [Run(str(path), path.name, {}) for path in RUNS[:3]]
    measuring = MeasuringPlan(labels=("first=transport tcp", "second=transport tcp"))
    (problem,) = merge_problems(measure_runs(study_tasks(runs, measuring, ()), workers=processes(1)))
    assert (problem["source"], problem["kind"]) == ("second=transport tcp", "label")
    assert problem["message"].startswith("fits flows that have a label already")
    assert problem["message"].endswith(", in 3 of 3 runs")


def option_problem(kind, message):
    return input_problem("x=port 9", kind, message, severity="warning")


def test_a_problem_of_an_option_is_merged_by_what_it_is_and_not_by_its_words():
    records = [
        {"failed": False, "problems": []},
        {"failed": False, "problems": [option_problem("label", "fits 1"), option_problem("other", "so")]},
        {"failed": False, "problems": [option_problem("label", "fits 2"), option_problem("other", "so")]},
        {"failed": True, "problems": [option_problem("label", "fits 3")]},
    ]
    merged = merge_problems(MeasuredRuns(["a", "b", "c", "d"], records, 0))
    assert [problem["message"] for problem in merged] == [
        "fits 1, in 2 of 3 runs, first in `b`",
        "so",
        "so",
        "fits 3",
    ]


def test_an_option_that_fits_one_run_is_enough_where_runs_differ():
    records = [{"failed": False, "problems": [option_problem("unused_label", "fits no flow")]} for _ in "ab"]
    (problem,) = merge_problems(MeasuredRuns(["a", "b"], records, 0), needed_once=True)
    assert problem["message"] == "fits no flow, in 2 of 2 runs"
    records[1]["problems"] = []
    assert merge_problems(MeasuredRuns(["a", "b"], records, 0), needed_once=True) == []
