"""The page of an audit, section by section."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.audit.harm import harm_of
from tfrctrace.metrics.audit.incidents import SILENT_INTERVALS
from tfrctrace.metrics.groups import percentile
from tfrctrace.metrics.statistics.confidence import share_limits
from tfrctrace.reports.audit.incident_tables import (
    evidence_section,
    incident_line,
    incidents_section,
    worst_incidents,
)
from tfrctrace.reports.audit.link_pictures import link_picture, usual_figures
from tfrctrace.reports.audit.place_words import LIMITS_OF_PLACES
from tfrctrace.reports.audit.plain_words import plain_sentence
from tfrctrace.reports.audit.profile_tables import profiles_section
from tfrctrace.reports.audit.state_tables import states_section, unjudged_section
from tfrctrace.reports.elements import Cell, Fact, Heading, Name, Note, Report, Row, Section, TableView, Term
from tfrctrace.reports.inputs import inputs_of
from tfrctrace.reports.printers.objectives import objective_text, share_text
from tfrctrace.reports.sections.caveats import input_notes
from tfrctrace.reports.sections.objectives import objectives_section
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_share,
    format_stretch_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.audit import Audit, AuditedLink, ReadFiles
    from tfrctrace.reports.elements import Words

    _Part = Callable[[], Iterable[Section]]

FAILED: Final = "failed-"
"""Begins the key of a section in the place of a part that could not be made."""

_MOST_LINKS: Final = 12
"""Links that are drawn; all have verdicts and incidents."""
_MOST_LINES: Final = 6
_MOST_SCORES: Final = 60
"""Scores of a link by a profile."""
_SCORES_OF_SUMMARY: Final = 10

_HOST_HEADINGS: Final = (
    Heading("Host", numeric=False),
    Heading("Violated", meaning="intervals in which it violated an objective of hosts"),
    Heading("Of", meaning="its intervals with data, of all objectives of hosts"),
    Heading("RTT p50", meaning="between the capture and the host"),
    Heading("RTT p95"),
    Heading("n"),
    Heading("Lost", meaning="on its side of the capture; with limits of 95 %"),
    Heading("n", meaning="data segments of which it is shown: those lost, too"),
    Heading("Failed", meaning="connections that were refused or not answered"),
    Heading("n", meaning="attempts"),
)
_READ_HEADINGS: Final = (
    Heading("Link", numeric=False),
    Heading("Captures", numeric=False, meaning="first to last packet"),
    Heading("Files"),
    Heading("Bytes"),
    Heading("Packets"),
    Heading("Dropped", meaning="by the capture, as far as files record it"),
    Heading("Silent", meaning="time without any packet of a link that usually has some"),
    Heading("Missed", meaning="data that were acknowledged and never captured, of all data"),
    Heading(
        "Shows losses before it",
        meaning="share of the data segments whose loss before the capture would show",
    ),
    Heading("Shows losses after it", meaning="the same after the capture"),
)


_LOOKED_UP: Final = frozenset({"objectives", "hosts", "evidence", "method"})
"""Parts that are not printed: they would take most of the paper."""


def audit_report(
    audit: Audit, *, title: str, zone: TimeZone, pages: Mapping[int, str] | None = None
) -> Report:
    """Return the page; `pages` are files of reports on incidents, by number."""
    parts: dict[str, _Part] = {
        "summary": lambda: [_summary(audit, zone)],
        "incidents": lambda: [incidents_section(audit, zone, pages or {})],
        "always so": lambda: [states_section(audit)],
        "not judged": lambda: [unjudged_section(audit)],
        "over time": lambda: _link_sections(audit, zone),
        "objectives": lambda: _objective_sections(audit, zone),
        "hosts": lambda: _host_sections(audit),
        "profiles": lambda: [profiles_section(audit, zone, _MOST_SCORES)],
        "evidence": lambda: [evidence_section(audit, zone)],
        "quality": lambda: [_quality(audit, zone)],
        "method": lambda: [_method(audit)],
    }
    return Report(title, tuple(_made(parts)), kind="Audit")


def summary_report(audit: Audit, *, title: str, zone: TimeZone) -> Report:
    """Return what fits into a ticket: verdicts, incidents, and how far captures can be trusted."""
    parts: dict[str, _Part] = {
        "summary": lambda: [_summary(audit, zone)],
        "incidents": lambda: [incidents_section(audit, zone, {})],
        "always so": lambda: [states_section(audit)],
        "not judged": lambda: [unjudged_section(audit)],
        "profiles": lambda: [profiles_section(audit, zone, _SCORES_OF_SUMMARY)],
        "quality": lambda: [_quality(audit, zone)],
    }
    return Report(title, tuple(_made(parts)), kind="Audit")


def _made(parts: Mapping[str, _Part]) -> Iterator[Section]:
    """Give the sections with content; a part that fails is named in its place, and costs no other."""
    for name, part in parts.items():
        try:
            for section in filter(_has_content, list(part())):
                yield replace(section, is_printed=name not in _LOOKED_UP)
        except Exception as error:
            words = f"This part could not be made ({type(error).__name__}: {error})."
            detail = "This is a bug: please report it. All other parts are complete."
            yield Section(
                f"{FAILED}{name.replace(' ', '-')}",
                name.capitalize(),
                notes=(Note("error", (words,), detail),),
            )


def _has_content(section: Section) -> bool:
    parts = (section.headline, section.paragraphs, section.overview, section.tables, section.terms)
    return any(parts) or bool(section.notes)


def _summary(audit: Audit, zone: TimeZone) -> Section:
    worst_first = sorted(audit.links, key=lambda one: (-_bad_ns(one), one.name))
    first = worst_incidents(audit)[:1]
    lines: list[Words] = [(plain_sentence(one, link.near, audit.objectives, zone),) for link, one in first]
    lines += [line for link in worst_first[:_MOST_LINES] for line in _headline(link, audit, zone)]
    more = len(worst_first) - _MOST_LINES
    if more > 0:
        lines.append((f"{counted(more, 'more link')} below.",))
    number = sum(len(link.incidents) for link in audit.links)
    judged = [result.total.meets(result.objective.target) for link in audit.links for result in link.results]
    unknown = judged.count(None)
    facts = (
        Fact(
            "Objectives met",
            f"{judged.count(True)} of {len(judged) - unknown}",
            f"{counted(len(audit.links), 'link')}{f', {unknown} without data' if unknown else ''}",
        ),
        Fact(
            "Incidents",
            format_count(number),
            f"{format_duration_s(sum(map(_bad_ns, audit.links)) / 1e9)} in all" if number else "",
        ),
        Fact(
            "Captures",
            format_count(sum(read.counts.files for read in audit.evidence)),
            _sizes(audit.evidence),
        ),
    )
    return Section("summary", "Summary", facts=facts, headline=tuple(lines))


def _sizes(evidence: Sequence[ReadFiles]) -> str:
    return (
        f"{format_bytes(sum(read.counts.bytes for read in evidence))}, "
        f"{format_count(sum(read.counts.packets for read in evidence))} packets"
    )


def _bad_ns(link: AuditedLink) -> int:
    """Return how long a link had incidents, overlapping ones once."""
    total, until_ns = 0, 0
    for one in sorted((incident.incident.begin_ns, incident.incident.end_ns) for incident in link.incidents):
        total += max(one[1] - max(one[0], until_ns), 0)
        until_ns = max(until_ns, one[1])
    return total


def _headline(link: AuditedLink, audit: Audit, zone: TimeZone) -> Iterator[Words]:
    """Give the verdict on a link, and its longest incident."""
    met = [result.total.meets(result.objective.target) for result in link.results]
    judged = [one for one in met if one is not None]
    parts = [f"{sum(judged)} of {counted(len(judged), 'objective')} met"]
    if len(judged) < len(met):
        parts.append(f"{len(met) - len(judged)} without data")
    incidents = counted(len(link.incidents), "incident") if link.incidents else "no incident"
    lasted = f" ({format_duration_s(_bad_ns(link) / 1e9)} in all)" if link.incidents else ""
    span = format_stretch_ns(link.first_ns, link.last_ns, zone)
    yield (Name(link.name), f": {', '.join(parts)}, {incidents}{lasted}, {span}.")
    if link.incidents:
        worst = max(
            link.incidents,
            key=lambda one: (harm_of(one.incident, one.where, audit.objectives, link.near), -one.number),
        )
        yield ("Worst: ", *incident_line(worst, audit.objectives, zone))


def _link_sections(audit: Audit, zone: TimeZone) -> Iterator[Section]:
    for number, link in enumerate(audit.links[:_MOST_LINKS], 1):
        key = f"link-{number}"
        yield Section(
            key,
            link.name if len(audit.links) > 1 else "Over time",
            overview=link_picture(link, f"{key}-picture", zone),
            figures=tuple(usual_figures(link, key, zone)),
        )


def _objective_sections(audit: Audit, zone: TimeZone) -> Iterator[Section]:
    """Give the verdict on each objective and each of its groups, of each link."""
    of_links = [
        (link.name, objectives_section(link.results, zone, f"objective-{number}"))
        for number, link in enumerate(audit.links[:_MOST_LINKS], 1)
    ]
    has_links = len(of_links) > 1
    yield Section(
        "objectives",
        "Objectives",
        findings=tuple(
            (*((Name(name), ": ") if has_links else ()), *words)
            for name, section in of_links
            for words in section.findings
        ),
        tables=tuple(
            replace(table, caption=f"{name}: {table.caption}") if has_links else table
            for name, section in of_links
            for table in section.tables
        ),
    )


def _host_sections(audit: Audit) -> Iterator[Section]:
    noun = "Host" if audit.by == "host" else audit.by.capitalize()
    tables = tuple(
        TableView(
            f"hosts-{number}",
            f"{link.name}: {counted(len(rows), noun.lower())} of "
            f"{format_count(link.host_hours['group'].n_unique())}, those first that violated objectives "
            "in most intervals.",
            (Heading(noun, numeric=False), *_HOST_HEADINGS[1:]),
            tuple(rows),
            sortable=True,
        )
        for number, link in enumerate(audit.links[:_MOST_LINKS], 1)
        if (rows := list(_host_rows(link, audit.by, f"host-{number}")))
    )
    yield Section("hosts", f"{noun}s", tables=tables)


def _host_rows(link: AuditedLink, by: str, key: str) -> Iterator[Row]:
    import polars as pl

    shown = pl.col("group").is_in(link.host_buckets["group"].unique().implode())
    numbers = [place for place, one in enumerate(link.results) if one.objective.grouping.by == by]
    judged = (
        link.verdicts.filter(pl.col("objective").is_in(numbers), shown)
        .group_by("group")
        .agg(
            violated=(pl.col("violated") + pl.col("severe")).sum(),
            judged=(pl.col("met") + pl.col("violated") + pl.col("severe")).sum(),
        )
    )
    own = link.host_hours.filter(shown).with_columns(is_in=pl.col("direction") == "received")

    def own_side(received: str, sent: str) -> pl.Expr:
        return pl.when("is_in").then(pl.col(received)).otherwise(pl.col(sent)).sum()

    rows = own.group_by("group").agg(
        lost=own_side("lost_behind_capture", "lost_before_capture"),
        shown=own_side("losses_shown", "arrivals_shown"),
        failed=(pl.col("connections_refused") + pl.col("connections_unanswered")).sum(),
        attempts=pl.col("connection_attempts").sum(),
    )
    received = link.host_buckets.filter(direction="received")
    rtts = [
        percentile(received, ["group"], share).rename({"value": name})
        for name, share in (("p50", 0.5), ("p95", 0.95))
    ]
    for frame in (judged, rtts[0], rtts[1].drop("n")):
        rows = rows.join(frame, on="group", how="left", nulls_equal=True)
    rows = rows.sort(
        pl.col("violated").fill_null(0), "p95", "group", descending=[True, True, False], nulls_last=True
    )
    for place, row in enumerate(rows.iter_rows(named=True), 1):
        yield _host_row(f"{key}-{place}", row)


def _host_row(key: str, row: Mapping[str, Any]) -> Row:
    shares = []
    for part, whole in (("lost", "shown"), ("failed", "attempts")):
        n = row[whole] or 0
        share = row[part] / n if n else None
        low, high = share_limits(row[part], n) if n else (0.0, 0.0)
        limits = f"{format_share(low)} to {format_share(high)}" if n else ""
        shares += [Cell(format_share(share), limits, sort=share), Cell(format_count(n), sort=n)]
    return Row(
        key,
        (
            Cell(row["group"] or MISSING),
            *(Cell(format_count(row[name] or 0), sort=row[name] or 0) for name in ("violated", "judged")),
            *(Cell(format_ms(row[name]), sort=row[name]) for name in ("p50", "p95")),
            Cell(format_count(row["n"] or 0), sort=row["n"] or 0),
            *shares,
        ),
    )


def _quality(audit: Audit, zone: TimeZone) -> Section:
    links = {link.name: link for link in audit.links}
    rows = tuple(
        _read_row(f"read-{place}", read, links.get(read.counts.link), zone)
        for place, read in enumerate(audit.evidence, 1)
    )
    table = TableView(
        "quality-table",
        "What was read of each link. Losses before and after the capture are known only of data packets "
        "that were not captured at the end where they would show.",
        _READ_HEADINGS,
        rows,
    )
    sources = [source for read in audit.evidence for source in read.sources]
    problems = [problem for read in audit.evidence for problem in read.problems]
    notes = input_notes(inputs_of(sources), [*audit.problems, *problems])
    return Section("quality", "Quality of the captures", notes=notes, tables=(table,))


def _read_row(key: str, read: ReadFiles, link: AuditedLink | None, zone: TimeZone) -> Row:
    import polars as pl

    drops = [
        interface["dropped_packets"]
        for source in read.sources
        for interface in source["interfaces"]
        if interface["dropped_packets"] is not None
    ]
    dropped = Cell(format_count(sum(drops)) if drops else MISSING, "" if drops else "not recorded")
    counts = read.counts
    failed = f"{counted(counts.failed, 'chain')} not read" if counts.failed else ""
    head = (Cell(counts.link, failed),)
    size = (
        Cell(format_count(counts.files)),
        Cell(format_bytes(counts.bytes)),
        Cell(format_count(counts.packets)),
        dropped,
    )
    if link is None:
        return Row(key, (*head, Cell(MISSING), *size, *(Cell(MISSING),) * 4))
    names = ("capture_gap_bytes", "payload_bytes", "arrivals_shown", "losses_shown", "tcp_data_segments")
    sent = pl.sum_horizontal("tcp_data_segments", "numbered_packets", "lost_before_capture").sum()
    sums = link.hours.select(pl.col(*names).sum(), sent_segments=sent).row(0, named=True)
    silent_s = sum(silence.end_ns - silence.begin_ns for silence in link.silent) / 1e9

    def share(part: str, whole: str) -> Cell:
        return Cell(format_share(sums[part] / sums[whole]) if sums[whole] else MISSING)

    return Row(
        key,
        (
            *head,
            Cell(format_stretch_ns(link.first_ns, link.last_ns, zone)),
            *size,
            Cell(format_duration_s(silent_s) if silent_s else "never", sort=silent_s),
            share("capture_gap_bytes", "payload_bytes"),
            share("arrivals_shown", "sent_segments"),
            share("losses_shown", "tcp_data_segments"),
        ),
    )


def _method(audit: Audit) -> Section:
    objectives = tuple(
        Term(
            objective.name,
            f"{objective_text(objective)}, in {share_text(objective.target)} of the intervals; at least "
            f"{counted(objective.least, 'sample')}. An incident begins after "
            f"{objective.raise_after} violated in a row and ends after {objective.clear_after} that met it, "
            f"or after {max(SILENT_INTERVALS, objective.clear_after)} without data.",
        )
        for objective in audit.objectives
    )
    limits = tuple(Term(name, words) for name, words in LIMITS_OF_PLACES.items())
    return Section("method", "How it was judged", terms=(*objectives, *limits))
