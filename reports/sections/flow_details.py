"""Details of a row of the table of flows: the flow over time, and its columns."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrctrace.metrics.flow.bins import bin_width_for
from tfrctrace.metrics.flow.first_losses import MOST_FRAMES
from tfrctrace.parsers.schema import FLOWS
from tfrctrace.reports.display_filters import display_filter, frames_filter
from tfrctrace.reports.elements import Curve, Figure, FlowDetails, FlowProperty
from tfrctrace.reports.figures.causes import bins_by_direction, causes_figure
from tfrctrace.reports.records import records
from tfrctrace.reports.sections.sequence import SequenceGraphs, graph_caption
from tfrctrace.reports.sections.why import ledger
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.parsers.schema import Column
    from tfrctrace.reports.conversations import Conversation
    from tfrctrace.reports.figures.causes import CauseBin
    from tfrctrace.reports.flow_rows import FlowRow
    from tfrctrace.reports.report_content import ReportContent

_MOST_BINS: Final = 150
"""Bins across the life of a flow: a thousand flows have to fit into the page."""

_LONGEST_BREAK: Final = 3
"""Bins without an RTT sample that a line is still drawn across."""

_IN_THE_TABLE: Final = frozenset(
    {"flow", "direction", "src", "src_port", "dst", "dst_port", "source", "notes", "drop_reasons"}
)
"""Columns that name the flow, or are shown elsewhere."""

_SHOWN: Final = tuple(column for column in FLOWS if column.name not in _IN_THE_TABLE)

_WRITTEN: Final[Mapping[str, Callable[[Any], str]]] = {
    "ns": format_time_ns,
    "s": format_duration_s,
    "bytes": format_bytes,
    "ms": format_ms,
    "bit/s": format_rate_bps,
}


class _Bin(NamedTuple):
    """A bin of one direction, as wide as fits the life of the flow."""

    flow: int
    direction: str
    first_ns: int
    life_width_ns: int
    place: int
    wire_bytes: int
    retransmitted_packets: int
    rtt_samples: int
    rtt_min_ms: float | None
    rtt_mean_ms: float | None
    rtt_max_ms: float | None

    @property
    def start_ns(self) -> int:
        """When it begins."""
        return self.first_ns + self.place * self.life_width_ns

    @property
    def middle_ns(self) -> int:
        """Where it is drawn."""
        return self.start_ns + self.life_width_ns // 2


def flow_details(content: ReportContent) -> tuple[FlowDetails, ...]:
    """Return the details of the largest flows, each under the key of its row in the table of flows."""
    conversations, flows = content.conversations, content.flows
    wide = records(_flow_bins(conversations, content.results.bins), _Bin)
    courses = {key: list(own) for key, own in groupby(wide, key=lambda bin_: (bin_.flow, bin_.direction))}
    held = _held(wide, content)
    graphs = SequenceGraphs(content)
    losses = _frames_of_losses(content.results.first_losses)
    shown = flows.filter(flows["flow"].is_in([pair.lead.flow for pair in conversations]))
    columns = shown.select("flow", "direction", *(column.name for column in _SHOWN)).iter_rows()
    known = {(flow, direction): values for flow, direction, *values in columns}
    return tuple(
        FlowDetails(
            key=pair.lead.anchor,
            directions=tuple(row.ends for row in pair.directions),
            known=(
                *_filters(pair.directions),
                *_filters_of_losses([losses.get(row.key, {}) for row in pair.directions]),
                *ledger([content.causes.get(row.key) for row in pair.directions]),
                *_properties([known[row.key] for row in pair.directions]),
            ),
            figures=(
                *_causes_figures(pair, held, content.starts_ns),
                *_figures(pair, courses, content.starts_ns),
                *_graph_figures(pair, graphs, content.starts_ns),
            ),
        )
        for pair in conversations
    )


def _filters(directions: Sequence[FlowRow]) -> Iterator[FlowProperty]:
    """Give what shows the directions in Wireshark, if the capture has their addresses."""
    filters = list(map(display_filter, directions))
    if all(filters):
        meaning = "display filter of Wireshark and tshark for the packets of the direction, to be copied"
        yield FlowProperty("display filter", meaning, tuple(one or MISSING for one in filters))


def _frames_of_losses(first: pl.DataFrame | None) -> dict[tuple[int, str], dict[str, str]]:
    """Return the frames of each direction by class."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    for flow, direction, loss_class, frames in () if first is None else first.iter_rows():
        found.setdefault((flow, direction), {})[loss_class] = frames
    return found


