"""Many runs: so many at a time, those that are done left out, and a line of progress."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import TYPE_CHECKING, Any

from simulation import Run, SimulationError

if TYPE_CHECKING:
    import subprocess

    from workshop import Workshop

PROGRESS_S = {True: 1.0, False: 60.0}
"""Time between two lines, on a terminal and elsewhere."""


class Progress:
    """How many runs are done, at which rate, and how long the others take."""

    def __init__(self, pending: list[tuple[Workshop, Run]], stored_bytes: int) -> None:
        self.runs = len(pending)
        self.done = self.failed = 0
        self.bytes = stored_bytes
        self.waiting = Counter(_kind(*one) for one in pending)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.started_at = time.monotonic()
        self.shown_at = 0.0

    def finished(self, shop: Workshop, run: Run, seconds: float) -> None:
        """Count a run that took so long."""
        self.done += 1
        self.waiting[_kind(shop, run)] -= 1
        self.seconds[_kind(shop, run)].append(seconds)

    def left_s(self, jobs: int) -> float:
        """Return how long what waits takes if each kind goes on as it did, and unknown kinds as the mean."""
        known = [one for each in self.seconds.values() for one in each]
        mean = sum(known) / max(len(known), 1)
        took = {kind: sum(each) / len(each) for kind, each in self.seconds.items()}
        return sum(count * took.get(kind, mean) for kind, count in self.waiting.items()) / jobs

    def show(self, jobs: int, *, at_once: bool = False) -> None:
        """Print a line unless the last one is not old yet."""
        now = time.monotonic()
        on_terminal = sys.stderr.isatty()
        if not at_once and now - self.shown_at < PROGRESS_S[on_terminal]:
            return
        self.shown_at = now
        a_minute = self.done / max(now - self.started_at, 1e-9) * 60
        failed = f", {self.failed} failed" if self.failed else ""
        line = (
            f"{self.done:,} of {self.runs:,} runs, {a_minute:.1f} a minute, {self.bytes / 1e6:,.0f} MB, "
            f"{_duration(self.left_s(jobs))} left{failed}"
        )
        start, end = ("\r", "") if on_terminal else ("", "\n")
        print(f"{start}{line:<78}", end=end, file=sys.stderr, flush=True)


class Campaign:
    """All runs of some studies."""

    def __init__(self, shops: list[Workshop], jobs: int) -> None:
        self.jobs = jobs
        records = [(shop, run, shop.record(run)) for shop in shops for run in shop.runs]
        self.pending = [(shop, run) for shop, run, record in records if record is None]
        self.progress = Progress(self.pending, sum(record["bytes"] for _, _, record in records if record))
        done = len(records) - len(self.pending)
        print(f"{len(records):,} runs, {done:,} of them done already", file=sys.stderr)
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = Lock()
        self._is_stopped = False

    def perform(self) -> int:
        """Make what is not made yet; return how many runs failed."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                self._make_all(pool)
            except KeyboardInterrupt:
                self._stop()
                print("\nstopped; the same command goes on", file=sys.stderr)
                raise
        if self.pending:
            self.progress.show(self.jobs, at_once=True)
        return self.progress.failed

    def _make_all(self, pool: ThreadPoolExecutor) -> None:
        futures: dict[Future[dict[str, Any]], tuple[Workshop, Run]] = {}
        queue = iter(self.pending)
        while True:
            while len(futures) < self.jobs and (following := next(queue, None)):
                shop, run = following
                futures[pool.submit(shop.make, run, self._started)] = following
            if not futures:
                return
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                self._take(future, *futures.pop(future))
            self.progress.show(self.jobs)

    def _take(self, future: Future[dict[str, Any]], shop: Workshop, run: Run) -> None:
        try:
            record = future.result()
        except SimulationError as error:
            self.progress.failed += 1
            self.progress.finished(shop, run, 0.0)
            print(f"\n{shop.folder.name}/{run.name} failed: {error}", file=sys.stderr)
        else:
            self.progress.bytes += record["bytes"]
            self.progress.finished(shop, run, record["seconds"])

    def _started(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._processes.add(process)
            if self._is_stopped:
                process.kill()

    def _stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            for process in self._processes:
                process.kill()


def _kind(shop: Workshop, run: Run) -> str:
    """Return what takes about as long as `run`."""
    return f"{shop.folder.name}/{run.name.partition('-')[0]}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
