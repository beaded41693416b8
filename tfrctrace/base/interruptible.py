"""Waiting that can be interrupted.

Python acts on a signal between two steps of the main thread. Polars' handler of SIGINT makes the system
call that was interrupted go on (SA_RESTART), and the core reads without Python's lock: the main thread must
neither wait without an end nor read by itself, or Ctrl-C is heard only when something else happens.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

STEP_S: Final = 0.1
"""How long one step of waiting takes: nobody notices that an interrupt is heard so much later."""

T = TypeVar("T")


def as_finished(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Give futures as they are done."""
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=STEP_S, return_when=FIRST_COMPLETED)
        yield from done


def in_thread(work: Callable[[], T]) -> T:
    """Do `work` in a thread of its own, which is left alone if the wait for it is interrupted."""
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

    # a daemon: stuck reading from a pipe it must not keep the program alive
    threading.Thread(target=run, name="tfrctrace-worker", daemon=True).start()
    while not is_done.wait(STEP_S):
        pass
    if failures:
        raise failures[0]
    return results[0]
