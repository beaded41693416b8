"""Run command lines of tfrctrace in forks of this process, below limits of memory and time.

A fork has all modules imported, so that a thousand commands take minutes. What needs a process of its own
(signals, workers, limits that must hold while modules are imported) is started by `start`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]

DONE, CHECK_FAILED, WRONG_USAGE, NOT_READ, NO_RESOURCES, INTERRUPTED = 0, 1, 2, 3, 71, 130
DESIGNED: Final = frozenset({DONE, CHECK_FAILED, WRONG_USAGE, NOT_READ})

MOST_MEMORY_MB: Final = 1_024
"""Of a command on inputs of some 100 kB."""
MOST_ADDRESSES_MB: Final = 4_096
"""Data segment at which the kernel refuses more, so that a finding does not end the campaign."""
MOST_PROCESSOR_S: Final = 60
MOST_S: Final = 300
"""Seconds after which a command counts as one that never ends; the machine may be busy."""
MOST_FILE_MB: Final = 512
LONG_AGO_S: Final = 1_700_000_000


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    """As of the shell, but negative for the signal that ended it."""
    out: bytes
    err: str
    memory_mb: float
    processor_s: float

    def wrong(self, statuses: frozenset[int] = DESIGNED) -> list[str]:
        """Return what no command may do, whatever its input is."""
        last = self.err.strip().splitlines()[-1:] or ["nothing on standard error"]
        found = []
        if self.status < 0:
            found.append(f"ended by {signal.Signals(-self.status).name}: {last[0]}")
        elif self.status not in statuses:
            error = re.search(r"^.*internal error.*$", self.err, re.MULTILINE)
            found.append(f"exit status {self.status}: {error.group() if error else last[0]}")
        elif self.status in {WRONG_USAGE, NOT_READ} and "error" not in self.err.lower():
            found.append(f"exit status {self.status} without an error")
        found += [f"prints `{word}`" for word in ("Traceback", "panicked") if word in self.err]
        if self.memory_mb > MOST_MEMORY_MB:
            found.append(f"takes {self.memory_mb:.0f} MB")
        if self.processor_s > MOST_PROCESSOR_S / 2:
            found.append(f"takes {self.processor_s:.0f} s of processor time")
        return found


def lay(path: Path, content: bytes) -> None:
    """Write a file as one of long ago: a batch leaves out captures that may still be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))


class Program:
    """Runs commands and counts them."""

    command: tuple[str, ...] = (sys.executable, "-m", "tfrctrace")
    """Of a process of its own."""

    def __init__(self) -> None:
        self.runs = 0

    def run(self, line: Sequence[str], folder: Path, *, before: Callable[[], object] = lambda: None) -> Ended:
        """Run a command line in a fork, in a folder; `before` is called in it first."""
        self.runs += 1
        folder.mkdir(parents=True, exist_ok=True)
        streams = [folder / ".stdout", folder / ".stderr"]
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _run_here(line, folder, streams, before)
        with contextlib.closing(_Handle(child)) as handle:
            if not handle.ends_within(MOST_S):
                os.killpg(child, signal.SIGKILL)
        _, code, used = os.wait4(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it left
        out, err = (path.read_bytes() if path.exists() else b"" for path in streams)
        for path in streams:
            path.unlink(missing_ok=True)
        return Ended(
            os.waitstatus_to_exitcode(code),
            out,
            err.decode(errors="backslashreplace"),
            used.ru_maxrss / 1024,
            used.ru_utime + used.ru_stime,
        )

    def start(
        self,
        line: Sequence[str],
        folder: Path,
        *,
        before: Callable[[], object] | None = None,
        environment: dict[str, str] | None = None,
        command: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a command line in a process and session of its own."""
        self.runs += 1
        return subprocess.Popen(
            [*(command or self.command), *line],
            cwd=folder,
            env={**os.environ, "COLUMNS": "80", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=before,  # noqa: PLW1509  there is one thread here
        )


class _Handle:
    """A child that is waited for with patience."""

    def __init__(self, child: int) -> None:
        self._handle = os.pidfd_open(child)

    def ends_within(self, seconds: float) -> bool:
        return bool(select.select([self._handle], [], [], seconds)[0])

    def close(self) -> None:
        os.close(self._handle)


def ended(process: subprocess.Popen[bytes], patience_s: float = MOST_S) -> Ended:
    """Wait for a process that was started, and return how it ended; -SIGKILL where it did not."""
    try:
        out, err = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += b"\nit does not end"
    return Ended(process.returncode, out, err.decode(errors="backslashreplace"), 0.0, 0.0)


def _run_here(line: Sequence[str], folder: Path, streams: list[Path], before: Callable[[], object]) -> None:
    """Run a command line in this process, which ends."""
    status = 70
    try:
        os.setsid()
        for which, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_CPU, MOST_PROCESSOR_S),
            (resource.RLIMIT_DATA, MOST_ADDRESSES_MB << 20),
            (resource.RLIMIT_FSIZE, MOST_FILE_MB << 20),
        ):
            resource.setrlimit(which, (most, most))
        os.chdir(folder)
        for number, path in zip((1, 2), streams, strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ["COLUMNS"] = "80"
        signal.signal(signal.SIGINT, signal.default_int_handler)
        before()
        status = cli.run(line)
    except BaseException as error:  # no exception may leave the command line
        os.write(2, f"Traceback: {type(error).__name__}: {error}\n".encode(errors="backslashreplace"))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def import_everything() -> None:
    """Import what the commands do, which no fork has to repeat; a process with threads must not fork."""
    for heavy in ("polars", "matplotlib.figure", "tfrctrace.reports.build_report"):
        importlib.import_module(heavy)
    for name in cli.COMMANDS:
        importlib.import_module(f"tfrctrace.commands.{name}")
