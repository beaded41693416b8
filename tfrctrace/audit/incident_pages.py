"""Reports of the captures and the time of incidents, one page each."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import InputError
from tfrctrace.base.timezones import EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tfrctrace.api import Trace
    from tfrctrace.base.errors import Problem
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.audit import Audit, FoundIncident

MOST_PAGES: Final = 20


def write_incident_pages(
    found: Audit,
    folder: str,
    paths: Mapping[str, str],
    *,
    trace_of: Callable[[list[str], str, str], Trace],
    on_problems: Callable[[Iterable[Problem]], None],
    zone: TimeZone,
) -> dict[int, str]:
    """Write a report of each of the longest incidents; return the names of the pages by number.

    `paths` are those of captures by the names that results have, `trace_of` opens captures between two
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
            # with an interval on both sides
            begin_ns, end_ns = incident.incident.begin_ns, incident.incident.end_ns
            stretch = times_of_utc(begin_ns - found.every_ns, end_ns + found.every_ns)
            results = trace_of(files, *stretch).results()
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


def times_of_utc(begin_ns: int, end_ns: int) -> tuple[str, str]:
    """Return two times, in whole seconds around them, as `--since` and `--until` take them."""
    since, until = (
        EPOCH + timedelta(seconds=seconds) for seconds in (begin_ns // 10**9, -(-end_ns // 10**9))
    )
    return f"{since:%Y-%m-%dT%H:%M:%SZ}", f"{until:%Y-%m-%dT%H:%M:%SZ}"
