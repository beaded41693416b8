"""The time-sequence graph: data, retransmissions, acknowledgements and receive window of a TCP sender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.flow.causes import cause_bins
from tfrctrace.metrics.flow.quantiles import envelope
from tfrctrace.reports.elements import OTHER, Curve, Figure, Section, SequenceGraph, Words
from tfrctrace.reports.figures.sequence_tiles import overview, tiles_of
from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
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


def sequence_section(content: ReportContent) -> Section:
    """Return the graph of the largest TCP direction of each trace; empty without TCP.

    `sequence` of the results is None if there are no packets of one capture to be read for it, or too many.
    """
    key, title = "sequence", "Time-sequence graph"
    sequence = content.results.sequence
    if sequence is None:
        return Section(key, title, _not_drawn(content))
    causes = content.results.table("causes")
    figures = (_figure(trace, trace.of(sequence), trace.of(causes)) for trace in content.traces)
    return Section(key, title, figures=tuple(filter(None, figures)))


def _not_drawn(content: ReportContent) -> tuple[Words, ...]:
    if not (content.flows["transport"] == "tcp").any():
        return ()
    if content.results.clock is not None or content.results.joined:
        return (("Not drawn for captures of one path: see the report of a single one.",),)
    return (("Not drawn: it needs every packet of a flow again, but this trace can be read only once.",),)


def _figure(trace: DrawnTrace, sequence: pl.DataFrame, causes: pl.DataFrame) -> Figure | None:
    import polars as pl

    if sequence.is_empty():
        return None
    flow, direction = sequence.select("flow", "direction").row(0)
    own = sequence.filter(flow=flow, direction=direction)
    (row,) = records(trace.flows.filter(flow=flow, direction=direction), FlowRow)
    tiles = tiles_of(own)
    schema = {"time_ns": pl.Int64, "kind": pl.String, "bytes": pl.Int64}
    marks = pl.DataFrame(overview(tiles), schema=schema, orient="row").sort("kind", maintain_order=True)
    few = envelope(marks, ("kind",), "bytes", _MOST_POINTS)
    origin_ns = trace.origin_ns(min(tile.start_ns for tile in tiles))
    stretches = causes.filter(flow=flow, direction=direction)
    return Figure(
        key=trace.key("sequence"),
        title=trace.titled("Bytes over time"),
        description=f"Sequence numbers of {row.legend} up to {format_bytes(_highest(marks))}.",
        caption=_caption(row),
        unit="B",
        curves=_curves(trace, few),
        lasted_s=trace.lasted_s,
        linked=trace.linked,
        graph=SequenceGraph(origin_ns, tiles, tuple(_causes(stretches, origin_ns))),
    )


def _highest(marks: pl.DataFrame) -> float:
    highest = marks["bytes"].max()
    return float(highest) if isinstance(highest, int) else 0.0


def _causes(stretches: pl.DataFrame, origin_ns: int) -> Iterator[tuple[float, float, str]]:
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


def _caption(row: FlowRow) -> str:
    return (
        f"Sequence numbers of {row.legend}, the direction with most data, counted from its first byte: "
        f"{counted(row.data_packets or 0, 'data packet')}, captured acknowledgements, SACK blocks and "
        "windows. The slope is the rate, the height between data and acknowledgements the data in flight. "
        "From far, the lowest and the highest of neighbouring packets are drawn; closer up, each packet with "
        "its number. The strip below the graph shows what held the sender back."
    )
