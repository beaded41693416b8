"""Messages and progress on stderr, and the exit status they lead to."""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from tfrctrace.base.errors import Message, TfrctraceWarning, describe, printable
from tfrctrace.base.interruptible import STEP_S
from tfrctrace.base.shortage import HINTS, OUT_OF_MEMORY
from tfrctrace.reports.printers.terminal import CYAN, RED, YELLOW, coloured, has_colours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfrctrace.base.errors import Problem

DONE: Final = 0
CHECK_FAILED: Final = 1
WRONG_USAGE: Final = 2
NOT_READ: Final = 3
INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h: a bug in tfrctrace."""
NO_RESOURCES: Final = 71
"""EX_OSERR of sysexits.h: the machine refused memory, threads or open files."""
INTERRUPTED: Final = 130

_SHOW_AFTER_S: Final = 0.3
"""Delay before the progress bar appears, so that short runs do not flash it."""

_COLOURS: Final = {"error": RED, "warning": YELLOW, "note": CYAN, "hint": CYAN}


Item_co = TypeVar("Item_co", covariant=True)


class Watched(Protocol):
    """Progress of a pass or of the packet table."""

    @property
    def total_bytes(self) -> int | None:
        """Bytes to be read; None if not known."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""
        ...

    @property
    def packets(self) -> int:
        """Packets read so far."""
        ...


class WatchedThread(Watched, Protocol):
    """A pass that runs in its own threads."""

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether the end is reached."""
        ...

    def cancel(self) -> None:
        """Stop the threads."""
        ...


class WatchedItems(Watched, Protocol[Item_co]):
    """A table that is read while its items are consumed."""

    def __iter__(self) -> Iterator[Item_co]:
        """Yield the items."""
        ...


class Console:
    """Messages of one command; `exit_status` follows from those printed so far."""

    def __init__(self, *, quiet: bool = False, strict: bool = False) -> None:
        """With `quiet` only errors are printed; with `strict` warnings count as errors."""
        self.quiet = quiet
        self.strict = strict
        self.exit_status = DONE

    def print_problems(self, problems: Iterable[Problem]) -> None:
        """Print problems with inputs and update the exit status."""
        for problem in problems:
            message = describe(problem)
            if message.severity == "warning" and self.strict:
                message = Message("error", message.text, message.detail, message.hint)
            if message.severity == "error":
                self.exit_status = NOT_READ
            if message.severity == "error" or not self.quiet:
                print_message(message)

    @contextmanager
    def printing_warnings(self) -> Iterator[None]:
        """Print each warning that the library issues once, as a problem, instead of as a line of Python's."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        problems = [one.message.problem for one in caught if isinstance(one.message, TfrctraceWarning)]
        self.print_problems({str(problem): problem for problem in problems}.values())

    def note(self, text: str) -> None:
        """Print a note unless `quiet` is set."""
        if not self.quiet:
            _write(text)

    def watch(self, running: WatchedThread) -> None:
        """Wait for `running` to finish and show its progress; an interrupt cancels it."""
        try:
            if not self.shows_progress or running.wait(_SHOW_AFTER_S):
                while not running.wait(STEP_S):
                    pass
                return
            with progress_bar(running) as redraw:
                while not running.wait(STEP_S):
                    redraw()
        except BaseException:
            running.cancel()
            raise

    def watch_items(self, items: WatchedItems[Item_co]) -> Iterator[Item_co]:
        """Yield items and show progress."""
        with self.watching(items) as redraw:
            for item in items:
                redraw()
                yield item

    @contextmanager
    def watching(self, running: Watched) -> Iterator[Callable[[], None]]:
        """Show progress while something is read; yields the function that redraws."""
        if not self.shows_progress:
            yield lambda: None
            return
        with progress_bar(running) as redraw:
            yield redraw

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar is shown: stderr is a terminal, and `quiet` is not set."""
        return not self.quiet and sys.stderr.isatty()


def print_message(message: Message) -> None:
    """Print a message to stderr, in colour if it is a terminal and NO_COLOR is not set."""
    for line in message.lines():
        _write(line)


def report_crash(by: str) -> int:
    """Report that `by` ended the process below a memory limit, and return the status."""
    _write("")  # it may have left half a line
    print_message(Message("error", f"{OUT_OF_MEMORY}: {by} ended the process", hint=HINTS[OUT_OF_MEMORY]))
    return NO_RESOURCES


def _write(line: str) -> None:
    safe = printable(line)
    word, colon, rest = safe.partition(":")
    if word in _COLOURS and has_colours(sys.stderr):
        safe = coloured(f"{word}{colon}", _COLOURS[word]) + rest
    try:
        print(safe, file=sys.stderr)
    except (BrokenPipeError, UnicodeEncodeError):
        # stderr is closed; the exit status is still returned
        return


@contextmanager
def progress_bar(running: Watched) -> Iterator[Callable[[], None]]:
    """Show bytes read, packets per second and the time left; yields the function that redraws."""
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from tfrctrace.reports.units import format_count

    with Progress(
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=RichConsole(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=running.total_bytes, rate="")
        started = time.monotonic()

        def redraw() -> None:
            seconds = time.monotonic() - started + _SHOW_AFTER_S
            rate = f"{format_count(round(running.packets / seconds))} packets/s"
            bar.update(task, completed=running.bytes_read, rate=rate)

        yield redraw


def drop_standard_output() -> None:
    """Discard what the flush at exit would write, after the reader has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
