"""The time-sequence graph of a TCP sender: data, acknowledgements and windows; flight; round-trip times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.flow.causes import cause_bins
from tfrctrace.metrics.flow.quantiles import envelope
from tfrctrace.reports.conversations import largest_directions
from tfrctrace.reports.elements import OTHER, Curve, Figure, Section, SequenceGraph, Words
from tfrctrace.reports.figures.sequence_tiles import overview, tiles_of
from tfrctrace.reports.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent

_MOST_POINTS: Final = 400
"""Of each kind in a drawing of the whole graph."""

_MOST_STRETCHES: Final = 50_000
"""Stretches of causes that a page shows, a megabyte."""

_MOST_BINS: Final = 1_000
"""Bins of them if there are more."""

_KINDS: Final[tuple[tuple[str, str, int, Literal["dots", "steps"]], ...]] = (
    ("data", "data sent", 1, "dots"),
    ("classified", "retransmitted or late data", 2, "dots"),
    ("acknowledged", "acknowledged", 3, "steps"),
    ("window", "edge of the receive window", OTHER, "steps"),
)


class SequenceGraphs:
    """The graphs of all directions that have tiles."""

    def __init__(self, content: ReportContent) -> None:
        """Take the tiles of the results, if there are any."""
        sequence, causes = content.results.sequence, content.results.table("causes")
        self._tiles = {} if sequence is None else _by_direction(sequence)
        self._causes = causes

    @property
    def directions(self) -> Collection[tuple[int, str]]:
        """Those that have a graph."""
        return self._tiles.keys()

    def of(self, row: FlowRow, start_ns: int | None) -> SequenceGraph | None:
        """Return the graph of a direction; its trace began at `start_ns` or, if None, with its data."""
        own = self._tiles.get(row.key)
        if own is None:
            return None
        tiles, causes = tiles_of(own), self._causes.filter(flow=row.flow, direction=row.direction)
        origin_ns = min(tile.start_ns for tile in tiles) if start_ns is None else start_ns
        stretches = tuple(_stretches(causes, origin_ns))
        return SequenceGraph(f"graph-{row.flow}-{row.direction}", origin_ns, tiles, stretches)


def _by_direction(table: pl.DataFrame) -> dict[tuple[int, str], pl.DataFrame]:
    parts = table.partition_by("flow", "direction", as_dict=True, maintain_order=True)
    return {(flow, direction): own for (flow, direction), own in parts.items()}


def sequence_section(content: ReportContent) -> Section:
    """Return the graph of the largest TCP direction of each trace; empty without TCP.

    `sequence` of the results is None if there are no packets of one capture to be read for it, or too many.
    """
    key, title = "sequence", "Time-sequence graph"
    if content.results.sequence is None:
        return Section(key, title, _not_drawn(content))
    graphs = SequenceGraphs(content)
    figures = tuple(filter(None, (_figure(trace, graphs) for trace in content.traces)))
    return Section(key, title, _others(len(graphs.directions), len(figures)), figures=figures)


def _not_drawn(content: ReportContent) -> tuple[Words, ...]:
    if not (content.flows["transport"] == "tcp").any():
        return ()
    if content.results.clock is not None or content.results.joined:
        return (("Not drawn for captures of one path: see the report of a single one.",),)
    return (("Not drawn: it needs every packet of a flow again, but this trace can be read only once.",),)


def _others(graphs: int, drawn: int) -> tuple[Words, ...]:
    """Return where to find the graphs that have no figure here."""
    if graphs <= drawn:
        return ()
    return ((f"The table of flows has {counted(graphs - drawn, 'more graph')}: open the row of a flow.",),)


def _figure(trace: DrawnTrace, graphs: SequenceGraphs) -> Figure | None:
    import polars as pl

    there = pl.struct(pl.col("flow").cast(pl.Int64), "direction").is_in(
        [{"flow": flow, "direction": direction} for flow, direction in graphs.directions]
    )
    row = next(iter(largest_directions(trace.flows, there, "unique_bytes", 1)), None)
    graph = None if row is None else graphs.of(row, trace.start_ns)
    if row is None or graph is None:
        return None
    schema = {"time_ns": pl.Int64, "kind": pl.String, "bytes": pl.Int64}
    marks = pl.DataFrame(overview(graph.tiles), schema=schema, orient="row").sort("kind", maintain_order=True)
    few = envelope(marks, ("kind",), "bytes", _MOST_POINTS)
    return Figure(
        key=trace.key("sequence"),
        title=trace.titled("Bytes over time"),
        description=f"Sequence numbers of {row.legend} up to {format_bytes(_highest(marks))}.",
        caption=f"The direction with most data. {graph_caption(row)}",
        unit="B",
        curves=_curves(trace, few),
        lasted_s=trace.lasted_s,
        linked=trace.linked,
        graph=graph,
    )


def graph_caption(row: FlowRow) -> str:
    """Return what the graph of a direction shows."""
    return (
        f"Bytes: sequence numbers of {row.legend} from its first byte, of "
        f"{counted(row.data_packets or 0, 'data packet')} and of the acknowledgements, SACK blocks and "
        "windows that answer them; the slope is the rate. Flight: bytes that were captured and neither "
        "acknowledged nor in SACK blocks, after each packet; away from the sender they are fewer than it has "
        "in flight. RTT: samples that acknowledgements give. From far, the lowest and the highest of "
        "neighbouring packets are drawn; closer up, each packet with its number. The strip below the graph "
        "shows what held the sender back."
    )


def _highest(marks: pl.DataFrame) -> float:
    highest = marks["bytes"].max()
    return float(highest) if isinstance(highest, int) else 0.0


def _stretches(stretches: pl.DataFrame, origin_ns: int) -> Iterator[tuple[float, float, str]]:
    """Give what held the sender back, from when to when; of too many stretches, the longest in each bin."""
    import polars as pl

    if stretches.height > _MOST_STRETCHES:
        begin_ns, end_ns = stretches["start_ns"].to_list()[0], stretches["end_ns"].to_list()[-1]
        width_ns = max(-(-(end_ns - begin_ns) // _MOST_BINS), 1)
        widths = stretches.head(1).select("flow", first_ns=pl.lit(begin_ns), width_ns=pl.lit(width_ns))
        start = pl.col("first_ns") + pl.col("place") * width_ns
        stretches = cause_bins(stretches, widths).with_columns(start_ns=start, end_ns=start + width_ns)
    for start_ns, end_ns, cause in stretches.select("start_ns", "end_ns", "cause").iter_rows():
        yield (start_ns - origin_ns) / 1e9, (end_ns - origin_ns) / 1e9, cause


def _curves(trace: DrawnTrace, marks: pl.DataFrame) -> tuple[Curve, ...]:
    curves = []
    for kind, label, style, form in _KINDS:
        # of packets at one time the last is drawn: an x axis has each time once
        own = marks.filter(kind=kind).sort("time_ns", maintain_order=True)
        own = own.unique("time_ns", keep="last", maintain_order=True)
        if own.height:
            times_s = trace.seconds(own["time_ns"].to_list())
            curves.append(Curve(label, style, times_s, tuple(own["bytes"].cast(float).to_list()), form=form))
    return tuple(curves)
