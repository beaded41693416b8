"""What is always so of a link: objectives that groups violate as they usually are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView
from tfrctrace.reports.printers.objectives import objective_text, value_text
from tfrctrace.reports.units import MISSING, counted, format_count, format_share

if TYPE_CHECKING:
    from tfrctrace.metrics.results.audit import Audit

_MOST_ROWS: Final = 20

_HEADINGS: Final = (
    Heading("Of", numeric=False),
    Heading("Violates", numeric=False, meaning="the limit of an objective"),
    Heading("Usual", meaning="median of the intervals, or share of all of them"),
    Heading("Violated", meaning="share of its intervals with data"),
    Heading("n", meaning="its intervals with data"),
)


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
                    Cell(value_text(state.value, objective.unit), sort=state.value),
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
