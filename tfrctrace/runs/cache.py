"""Records of runs that were measured before, found by what they were made of.

The key of an entry depends on the size and time of each file, the options and the program itself, so nothing
has to be deleted when one of them changes. An entry is JSON with a checksum: a damaged one counts as missing,
and nothing in it can run.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import hmac
import json
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tfrctrace.base.version import VERSION
from tfrctrace.reports.output import check_folder, make_folder, open_output, remove_stale_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Record = dict[str, Any]
"""What is kept of a run: plain names and values, among them `failed` and `problems`."""

MAX_BYTES: Final = 2 * 10**9
"""Size of all entries above which the least recently used are removed."""

MAX_ENTRY_BYTES: Final = 10**9
"""Size of one entry, decompressed."""

PROGRAM: Final = os.path.dirname(os.path.dirname(__file__))
"""The folder of the whole program."""

_DIGEST_CHARACTERS: Final = 64

_NOT_IN_RECORDS: Final = frozenset({"reports", "commands", "native", "__pycache__"})
"""Folders of the program on which no record depends."""


def default_folder() -> str:
    """Return `$XDG_CACHE_HOME/tfrctrace`, or `~/.cache/tfrctrace`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # the specification has relative paths ignored
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "tfrctrace")


def chosen_cache(folder: str | None) -> Cache | None:
    """Return the cache in `folder`; the default one for None, no cache for `none`.

    Raises `OutputError` for a folder that cannot be written to; the default one is then not used.
    """
    if folder == "none":
        return None
    if folder is not None:
        check_folder(folder)
        make_folder(folder)
    return Cache(folder or default_folder())


FileState = tuple[str, int, int | str]
"""Name, size, and time of the last change (ns) or, of an object of a store, its ETag."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """What the record of a run is made of: its files, and the options that change numbers."""

    name: str
    paths: tuple[str, ...]
    options: Mapping[str, Any]
    files: tuple[FileState, ...] | None = None
    """The files as they were found, if that is known already."""
    secret: bytes | None = None
    """Without it the key shows nobody whether names and sizes were guessed."""

    def key(self, program: str) -> str | None:
        """Return the key of the record that `program` makes; None if a file is missing, or a pipe.

        No file is read: one that was written again has another size or time.
        """
        from tfrctrace.parsers.dissect import parse_dissect

        try:
            # opening a pipe would empty it
            files = self.files or tuple(state for path in self.paths for state in _file_states(path))
        except OSError:
            return None  # reading the run will report why
        made_of = {
            "name": self.name,
            "options": dict(self.options),
            # a layout may have changed while its file kept its name
            "layouts": [parse_dissect(layout) for layout in self.options.get("dissect") or ()],
            "program": program,
            "files": files,
        }
        text = json.dumps(made_of, sort_keys=True).encode()
        return (
            hmac.digest(self.secret, text, "sha256") if self.secret else hashlib.sha256(text).digest()
        ).hex()


def _file_states(path: str) -> Iterator[FileState]:
    """Give the state of a run's file, or of each file below a run's directory; raises OSError for neither."""
    if not os.path.isdir(path):
        yield file_state(path, os.path.basename(path))
        return
    for name in sorted(str(one) for one in Path(path).rglob("*") if one.is_file()):
        yield file_state(name, os.path.relpath(name, path))


def file_state(path: str, name: str) -> FileState:
    """Return the state of a file under the name `name`; raises OSError if it is none."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(path)
    return name, status.st_size, status.st_mtime_ns


@functools.cache
def program_digest() -> str:
    """Return a digest of the version and the content of this program: the same on each machine."""
    digest = hashlib.sha256(VERSION.encode())
    for path in program_files():
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").digest()
        digest.update(os.fsencode(os.path.relpath(path, PROGRAM)) + b"\0" + content)
    return digest.hexdigest()


def program_files() -> list[str]:
    """Return the files of this program on which a record may depend: all but those that print results."""
    files: list[str] = []
    # rooms may be links into a checkout
    for folder, folders, names in os.walk(PROGRAM, followlinks=True):
        folders[:] = set(folders) - _NOT_IN_RECORDS
        files += (os.path.join(folder, name) for name in names)
    return sorted(files)


class Cache:
    """Records in files of one folder."""

    is_filled_by_tasks: ClassVar[bool] = False

    def __init__(self, folder: str) -> None:
        """Use `folder`, which is created with the first record."""
        self._folder = Path(folder)

    def get(self, key: str) -> Record | None:
        """Return the record of `key`; None if it is missing or damaged."""
        place = self._place(key)
        try:
            with gzip.open(place) as file:
                content = file.read(MAX_ENTRY_BYTES)
            digest, text = content[:_DIGEST_CHARACTERS], content[_DIGEST_CHARACTERS:]
            if _checksum(key, text) != digest:
                return None
            os.utime(place)
            record: Record = json.loads(text)
        except (OSError, EOFError, zlib.error, ValueError, RecursionError):
            return None
        return record

    def put(self, key: str, record: Record) -> None:
        """Keep a record. A folder that cannot be written to only costs time, so it is no error."""
        text = json.dumps(record).encode()
        place = self._place(key)
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            with open_output(str(place)) as file:
                file.write(gzip.compress(_checksum(key, text) + text, 1))

    def trim(self, most_bytes: int = MAX_BYTES) -> None:
        """Remove what killed runs left, and the least recently used entries beyond `most_bytes`."""
        remove_stale_parts(str(self._folder / "runs"))
        with contextlib.suppress(OSError):
            stats = [(entry.stat(), entry) for entry in self._folder.glob("runs/*.gz")]
            excess = sum(stat.st_size for stat, _ in stats) - most_bytes
            for stat, entry in sorted(stats, key=lambda one: one[0].st_mtime_ns):
                if excess <= 0:
                    break
                entry.unlink(missing_ok=True)
                excess -= stat.st_size

    def _place(self, key: str) -> Path:
        return self._folder / "runs" / f"{key}.json.gz"


def _checksum(key: str, text: bytes) -> bytes:
    """Return a checksum of the entry, which differs where an entry was copied to another key."""
    return hashlib.sha256(key.encode() + text).hexdigest().encode()
