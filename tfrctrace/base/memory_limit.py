"""Run below a limit of address space (`ulimit -v`), where libraries end the process without an exception.

Polars, BLAS and C libraries abort or crash when an allocation fails. So the work is done by a child process,
and its parent reports such an end.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S: Final = 2.0
_LOOKS: Final = 4
"""Looks at a child that is starved in each of them before it is ended."""
_LEFT_BYTES: Final = 1 << 17
"""Address space with which nothing can be allocated any more."""
_PR_SET_PDEATHSIG: Final = 1


def is_memory_limited() -> bool:
    """Return whether the address space of this process has a limit, and a child can be watched."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def run_in_child(run: Callable[[], int], on_crash: Callable[[str], int]) -> int:
    """Return the status of `run` in a child process, or of `on_crash` with what ended that instead."""
    # the child reports a shortage if Polars cannot be loaded, or goes on with fewer threads
    warnings.filterwarnings("ignore", message="Polars binary is missing", category=UserWarning)
    os.environ.setdefault("_RJEM_MALLOC_CONF", "background_thread:false")
    ended, ends = os.pipe()
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:
        return run()
    if child == 0:
        _end_with(parent)
        try:
            return run()
        finally:
            os.write(ends, b".")  # a library that ends the process does not come here
    # the terminal sends SIGINT to the child, too, which decides how it ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: os.kill(child, number))
    _end_if_starved(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        return on_crash(signal.Signals(-code).name)
    os.set_blocking(ended, False)
    try:
        os.read(ended, 1)
    except BlockingIOError:
        return on_crash("a library")
    return code


def _end_with(parent: int) -> None:
    """Have Linux end this child as by SIGTERM if its parent is killed."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    except (ImportError, OSError, AttributeError):
        return  # another system
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)  # it was killed before


class _Look(NamedTuple):
    """What a process had used at one time."""

    user_ticks: int
    system_ticks: int
    address_bytes: int
    read_and_written: str

    @classmethod
    def of(cls, process: int) -> _Look:
        folder = Path(f"/proc/{process}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        transferred = (folder / "io").read_text().partition("syscr")[0]
        return cls(int(fields[11]), int(fields[12]), int(fields[20]), transferred)


def _end_if_starved(child: int) -> None:
    """Return when the child has ended; end it if it only fails to allocate.

    CPython 3.11 repeats for ever to handle an exception if the number of the failed instruction cannot be
    allocated (`exception_unwind` in ceval.c): all address space is used, nothing is read or written, and the
    time goes into calls of the system that fail.
    """
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    looks: list[_Look] = []
    try:
        handle = os.pidfd_open(child)
    except (AttributeError, OSError):
        return  # no Linux, or not permitted: wait without looking
    try:
        while not select.select([handle], [], [], _LOOK_S)[0]:
            looks = [*looks[1 - _LOOKS :], _Look.of(child)]
            if len(looks) == _LOOKS and all(_is_starved(*pair, most) for pair in pairwise(looks)):
                os.kill(child, signal.SIGKILL)
    except OSError:
        return  # it has ended meanwhile, or /proc is not there
    finally:
        os.close(handle)


def _is_starved(before: _Look, now: _Look, most: int) -> bool:
    spent = now.system_ticks - before.system_ticks
    return (
        min(before.address_bytes, now.address_bytes) > most - _LEFT_BYTES
        and now.read_and_written == before.read_and_written
        and spent > now.user_ticks - before.user_ticks
        and spent > _LOOK_S * os.sysconf("SC_CLK_TCK") / 4
    )
