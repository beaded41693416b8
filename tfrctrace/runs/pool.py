"""Measure runs in parallel, in processes or threads, and reuse cached records."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tfrctrace.base.errors import input_problem
from tfrctrace.base.interruptible import as_finished
from tfrctrace.runs.record_shape import has_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from tfrctrace.runs.cache import Cache, Record, RunInput


class Task(Protocol):
    """One run to be measured. A run that cannot be read has a record with `failed` set."""

    @property
    def source(self) -> RunInput:
        """What is measured, and how."""
        ...

    @property
    def shape(self) -> Mapping[str, Any]:
        """The parts of a record that did not fail, for `record_shape.has_shape`."""
        ...

    def measure(self) -> Record:
        """Return the record. An exception ends the other tasks, too."""
        ...


class Progress(Protocol):
    """Receives the progress of the work."""

    def advance(self, done: int, of: int, cached: int) -> None:
        """Report that `done` of `of` runs are done, `cached` of them from the cache."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The names and records of all runs, in their order, and how many came from the cache."""

    names: list[str]
    records: list[Record]
    cached: int


def processes(workers: int) -> Executor:
    """Return a pool of processes, which are spawned: a fork would copy the core's locks as they are held."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def measure_runs(
    tasks: Sequence[Task],
    *,
    jobs: int,
    cache: Cache | None,
    force: bool = False,
    progress: Progress | None = None,
    executor: Callable[[int], Executor] = processes,
) -> MeasuredRuns:
    """Return the record of each task, measuring `jobs` of them at a time.

    With `force` no record is taken from the cache, but all are put there. One worker is this process itself.
    """
    report = progress.advance if progress else lambda *_: None
    keys = [None if cache is None else task.source.key() for task in tasks]
    records: dict[int, Record] = {}
    if cache is not None and not force:
        for place, key in enumerate(keys):
            record = None if key is None else cache.get(key)
            if record is not None and has_shape(record, tasks[place].shape):
                records[place] = record
    cached = len(records)
    report(cached, len(tasks), cached)
    waiting = [place for place in range(len(tasks)) if place not in records]
    for place, record in _completed(tasks, waiting, jobs, executor):
        records[place] = record
        key = keys[place]
        # a run that could not be read may be there the next time
        if cache is not None and key is not None and not record["failed"]:
            cache.put(key, record)
        report(len(records), len(tasks), cached)
    if cache is not None and waiting:
        cache.trim()
    names = [task.source.name for task in tasks]
    return MeasuredRuns(names, [records[place] for place in range(len(tasks))], cached)


def failed_record(name: str, message: str, hint: str | None = None) -> Record:
    """Return the record of a run that could not be measured."""
    return {"failed": True, "problems": [input_problem(name, "run", message, hint=hint)]}


def _completed(
    tasks: Sequence[Task], waiting: Sequence[int], jobs: int, executor: Callable[[int], Executor]
) -> Iterator[tuple[int, Record]]:
    """Give the records as they are ready."""
    workers = min(jobs, len(waiting))
    if workers <= 1:
        yield from ((place, tasks[place].measure()) for place in waiting)
        return
    left = set(waiting)
    try:
        for place, record in _in_pool(tasks, waiting, executor(workers)):
            left.discard(place)
            yield place, record
    except BrokenProcessPool:
        # one run has ended its process and with it the pool: alone, each of the others shows whether it did
        for place in sorted(left):
            yield place, _alone(tasks, place, executor)


def _in_pool(tasks: Sequence[Task], places: Sequence[int], pool: Executor) -> Iterator[tuple[int, Record]]:
    not_ours = set(multiprocessing.active_children())
    try:
        futures = {pool.submit(tasks[place].measure): place for place in places}
        for future in as_finished(futures):
            yield futures[future], future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # nobody wants what they work on, and an interrupt of this process alone has not reached them
        for worker in set(multiprocessing.active_children()) - not_ours:
            worker.terminate()
        raise
    pool.shutdown()


def _alone(tasks: Sequence[Task], place: int, executor: Callable[[int], Executor]) -> Record:
    try:
        ((_, record),) = _in_pool(tasks, [place], executor(1))
    except BrokenProcessPool:
        name = tasks[place].source.name
        return failed_record(name, "the process that measured it ended, perhaps for lack of memory")
    return record
