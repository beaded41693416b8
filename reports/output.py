"""Where results go: a file that appears only when it is complete, a pipe, or standard output."""

from __future__ import annotations

import contextlib
import fcntl
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
    _refuse_store(path)
    if os.path.isdir(path):
        raise OutputError(path, "is a directory")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise OutputError(path, "no such directory")
    _check_writable(folder, path)


def check_folder(path: str) -> None:
    """Raise `OutputError` if `make_folder` cannot work, or no file can be made there."""
    _refuse_store(path)
    folder = os.path.realpath(path)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise OutputError(path, "is not a directory")
    _check_writable(folder, path)


def _refuse_store(path: str) -> None:
    scheme, colon, _ = path.partition("://")
    if colon and scheme.isalnum():
        reason = "only captures are read from object stores; write to a folder, and copy that"
        raise OutputError(path, reason)


def _check_writable(folder: str, path: str) -> None:
    if not os.access(folder, os.W_OK):
        is_mounted_so = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise OutputError(path, "read-only file system" if is_mounted_so else "permission denied")


def make_folder(path: str) -> None:
    """Make the directory `path` for results, if it is not there; raises `OutputError` if that cannot be."""
    _refuse_store(path)
    with output_errors(path):
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(path, "is not a directory") from error


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
    with output_errors(path), _replacing(path) if _is_replaceable(path) else open(path, "wb") as file:
        yield file


@contextlib.contextmanager
def output_errors(path: str) -> Iterator[None]:
    """Raise `OutputError` for what the system refuses."""
    try:
        yield
    except (BrokenPipeError, OutputError):
        raise
    except OSError as error:
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


@contextlib.contextmanager
def temporary_file(folder: str) -> Iterator[str]:
    """Give the path of a new file in `folder`, which is removed when the block ends unless it was moved."""
    with output_errors(folder):
        descriptor, path = _new_part(folder, ".new.")
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


@contextlib.contextmanager
def replacing_folder(path: str, parts: str) -> Iterator[str]:
    """Give a new folder that takes the place of the folder `path` when the block ends well.

    Until then it is in the folder `parts`. Raises `OutputError` if that is not possible.
    """
    import shutil

    with output_errors(path):
        descriptor, part = _new_part_folder(parts, f".{os.path.basename(path)[:32]}.")
        try:
            yield part
            try:
                os.rename(part, path)
            except OSError:
                # of an earlier run, or of one at the same time, which is as good
                shutil.rmtree(path, ignore_errors=True)
                os.rename(part, path)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        finally:
            os.close(descriptor)


def _new_part(folder: str, prefix: str) -> tuple[int, str]:
    """Return descriptor and path of a new file, locked as long as it is open."""
    import tempfile

    while True:
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, suffix=_PART, dir=folder)
        if _is_locked(descriptor):
            return descriptor, temporary
        os.close(descriptor)


def _new_part_folder(folder: str, prefix: str) -> tuple[int, str]:
    """Return descriptor and path of a new folder, locked as long as that is open."""
    while True:
        path = os.path.join(folder, f"{prefix}{os.urandom(4).hex()}{_PART}")
        os.mkdir(path)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            if _is_locked(descriptor):
                return descriptor, path
            os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """Lock a new part; return whether it is there still, which another run may have found before."""
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.fstat(descriptor).st_nlink > 0


def remove_stale_parts(folder: str, prefix: str | None = None) -> None:
    """Remove the parts of killed runs, or those of one name: nobody has them locked."""
    import glob
    import shutil

    # as `mkstemp` names them; whatever else has such a name is neither followed nor waited for
    start = ".*." if prefix is None else glob.escape(prefix)
    for part in glob.glob(os.path.join(glob.escape(folder), f"{start}????????{_PART}")):
        with contextlib.suppress(OSError):
            descriptor = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                mode = os.fstat(descriptor).st_mode
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISREG(mode):
                    os.unlink(part)
                elif stat.S_ISDIR(mode):
                    shutil.rmtree(part)
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
