"""The history of a gate: what each build measured, a line of JSON for each, in a folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.results.trend import Build

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.history import HistoryEntry
    from tfrctrace.runs.quantity import Quantity

HISTORY_VERSION: Final = 1

FILE_NAME: Final = "history.jsonl"

BUILD_VARIABLES: Final = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1")
"""What CI servers call the commit: GitHub, GitLab, Jenkins, Buildkite, CircleCI."""

_MOST_LINE_BYTES: Final = 4_000_000
_MOST_BYTES: Final = 256_000_000


@dataclass(frozen=True, slots=True)
class MeasuredBuild:
    """What was measured of one build, in one check or in several."""

    build: Build
    values: Mapping[str, tuple[float, ...]]
    """One for each run, by quantity."""


@dataclass(frozen=True, slots=True)
class History:
    """The builds of a folder, oldest first, as far as they were measured alike."""

    builds: tuple[MeasuredBuild, ...]
    unlike: int = 0
    """Checks with other options, which cannot be compared."""
    broken: tuple[str, ...] = field(default=())
    """Lines that are no entries, as `file:line`."""


def build_name(given: str | None) -> str:
    """Return the build that is checked: as given, else as the CI server says."""
    name = given or next((os.environ[name] for name in BUILD_VARIABLES if os.environ.get(name)), None)
    if not name:
        raise UsageError(
            "a history needs the name of the build", hint="give `--build`, such as the commit or its date"
        )
    return name


def make_entry(
    build: str,
    time_ns: int,
    runs: Sequence[CheckedRun],
    quantities: Sequence[Quantity],
    measured_with: Mapping[str, Any],
) -> HistoryEntry:
    """Return what the history keeps of a check."""
    from tfrctrace.metrics.results.history import HistoryEntry

    return HistoryEntry(
        history_version=HISTORY_VERSION,
        build=build,
        time_ns=time_ns,
        measured_with=dict(measured_with),
        runs=tuple(run.name for run in runs),
        quantities={
            quantity.name: tuple(value for run in runs for value in run.values_of(quantity).values)
            for quantity in quantities
            if quantity.is_one_number
        },
    )


def append_entry(folder: str, entry: HistoryEntry) -> None:
    """Append an entry to the history in `folder`, which is made if it is not there."""
    import msgspec

    from tfrctrace.reports.output import make_folder, output_errors

    make_folder(folder)
    path = os.path.join(folder, FILE_NAME)
    line = json.dumps(msgspec.to_builtins(entry), allow_nan=False).encode() + b"\n"
    # one write at the end of the file, so that checks of two builds at once keep their lines apart
    with output_errors(path), open(path, "ab+", buffering=0) as file:
        if file.tell() and not _ends_with_line_end(file.fileno()):
            line = b"\n" + line
        file.write(line)


def _ends_with_line_end(descriptor: int) -> bool:
    """Return whether the last entry is whole: a check that was killed may have left a part of one."""
    return os.pread(descriptor, 1, os.fstat(descriptor).st_size - 1) == b"\n"


def read_history(folder: str, measured_with: Mapping[str, Any]) -> History:
    """Return the builds whose checks were measured with these options."""
    entries, broken, unlike = [], [], 0
    for place, entry in _entries(os.path.join(folder, FILE_NAME)):
        if entry is None:
            broken.append(place)
        elif _options(entry.measured_with) == _options(measured_with):
            entries.append(entry)
        else:
            unlike += 1
    return History(tuple(_builds(entries)), unlike, tuple(broken))


def _builds(entries: Sequence[HistoryEntry]) -> Iterator[MeasuredBuild]:
    """Give the builds, oldest first; what several checks measured of one is put together."""
    by_name: dict[str, list[HistoryEntry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.time_ns):
        by_name.setdefault(entry.build, []).append(entry)
    for name, checks in by_name.items():
        values: dict[str, list[float]] = {}
        for entry in checks:
            for quantity, some in entry.quantities.items():
                values.setdefault(quantity, []).extend(some)
        build = Build(name, checks[0].time_ns)
        yield MeasuredBuild(build, {quantity: tuple(all_) for quantity, all_ in values.items()})


def _options(measured_with: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in measured_with.items() if value}


def _entries(path: str) -> Iterator[tuple[str, HistoryEntry | None]]:
    """Give the entries of a file with their places; None for a line that is none."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                raise UsageError(f"`{path}` is larger than {_MOST_BYTES} bytes")
            number = 0
            while line := file.readline(_MOST_LINE_BYTES):
                number += 1
                if line.strip():
                    yield f"{path}:{number}", _parsed(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"`{path}`: {(error.strerror or str(error)).lower()}") from error


def _parsed(line: bytes) -> HistoryEntry | None:
    import msgspec

    from tfrctrace.metrics.results.history import HistoryEntry

    try:
        return msgspec.convert(json.loads(line), HistoryEntry)
    except (ValueError, RecursionError):
        return None
