"""Measure one run of a study: its metrics, its flows and, if a figure needs them, its series.

Quantities are taken from the record afterwards (`results/run_quantities.py`): another quantity does not need
the run to be read again.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import (
    InputError,
    NoArrivalsError,
    TfrctraceError,
    TfrctraceWarning,
    UsageError,
)
from tfrctrace.base.shortage import HINTS as SHORTAGE_HINTS
from tfrctrace.base.shortage import shortage
from tfrctrace.base.toml import one_of
from tfrctrace.parsers.schema import FLOWS
from tfrctrace.runs.cache import RunInput
from tfrctrace.runs.engine import failed_record
from tfrctrace.runs.problems import OF_OPTIONS
from tfrctrace.study.find_runs import FAILED
from tfrctrace.study.nothing_arrived import known_numbers, measured_or_nothing, zero_series
from tfrctrace.study.replayed_rates import mean_rates, plan_for_run
from tfrctrace.study.time_series import series_of, warn
from tfrctrace.trace.measuring import base_width_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.api import Trace
    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.metrics import Basis
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.metrics.sets.competing import CompetingSet
    from tfrctrace.runs.cache import Record
    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.study.find_runs import Run
    from tfrctrace.trace.measuring import MeasuredMetrics

MAX_FLOWS: Final = 1_000
"""Flows of a run that are measured, those with most data packets: its record has some 200 numbers of each,
and those of all runs are in memory together."""

_LONGEST_REASON: Final = 2_000
"""Characters of the reason why a run was not made."""

_NUMBERS: Final = [column.name for column in FLOWS if column.type != "string"]


@dataclass(frozen=True, slots=True)
class StudyTask:
    """One run, and what is measured of it."""

    run: Run
    measuring: MeasuringPlan
    series: tuple[str, ...]

    def makes(self, record: Record) -> bool:
        """Return whether a record has all that is measured."""
        from tfrctrace.metrics.results.records import is_a
        from tfrctrace.metrics.results.study import StudyRecord

        return is_a(StudyRecord, record) and all(
            flow["numbers"].keys() == set(_NUMBERS) for flow in record["flows"]
        )

    @property
    def source(self) -> RunInput:
        """The file of the run, and the options that change its record."""
        options = {**asdict(self.measuring), "series": sorted(self.series)}
        return RunInput(self.run.name, (self.run.path,), options)

    def measure(self) -> Record:
        """Return the record; what happens to this run alone must not end the others."""
        try:
            if not os.path.exists(self.run.path) and os.path.isfile(self.run.path + FAILED):
                return _failed_to_be_made(self.run)
            return record_run(self.run.path, self.run.name, self.measuring, self.series)
        except UsageError:
            raise  # it would be the same with other runs
        except Exception as error:
            lacking = shortage(error)
            if lacking is not None:
                return failed_record(self.run.name, lacking, SHORTAGE_HINTS[lacking])
            return failed_record(self.run.name, f"internal error: {type(error).__name__}: {error}")


def _failed_to_be_made(run: Run) -> Record:
    """Return the record of a run of which there is the reason only why there is no trace."""
    with open(run.path + FAILED, encoding="utf-8", errors="replace") as file:
        reason = " ".join(file.read(_LONGEST_REASON).split())
    return failed_record(run.name, f"was not made: {reason or 'no reason was written'}")


def study_record(record: Record) -> StudyRecord | None:
    """Return what is kept of a run; None if it could not be read."""
    import msgspec

    from tfrctrace.metrics.results.study import StudyRecord

    return None if record["failed"] else msgspec.convert(record, StudyRecord)


def study_tasks(runs: Sequence[Run], measuring: MeasuringPlan, series: Sequence[str]) -> list[StudyTask]:
    """Return a task for each run, with the replays that are meant for it."""
    return [
        StudyTask(run, replace(own, replay=plan_for_run(own.replay, run.parameters)), tuple(series))
        for run in runs
        for own in (run.measure or measuring,)
    ]


def check_reading(measuring: MeasuringPlan) -> None:
    """Raise `UsageError` or `FilterError` for settings with which no run can be read."""
    from tfrctrace.parsers._native import node_layers
    from tfrctrace.parsers.reading_settings import read_settings

    if measuring.layer is not None:
        one_of(measuring.layer, node_layers(), "layer")
    read_settings(measuring.reading)


def record_run(path: str, called: str, measuring: MeasuringPlan, series: Sequence[str]) -> Record:
    """Return the record of the run at `path`, with the `series` that are asked for.

    A run that cannot be read has a record with `failed` set, and the problems. Raises `UsageError` for
    options that do not fit it.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record: Record = {"failed": False, **_measured(path, measuring, series)}
        except InputError as error:
            record = {"failed": True, "problems": error.problems}
        except NoArrivalsError as error:
            hint = "`both_ends = true` below `[measure]` says that the traces would show arrivals"
            record = failed_record(called, str(error), hint)
        except UsageError:
            raise
        except TfrctraceError as error:
            record = failed_record(called, str(error), error.hint)
    warned = [one.message.problem for one in caught if isinstance(one.message, TfrctraceWarning)]
    record["problems"] = [_of_run(one, path, called) for one in (*warned, *record.get("problems", ()))]
    return record


