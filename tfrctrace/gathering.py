"""From a trace to the results of a report: which tables it needs, and what of them is worth its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfrctrace.reports.results import Results
    from tfrctrace.trace import Trace

_TABLES: Final = ("rounds", "variables", "feedback", "loss_events", "links")
"""What one pass collects beside flows and bins; each grows with what happened, none with every packet."""


def gather(trace: Trace) -> Results:
    """Return the results of `trace` that a report tells."""
    from tfrctrace.parsers.variables import with_flows
    from tfrctrace.reports.results import Results

    reading = trace.read("flows", "bins", *_TABLES)
    flows = reading.table("flows").frame()
    tables = {name: reading.table(name).frame() for name in _TABLES}
    tables["variables"] = with_flows(tables["variables"], flows)
    return Results(
        flows=flows,
        bins=reading.table("bins").frame(),
        sources=reading.sources,
        problems=trace.warnings,
        tables=tables,
        joined=trace.is_joined,
        clock=reading.clock,
    )