def _filters_of_losses(directions: Sequence[Mapping[str, str]]) -> Iterator[FlowProperty]:
    """Give what shows packets that repeat others or are late, by class."""
    for loss_class in sorted(set().union(*directions)):
        meaning = (
            f"display filter for the first {MOST_FRAMES} packets of this class in the capture, to be copied"
        )
        filters = (frames_filter(own[loss_class]) if loss_class in own else MISSING for own in directions)
        yield FlowProperty(f"{loss_class} frames", meaning, tuple(filters))


def _properties(directions: Sequence[Sequence[object]]) -> Iterator[FlowProperty]:
    """Give the columns of a flow that are known and not 0 in one of its directions."""
    for column, values in zip(_SHOWN, zip(*directions, strict=True), strict=True):
        if any(values):
            yield FlowProperty(column.name, column.meaning, tuple(_value(column, value) for value in values))


def _value(column: Column, value: object) -> str:
    if value is None:
        return MISSING
    if column.unit in _WRITTEN:
        return _WRITTEN[column.unit](value)
    if isinstance(value, float):
        return f"{value:.4g} {column.unit}".strip()
    return f"{format_count(value)} {column.unit}".strip() if isinstance(value, int) else str(value)


def _flow_bins(conversations: Sequence[Conversation], bins: pl.DataFrame) -> pl.DataFrame:
    """Return the bins of the flows joined to a width that fits the life of each."""
    import polars as pl

    flows = [pair.lead.flow for pair in conversations]
    own = bins.filter(pl.col("flow").is_in(flows))
    lives = own.group_by("flow").agg(
        pl.col("time_ns").min().alias("first_ns"),
        (pl.col("time_ns") + pl.col("width_ns")).max().alias("end_ns"),
        pl.col("width_ns").first().alias("base_ns"),
    )
    widths = [
        (flow, first_ns, bin_width_for(end_ns - first_ns, base_ns, _MOST_BINS))
        for flow, first_ns, end_ns, base_ns in lives.iter_rows()
    ]
    schema = {"flow": pl.UInt32, "first_ns": pl.Int64, "life_width_ns": pl.Int64}
    place = (pl.col("time_ns") - pl.col("first_ns")) // pl.col("life_width_ns")
    weighted = (pl.col("rtt_mean_ms") * pl.col("rtt_samples")).sum() / pl.col("rtt_samples").sum()
    return (
        own.join(pl.DataFrame(widths, schema=schema, orient="row"), on="flow")
        .sort("flow", "direction", "time_ns")
        .group_by("flow", "direction", "first_ns", "life_width_ns", place.alias("place"), maintain_order=True)
        .agg(
            pl.col("wire_bytes", "retransmitted_packets", "rtt_samples").sum(),
            pl.col("rtt_min_ms").min(),
            pl.when(pl.col("rtt_samples").sum() > 0).then(weighted).alias("rtt_mean_ms"),
            pl.col("rtt_max_ms").max(),
        )
    )


def _held(wide: Sequence[_Bin], content: ReportContent) -> Mapping[tuple[int, str], Sequence[CauseBin]]:
    """Return the causes of the flows in the bins of their throughput."""
    import polars as pl

    widths = {bin_.flow: (bin_.flow, bin_.first_ns, bin_.life_width_ns) for bin_ in wide}
    schema = {"flow": pl.UInt32, "first_ns": pl.Int64, "width_ns": pl.Int64}
    rows = pl.DataFrame(list(widths.values()), schema=schema, orient="row")
    return bins_by_direction(content.results.table("causes"), rows)


def _causes_figures(
    pair: Conversation,
    held: Mapping[tuple[int, str], Sequence[CauseBin]],
    starts_ns: Mapping[str, int],
) -> Iterator[Figure]:
    """Give the time line of the direction with more bytes, or of the only one with data."""
    for row in pair.directions:
        if bins := held.get(row.key):
            yield causes_figure(
                row,
                bins,
                starts_ns.get(row.source, bins[0].first_ns),
                key=f"{row.anchor}-causes",
                title=f"Causes of flow {row.flow}",
                linked=row.anchor,
            )
            return


