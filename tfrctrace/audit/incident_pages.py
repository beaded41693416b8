"""Reports of the captures and the time of incidents, one page each."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError
from tfrctrace.base.timezones import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.audit import Audit, FoundIncident
    from tfrctrace.reports.results import Results

MOST_PAGES: Final = 20


def write_incident_pages(
    found: Audit,
    folder: str,
    paths: Mapping[str, str],
    *,
    results_of: Callable[[list[str], str, str], Results],
    on_problems: Callable[[Iterable[Problem]], None],
    zone: TimeZone,
) -> dict[int, str]:
    """Write a report of each of the longest incidents; return the names of the pages by number.

    `paths` are those of captures by the names that results have, `results_of` reads captures between two
    times of UTC. An incident whose captures are gone, or cannot be read, gets no page.
    """
    from tfrctrace.reports.build_report import build_report
    from tfrctrace.reports.page.html import write_page

    pages: dict[int, str] = {}
    for incident in _longest(found):
        files = [paths[name] for name in incident.files if name in paths]
        if len(files) < len(incident.files):
            continue
        try:
            results = results_of(files, *_times(incident, found.every_ns))
        except InputError as error:
            on_problems(error.problems)
            continue
        name = f"incident-{incident.number}.html"
        report = build_report(results, title=f"Incident {incident.number}", index="index.html", zone=zone)
        write_page(os.path.join(folder, name), report)
        pages[incident.number] = name
    return pages


def _longest(found: Audit) -> Iterator[FoundIncident]:
    """Give the longest incidents that have packets."""
    with_packets = [incident for link in found.links for incident in link.incidents if incident.files]
    with_packets.sort(key=lambda one: (-one.incident.lasted_ns, one.number))
    yield from with_packets[:MOST_PAGES]


def _times(one: FoundIncident, every_ns: int) -> tuple[str, str]:
    """Return begin and end with an interval on both sides, as `--since` and `--until` take them."""
    begin_ns, end_ns = one.incident.begin_ns - every_ns, one.incident.end_ns + every_ns
    since, until = (
        EPOCH + timedelta(seconds=seconds) for seconds in (begin_ns // 10**9, -(-end_ns // 10**9))
    )
    return f"{since:%Y-%m-%dT%H:%M:%SZ}", f"{until:%Y-%m-%dT%H:%M:%SZ}"
