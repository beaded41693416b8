"""Runs measured in processes: a process that dies takes nothing but its own run with it."""

from __future__ import annotations

import os
from pathlib import Path

from tfrctrace.experiment.runs import Run
from tfrctrace.experiment.study import Measuring
from tfrctrace.experiment.working import Silent, measure_runs

RUNS = sorted((Path(__file__).parents[2] / "data" / "study" / "runs").iterdir())


class Deadly:
    """What ends the process that unpacks it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_process_that_dies_is_named_and_the_others_are_done():
    runs = [Run(str(path), path.name, {"x": Deadly()} if path == RUNS[1] else {}) for path in RUNS[:3]]
    measured = measure_runs(runs, Measuring(), (), jobs=2, cache=None, force=False, progress=Silent())
    assert [record["failed"] for record in measured.records] == [False, True, False]
    (problem,) = measured.records[1]["problems"]
    assert problem["source"] == RUNS[1].name
    assert "the process that measured it was ended" in problem["message"]


def test_progress_counts_up_to_all_runs():
    class Seen:
        def __init__(self):
            self.steps = []

        def advance(self, done, of, cached):
            self.steps.append((done, of, cached))

    seen = Seen()
    runs = [Run(str(path), path.name, {}) for path in RUNS[:2]]
    measure_runs(runs, Measuring(), (), jobs=1, cache=None, force=False, progress=seen)
    assert seen.steps == [(0, 2, 0), (1, 2, 0), (2, 2, 0)]
