"""The runs that `tfrctrace check` judges: opened and measured side by side, and what is told of them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.commands.console import Console
from tfrctrace.trace.labels import CLASH, CLASHES, UNUSED
from tfrctrace.trace.measuring import UNUSED_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.table_names import TableName
    from tfrctrace.commands.options.measuring_options import MeasuringOptions
    from tfrctrace.commands.options.reading_options import ReadingOptions
    from tfrctrace.gate.quantity import Quantity
    from tfrctrace.gate.values import Run
    from tfrctrace.study.cache import Cache

_BOUNDS: Final = ("max_flows", "max_decompressed_bytes", "strict")
"""Options that decide how much of an input is read, and how grave it is if not all of it can be."""

_OF_RULES: Final = frozenset({UNUSED, UNUSED_WEIGHT, CLASH})
"""Kinds of problems with what was asked of all runs alike, not with one of them."""


class RecordingConsole(Console):
    """A console that keeps what it is told, for those who read files instead of a terminal."""

    def __init__(self, *, quiet: bool, strict: bool, is_silent: bool = False) -> None:
        """With `is_silent` what is told is only kept."""
        super().__init__(quiet=quiet, strict=strict)
        self.problems: list[Problem] = []
        self._is_silent = is_silent

    def tell(self, problems: Iterable[Problem]) -> None:
        """Keep problems, and say them."""
        told = list(problems)
        for problem in told:
            is_error = self.strict and problem["severity"] == "warning"
            self.problems.append({**problem, "severity": "error"} if is_error else problem)
        if not self._is_silent:
            super().tell(told)


@dataclass(frozen=True, slots=True)
class _RunOutcome:
    """What became of one run; `run` is None if it cannot be read."""

    run: Run | None
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """How each run is read and measured, what is taken from it, and where runs are `kept`."""

    measuring: MeasuringOptions
    reading: ReadingOptions
    quantities: tuple[Quantity, ...]
    kept: Cache | None

    def done(self, names: list[str], *, is_quiet: bool) -> _RunOutcome:
        """Return the run of the inputs `names`, measured now if it is not kept."""
        from tfrctrace.gate.cached_runs import gate_key, run_from_record, run_to_record

        if self.kept is None:
            return self._measured(names, is_quiet=is_quiet)
        bounds = {name: getattr(self.reading, name) for name in _BOUNDS}
        key = gate_key(names, self.quantities, {**measuring_facts(self.measuring, self.reading), **bounds})
        record = None if key is None else self.kept.get(key)
        if record is not None:
            return _RunOutcome(*run_from_record(record))
        done = self._measured(names, is_quiet=is_quiet)
        # a run that could not be read may be there the next time
        if key is not None and done.run is not None:
            self.kept.put(key, run_to_record(done.run, done.problems))
        return done

    def _measured(self, names: list[str], *, is_quiet: bool) -> _RunOutcome:
        from tfrctrace.gate.values import measure_quantities, needs_samples

        tables: tuple[TableName, ...] = ("flows", "bins", "rtt")
        own = RecordingConsole(quiet=is_quiet, strict=self.reading.strict, is_silent=True)
        try:
            trace = self.reading.open(names, own, bin_ns=self.measuring.bin_ns)
            # all of it from one pass, which is all that standard input has
            trace.read(*(tables if needs_samples(self.quantities) else tables[:2]))
            measured = trace.measure(**self.measuring.arguments())
            return _RunOutcome(
                measure_quantities(" and ".join(names), trace, measured, self.quantities), own.problems
            )
        except InputError as error:
            return _RunOutcome(None, [*own.problems, *error.problems])


def measuring_facts(measuring: MeasuringOptions, reading: ReadingOptions) -> dict[str, Any]:
    """Return what changes numbers, by the names of the options."""
    left_out = {*_BOUNDS, "quiet"}
    said = {one.name: getattr(reading, one.name) for one in fields(reading) if one.name not in left_out}
    return {**measuring.arguments(), **said}


def measure_runs(
    traces: list[str], asked: CheckRequest, console: RecordingConsole, *, jobs: int | None
) -> list[Run]:
    """Return the runs of `traces` that can be read; the console is told of the others.

    Raises `InputError` if none can be.
    """
    inputs, unread = _inputs(traces, asked.reading)
    done = _side_by_side(inputs, asked, min(jobs or os.cpu_count() or 1, max(len(inputs), 1)))
    if asked.kept is not None:
        asked.kept.trim()
    runs = [one.run for one in done if one.run is not None]
    unread += [problem for one in done if one.run is None for problem in one.problems]
    if not runs:
        raise InputError(unread)
    console.tell(_merge_repeated([one.problems for one in done if one.run is not None]))
    console.tell(unread)
    return runs


def _inputs(traces: list[str], reading: ReadingOptions) -> tuple[list[list[str]], list[Problem]]:
    """Return the inputs of each run, and what is wrong with those that are none."""
    from tfrctrace.parsers.sources import find_inputs

    if reading.pair:
        if len(traces) % 2:
            raise UsageError(
                f"with `--pair` each two captures are a run, and there are {len(traces)}",
                hint="name the capture near the sender and that near the receiver of each run",
            )
        return [traces[place : place + 2] for place in range(0, len(traces), 2)], []
    if reading.join:
        return [[name] for name in traces], []
    found = find_inputs(traces)
    return [[name] for name in found.names], list(found.problems)


def _side_by_side(inputs: list[list[str]], asked: CheckRequest, workers: int) -> list[_RunOutcome]:
    """Return what became of each run, in their order."""
    from concurrent.futures import ThreadPoolExecutor

    from tfrctrace.base.interruptible import as_finished

    # several bars of progress would be drawn over each other
    is_quiet = asked.reading.quiet or workers > 1
    with _stopping(ThreadPoolExecutor(workers)) as pool:
        waiting = [pool.submit(asked.done, names, is_quiet=is_quiet) for names in inputs]
        for one in as_finished(waiting):
            one.result()  # an error of any run ends them all
    return [one.result() for one in waiting]


@contextmanager
def _stopping(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Give a pool whose waiting work is forgotten when something goes wrong."""
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _merge_repeated(of_runs: Sequence[list[Problem]]) -> list[Problem]:
    """Return the problems of all runs; what is wrong with a rule stands once, with in how many of them."""
    rules: dict[tuple[str, str, str], list[Problem]] = {}
    others = []
    for problem in (problem for problems in of_runs for problem in problems):
        if problem["kind"] in _OF_RULES:
            # which flows have two labels differs from run to run
            words, _, _ = problem["message"].partition(CLASHES)
            rules.setdefault((problem["kind"], problem["source"], words), []).append(problem)
        else:
            others.append(problem)
    if len(of_runs) == 1:
        return [*(told[0] for told in rules.values()), *others]
    counted: list[Problem] = [
        {**told[0], "message": f"{told[0]['message']}, in {len(told)} of {len(of_runs)} runs"}
        for told in rules.values()
    ]
    return [*counted, *others]
