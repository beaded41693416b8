"""Which files are parts of one capture: a chain, found by names, contents and times.

Files of a chain are in one folder, their names differ in numbers only, and they have the same format, link
types and interfaces. Each begins after the one before has ended: captures that ran side by side, and runs
with pauses in between, are chains of their own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Final

from tfrctrace.batch.capture_files import CaptureFile, left_out, numberless, uncompressed
from tfrctrace.parsers.sources import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.batch import Chaining

_AT_ONCE_NS: Final = 10**9
"""Captures that begin within this time, of which only the start is known, ran side by side."""

_LONGEST_PAUSE: Final = 0.05
"""Usual time between the files of a chain, as a share of their usual length."""

_DAY_NS: Final = 86_400 * 10**9
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

_SHORT_PAUSE_NS: Final = 10**9
"""A pause that is always short enough: a quiet link, or the start of the next file."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What the start and the end of a file show."""

    file: CaptureFile
    content: tuple[str, ...]
    """Format, link types and names of interfaces."""
    start_ns: int | None
    end_ns: int | None
    is_whole: bool | None
    """Whether the last record is whole; None if only reading all would show it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Files that are one capture, in the order of their times."""

    name: str
    files: tuple[CaptureFile, ...]
    link: str = ""
    """Name of the capture of which it is one day; empty if it is all of it."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def find_chains(files: Sequence[CaptureFile], chaining: Chaining, problems: list[Problem]) -> list[Chain]:
    """Return the chains of `files` by name; what was left out goes to `problems`."""
    if chaining == "none":
        return _named([[file] for file in files])
    alike: dict[tuple[str, ...], list[CaptureFile]] = {}
    for file in files:
        alike.setdefault(numberless(file.name), []).append(file)
    groups: list[list[CaptureFile]] = []
    for members in alike.values():
        if len(members) == 1 or any(member.is_remote for member in members):
            # of objects only the names are known
            groups.append(members)
            continue
        contents: dict[tuple[str, ...], list[Extent]] = {}
        for member in members:
            one = extent_of(member)
            contents.setdefault(one.content, []).append(one)
        for extents in contents.values():
            for chain in [extents] if chaining == "names" else _apart(extents):
                groups.append(_complete(_in_order(chain), problems))
    chains = _named([group for group in groups if group])
    return [day for chain in chains for day in days_of(chain)] if chaining == "days" else chains


def days_of(chain: Chain) -> Iterator[Chain]:
    """Give the files of each day (UTC) as a chain: a new file changes that of its day only.

    A file belongs to the day of its first packet, one without packets to the day before it, or the first one.
    """
    days: dict[str, list[CaptureFile]] = {}
    starts_ns = [None if file.is_remote else extent_of(file).start_ns for file in chain.files]
    known = [
        str(date.fromordinal(_EPOCH_DAY + one // _DAY_NS)) if one is not None else "" for one in starts_ns
    ]
    day = next(filter(None, known), "")
    for file, own in zip(chain.files, known, strict=True):
        day = own or day
        days.setdefault(day, []).append(file)
    for day, files in days.items():
        yield Chain(f"{chain.name} {day}".rstrip(), tuple(files), link=chain.name)


def longest_ns(chains: Iterable[Chain]) -> int | None:
    """Return how long the longest of these captures lasts; None if the end of a file is not known."""
    extents: dict[str, list[Extent]] = {}
    for chain in chains:
        for file in chain.files:
            if file.is_remote:
                return None
            extents.setdefault(chain.link or chain.name, []).append(extent_of(file))
    lasts_ns = [0]
    for own in extents.values():
        starts_ns = [one.start_ns for one in own if one.start_ns is not None]
        ends_ns = [one.end_ns for one in own if one.end_ns is not None]
        if len(starts_ns) != len(ends_ns):
            return None
        lasts_ns.append(max(ends_ns, default=0) - min(starts_ns, default=0))
    return max(lasts_ns)


def extent_of(file: CaptureFile) -> Extent:
    """Return what the start and the end of a file show."""
    from tfrctrace.parsers._native import capture_extent

    head, end_ns, is_whole = capture_extent(file.path)
    interfaces = [one["name"] or "" for one in head["interfaces"]]
    content = (head["format"], *head["link_types"], *interfaces)
    return Extent(file, content, head["start_ns"], end_ns, is_whole)


def _apart(extents: list[Extent]) -> Iterator[list[Extent]]:
    """Give the chains among files whose names differ in numbers only."""
    if len(extents) == 1 or _is_chain(extents):
        yield extents
        return
    parts: dict[str, list[Extent]] = {}
    names = [_numbers(extent.file.name) for extent in extents]
    differing = next(place for place in range(len(names[0])) if len({name[place] for name in names}) > 1)
    for one, numbers in zip(extents, names, strict=True):
        parts.setdefault(numbers[differing], []).append(one)
    for part in parts.values():
        yield from _apart(part)


def _is_chain(extents: list[Extent]) -> bool:
    """Return whether most files begin where the one before ended; a few may overlap or leave a gap."""
    from statistics import median

    timed = [extent for extent in extents if extent.start_ns is not None]
    if not timed:
        return False
    by_name = sorted(timed, key=lambda one: natural_key(one.file.name))
    by_time = sorted(timed, key=_by_time)
    pauses_ns: list[int] = []
    lengths_ns: list[int] = []
    side_by_side = sum(one is not other for one, other in zip(by_name, by_time, strict=True)) // 2
    for before, after in pairwise(by_time):
        if before.start_ns is None or after.start_ns is None:
            continue
        if before.end_ns is None:
            side_by_side += after.start_ns - before.start_ns < _AT_ONCE_NS
            continue
        side_by_side += after.start_ns < before.end_ns
        pauses_ns.append(after.start_ns - before.end_ns)
        lengths_ns.append(before.end_ns - before.start_ns)
    if side_by_side * 2 > len(by_time) - 1:
        return False
    longest_ns = max(_SHORT_PAUSE_NS, _LONGEST_PAUSE * median(lengths_ns)) if lengths_ns else 0
    return not pauses_ns or median(pauses_ns) <= longest_ns


def _complete(chain: list[Extent], problems: list[Problem]) -> list[CaptureFile]:
    """Return the files of a chain without the newest, if somebody is still writing it."""
    newest = chain[-1]
    if newest.is_whole is False and newest.file.was_written_lately:
        problems.append(left_out(newest.file.name, "is still being written"))
        chain = chain[:-1]
    return [one.file for one in chain]


def _in_order(chain: Iterable[Extent]) -> list[Extent]:
    """Return files by their times, those without packets after the one that precedes them by name.

    So another file after them does not move them to another day.
    """
    by_name = sorted(chain, key=lambda one: natural_key(one.file.name))
    before_ns = -(2**63)
    keys = []
    for one in by_name:
        before_ns = before_ns if one.start_ns is None else one.start_ns
        keys.append(before_ns)
    return [one for _, one in sorted(zip(keys, by_name, strict=True), key=lambda pair: pair[0])]


def _by_time(one: Extent) -> tuple[bool, int, list[tuple[int, int, str]]]:
    return one.start_ns is None, one.start_ns or 0, natural_key(one.file.name)


def _numbers(name: str) -> list[str]:
    """Return the numbers of a name, of which the last one may be missing."""
    base = os.path.basename(uncompressed(name))
    return [*re.findall(r"[0-9]+", base), *(() if base[-1:].isdecimal() else ("",))]


def _named(groups: Iterable[Sequence[CaptureFile]]) -> list[Chain]:
    """Return the chains by name; of those with one name, the second has the number 2."""
    chains: list[Chain] = []
    used: dict[str, int] = {}
    named = [Chain(_common_name([file.name for file in files]), tuple(files)) for files in groups]
    for chain in sorted(named, key=lambda chain: natural_key(chain.files[0].name)):
        used[chain.name] = used.get(chain.name, 0) + 1
        number = used[chain.name]
        chains.append(chain if number == 1 else replace(chain, name=f"{chain.name} ({number})"))
    return sorted(chains, key=lambda chain: natural_key(chain.name))


def _common_name(names: Sequence[str]) -> str:
    """Return what the names have in common, with `*` for the numbers in which they differ."""
    if len(names) == 1:
        return names[0]
    folder = os.path.dirname(names[0])
    pieces = [re.split(r"([0-9]+)", os.path.basename(uncompressed(name))) for name in names]
    common = [values[0] if len(set(values)) == 1 else "*" for values in zip_longest(*pieces, fillvalue="")]
    return os.path.join(folder, "".join(common))
