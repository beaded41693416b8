"""Incidents in a table, and the evidence of each."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

from tfrctrace.base.timezones import EPOCH
from tfrctrace.metrics.audit.harm import harm_of
from tfrctrace.reports.audit.place_words import (
    LACKING_WORDS,
    NOT_READ_WORDS,
    SIGNAL_NAMES,
    proof_words,
    reason_text,
)
from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView, Term
from tfrctrace.reports.flow_rows import endpoint
from tfrctrace.reports.units import (
    MISSING,
    counted,
    enumerated,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_stretch_ns,
    format_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.courses import Course
    from tfrctrace.metrics.audit.held_back import HeldBack
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.audit.queue_fillers import FilledQueue, QueueFiller
    from tfrctrace.metrics.audit.signals import Measured, Signal
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.audit import Audit, AuditedLink, FoundIncident
    from tfrctrace.reports.elements import Words

_MOST_ROWS: Final = 200
_MOST_EVIDENCE: Final = 30
"""Incidents whose evidence is written out."""
_MOST_NAMES: Final = 3
_MINUTE_NS: Final = 60 * 10**9
_MOSTLY: Final = 0.5
_LEAST_NAMED: Final = 0.05
"""Share of the time of flows from which a cause is named."""

_HEADINGS: Final = (
    Heading("When", numeric=False, meaning="by flows, else by the first and the last violated interval"),
    Heading("Where", numeric=False, meaning="what changed with it, seen from the capture"),
    Heading("Confidence", numeric=False),
    Heading(
        "Held back by", numeric=False, meaning="time of TCP flows within it, by what their senders awaited"
    ),
    Heading("Violated", numeric=False, meaning="objectives, and groups that violated them"),
    Heading("Worst", meaning="worst value of an interval, and its samples"),
    Heading("Course", numeric=False, meaning="whether it is over, changed for good, or returns at its hour"),
)
_SIGNAL_HEADINGS: Final = (
    Heading("Signal", numeric=False),
    Heading("Belongs to", numeric=False),
    Heading("Before", meaning="median or share, with limits of 95 %"),
    Heading("n"),
    Heading("During"),
    Heading("n"),
    Heading("Got worse", numeric=False, meaning="the limits do not overlap, and the difference matters"),
)


def incidents_section(audit: Audit, zone: TimeZone, pages: Mapping[int, str]) -> Section:
    """Return all incidents, the worst first; `pages` are the files of their reports, by number."""
    found = [one for _, one in worst_incidents(audit)]
    if not found:
        words = "No incident: nothing violated an objective for long enough, and no link was silent."
        return Section("incidents", "Incidents", paragraphs=((words,),))
    has_links = len(audit.links) > 1
    rest = f"; {counted(len(found) - _MOST_ROWS, 'row')} left out" if len(found) > _MOST_ROWS else ""
    table = TableView(
        "incidents-table",
        f"{counted(len(found), 'incident')}, the worst first (hosts, time, value over limit)"
        f"{rest}; {zone.name}.",
        (Heading("Incident", numeric=False), *_HEADINGS),
        tuple(_row(one, audit.objectives, zone, pages, has_links=has_links) for one in found[:_MOST_ROWS]),
        sortable=True,
    )
    return Section("incidents", "Incidents", tables=(table,))


def evidence_section(audit: Audit, zone: TimeZone) -> Section:
    """Return what each incident was compared with, and how to see its packets."""
    found = [one for _, one in worst_incidents(audit)[:_MOST_EVIDENCE]]
    tables = tuple(_evidence(one, zone) for one in found if one.where.signals)
    commands = tuple(Term(f"Incident {one.number}", "", command(one)) for one in found if one.files)
    return Section("evidence", "Evidence", tables=tables, terms=commands)


def worst_incidents(audit: Audit) -> list[tuple[AuditedLink, FoundIncident]]:
    """Return all incidents with their links, those first that harmed most."""
    found = [(link, one) for link in audit.links for one in link.incidents]
    return sorted(
        found,
        key=lambda pair: (
            -harm_of(pair[1].incident, pair[1].where, audit.objectives, pair[0].near),
            pair[1].number,
        ),
    )


def _row(
    one: FoundIncident,
    objectives: Sequence[Objective],
    zone: TimeZone,
    pages: Mapping[int, str],
    *,
    has_links: bool,
) -> Row:
    incident, where = one.incident, one.where
    names = _violated(incident, objectives)
    groups = list(dict.fromkeys(stretch.group or MISSING for stretch in incident.stretches))
    anchor = f"table-evidence-{one.number}" if where.signals else ""
    ended = list(dict.fromkeys(stretch.ended for stretch in incident.stretches))
    return Row(
        f"incident-{one.number}",
        (
            Cell(
                str(one.number),
                incident.link if has_links else "",
                sort=one.number,
                page=pages.get(one.number, ""),
            ),
            Cell(
                format_stretch_ns(incident.begin_ns, incident.end_ns, zone),
                f"{format_duration_s(incident.lasted_ns / 1e9)}{_doubt(incident)}",
                sort=incident.begin_ns,
            ),
            Cell(
                where_text(where),
                "; ".join(filter(None, (_who(where), filled_words(one.queue)))),
                anchor=anchor,
            ),
            Cell(where.confidence),
            _why(one.why),
            Cell(enumerated(names), listed(groups))
            if names
            else Cell("no packets", proof_words(where.reason.silence)),
            _worst(one, objectives),
            _course(one.course, ended),
        ),
    )


def _course(course: Course, ended: Sequence[str]) -> Cell:
    if course.kind == "over":
        return Cell(ended[0] if len(ended) == 1 else "recovered in part" if ended else "")
    return Cell(course.kind, f"on {counted(course.days, 'day')}" if course.kind == "recurs daily" else "")


def where_text(where: Attribution) -> str:
    """Return the place of an incident: `client side, under load`."""
    return f"{where.place}, under load" if where.under_load else where.place


def _who(where: Attribution) -> str:
    if where.hosts:
        return f"{where.scope}: {listed(where.hosts)}"
    return "" if where.scope == "unknown" else where.scope


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are; many addresses of one network by that."""
    by_network: dict[str, list[str]] = {}
    for name in names:
        by_network.setdefault(_network(name), []).append(name)
    words: dict[str, int] = {}
    for network, own in by_network.items():
        if len(own) > _MOST_NAMES:
            words[f"{format_count(len(own))} of {network}"] = len(own)
        else:
            words |= dict.fromkeys(own, 1)
    shown = ", ".join(list(words)[:_MOST_NAMES])
    more = sum(list(words.values())[_MOST_NAMES:])
    return f"{shown} and {format_count(more)} more" if more else shown


