"""Judge the days of all links that are not done, then find incidents and their places over all days."""

from __future__ import annotations

import os
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, Final

from tfrctrace.audit.audit_folder import AuditFolder
from tfrctrace.audit.day_task import DayTask, JudgingPlan
from tfrctrace.audit.link_days import LinkDays
from tfrctrace.audit.pieces import DAY_NS, HOUR_NS, BusyTimes, extent_of
from tfrctrace.base.digests import sha256_of
from tfrctrace.base.durations import duration_text
from tfrctrace.base.errors import InputError, UsageError, input_problem
from tfrctrace.metrics.objectives import Extent
from tfrctrace.metrics.results.audit import Audit, CaptureCounts, ReadFiles
from tfrctrace.runs.cache import program_digest
from tfrctrace.runs.engine import measure_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.audit.link_days import Day
    from tfrctrace.audit.pieces import BatchResults, Piece
    from tfrctrace.base.hours_of_use import HoursOfUse
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.profiles.score import Profile
    from tfrctrace.metrics.results.audit import AuditedLink
    from tfrctrace.runs.engine import Progress
    from tfrctrace.runs.workers import Workers

_SHORT_NS: Final = 2 * HOUR_NS
"""A shorter capture has too few of the usual intervals."""
_SHORTER: Final = 10

_DERIVED: Final = ("link", "prefix", "site")
"""Groups that are made of hosts."""


def check_objectives(objectives: Sequence[Objective], by: str, every_ns: int) -> None:
    """Raise `UsageError` for objectives that results of `by` and `every_ns` cannot be judged by."""
    for one in objectives:
        grouping = one.grouping
        if grouping.by != by and (grouping.by not in _DERIVED or by != "host"):
            raise UsageError(
                f"`{one.name}` is of groups by {grouping.by}, and the results are by {by}",
                hint="an audit judges hosts, prefixes, sites and links",
            )
        width_ns = grouping.every_ns or 0
        if not width_ns or width_ns % every_ns or DAY_NS % width_ns:
            raise UsageError(
                f"`{one.name}` has intervals of {duration_text(width_ns)}, which are no multiple of "
                f"{duration_text(every_ns)}, or do not divide a day",
                hint='write such as every = "5min"',
            )


