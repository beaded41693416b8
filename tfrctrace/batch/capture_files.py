"""The capture files below folders: each once, in natural order, with its size and time."""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.parsers.pcap_over_ip import is_pcap_over_ip
from tfrctrace.parsers.remote import (
    StoreAccess,
    described_object,
    is_remote,
    listed_objects,
    public_url,
    url_with_query,
)
from tfrctrace.parsers.sources import COMPRESSION_SUFFIXES, has_capture_name, looks_like_capture, natural_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.runs.cache import FileState

_SETTLED_NS: Final = 30 * 10**9
"""A file that was not written to for so long is complete."""

_EDGE: Final = 16_384
"""Bytes at each end of two files of one size that are compared."""


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file as it was found."""

    path: str
    name: str
    """Below the folder that all captures have in common, for results that do not depend on the machine."""
    size: int
    version: int | str
    """Time of the last change (ns); of an object of a store, its ETag."""

    @property
    def is_remote(self) -> bool:
        """Whether it is an object of a store, of which no part is read before its turn."""
        return isinstance(self.version, str)

    @property
    def state(self) -> FileState:
        """What changes when the file does."""
        return self.name, self.size, self.version

    @property
    def was_written_lately(self) -> bool:
        """Whether somebody may still be writing it."""
        return isinstance(self.version, int) and abs(time.time_ns() - self.version) < _SETTLED_NS

    def change(self) -> str | None:
        """Return how the file has changed since it was found; None if it has not."""
        if self.is_remote:
            return None  # the store refuses another version while it is read
        try:
            now = os.stat(self.path)
        except OSError as error:
            return f"vanished while it was read: {(error.strerror or str(error)).lower()}"
        if now.st_size != self.size:
            how = "grew" if now.st_size > self.size else "shrank"
            return f"{how} while it was read, from {self.size} to {now.st_size} bytes"
        return None if now.st_mtime_ns == self.version else "was written while it was read"


@dataclass(slots=True)
class FoundFiles:
    """The files, and problems found on the way."""

    files: list[CaptureFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def find_captures(arguments: Sequence[str], store: StoreAccess | None = None) -> FoundFiles:
    """Return the captures that `arguments` name: files, and folders of them with all below.

    Links are followed, but each folder is entered once. A file of a folder that is no capture is left out
    with a note; one that is named stays, so that reading it says what it is. Objects of stores are named by
    their URLs; one that ends in `/` stands for all below with a capture's name.
    """
    found = FoundFiles()
    for server in filter(is_pcap_over_ip, arguments):
        raise UsageError(
            f"`{server}` is no file, and a batch goes on where it was stopped",
            hint="save the capture to a file first, or read it by `tfrctrace flows`",
        )
    for url in filter(is_remote, arguments):
        _add_objects(found, url, store or StoreAccess())
    arguments = [argument for argument in arguments if not is_remote(argument)]
    root = common_folder(arguments)
    entered: set[tuple[int, int]] = set()
    known: dict[tuple[int, int], str] = {}
    skipped: list[str] = []
    for argument in arguments:
        is_folder = os.path.isdir(argument)
        paths = _below(argument, entered, found.problems) if is_folder else [argument]
        for path in paths:
            name = os.path.relpath(path, root)
            try:
                status = os.stat(path)
                if is_folder and not (stat.S_ISREG(status.st_mode) and looks_like_capture(path)):
                    skipped.append(name)
                    continue
            except OSError as error:
                found.problems.append(_cannot_open(name, error))
                continue
            same = known.setdefault((status.st_dev, status.st_ino), name)
            if same != name:
                found.problems.append(left_out(name, f"is the same file as `{same}`"))
                continue
            # workers may be in another folder
            place = os.path.abspath(path)
            found.files.append(CaptureFile(place, name, status.st_size, status.st_mtime_ns))
    if skipped:
        count = "1 file is no capture" if len(skipped) == 1 else f"{len(skipped)} files are no captures"
        text = f"{count}, and left out; the first is `{skipped[0]}`"
        found.problems.append(input_problem(arguments[0], "skipped", text, severity="note"))
    found.files.sort(key=lambda file: natural_key(file.name))
    return found


def common_folder(arguments: Sequence[str]) -> str:
    """Return the folder below which all arguments are: that itself, if it is the only one."""
    if not arguments:
        return os.curdir
    folders = [
        argument if os.path.isdir(argument) else os.path.dirname(argument) or "." for argument in arguments
    ]
    return os.path.commonpath([os.path.abspath(folder) for folder in folders])


def _add_objects(found: FoundFiles, url: str, store: StoreAccess) -> None:
    is_prefix = url.endswith("/")
    try:
        objects = listed_objects(url, store) if is_prefix else [described_object(public_url(url), store)]
    except OSError as error:
        found.problems.append(_cannot_open(public_url(url), error))
        return
    for one in objects:
        if one.size and (not is_prefix or has_capture_name(one.url)):
            name = public_url(one.url).partition("://")[2]
            found.files.append(CaptureFile(url_with_query(one.url), name, one.size, one.etag or ""))


def left_out(name: str, why: str) -> Problem:
    """Return the note on a file that is not read."""
    return input_problem(name, "skipped", f"{why}, and is left out", severity="note")


def without_equal_files(files: Sequence[CaptureFile], problems: list[Problem]) -> list[CaptureFile]:
    """Return the files without those that have the size and both ends of another one.

    The one stays whose name, but for numbers, more others have. Files without packets show that a capture
    ran: they are alike, and not the same.
    """
    sizes = Counter(file.size for file in files)
    siblings = Counter(numberless(file.name) for file in files)
    kept: list[CaptureFile] = []
    known: dict[tuple[int, bytes], CaptureFile] = {}
    for file in sorted(files, key=lambda file: -siblings[numberless(file.name)]):
        ends = _ends(file) if file.size and sizes[file.size] > 1 else None
        same = known.setdefault((file.size, ends), file) if ends else file
        if same is file:
            kept.append(file)
        else:
            problems.append(left_out(file.name, f"has the size and both ends of `{same.name}`"))
    return sorted(kept, key=lambda file: natural_key(file.name))


def numberless(name: str) -> tuple[str, ...]:
    """Return a name without its numbers and the suffix of a compression.

    A number at the end may be missing: tcpdump's `-C` writes `link.pcap`, then `link.pcap1`.
    """
    folder, base = os.path.split(uncompressed(name))
    parts = re.split(r"[0-9]+", base)
    return folder, *(parts if parts[-1] else parts[:-1])


def uncompressed(name: str) -> str:
    """Return a name without the suffix of a compression."""
    root, suffix = os.path.splitext(name)
    return root if suffix.lower() in COMPRESSION_SUFFIXES else name


def _ends(file: CaptureFile) -> bytes | None:
    """Return a digest of both ends of a file; None if they are not known, or if it has no packet."""
    from tfrctrace.parsers._native import capture_extent

    if file.is_remote:
        return str(file.version).encode()
    try:
        if file.size < _EDGE and capture_extent(file.path)[0]["start_ns"] is None:
            return None
        with open(file.path, "rb") as content:
            head = content.read(_EDGE)
            content.seek(max(file.size - _EDGE, 0))
            return blake2b(head + content.read(_EDGE), digest_size=16).digest()
    except OSError:
        return None  # reading it will report why


def _below(folder: str, entered: set[tuple[int, int]], problems: list[Problem]) -> Iterator[str]:
    """Give the files below a folder, whose links are followed."""

    def cannot_list(error: OSError) -> None:
        problems.append(_cannot_open(os.fsdecode(error.filename), error))

    for path, folders, names in os.walk(folder, followlinks=True, onerror=cannot_list):
        own = os.stat(path)
        if (own.st_dev, own.st_ino) in entered:
            folders.clear()
            problems.append(left_out(path, "is a link to a folder that was listed already"))
            continue
        entered.add((own.st_dev, own.st_ino))
        folders.sort(key=natural_key)
        yield from (os.path.join(path, name) for name in names)


def _cannot_open(name: str, error: OSError) -> Problem:
    return input_problem(name, "cannot_open", f"cannot be opened: {(error.strerror or str(error)).lower()}")
