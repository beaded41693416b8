"""Waiting that Ctrl-C can interrupt.

Python handles a signal between two bytecodes of the main thread. Polars installs a SIGINT handler that
restarts interrupted system calls (SA_RESTART), and the core reads without holding the GIL. So the main thread
must neither wait without a timeout nor read by itself, or Ctrl-C has no effect until it returns.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

STEP_S: Final = 0.1
"""Timeout of one wait: the longest delay before an interrupt takes effect."""

T = TypeVar("T")


def first_finished(futures: Iterable[Future[T]]) -> set[Future[T]]:
    """Return the futures that are finished, as soon as there is one."""
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting = list(futures)
    while True:
        done, _ = wait(waiting, timeout=STEP_S, return_when=FIRST_COMPLETED)
        if done:
            return done


def sleep_ns(length_ns: int) -> None:
    """Sleep until so much time has passed."""
    until = time.monotonic() + length_ns / 1e9
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, STEP_S))


def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a daemon thread, which is abandoned if the wait is interrupted.

    No thread is needed where no interrupt arrives: in a worker, which its parent ends, and in another thread.
    """
    # a worker has imported it; to import it costs all others 10 ms
    process = sys.modules.get("multiprocessing.process")
    is_worker = process is not None and process.parent_process() is not None
    if threading.current_thread() is not threading.main_thread() or is_worker:
        return work()
    results: list[T] = []
    failures: list[BaseException] = []
    is_done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as failure:
            failures.append(failure)
        finally:
            is_done.set()

    # a daemon, as it must not keep the program alive while it blocks on a pipe
    threading.Thread(target=run, name="tfrctrace-worker", daemon=True).start()
    while not is_done.wait(STEP_S):
        pass
    if failures:
        raise failures[0]
    return results[0]