def perform_audit(
    results: BatchResults,
    objectives: Sequence[Objective],
    folder: str,
    *,
    workers: Workers,
    profiles: Sequence[Profile] = (),
    hours: HoursOfUse | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Return the audit of all links of a batch; what is made of days is kept in `folder`."""
    by_link = results.by_link
    column_ns = _column_ns(objectives, results.longest_ns)
    plan = JudgingPlan(
        results.grouping, tuple(objectives), _inventories(objectives), folder, program_digest(), column_ns
    )
    tasks = [task for link, pieces in sorted(by_link.items()) for task in _days(link, pieces, plan)]
    if not tasks:
        problems = [problem for piece in results.pieces for problem in piece.problems]
        nothing = input_problem(results.pieces[0].name, "no_packets", "has no packets that can be grouped")
        raise InputError([*results.problems, *problems, nothing])
    store = AuditFolder(folder)
    measured = measure_runs(tasks, workers=workers, store=store, progress=progress)
    failed = [problem for one in measured.records if one["failed"] for problem in one["problems"]]
    if failed:
        raise InputError(failed)
    keys = [task.key for task in tasks]
    store.keep_only(dict(zip(keys, measured.records, strict=True)))
    days: dict[str, list[Day]] = {}
    for task, key, record in zip(tasks, keys, measured.records, strict=True):
        days.setdefault(task.link, []).append((key, record))
    links: list[AuditedLink] = []
    neighbours = _neighbours(by_link)
    for name, own in days.items():
        number = sum(len(one.incidents) for one in links)
        link = LinkDays(
            name,
            tuple(by_link[name]),
            results.grouping,
            tuple(objectives),
            store,
            tuple(own),
            neighbours=tuple(neighbours[name]),
            hours=hours,
        )
        audited = replace(link.audited(number + 1), column_ns=column_ns)
        links.append(link.scored(audited, profiles))
    return Audit(
        tuple(objectives),
        tuple(links),
        tuple(_read_files(link, pieces) for link, pieces in sorted(by_link.items())),
        results.problems,
        tuple(profiles),
        results.grouping.every_ns or 0,
        results.grouping.by,
    )


def _neighbours(by_link: Mapping[str, Sequence[Piece]]) -> dict[str, list[BusyTimes]]:
    """Return for each link the others whose captures lie in the same folder: those of one capture point."""
    busy = {name: BusyTimes(tuple(pieces)) for name, pieces in by_link.items()}
    by_folder: dict[str | None, list[str]] = {}
    for name, pieces in by_link.items():
        by_folder.setdefault(_folder_of(pieces), []).append(name)
    return {
        name: [busy[other] for other in names if other != name and folder is not None]
        for folder, names in by_folder.items()
        for name in names
    }


def _folder_of(pieces: Sequence[Piece]) -> str | None:
    """Return the folder of all files; None where names do not show it."""
    folders = {os.path.dirname(file) for piece in pieces for file in piece.files}
    return None if len(folders) != 1 or any(piece.is_anonymous for piece in pieces) else folders.pop()


def _inventories(objectives: Sequence[Objective]) -> tuple[tuple[str, str], ...]:
    paths = dict.fromkeys(objective.grouping.inventory for objective in objectives)
    return tuple((path, _digest(path)) for path in paths if path is not None)


def _days(link: str, pieces: Sequence[Piece], plan: JudgingPlan) -> Iterator[DayTask]:
    extent = extent_of(pieces)
    for day in sorted({day for piece in pieces for day in piece.days}):
        within = Extent(max(extent.first_ns, day * DAY_NS), min(extent.last_ns, (day + 1) * DAY_NS))
        own = tuple(piece for piece in pieces if day in piece.days)
        yield DayTask(link, day, own, within, plan)


def _digest(path: str) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise UsageError(f"`{path}`: {(error.strerror or str(error)).lower()}") from error


def _read_files(link: str, pieces: Sequence[Piece]) -> ReadFiles:
    sources = tuple(source for piece in pieces for source in piece.sources)
    problems = tuple(problem for piece in pieces for problem in piece.problems)
    counts = CaptureCounts(
        link=link,
        pieces=len(pieces),
        failed=sum(piece.has_failed for piece in pieces),
        files=sum(len(piece.files) for piece in pieces),
        bytes=sum(piece.bytes for piece in pieces),
        packets=sum(source["packets"] for source in sources),
        problems=len(problems),
    )
    return ReadFiles(counts, sources, problems)


def with_hysteresis(
    objectives: Sequence[Objective], raise_after: int | None, clear_after: int | None
) -> list[Objective]:
    """Return objectives with other numbers of intervals that raise and clear an incident."""
    return [
        replace(
            objective,
            raise_after=raise_after or objective.raise_after,
            clear_after=clear_after or objective.clear_after,
        )
        for objective in objectives
    ]


def fitted(objectives: Sequence[Objective], lasts_ns: int, every_ns: int = 1) -> list[Objective]:
    """Return objectives with intervals of a tenth where captures last for less than two hours.

    Intervals that results of `every_ns` do not consist of stay.
    """
    width_ns = base_width_ns(objectives) // _SHORTER
    if lasts_ns >= _SHORT_NS or width_ns % every_ns:
        return list(objectives)
    return [
        replace(one, grouping=replace(one.grouping, every_ns=(one.grouping.every_ns or 0) // _SHORTER))
        for one in objectives
    ]


def _column_ns(objectives: Sequence[Objective], lasts_ns: int) -> int:
    """Return the width of columns of the page: an hour, of short captures the widest interval."""
    widest_ns = max(objective.grouping.every_ns or HOUR_NS for objective in objectives)
    return widest_ns if lasts_ns < _SHORT_NS and HOUR_NS % widest_ns == 0 else HOUR_NS


def base_width_ns(objectives: Sequence[Objective]) -> int:
    """Return the widest intervals of which those of all objectives consist, an hour at most."""
    return gcd(HOUR_NS, *(objective.grouping.every_ns or HOUR_NS for objective in objectives))
