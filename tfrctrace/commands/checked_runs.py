"""The runs that `tfrctrace check` judges: read and measured side by side."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.commands.console import Console
from tfrctrace.parsers.reading_settings import WITHOUT_EFFECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.commands.options.measuring_options import MeasuringOptions
    from tfrctrace.commands.options.reading_options import ReadingOptions
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.quantities import QuantityValues
    from tfrctrace.runs.cache import Cache, Record, RunInput
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.runs.workers import Workers

_BOUNDS: Final = ("max_flows", "max_decompressed_bytes", "strict")
"""Options that decide how much of an input is read, and whether it is an error if a part is not."""


_NAMES_SHOWN: Final = 2
"""Files in the name of a run: two of a pair."""


class RecordingConsole(Console):
    """A console that keeps the problems, for results that are files."""

    def __init__(self, *, quiet: bool, strict: bool, is_silent: bool = False) -> None:
        """With `is_silent` problems are kept and not printed."""
        super().__init__(quiet=quiet, strict=strict)
        self.problems: list[Problem] = []
        self._is_silent = is_silent

    def print_problems(self, problems: Iterable[Problem]) -> None:
        """Keep problems, and print them."""
        found = list(problems)
        for problem in found:
            is_error = self.strict and problem["severity"] == "warning"
            self.problems.append({**problem, "severity": "error"} if is_error else problem)
        if not self._is_silent:
            super().print_problems(found)


@dataclass(frozen=True, slots=True)
class CheckTask:
    """One run: its inputs, how they are read and measured, and what is taken from them."""

    names: tuple[str, ...]
    measuring: MeasuringOptions
    reading: ReadingOptions
    quantities: tuple[Quantity, ...]
    objectives: tuple[Objective, ...]

    @property
    def source(self) -> RunInput:
        """The inputs, and the options that change numbers or problems."""
        from tfrctrace.runs.cache import RunInput

        options = {
            "quantities": sorted({quantity.name for quantity in self.quantities}),
            "objectives": [asdict(objective) for objective in self.objectives],
            **measuring_facts(self.measuring, self.reading),
            **{name: getattr(self.reading, name) for name in _BOUNDS},
        }
        return RunInput(_run_name(self.names), self.names, options)

    def makes(self, record: Record) -> bool:
        """Return whether a record has the values of all quantities and the outcomes of all objectives."""
        from tfrctrace.metrics.results.records import CheckRecord, is_a

        return (
            is_a(CheckRecord, record)
            and record["taken"].keys() == {quantity.name for quantity in self.quantities}
            and len(record["objectives"]) == len(self.objectives)
        )

    def measure(self) -> Record:
        """Return the record, which has the values of the quantities and the outcomes of the objectives."""
        import msgspec

        from tfrctrace.gate.objective_results import judge_objectives
        from tfrctrace.gate.objective_verdict import run_outcome
        from tfrctrace.gate.values import needed_tables, take_quantities
        from tfrctrace.trace.labels import parse_rule

        own = RecordingConsole(quiet=self.reading.quiet, strict=self.reading.strict, is_silent=True)
        try:
            trace = self.reading.open(list(self.names), own, bin_ns=self.measuring.bin_ns)
            taken: Mapping[str, QuantityValues] = {}
            # as much as possible from one pass, which is all that standard input has
            rules = [parse_rule(text) for text in self.measuring.label or ()]
            wanted = needed_tables(self.quantities, rules)
            if trace.is_read_once:
                wanted = (*wanted, "cause_sums")  # which metrics need where a TCP flow has a small rate
            if self.objectives:
                trace.read_groups(self.objectives[0].grouping, *wanted)
            else:
                trace.read(*wanted)
            if self.quantities:
                measured = trace.measure(**self.measuring.arguments(), columns=())
                taken = take_quantities(trace, measured, self.quantities)
            outcomes = [
                msgspec.to_builtins(run_outcome(judged, self.source.name))
                for judged in judge_objectives(trace, self.objectives, self.measuring.label or ())
            ]
        except InputError as error:
            return {"failed": True, "problems": [*own.problems, *error.problems]}
        values = msgspec.to_builtins(taken)
        return {"failed": False, "problems": own.problems, "taken": values, "objectives": outcomes}


def _run_name(names: tuple[str, ...]) -> str:
    return " and ".join(names) if len(names) <= _NAMES_SHOWN else f"{names[0]} and {len(names) - 1} more"


def measuring_facts(measuring: MeasuringOptions, reading: ReadingOptions) -> dict[str, Any]:
    """Return the options that change numbers, by their names."""
    left_out = {*_BOUNDS, "quiet", *WITHOUT_EFFECT}
    if reading.since is None and reading.until is None:
        left_out.add("timezone")
    read_with = {
        field.name: getattr(reading, field.name) for field in fields(reading) if field.name not in left_out
    }
    return {**measuring.arguments(), **read_with}


def measured_runs(
    traces: list[str],
    measuring: MeasuringOptions,
    reading: ReadingOptions,
    quantities: Sequence[Quantity],
    console: Console,
    *,
    objectives: Sequence[Objective],
    workers: Workers,
    cache: Cache | None,
) -> list[CheckedRun]:
    """Return the runs of `traces` that can be read, and print the problems of all.

    Raises `InputError` if none can be read.
    """
    from tfrctrace.gate.values import run_of
    from tfrctrace.runs.copies import without_copies
    from tfrctrace.runs.engine import measure_runs
    from tfrctrace.runs.problems import merge_problems

    named, unread = _inputs(traces, reading)
    inputs, copies = without_copies(named)
    # several bars of progress would be drawn over each other
    own = replace(reading, quiet=reading.quiet or min(workers.jobs, len(inputs)) > 1)
    tasks = [CheckTask(names, measuring, own, tuple(quantities), tuple(objectives)) for names in inputs]
    measured = measure_runs(tasks, workers=workers, store=cache)
    problems = [*merge_problems(measured), *unread, *copies]
    runs = [
        run_of(name, record)
        for name, record in zip(measured.names, measured.records, strict=True)
        if not record["failed"]
    ]
    if not runs:
        raise InputError(problems)
    console.print_problems(problems)
    return runs


def _inputs(traces: list[str], reading: ReadingOptions) -> tuple[list[tuple[str, ...]], list[Problem]]:
    """Return the inputs of each run, and the problems of those left out."""
    from tfrctrace.parsers.sources import find_inputs

    if reading.pair:
        if len(traces) % 2:
            raise UsageError(
                f"with `--pair` each two captures are a run, and there are {len(traces)}",
                hint="name the capture near the sender and that near the receiver of each run",
            )
        return [tuple(traces[place : place + 2]) for place in range(0, len(traces), 2)], []
    if reading.join:
        folders = [name for name in traces if os.path.isdir(name)]
        files = tuple(name for name in traces if name not in folders)
        return [*([files] if files else []), *((folder,) for folder in folders)], []
    found = find_inputs(traces)
    return [(name,) for name in found.names], list(found.problems)