def _network(name: str) -> str:
    """Return the network of an address, /24 or /64; of another name that itself."""
    try:
        address = ip_address(name)
    except ValueError:
        return name
    return str(ip_network((address, 24 if address.version == 4 else 64), strict=False))


def _doubt(incident: Incident) -> str:
    """Return within which time an incident began or ended, if it is not known to the minute."""
    doubts = [
        f"{what} within {format_duration_s((until_ns - from_ns) / 1e9)}"
        for what, (from_ns, until_ns) in (("begin", incident.began_ns), ("end", incident.ended_ns))
        if until_ns - from_ns > _MINUTE_NS
    ]
    return f" ({', '.join(doubts)})" if doubts else ""


def _worst(one: FoundIncident, objectives: Sequence[Objective]) -> Cell:
    if one.incident.is_silence:
        return Cell(MISSING)
    worst = one.incident.stretches[0]
    unit = objectives[worst.objective].unit
    return Cell(format_value(worst.value, unit), f"n {format_count(worst.n)}", sort=worst.value)


def _violated(incident: Incident, objectives: Sequence[Objective]) -> list[str]:
    return list(dict.fromkeys(objectives[stretch.objective].name for stretch in incident.stretches))


def incident_line(one: FoundIncident, objectives: Sequence[Objective], zone: TimeZone) -> Words:
    """Return an incident in one sentence."""
    incident, where = one.incident, one.where
    names = _violated(incident, objectives)
    what = enumerated(names) if names else "no packets"
    who = f" ({_who(where)})" if _who(where) else ""
    when = format_stretch_ns(incident.begin_ns, incident.end_ns, zone)
    place = f"{when}: {what}; {where_text(where)}{who}, confidence {where.confidence}."
    named = ", ".join(_causes(one.why))
    held = f" TCP flows were held back by: {named} of their time." if named else ""
    filled = filled_words(one.queue)
    return (f"{place}{held}{f' {_sentence(filled)}' if filled else ''}",)


