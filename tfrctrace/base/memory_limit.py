"""Run below a limit of address space (`ulimit -v`), where libraries end the process without an exception.

Polars, BLAS and C libraries abort or crash when an allocation fails. So the work is done by a child process,
and its parent reports such an end.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
    try:
        child = os.fork()
    except OSError:
        return run()
    if child == 0:
        try:
            return run()
        finally:
            os.write(ends, b".")  # a library that ends the process does not come here
    # the terminal sends SIGINT to the child, too, which decides how it ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        return on_crash(signal.Signals(-code).name)
    os.set_blocking(ended, False)
    try:
        os.read(ended, 1)
    except BlockingIOError:
        return on_crash("a library")
    return code
