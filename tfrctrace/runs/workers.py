"""Where tasks are performed: processes here, threads, a Dask cluster, or an executor of the user's."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES_PER_WORKER: Final = 10**9
"""Memory that a process may need: a million flows take half of it."""

_SYNTAX: Final = "write `dask:tcp://HOST:8786`, or `module:callable` of what returns an executor"


@dataclass(frozen=True, slots=True)
class Workers:
    """How many tasks are performed at a time, and by which executor."""

    jobs: int
    make: Callable[[int], Executor]
    """Return an executor for so many tasks at a time."""
    are_here: bool = True
    """Whether they end with this process, so that one worker may be this process itself."""


def processes(jobs: int | None = None) -> Workers:
    """Return processes of this machine, which are spawned: a fork would copy the core's locks as held."""
    return Workers(jobs or default_jobs(), _process_pool)


def threads(jobs: int | None = None) -> Workers:
    """Return threads of this process."""
    return Workers(jobs or default_jobs(), ThreadPoolExecutor)


class _Worker(SpawnProcess):
    """A process that Ctrl-C of a terminal does not interrupt: its parent hears it, too, and ends."""

    def start(self) -> None:
        """Start it with SIGINT blocked, also while it imports what it does."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Spawning(SpawnContext):
    Process = _Worker


def _process_pool(jobs: int) -> Executor:
    return ProcessPoolExecutor(jobs, mp_context=_Spawning(), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Have this worker end soon after its parent, which may be killed.

    It would wait for tasks for ever: the queue's pipe has no end while a worker has it open, too.
    """
    parent = multiprocessing.parent_process()

    def wait_and_end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    with contextlib.suppress(RuntimeError):  # too few threads are allowed
        threading.Thread(target=wait_and_end, name="tfrctrace-parent", daemon=True).start()


def default_jobs() -> int:
    """Return how many tasks this machine can perform at a time, by its cores and its free memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = _free_memory()
    return cores if free is None else max(1, min(cores, free // BYTES_PER_WORKER))


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = next(line for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    return int(found.split()[1]) * 1024


def chosen_workers(executor: str | None, jobs: int | None) -> Workers:
    """Return the workers that the text `executor` names; processes here for None.

    Raises `UsageError` for a text that names none, or what is not installed.
    """
    if executor is None:
        return processes(jobs)
    kind, colon, name = executor.partition(":")
    if not (kind and colon and name):
        raise UsageError(f"`{executor}` names no executor", hint=_SYNTAX)
    if kind == "dask":
        return _dask(name, jobs)
    make = _named(kind, name)
    if jobs is None:
        jobs = default_jobs()
    return Workers(jobs, partial(_made, make, executor), are_here=False)


def _dask(address: str, jobs: int | None) -> Workers:
    try:
        from distributed import Client  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            "`dask:` needs the package distributed", hint="install it with `pip install 'tfrctrace[dask]'`"
        ) from error
    try:
        client = Client(address, timeout="20s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no scheduler of Dask answers at `{address}`: {error}") from error
    # without an event loop of one's own there is no coroutine
    threads_there = sum(client.nthreads().values())  # pyright: ignore[reportAttributeAccessIssue]
    # tasks are pure, so one of a worker that died is performed by another
    executor = client.get_executor(pure=False, retries=2)
    return Workers(jobs or max(threads_there, 1), lambda _: executor, are_here=False)


def _named(module: str, name: str) -> Callable[[], object]:
    if os.getcwd() not in sys.path:
        # where the user's own module probably is
        sys.path.insert(0, os.getcwd())
    try:
        make: Callable[[], object] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"there is no `{name}` in the module `{module}`: {error}", hint=_SYNTAX) from error
    return make


def _made(make: Callable[[], object], text: str, _jobs: int) -> Executor:
    executor = make()
    if not isinstance(executor, Executor):
        raise UsageError(
            f"`{text}` returns a {type(executor).__name__}, no executor",
            hint="it has to return a `concurrent.futures.Executor`",
        )
    return executor