def _graph_figures(
    pair: Conversation, graphs: SequenceGraphs, starts_ns: Mapping[str, int]
) -> Iterator[Figure]:
    """Give the time-sequence graphs of the directions that have one."""
    for row in pair.directions:
        if graph := graphs.of(row, starts_ns.get(row.source)):
            ends_ns = (tile.end_ns for tile in graph.tiles)
            yield Figure(
                key=f"{row.anchor}-sequence-{row.direction}",
                title=f"Bytes over time of flow {row.flow}, {row.direction}",
                description="",
                caption=graph_caption(row),
                unit="B",
                lasted_s=(max(ends_ns) - graph.origin_ns) / 1e9,
                linked=row.anchor,
                graph=graph,
            )


def _figures(
    pair: Conversation,
    courses: Mapping[tuple[int, str], list[_Bin]],
    starts_ns: Mapping[str, int],
) -> Iterator[Figure]:
    lead = pair.lead
    drawn = [
        (row, style, bins)
        for style, row in enumerate(pair.directions, start=1)
        if (bins := courses.get(row.key))
    ]
    if not drawn:
        return
    first = drawn[0][2][0]
    origin_ns = starts_ns.get(lead.source, first.first_ns)
    width = format_duration_s(first.life_width_ns / 1e9)
    end_s = max((bins[-1].start_ns + bins[-1].life_width_ns - origin_ns) / 1e9 for _, _, bins in drawn)
    rates = tuple(_rates(row.legend, style, bins, origin_ns) for row, style, bins in drawn)
    yield Figure(
        key=f"{lead.anchor}-throughput",
        title=f"Throughput of flow {lead.flow}",
        description="",
        caption=f"Whole frames on the wire in bins of {width}. A ring marks a bin with retransmissions.",
        unit="bit/s",
        curves=rates,
        lasted_s=end_s,
        linked=lead.anchor,
    )
    sampled = [(row, style, own) for row, style, bins in drawn if (own := [b for b in bins if b.rtt_samples])]
    if sampled:
        samples = sum(bin_.rtt_samples for _, _, own in sampled for bin_ in own)
        yield Figure(
            key=f"{lead.anchor}-rtt",
            title=f"RTT of flow {lead.flow}",
            description="",
            caption=f"Mean, smallest and largest RTT in bins of {width}; {counted(samples, 'sample')}.",
            unit="ms",
            curves=tuple(_rtts(row.legend, style, own, origin_ns) for row, style, own in sampled),
            lasted_s=end_s,
            linked=lead.anchor,
        )


def _rates(label: str, style: int, bins: Iterable[_Bin], origin_ns: int) -> Curve:
    """Return the rate of a direction; where it was silent between two bins it is 0."""
    points: list[tuple[int, float]] = []
    marked: list[int] = []
    width_ns = 1
    for bin_ in bins:
        middle_ns, width_ns = bin_.middle_ns, bin_.life_width_ns
        if points and middle_ns - points[-1][0] > width_ns:
            silent_ns = sorted({points[-1][0] + width_ns, middle_ns - width_ns})
            points += [(time_ns, 0.0) for time_ns in silent_ns]
        if bin_.retransmitted_packets:
            marked.append(len(points))
        points.append((middle_ns, bin_.wire_bytes * 8e9 / width_ns))
    times_s = tuple((time_ns - origin_ns) / 1e9 for time_ns, _ in points)
    return Curve(label, style, times_s, tuple(rate for _, rate in points), marked=tuple(marked))


def _rtts(label: str, style: int, bins: Iterable[_Bin], origin_ns: int) -> Curve:
    rows: list[tuple[float, float | None, float | None, float | None]] = []
    previous: _Bin | None = None
    for bin_ in bins:
        middle_s = (bin_.middle_ns - origin_ns) / 1e9
        if previous is not None and bin_.place - previous.place > _LONGEST_BREAK + 1:
            rows.append((middle_s - bin_.life_width_ns / 1e9, None, None, None))
        rows.append((middle_s, bin_.rtt_mean_ms, bin_.rtt_min_ms, bin_.rtt_max_ms))
        previous = bin_
    times_s, means, lows, highs = zip(*rows, strict=True)
    return Curve(label, style, times_s, means, lows, highs)
