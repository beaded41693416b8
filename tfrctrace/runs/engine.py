"""Perform many tasks side by side, in any executor, and reuse the records that are kept of them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from tfrctrace.base.errors import TfrctraceError, input_problem
from tfrctrace.base.interruptible import first_finished
from tfrctrace.runs.cache import program_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future

    from tfrctrace.runs.cache import Record, RunInput
    from tfrctrace.runs.workers import Workers

AHEAD: Final = 2
"""Tasks that wait beside those that are performed: with more, a worker that dies takes more with it."""


class Task(Protocol):
    """What has to be done with one run. If that cannot be read, its record has `failed` set."""

    @property
    def source(self) -> RunInput:
        """What the record is made of."""
        ...

    def makes(self, record: Record) -> bool:
        """Return whether it could have made this record, which did not fail and anybody may have written."""
        ...

    def measure(self) -> Record:
        """Return the record. A `TfrctraceError` ends the other tasks, too."""
        ...


class Store(Protocol):
    """Where records are kept."""

    is_filled_by_tasks: ClassVar[bool]
    """Whether each task puts its own record there, also that of a failure."""

    def get(self, key: str) -> Record | None:
        """Return the record of `key`; None if it is missing, damaged, or to be made again."""
        ...

    def put(self, key: str, record: Record) -> None:
        """Keep a record."""
        ...

    def trim(self) -> None:
        """Remove what is not needed any more."""
        ...


class Progress(Protocol):
    """Receives the progress of the work."""

    def advance(self, done: int, of: int, cached: int) -> None:
        """Report that `done` of `of` tasks are done, `cached` of them before."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The names and records of all tasks, in their order, and how many were kept from before."""

    names: list[str]
    records: list[Record]
    cached: int


def measure_runs(
    tasks: Sequence[Task],
    *,
    workers: Workers,
    store: Store | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> MeasuredRuns:
    """Return the record of each task, performing only those of which the store has none.

    With `force` no record is taken from the store, but all are put there.
    """
    report = progress.advance if progress else lambda *_: None
    program = program_digest()
    keys = [None if store is None else task.source.key(program) for task in tasks]
    records: dict[int, Record] = {}
    if store is not None and not force:
        for place, key in enumerate(keys):
            record = None if key is None else store.get(key)
            if record is not None and _is_usable(record, tasks[place]):
                records[place] = record
    cached = len(records)
    report(cached, len(tasks), cached)
    waiting = [place for place in range(len(tasks)) if place not in records]
    for place, record in _completed(tasks, waiting, workers):
        records[place] = record
        key = keys[place]
        if not (store is None or key is None or store.is_filled_by_tasks or record["failed"]):
            store.put(key, record)
        report(len(records), len(tasks), cached)
    if store is not None and waiting:
        store.trim()
    names = [task.source.name for task in tasks]
    return MeasuredRuns(names, [records[place] for place in range(len(tasks))], cached)


def _is_usable(record: Record, task: Task) -> bool:
    """Return whether a record from a store, which anybody may have written, is what the task makes."""
    from tfrctrace.metrics.results.records import RunRecord, is_a

    if isinstance(record, dict) and record.get("failed") is True:
        return is_a(RunRecord, {name: record.get(name) for name in RunRecord.__struct_fields__})
    return task.makes(record)


def failed_record(name: str, message: str, hint: str | None = None) -> Record:
    """Return the record of a run that could not be measured."""
    return {"failed": True, "problems": [input_problem(name, "run", message, hint=hint)]}


def _completed(
    tasks: Sequence[Task], waiting: Sequence[int], workers: Workers
) -> Iterator[tuple[int, Record]]:
    """Give the records as they are ready."""
    jobs = min(workers.jobs, len(waiting))
    if jobs <= 1 and workers.are_here:
        yield from ((place, tasks[place].measure()) for place in waiting)
        return
    if not waiting:
        return
    left = set(waiting)
    try:
        for place, record in _in_pool(tasks, waiting, workers.make(jobs), workers):
            left.discard(place)
            yield place, record
    except BrokenExecutor:
        # one task has ended its process and with it the pool: alone, each of the others shows whether it did
        for place in sorted(left):
            yield place, _alone(tasks, place, workers)


def _in_pool(
    tasks: Sequence[Task], places: Sequence[int], pool: Executor, workers: Workers
) -> Iterator[tuple[int, Record]]:
    not_ours = set(multiprocessing.active_children())
    waiting = iter(places)
    running: dict[Future[Record], int] = {}
    try:
        while True:
            for place in islice(waiting, workers.jobs + AHEAD - len(running)):
                running[pool.submit(tasks[place].measure)] = place
            if not running:
                break
            for future in first_finished(running):
                place = running.pop(future)
                yield place, _result(future, tasks[place], workers)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # nobody wants what they work on, and an interrupt of this process alone has not reached them
        for worker in set(multiprocessing.active_children()) - not_ours:
            worker.terminate()
        raise
    pool.shutdown()


def _result(future: Future[Record], task: Task, workers: Workers) -> Record:
    try:
        return future.result()
    except (TfrctraceError, BrokenExecutor):
        raise
    except Exception as error:
        if workers.are_here:
            raise
        # what an executor raises for a worker that was lost is its own
        return failed_record(task.source.name, f"no worker finished it: {type(error).__name__}: {error}")


def _alone(tasks: Sequence[Task], place: int, workers: Workers) -> Record:
    try:
        ((_, record),) = _in_pool(tasks, [place], workers.make(1), workers)
    except BrokenExecutor:
        name = tasks[place].source.name
        return failed_record(name, "the process that measured it ended, perhaps for lack of memory")
    return record
