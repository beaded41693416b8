"""A progress bar for many runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from tfrctrace.commands.console import Console
    from tfrctrace.runs.pool import Progress as Watcher


@contextmanager
def run_progress(console: Console) -> Iterator[Watcher | None]:
    """Show the runs done and the time left; give None if stderr is not a terminal."""
    if not console.shows_progress:
        yield None
        return
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[cached]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=RichConsole(stderr=True), transient=True) as bar:
        yield _ProgressBar(bar, bar.add_task("runs", total=None, cached=""))


class _ProgressBar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def advance(self, done: int, of: int, cached: int) -> None:
        """Move the bar; cached runs are left out of the estimate of the time left."""
        note = f"{cached} cached" if cached else ""
        self._bar.update(self._task, total=of - cached, completed=done - cached, cached=note)
