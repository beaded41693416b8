"""The progress of many runs: a bar on a terminal, a line each minute elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from tfrctrace.commands.console import Console
    from tfrctrace.runs.engine import Progress as Watcher

_LINE_EVERY_S: Final = 60.0


@contextmanager
def run_progress(console: Console, what: str = "runs") -> Iterator[Watcher | None]:
    """Show how many of `what` are done, their rate and the time left."""
    if console.quiet:
        yield None
        return
    if not console.shows_progress:
        yield _ProgressLines(console, what)
        return
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[cached]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=RichConsole(stderr=True), transient=True) as bar:
        yield _ProgressBar(bar, bar.add_task(what, total=None, cached="", rate=""))


class _ProgressBar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._started = time.monotonic()

    def advance(self, done: int, of: int, cached: int) -> None:
        """Move the bar; cached runs are left out of the estimate of the time left."""
        note = f"{cached} cached" if cached else ""
        rate = f"{_per_s(done - cached, self._started):.3g}/s"
        self._bar.update(self._task, total=of - cached, completed=done - cached, cached=note, rate=rate)


class _ProgressLines:
    def __init__(self, console: Console, what: str) -> None:
        self._console, self._what = console, what
        self._started = self._printed = time.monotonic()

    def advance(self, done: int, of: int, cached: int) -> None:
        """Print a line, if the last one was long ago."""
        now = time.monotonic()
        if done == of or now - self._printed < _LINE_EVERY_S:
            return
        self._printed = now
        rate = _per_s(done - cached, self._started)
        left = f", {(of - done) / rate / 60:.0f} min left" if rate else ""
        self._console.note(f"{done} of {of} {self._what}, {rate:.3g} per second{left}")


def _per_s(done: int, since_s: float) -> float:
    return done / max(time.monotonic() - since_s, 1e-3)
