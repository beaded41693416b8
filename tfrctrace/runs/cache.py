"""Records of runs that were measured before, by what they were made of: those of studies and of gates.

An entry is found by the bytes of the run, the settings and the program itself, so nothing has to be thrown
away when one of them changes. It is JSON with its own checksum: what is damaged counts as not there, and
nothing in it can run.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.study.find_runs import Run
    from tfrctrace.study.run_record import Record

MAX_BYTES: Final = 2 * 10**9
"""Size of all entries from which those that were not used for longest are removed."""

MAX_ENTRY_BYTES: Final = 10**9
"""Of one entry, decompressed."""

_DIGEST_CHARACTERS: Final = 64

_NOT_IN_RECORDS: Final = frozenset({"reports", "commands", "native", "__pycache__"})
"""Folders of the program that have nothing to do with what is measured."""


def default_folder() -> str:
    """Return where entries are kept: `$XDG_CACHE_HOME/tfrctrace`, or `~/.cache/tfrctrace`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # the specification has relative paths ignored
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "tfrctrace")


def chosen_cache(folder: str | None) -> Cache | None:
    """Return the cache in `folder`, that of the user if it is None, or none for `none`."""
    return None if folder == "none" else Cache(folder or default_folder())


def key_of(run: Run, measuring: MeasuringPlan, series: Sequence[str]) -> str:
    """Return the key of a run's record. Raises `OSError` if the run cannot be read."""
    from tfrctrace.parsers.dissect import parse_dissect

    what = {
        "run": run.name,
        "measure": asdict(measuring),
        # what is called by the same name may have changed
        "layouts": [parse_dissect(layout) for layout in measuring.dissect],
        "series": sorted(series),
    }
    return digest_of(what, [run.path])


def digest_of(what: Mapping[str, Any], paths: Sequence[str]) -> str:
    """Return the key of what this program finds in the content of `paths` if `what` is asked of it.

    Raises `OSError` if one of them cannot be read.
    """
    content = [list(part) for path in paths for part in _contents(path)]
    made_of = {**what, "program": _program(), "content": content}
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def _contents(path: str) -> Iterator[tuple[str, str]]:
    """Give the name and the digest of a run's file, or of each file below a run's directory."""
    names = (
        sorted(str(one) for one in Path(path).rglob("*") if one.is_file()) if os.path.isdir(path) else [path]
    )
    for name in names:
        with open(name, "rb") as file:
            yield os.path.relpath(name, path), hashlib.file_digest(file, "blake2b").hexdigest()


def _program() -> str:
    """Return what tells this program from another version, or from another build of the same."""
    import tfrctrace

    stats = [(file, os.stat(file)) for file in program_files()]
    told = [(file, stat.st_size, stat.st_mtime_ns) for file, stat in stats]
    return hashlib.sha256(repr((tfrctrace.__version__, told)).encode()).hexdigest()


def program_files() -> list[str]:
    """Return the files of this program on which a record may depend: all but what shows it."""
    import tfrctrace

    files: list[str] = []
    # rooms may be links into a checkout
    for folder, folders, names in os.walk(os.path.dirname(tfrctrace.__file__), followlinks=True):
        folders[:] = set(folders) - _NOT_IN_RECORDS
        files += (os.path.join(folder, name) for name in names)
    return sorted(files)


class Cache:
    """Records in files of one folder."""

    def __init__(self, folder: str) -> None:
        """Take the folder, which is made when the first record is kept."""
        self._folder = Path(folder)

    def get(self, key: str) -> Record | None:
        """Return the record of `key`; None if there is none that is whole."""
        place = self._place(key)
        try:
            with gzip.open(place) as file:
                content = file.read(MAX_ENTRY_BYTES)
            digest, text = content[:_DIGEST_CHARACTERS], content[_DIGEST_CHARACTERS:]
            if hashlib.sha256(text).hexdigest().encode() != digest:
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
            descriptor, temporary = tempfile.mkstemp(dir=place.parent, suffix=".part")
            try:
                with open(descriptor, "wb") as file:
                    file.write(gzip.compress(hashlib.sha256(text).hexdigest().encode() + text, 1))
                os.replace(temporary, place)
            except BaseException:
                os.unlink(temporary)
                raise

    def trim(self, most_bytes: int = MAX_BYTES) -> None:
        """Remove the entries that were not used for longest, until the others are small enough together."""
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