def filled_words(queue: FilledQueue | None) -> str:
    """Return who filled the queue, or why that is not known; nothing of what was not under load."""
    if queue is None:
        return ""
    if queue.lacking is not None:
        return f"who filled the queue is not known: {NOT_READ_WORDS[queue.lacking]}"
    named = enumerated([_filler(one) for one in queue.fillers])
    if sum(one.share for one in queue.fillers) < _MOSTLY:
        return f"queue filled by many, the largest: {named}"
    return f"queue filled mostly by {named}"


def _filler(one: QueueFiller) -> str:
    ends = f"{endpoint(one.src, one.src_port)} → {endpoint(one.dst, one.dst_port)}"
    facts = [f"{format_share(one.share)} of bytes"]
    if one.flows > 1:
        facts.append(counted(one.flows, "flow"))
    if one.congestion_control is not None:
        names = one.congestion_control.replace("|", " or ")
        how_sure = "" if one.predicted_share is None else f" {one.predicted_share:.2f}"
        facts.append(f"{names}{how_sure}")
    return f"{ends} ({', '.join(facts)})"


def _causes(why: HeldBack) -> list[str]:
    """Return what held flows back for most of their time; nothing if that is not known."""
    whole_ns = sum(why.ns.values())
    return [
        f"{cause.replace('_', ' ')} {format_share(ns / whole_ns)}"
        for cause, ns in why.ns.items()
        if ns >= _LEAST_NAMED * whole_ns
    ]


def _why(why: HeldBack) -> Cell:
    if why.lacking is not None:
        return Cell(MISSING, LACKING_WORDS[why.lacking])
    main, *others = _causes(why)
    return Cell(main, ", ".join(others))


def _evidence(one: FoundIncident, zone: TimeZone) -> TableView:
    when = format_stretch_ns(one.incident.begin_ns, one.incident.end_ns, zone)
    where = one.where
    return TableView(
        f"evidence-{one.number}",
        f"Incident {one.number}, {when}: {where_text(where)}. {_sentence(reason_text(where.reason))} "
        f"Compared with {where.baseline}.",
        _SIGNAL_HEADINGS,
        tuple(_signal_row(one.number, place, signal) for place, signal in enumerate(where.signals)),
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _signal_row(number: int, place: int, signal: Signal) -> Row:
    return Row(
        f"evidence-{number}-{place}",
        (
            Cell(SIGNAL_NAMES[signal.key]),
            Cell(signal.place),
            *_measured(signal.before, signal.unit),
            *_measured(signal.during, signal.unit),
            Cell("yes" if signal.has_changed else "no"),
        ),
    )


def _measured(one: Measured, unit: str) -> Iterator[Cell]:
    limits = f"{_value(one.low, unit)} to {_value(one.high, unit)}" if one.value is not None else ""
    yield Cell(_value(one.value, unit), limits, sort=one.value)
    yield Cell(format_count(one.n), sort=one.n)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return MISSING
    if unit == "ms":
        return format_ms(value)
    if unit == "bit/s":
        return format_rate_bps(value)
    return f"{value:.1f} {unit}" if unit else format_share(value)


def command(one: FoundIncident) -> str:
    """Return the command that writes a report of the captures and the time of an incident."""
    since, until = (
        f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"
        for seconds in (one.incident.begin_ns // 10**9, -(-one.incident.end_ns // 10**9))
    )
    join = " --join" if len(one.files) > 1 else ""
    return (
        f"tfrctrace report{join} --since {since} --until {until} {' '.join(map(_quoted, one.files))} "
        f"-o incident-{one.number}.html"
    )


def _quoted(name: str) -> str:
    """Return a file for a shell; a name that begins like an option is none."""
    import shlex

    return shlex.quote(f"./{name}" if name.startswith("-") else name)
