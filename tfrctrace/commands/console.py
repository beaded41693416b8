"""What is said on stderr while a command runs: messages, progress, and what they mean for the exit status."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from tfrctrace.base.errors import Message, describe, printable
from tfrctrace.base.interruptible import STEP_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tfrctrace.base.errors import Problem

DONE: Final = 0
CHECK_FAILED: Final = 1
WRONG_USAGE: Final = 2
NOT_READ: Final = 3
INTERNAL_ERROR: Final = 70
"""EX_SOFTWARE of sysexits.h: a bug of ours, never a verdict about a trace."""
INTERRUPTED: Final = 130

_SHOW_AFTER_S: Final = 0.3
"""A bar that appears for a blink disturbs more than it tells."""

_COLOURS: Final = {"error": "1;31", "warning": "1;33", "note": "1;36", "hint": "1;36"}


Item_co = TypeVar("Item_co", covariant=True)


class Watched(Protocol):
    """Something that is being read: a pass, or the table of packets."""

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
    """Something that is being read by threads of its own."""

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether the end is reached."""
        ...

    def cancel(self) -> None:
        """Stop the threads."""
        ...


class WatchedItems(Watched, Protocol[Item_co]):
    """Something that is being read while its items are taken."""

    def __iter__(self) -> Iterator[Item_co]:
        """Give the items."""
        ...


class Console:
    """The voice of one command. `exit_status` is what the messages so far amount to."""

    def __init__(self, *, quiet: bool = False, strict: bool = False) -> None:
        """With `quiet` only errors are said; with `strict` warnings about inputs are errors."""
        self.quiet = quiet
        self.strict = strict
        self.exit_status = DONE

    def tell(self, problems: Iterable[Problem]) -> None:
        """Say what was wrong with the inputs."""
        for problem in problems:
            message = describe(problem)
            if message.severity == "warning" and self.strict:
                message = Message("error", message.text, message.detail, message.hint)
            if message.severity == "error":
                self.exit_status = NOT_READ
            if message.severity == "error" or not self.quiet:
                print_message(message)

    def note(self, text: str) -> None:
        """Say where something is, unless the user wants it quiet."""
        if not self.quiet:
            _write(text)

    def watch(self, running: WatchedThread) -> None:
        """Wait for the end of `running`, showing progress if somebody looks; an interrupt stops it."""
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
        """Give the items of what is read while they are taken, showing progress if somebody looks."""
        if not self.shows_progress:
            yield from items
            return
        with progress_bar(items) as redraw:
            for item in items:
                redraw()
                yield item

    @property
    def shows_progress(self) -> bool:
        """Whether somebody looks at stderr."""
        return not self.quiet and sys.stderr.isatty()


def print_message(message: Message) -> None:
    """Write a message to stderr, in colour if that is a terminal and NO_COLOR is not set."""
    for line in message.lines():
        _write(line)


def _write(line: str) -> None:
    safe = printable(line)
    word, colon, rest = safe.partition(":")
    if word in _COLOURS and _wants_colour():
        safe = f"\x1b[{_COLOURS[word]}m{word}{colon}\x1b[0m{rest}"
    try:
        print(safe, file=sys.stderr)
    except (BrokenPipeError, UnicodeEncodeError):
        # nobody reads what is said; the exit status still tells
        return


def _wants_colour() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


@contextmanager
def progress_bar(running: Watched) -> Iterator[Callable[[], None]]:
    """Show bytes read, packets a second and the time that is left; gives the function that redraws."""
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
    """Let the flush at exit go nowhere: the reader has closed the pipe because it has seen enough."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
