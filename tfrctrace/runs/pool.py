"""All runs of a study measured: those that are not in the cache, in processes beside each other."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from tfrctrace.base.errors import input_problem
from tfrctrace.base.interruptible import as_finished
from tfrctrace.study.cache import key_of
from tfrctrace.study.replayed_rates import plan_for_run
from tfrctrace.study.run_record import record_run
from tfrctrace.study.time_series import NO_SERIES
from tfrctrace.trace.labels import CLASH, CLASHES, UNUSED
from tfrctrace.trace.measuring import UNUSED_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.study.cache import Cache
    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.study.find_runs import Run
    from tfrctrace.study.run_record import Record

ALL_OR_NONE: Final = frozenset({UNUSED, UNUSED_WEIGHT, NO_SERIES})
"""Kinds of problems that are some only if every run has them: labels and figures may be about a few runs."""


class Progress(Protocol):
    """Somebody who wants to know how far the work is."""

    def advance(self, done: int, of: int, cached: int) -> None:
        """Learn that `done` of so many runs are done, `cached` of them without work."""
        ...


class NoProgress:
    """Nobody wants to know."""

    def advance(self, done: int, of: int, cached: int) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run, what is asked of it, and the key of its record; None if the run cannot be read."""

    run: Run
    measuring: MeasuringPlan
    series: tuple[str, ...]
    key: str | None


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The records of all runs, in their order, and how many of them came from the cache."""

    records: list[Record]
    cached: int

    def problems(self) -> Iterator[Problem]:
        """Give the problems of all runs; what only some runs lack (`ALL_OR_NONE`) is none.

        Two labels for one flow are told once, of the first run that has such a flow.
        """
        read = sum(not record["failed"] for record in self.records)
        lacking: dict[str, list[Problem]] = {}
        clashing: dict[str, list[Problem]] = {}
        for record in self.records:
            for problem in record["problems"]:
                if problem["kind"] in ALL_OR_NONE:
                    lacking.setdefault(problem["message"], []).append(problem)
                elif problem["kind"] == CLASH:
                    # which flows they are differs from run to run
                    rule, _, _ = problem["message"].partition(CLASHES)
                    clashing.setdefault(rule, []).append(problem)
                else:
                    yield problem
        for first, *others in clashing.values():
            also = f"; so in {len(others)} more run{'' if len(others) == 1 else 's'}" if others else ""
            yield {**first, "message": first["message"] + also}
        for message, told in lacking.items():
            if len(told) == read:
                yield {**told[0], "message": f"{message} of any run" if read > 1 else message}


def measure_runs(
    runs: Sequence[Run],
    measuring: MeasuringPlan,
    series: Sequence[str],
    *,
    jobs: int,
    cache: Cache | None,
    force: bool,
    progress: Progress,
) -> MeasuredRuns:
    """Return the record of each run; with `force` none is taken from the cache, but all are put there."""
    tasks = []
    for run in runs:
        own = replace(measuring, replay=plan_for_run(measuring.replay, run.parameters))
        tasks.append(Task(run, own, tuple(series), _key(run, own, series) if cache else None))
    records: dict[int, Record] = {}
    if cache is not None and not force:
        for place, task in enumerate(tasks):
            if task.key is not None and (record := cache.get(task.key)) is not None:
                records[place] = record
    cached = len(records)
    progress.advance(cached, len(runs), cached)
    waiting = [place for place in range(len(tasks)) if place not in records]
    for place, record in _completed(tasks, waiting, jobs):
        records[place] = record
        key = tasks[place].key
        # a run that could not be read may be there the next time
        if cache is not None and key is not None and not record["failed"]:
            cache.put(key, record)
        progress.advance(len(records), len(runs), cached)
    if cache is not None and waiting:
        cache.trim()
    return MeasuredRuns([records[place] for place in range(len(tasks))], cached)


def _key(run: Run, measuring: MeasuringPlan, series: Sequence[str]) -> str | None:
    try:
        return key_of(run, measuring, series)
    except OSError:
        return None  # reading it will say why


def _completed(tasks: Sequence[Task], waiting: Sequence[int], jobs: int) -> Iterator[tuple[int, Record]]:
    """Give the records as they are ready."""
    if min(jobs, len(waiting)) <= 1:
        yield from ((place, record_of(tasks[place])) for place in waiting)
        return
    left = set(waiting)
    try:
        for place, record in _in_processes(tasks, waiting, jobs):
            left.discard(place)
            yield place, record
    except BrokenProcessPool:
        # one run has ended its process, and with it those of others: alone each says whether it was that one
        for place in sorted(left):
            yield place, _in_this_process(tasks, place)


def _in_processes(tasks: Sequence[Task], places: Sequence[int], jobs: int) -> Iterator[tuple[int, Record]]:
    # a fork would copy the locks of the core's threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    not_ours = set(multiprocessing.active_children())
    with ProcessPoolExecutor(min(jobs, len(places)), mp_context=context) as pool:
        try:
            futures = {pool.submit(record_of, tasks[place]): place for place in places}
            for future in as_finished(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # nobody wants what they work on, and an interrupt of this process alone has not reached them
            for worker in set(multiprocessing.active_children()) - not_ours:
                worker.terminate()
            raise


def _in_this_process(tasks: Sequence[Task], place: int) -> Record:
    try:
        ((_, record),) = _in_processes(tasks, [place], 1)
    except BrokenProcessPool:
        return _failed(tasks[place], "the process that measured it was ended, perhaps for want of memory")
    return record


def record_of(task: Task) -> Record:
    """Return the record of one run; whatever happens to it must not end the others."""
    try:
        return record_run(task.run.path, task.run.name, task.measuring, task.series)
    except Exception as error:
        return _failed(task, f"internal error: {type(error).__name__}: {error}")


def _failed(task: Task, message: str) -> Record:
    return {"failed": True, "problems": [input_problem(task.run.name, "run", message)]}
