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
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S: Final = 2.0
_SPENT_S: Final = 0.5
"""Processor time of the child between looks that count: a busy machine only makes them rarer."""
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
    # the backtrace of a failed allocation allocates too, and where that fails waits for itself for ever
    os.environ["RUST_BACKTRACE"] = "0"
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

    user_s: float
    system_s: float
    address_bytes: int
    read_and_written: str

    @classmethod
    def of(cls, process: int) -> _Look:
        folder = Path(f"/proc/{process}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        transferred = (folder / "io").read_text().partition("syscr")[0]
        ticks_of_a_second = os.sysconf("SC_CLK_TCK")
        user_s, system_s = (int(ticks) / ticks_of_a_second for ticks in fields[11:13])
        return cls(user_s, system_s, int(fields[20]), transferred)

    def spent_s(self, before: _Look) -> float:
        """Return the processor time that was spent since."""
        return self.user_s + self.system_s - before.user_s - before.system_s

    def is_without_memory(self, before: _Look, most: int) -> bool:
        """Return whether the process had all address space before and has it now, and transferred nothing."""
        return (
            min(before.address_bytes, self.address_bytes) > most - _LEFT_BYTES
            and self.read_and_written == before.read_and_written
        )

    def is_starved(self, before: _Look) -> bool:
        """Return whether most of what was done since were calls of the system."""
        return self.system_s - before.system_s > self.user_s - before.user_s


def _end_if_starved(child: int) -> None:
    """Return when the child has ended; end it if it only fails to allocate.

    CPython 3.11 repeats for ever to handle an exception if the number of the failed instruction cannot be
    allocated (`exception_unwind` in ceval.c): all address space is used, nothing is read or written, and the
    time goes into calls of the system that fail.
    """
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        handle = os.pidfd_open(child)
    except (AttributeError, OSError):
        return  # no Linux, or not permitted: wait without looking
    try:
        before, starved = _Look.of(child), 0
        while starved < _LOOKS - 1:
            if select.select([handle], [], [], _LOOK_S)[0]:
                return
            now = _Look.of(child)
            if not now.is_without_memory(before, most):
                before, starved = now, 0
            elif now.spent_s(before) >= _SPENT_S:
                before, starved = now, starved + 1 if now.is_starved(before) else 0
        os.kill(child, signal.SIGKILL)
    except OSError:
        return  # it has ended meanwhile, or /proc is not there
    finally:
        os.close(handle)
