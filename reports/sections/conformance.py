"""Where ends of flows departed from their specifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.metrics.flow.first_losses import MOST_FRAMES
from tfrctrace.reports.cells import count_cell
from tfrctrace.reports.display_filters import frames_filter, inputs_with_frames
from tfrctrace.reports.elements import FLOW_HEADING, Cell, Heading, Row, Section, TableView
from tfrctrace.reports.records import records
from tfrctrace.reports.units import MISSING, format_duration_s, format_value

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.report_content import ReportContent

_MOST_ROWS: Final = 200
_PATH: Final = "path"
"""The end of what no end does."""

_CAPTION: Final = (
    "Most frequent first. What was found and what is allowed are of the first packet; a display filter shows "
    f"up to {MOST_FRAMES}. `tfrctrace convert --what findings` lists all."
)

_OF_PATH: Final = (
    "What the path did to the control of a flow, and what a capture shows of it: no end departed from a "
    "rule. docs/tfrc.md explains each."
)

_FIRST: Final = Heading("First", meaning="from the start of the trace")
_TIMES: Final = Heading("Times", meaning="number of occurrences")
_PACKETS: Final = Heading(
    "Packets", numeric=False, meaning="display filter of Wireshark and tshark", is_prose=True
)

_PATH_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("Event", numeric=False),
    Heading("Rule", numeric=False, meaning="where it is defined"),
    _TIMES,
    _FIRST,
    _PACKETS,
)

_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("Finding", numeric=False, meaning="docs/conformance.md and docs/tfrc.md explain each"),
    Heading("End", numeric=False, meaning="the end that departed from the rule"),
    Heading("Level", numeric=False, meaning="how the source requires it; paper: it only describes it"),
    Heading("Rule", numeric=False, meaning="where the rule is defined"),
    Heading("Found", numeric=False),
    Heading("Allowed", numeric=False),
    _TIMES,
    _FIRST,
    _PACKETS,
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
    cells = _Cells(content, kinds)
    is_of_path = pl.col("end") == _PATH
    ends, path = kinds.filter(~is_of_path), kinds.filter(is_of_path)
    tables = (
        TableView("findings", _CAPTION, _HEADINGS, cells.rows("finding", ends), sortable=True),
        TableView("path-events", _OF_PATH, _PATH_HEADINGS, cells.rows("event", path), sortable=True),
    )
    return Section("conformance", title, tables=tuple(table for table in tables if table.rows))


class _Cells:
    """Writes what was found of flows as rows of tables."""

    def __init__(self, content: ReportContent, kinds: pl.DataFrame) -> None:
        """Look up the flows of what was found."""
        found = kinds.select("flow").unique()
        self._trace_of = {
            flow: trace for trace in content.traces for flow in trace.of(kinds.select("flow"))["flow"]
        }
        self._anchors = {pair.lead.flow: pair.lead.anchor for pair in content.conversations}
        self._with_frames = inputs_with_frames(content.results.sources, is_one=content.is_one_trace)
        own = content.flows.join(found, on="flow", how="semi")
        self._source_of = dict(own.select("flow", "source").rows())

    def rows(self, key: str, kinds: pl.DataFrame) -> tuple[Row, ...]:
        """Return a row for each kind of finding: of the path without what a rule asks of an end."""
        return tuple(
            Row(f"{key}-{number}", (*self._beginning(row), *_rule(row), *self._occurrences(row)))
            for number, row in enumerate(records(kinds, _Finding), start=1)
        )

    def _beginning(self, row: _Finding) -> tuple[Cell, ...]:
        anchor = self._anchors.get(row.flow, "")
        return Cell(str(row.flow), sort=row.flow, anchor=anchor), Cell(row.finding.replace("_", " "))

    def _occurrences(self, row: _Finding) -> tuple[Cell, ...]:
        trace = self._trace_of.get(row.flow)
        first_s = None if trace is None else trace.seconds([row.first_ns])[0]
        is_filter = self._source_of.get(row.flow) in self._with_frames
        return (
            count_cell(row.times),
            Cell(format_duration_s(first_s), sort=first_s),
            Cell(frames_filter(row.packets) if is_filter else row.packets),
        )


def _rule(row: _Finding) -> tuple[Cell, ...]:
    if row.end == _PATH:
        return (Cell(row.rule),)
    unit = row.unit or ""
    found, allowed = (format_value(value, unit) for value in (row.value, row.limit))
    return Cell(row.end), Cell(row.level or MISSING), Cell(row.rule), Cell(found), Cell(allowed)
