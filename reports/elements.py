"""The parts a report is made of, whatever form it is written in: plain values, no frames, no markup.

A `Report` is a list of `Section`s; a section may hold text, key figures, figures, tables and notes.
Text that came out of a capture stands as it was found; who writes a report down escapes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from tfrctrace.reports.figures.charts import Chart
    from tfrctrace.reports.figures.sequence_tiles import Tile

OTHER: Final = 0
"""The style of the rest; styles from 1 to `STYLES` differ by colour."""

STYLES: Final = 6
"""Distinct styles of the curves of one figure."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that is set apart from the words around it: a file, an address, a flow."""

    text: str
    anchor: str = ""
    """Key of the table row with more about it, if there is one."""


Severity: TypeAlias = Literal["error", "warning", "info"]

Words: TypeAlias = tuple[str | Name, ...]
"""A sentence or a paragraph."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One key figure: what it is, its value with unit, and a line that puts it into context."""

    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A caveat about the numbers, or an input that could not be read."""

    severity: Severity
    words: Words
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell: the text, a second line for the reverse direction, and the sort key (None goes last).

    `anchor` is the key of the row that the text points to, `page` the file of another page, if it does.
    """

    text: str
    back: str = ""
    sort: float | None = None
    anchor: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a table column. Columns of numbers are aligned to the right and sorted as numbers."""

    label: str
    numeric: bool = True
    meaning: str = ""
    is_prose: bool = False
    """Whether cells are sentences, which take several lines."""
    are_ends: bool = False
    """Whether cells are two addresses, which break only between them."""


def ends_heading(meaning: str) -> Heading:
    """Return the head of a column with sender and receiver."""
    return Heading("From → to", numeric=False, meaning=meaning, are_ends=True)


FLOW_HEADING: Final = Heading("Flow", meaning="number of the conversation, as in the table of flows")


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `key` is unique in the report, so that text can point to the row."""

    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table; the first column names the row. `caption` also says what was left out.

    A long table scrolls in a box, unless it `is_whole`.
    """

    key: str
    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    sortable: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantity along the x axis of its figure, ascending; None breaks the line.

    `low` and `high` are empty or draw a band around the line; `marked` are indices of points with a ring.
    """

    label: str
    style: int
    x: tuple[float, ...]
    values: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    marked: tuple[int, ...] = ()
    form: Literal["line", "steps", "dots"] = "line"
    """Steps hold each value up to the next x; dots are not joined."""


@dataclass(frozen=True, slots=True)
class Span:
    """A spread of samples in one line; a simulator's own histogram has no smallest and no largest one."""

    label: str
    style: int
    low: float | None
    median: float
    high: float
    """The 95th percentile."""
    top: float | None


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """What clocks of a time zone show along an axis of seconds."""

    day: str
    """Date at 0 s, as in `2026-01-05`."""
    since_midnight_s: float
    """Time of day at 0 s."""
    zone: str = "UTC"
    shifts: tuple[tuple[float, float], ...] = ()
    """Seconds at which clocks were changed, and by how many they are ahead of those at 0 s from there on."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The x axis of a figure of curves: its words, and what its numbers are."""

    label: str
    logarithmic: bool = False
    is_time: bool = False
    clock: TimeOfDay | None = None


TIME: Final = Axis("seconds since the first packet", is_time=True)

Unit: TypeAlias = Literal["bit/s", "ms", "B", "dBm", ""]


@dataclass(frozen=True, slots=True)
class SequenceGraph:
    """Every packet of a time-sequence graph, in tiles, and what held the sender back."""

    key: str
    """Of its tiles, which several figures may show."""
    origin_ns: int
    """0 s of the time axis."""
    tiles: tuple[Tile, ...]
    causes: tuple[tuple[float, float, str], ...] = ()
    """From when to when in seconds, and the cause."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of curves or of spans, one of the two."""

    key: str
    title: str
    description: str
    """Text alternative for people who cannot see the figure."""
    caption: str
    unit: Unit
    """Of all values; rates and bytes are drawn with the prefix that fits. dBm have no 0 to begin from."""
    curves: tuple[Curve, ...] = ()
    spans: tuple[Span, ...] = ()
    lasted_s: float = 0.0
    """How far the time axis of curves reaches, so that figures of one trace can be compared."""
    detail: tuple[Curve, ...] = ()
    """The curves with more points for zoomed-in views, in the same order; may be empty."""
    axis: Axis = TIME
    value_label: str = ""
    """Label of values without a unit."""
    levels: tuple[str, ...] = ()
    """Names of the values 1, 2, ..., which the axis shows in place of numbers, if values have names."""
    is_share: bool = False
    """Whether values lie between 0 and 1, so that the axis always reaches from one to the other."""
    linked: str = ""
    """Figures with the same value zoom together."""
    bad_s: tuple[tuple[float, float], ...] = ()
    """When an objective was violated, on the time axis."""
    graph: SequenceGraph | None = None
    """What a page draws in place of the curves, down to each packet."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One quantity of an overview: lines and bands in a strip of their own, above the common time axis."""

    label: str
    unit: Unit
    """Empty for shares, which are drawn in percent."""
    curves: tuple[Curve, ...]
    """A value for each interval of the overview."""


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row of cells, one for each interval; None where nothing is known."""

    label: str
    detail: str
    """What follows it in the list: how many samples it has."""
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of one quantity over time, worst first; the darkest cells are at `darkest` or above."""

    label: str
    unit: Unit
    darkest: float
    rows: tuple[HeatRow, ...]
    is_verdict: bool = False
    """Whether values are verdicts: 0 met, 1 violated, 2 severely."""


@dataclass(frozen=True, slots=True)
class Overview:
    """One picture of a link: quantities above one another, and who suffered, on one time axis."""

    key: str
    title: str
    description: str
    """Text alternative for people who cannot see it."""
    caption: str
    starts_s: tuple[float, ...]
    """Where each interval begins on the time axis."""
    width_s: float
    """How long each interval is."""
    axis: Axis
    lanes: tuple[Lane, ...]
    heat_maps: tuple[HeatMap, ...]
    linked: str = ""
    """Figures with the same value zoom to what is selected here."""
    bad_s: tuple[tuple[float, float], ...] = ()
    """When an objective was violated."""


@dataclass(frozen=True, slots=True)
class FlowProperty:
    """One property of a flow, with its value in each direction."""

    name: str
    meaning: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlowDetails:
    """Content of an opened table row; `key` is that of the row, `directions` are the headings of values."""

    key: str
    directions: tuple[str, ...]
    known: tuple[FlowProperty, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One explanation in a list: what is explained, and how."""

    name: str
    words: str
    command: str = ""
    """A command for a shell after the words, which may hold names out of a capture."""


@dataclass(frozen=True, slots=True)
class Section:
    """One chapter of a report. Parts that are empty are not written."""

    key: str
    title: str
    paragraphs: tuple[Words, ...] = ()
    facts: tuple[Fact, ...] = ()
    overview: Overview | None = None
    findings: tuple[Words, ...] = ()
    notes: tuple[Note, ...] = ()
    figures: tuple[Figure, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[TableView, ...] = ()
    terms: tuple[Term, ...] = ()
    headline: tuple[Words, ...] = ()
    """What the reader should know first."""
    is_printed: bool = True
    """Whether paper has it, or only the screen: what readers look up."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its sections in order."""

    title: str
    sections: tuple[Section, ...]
    details: tuple[FlowDetails, ...] = ()
    kind: str = "Trace report"
    """Shown above the title."""
    index: str = ""
    """File of the page that lists this one among others, if there is one."""
    footer: tuple[Words, ...] = ()
