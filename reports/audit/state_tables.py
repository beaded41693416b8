"""What is always so of a link: objectives that groups violate as they usually are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView
from tfrctrace.reports.printers.objectives import objective_text
from tfrctrace.reports.units import MISSING, counted, format_count, format_share, format_value

if TYPE_CHECKING:
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.audit import Audit, AuditedLink

_MOST_ROWS: Final = 20
_MOST_UNJUDGED: Final = 60

_HEADINGS: Final = (
    Heading("Of", numeric=False),
    Heading("Violates", numeric=False, meaning="the limit of an objective"),
    Heading("Usual", meaning="median of the intervals, or share of all of them"),
    Heading("Violated", meaning="share of its intervals with data"),
    Heading("n", meaning="its intervals with data"),
)


_UNJUDGED_HEADINGS: Final = (
    Heading("Objective", numeric=False),
    Heading("Why", numeric=False),
)
_QUANTITIES: Final = {
    "rtt": "rtt_samples",
    "lost_before": "arrivals_shown",
    "lost": "tcp_data_segments",
    "capture": "tcp_data_segments",
    "connection": "connection_attempts",
    "request": "requests",
    "large": "requests",
    "stalls": "requests",
    "response": "response_samples",
    "dns": "dns_queries",
    "echo": "echo_requests",
    "wifi": "wifi_frames",
}
"""What has to be captured for a quantity, by what begins its name."""
_NOTHING: Final = {
    "rtt_samples": "no acknowledged data or other measure of round-trip times was captured",
    "arrivals_shown": "neither data of TCP nor numbered packets were captured where losses before it show",
    "tcp_data_segments": "no data of TCP was captured",
    "connection_attempts": "no connection was opened",
    "requests": "no request on TCP was captured from its connection's begin",
    "response_samples": "no request was answered",
    "dns_queries": "no DNS query was captured",
    "echo_requests": "no ping or probe was captured",
    "wifi_frames": "the captures have no 802.11 frames",
}


def unjudged_section(audit: Audit) -> Section:
    """Return which objectives no interval was judged by, and why."""
    rows: list[Row] = []
    for link in audit.links:
        for result in link.results:
            if result.total.meets(result.objective.target) is None:
                place = link.name if len(audit.links) > 1 else ""
                cells = (Cell(result.objective.name, place), Cell(_why_unjudged(link, result.objective)))
                rows.append(Row(f"not-judged-{len(rows) + 1}", cells))
    if not rows:
        return Section("not-judged", "Not judged")
    caption = "Objectives of which nothing is known: neither met nor violated."
    table = TableView("not-judged-table", caption, _UNJUDGED_HEADINGS, tuple(rows[:_MOST_UNJUDGED]))
    return Section("not-judged", "Not judged", tables=(table,))


def _why_unjudged(link: AuditedLink, objective: Objective) -> str:
    name = objective.quantity.term.name
    needed = next((what for begin, what in _QUANTITIES.items() if name.startswith(begin)), None)
    if needed is not None and not link.hours[needed].sum():
        return _NOTHING[needed]
    return f"no interval of a group has {counted(objective.least, 'sample')}"


def states_section(audit: Audit) -> Section:
    """Return what violates objectives without any change, that which does so most often first."""
    states = [(link, state) for link in audit.links for state in link.states]
    states.sort(key=lambda one: (-one[1].violated / one[1].intervals, -one[1].violated))
    has_links = len(audit.links) > 1
    rows = []
    for number, (link, state) in enumerate(states[:_MOST_ROWS], 1):
        objective = audit.objectives[state.objective]
        share = state.violated / state.intervals
        rows.append(
            Row(
                f"state-{number}",
                (
                    Cell(state.group or MISSING, link.name if has_links else ""),
                    Cell(objective.name, objective_text(objective)),
                    Cell(format_value(state.value, objective.unit), sort=state.value),
                    Cell(format_share(share), sort=share),
                    Cell(format_count(state.intervals), sort=state.intervals),
                ),
            )
        )
    if not rows:
        return Section("always-so", "Always so")
    left_out = f"; {counted(len(states) - _MOST_ROWS, 'row')} left out" if len(states) > _MOST_ROWS else ""
    caption = (
        "What violates an objective as it usually is, or as far as the captures show: no incident, "
        f"because nothing changed{left_out}."
    )
    table = TableView("always-so-table", caption, _HEADINGS, tuple(rows), sortable=True)
    return Section("always-so", "Always so", tables=(table,))
