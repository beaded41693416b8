"""Where results go: a file that appears only when it is complete, a pipe, or standard output."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from typing import TYPE_CHECKING, BinaryIO, TextIO

from tfrctrace.base.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_OUTPUT = "-"

_PART = ".part"
"""Suffix of a file that is being written."""


def check_output(path: str) -> None:
    """Raise `OutputError` if `open_output` cannot work, before anybody waits for the reading of a capture."""
    if path == STANDARD_OUTPUT or (os.path.exists(path) and not os.path.isdir(path)):
        return
    if os.path.isdir(path):
        raise OutputError(path, "is a directory")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise OutputError(path, "no such directory")
    _check_writable(folder, path)


def check_folder(path: str) -> None:
    """Raise `OutputError` if `make_folder` cannot work, or no file can be made there."""
    folder = os.path.realpath(path)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise OutputError(path, "is not a directory")
    _check_writable(folder, path)


def _check_writable(folder: str, path: str) -> None:
    if not os.access(folder, os.W_OK):
        is_mounted_so = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise OutputError(path, "read-only file system" if is_mounted_so else "permission denied")


def make_folder(path: str) -> None:
    """Make the directory `path` for results, if it is not there; raises `OutputError` if that cannot be."""
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(path, "is not a directory") from error
    except OSError as error:
        raise OutputError(path, (error.strerror or str(error)).lower()) from error


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Give a file to write bytes to; `-` is standard output.

    A file is written beside its place and moved there at the end, so a run that fails leaves what was there.
    Pipes and devices are written directly. Raises `OutputError` if that is not possible.
    """
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_output(path)
    try:
        with _replacing(path) if _is_replaceable(path) else open(path, "wb") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(path, (error.strerror or str(error)).lower()) from error


@contextlib.contextmanager
def open_text_output(path: str) -> Iterator[TextIO]:
    """Give a file to write text to, as `open_output` does; files are UTF-8, a terminal is what it is."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    with open_output(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield text
        text.flush()
        text.detach()


def _is_replaceable(path: str) -> bool:
    """Return whether a new file can take the place of `path`: not that of a pipe or a device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """Give a new file that takes the place of `path` (or of what it links to) when the block ends well."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    prefix = f".{name[:32]}."
    remove_stale_parts(folder, prefix)
    descriptor, temporary = _new_part(folder, prefix)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.chmod(temporary, _mode_for(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _new_part(folder: str, prefix: str) -> tuple[int, str]:
    """Return descriptor and path of a new file, locked as long as it is open."""
    import fcntl
    import tempfile

    while True:
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=_PART, dir=folder)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # another run may have found it before it was locked, and removed it
        if os.fstat(descriptor).st_nlink:
            return descriptor, temporary
        os.close(descriptor)


def remove_stale_parts(folder: str, prefix: str | None = None) -> None:
    """Remove the part files of killed runs, or those of one name: nobody has them locked."""
    import fcntl
    import glob

    # as `mkstemp` names them; whatever else has such a name is neither followed nor waited for
    start = ".*." if prefix is None else glob.escape(prefix)
    for part in glob.glob(os.path.join(glob.escape(folder), f"{start}????????{_PART}")):
        with contextlib.suppress(OSError):
            descriptor = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(part)
            finally:
                os.close(descriptor)


def _mode_for(target: str) -> int:
    """Return the permissions of the file that is replaced, else those of any new file."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
