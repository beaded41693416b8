"""Where ends of flows departed from their specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.metrics.flow.first_losses import MOST_FRAMES
from tfrctrace.reports.cells import count_cell
from tfrctrace.reports.display_filters import are_frames, frames_filter
from tfrctrace.reports.elements import FLOW_HEADING, Cell, Heading, Row, Section, TableView
from tfrctrace.reports.records import records
from tfrctrace.reports.units import MISSING, format_duration_s

if TYPE_CHECKING:
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 200

_CAPTION: Final = (
    "Most frequent first. What was found and what is allowed are of the first packet; a display filter shows "
    f"up to {MOST_FRAMES}. `tfrctrace convert --what findings` lists all."
)

_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("Finding", numeric=False, meaning="docs/conformance.md and docs/tfrc.md explain each"),
    Heading("End", numeric=False, meaning="the end that departed from the rule"),
    Heading("Level", numeric=False, meaning="how the source requires it; paper: it only describes it"),
    Heading("Rule", numeric=False, meaning="where the rule is defined"),
    Heading("Found", numeric=False),
    Heading("Allowed", numeric=False, meaning="in the unit of what was found"),
    Heading("Times", meaning="number of occurrences"),
    Heading("First", meaning="from the start of the trace"),
    Heading("Packets", numeric=False, meaning="display filter of Wireshark and tshark", is_prose=True),
)


class _Finding(NamedTuple):
    """How often an end of a flow broke a rule."""

    flow: int
    direction: str
    finding: str
    end: str
    level: str | None
    rule: str
    unit: str | None
    value: float | None
    limit: float | None
    times: int
    first_ns: int
    packets: str


def conformance_section(content: ReportContent) -> Section:
    """Return the rules that ends of flows broke; empty without any."""
    import polars as pl

    of_rule = ("flow", "direction", "finding", "end", "level", "rule", "unit")
    kinds = (
        content.results.table("findings")
        .group_by(of_rule, maintain_order=True)
        .agg(
            pl.col("value", "limit").first(),
            pl.len().alias("times"),
            pl.col("time_ns").min().alias("first_ns"),
            pl.col("packet").unique(maintain_order=True).head(MOST_FRAMES).cast(pl.String).alias("packets"),
        )
        .with_columns(pl.col("packets").list.join(", "))
        .sort("times", "flow", "finding", descending=[True, False, False])
        .head(_MOST_ROWS)
    )
    title = "Departures from specifications"
    if kinds.is_empty():
        return Section("conformance", title)
    trace_of = {flow: trace for trace in content.traces for flow in trace.of(kinds.select("flow"))["flow"]}
    anchors = {pair.lead.flow: pair.lead.anchor for pair in content.conversations}
    in_capture = are_frames(content.results.sources, is_one=content.is_one_trace)
    rows = tuple(
        Row(
            f"finding-{number}",
            (
                Cell(str(row.flow), sort=row.flow, anchor=anchors.get(row.flow, "")),
                *_cells(row, trace_of.get(row.flow), in_capture=in_capture),
            ),
        )
        for number, row in enumerate(records(kinds, _Finding), start=1)
    )
    return Section(
        "conformance", title, tables=(TableView("findings", _CAPTION, _HEADINGS, rows, sortable=True),)
    )


def _cells(row: _Finding, trace: DrawnTrace | None, *, in_capture: bool) -> tuple[Cell, ...]:
    first_s = None if trace is None else trace.seconds([row.first_ns])[0]
    found = MISSING if row.value is None else f"{row.value:.4g} {row.unit or ''}".strip()
    return (
        Cell(row.finding.replace("_", " ")),
        Cell(row.end),
        Cell(row.level or MISSING),
        Cell(row.rule),
        Cell(found),
        Cell(MISSING if row.limit is None else f"{row.limit:.4g}"),
        count_cell(row.times),
        Cell(format_duration_s(first_s), sort=first_s),
        Cell(frames_filter(row.packets) if in_capture else row.packets),
    )