def _of_run(problem: Problem, path: str, called: str) -> Problem:
    """Return a problem with the name that the study gives the run; those of options stay as they are."""
    source = problem["source"]
    if problem["kind"] in OF_OPTIONS:
        return problem
    below = os.path.relpath(source, path) if source.startswith(os.path.join(path, "")) else ""
    return {**problem, "source": os.path.join(called, below) if below else called}


def _measured(path: str, measuring: MeasuringPlan, series: Sequence[str]) -> Record:
    import msgspec

    import tfrctrace

    window_ns = parse_duration_ns(measuring.window)
    trace = tfrctrace.open(
        path,
        **measuring.reading,
        bin_width=None if measuring.basis == "received" else f"{base_width_ns(window_ns)}ns",
    )
    measured, metrics = measured_or_nothing(lambda basis: _measured_by(trace, measuring, basis), measuring)
    flows, beyond = measured.asked.largest(MAX_FLOWS, _NUMBERS)
    if beyond:
        warn(
            "flows",
            f"flows left out beside the {MAX_FLOWS:,} with most data packets: {beyond:,}",
            "a `filter`, `only_labelled` or more `least_packets` below `[measure]` chooses",
        )
    replayed = mean_rates(trace, measuring.replay) if measuring.replay else {}
    chosen = max(measured.sets, key=_weight, default=None)
    number = None if chosen is None else chosen.number
    return {
        "sets": len(measured.sets) + measured.sets_left_out,
        "set": None if chosen is None else _set_facts(chosen),
        "least_packets": measured.least_packets,
        "flows_left_out": measured.flows_left_out,
        "metrics": [
            {**msgspec.to_builtins(metric), "flows": list(metric.flows)}
            for metric in metrics
            if metric.competing_set in {None, number}
        ],
        "flows": [
            {
                "flow": numbers["flow"],
                "group": group,
                "numbers": known_numbers(numbers) if measuring.both_ends else numbers,
                "replayed": replayed.get(numbers["flow"], {}),
            }
            for group, numbers in zip(
                flows["group"], flows.select(_NUMBERS).iter_rows(named=True), strict=True
            )
        ],
        "series": {name: _series(trace, measured, measuring, name) for name in series},
    }


def _series(trace: Trace, measured: MeasuredMetrics, measuring: MeasuringPlan, name: str) -> list[Record]:
    try:
        return list(series_of(trace, measured, measuring, name))
    except NoArrivalsError:
        if not measuring.both_ends:
            raise
        return zero_series(measured, name)


def _measured_by(trace: Trace, measuring: MeasuringPlan, basis: Basis) -> MeasuredMetrics:
    return trace.measure(
        window=measuring.window,
        warmup=measuring.warmup,
        basis=basis,
        labels=measuring.labels,
        only_labelled=measuring.only_labelled,
        least_packets=measuring.least_packets,
        most_flows=MAX_FLOWS,
        capacity=measuring.capacity,
        weight=measuring.weight,
        step=measuring.step,
        sparse_share=measuring.sparse_share,
        columns=(),
    )


def _weight(one: CompetingSet) -> tuple[int, int]:
    """Return how much there is to compare; of equal sets the first counts."""
    return len(one.flows) * (one.windows.end_ns - one.windows.start_ns), -one.number


def _set_facts(one: CompetingSet) -> Record:
    return {
        "source": one.source,
        "flows": list(one.flows),
        "start_ns": one.windows.start_ns,
        "end_ns": one.windows.end_ns,
    }
