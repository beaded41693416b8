"""The time-sequence graph: data, retransmissions, acknowledgements and receive window of a TCP sender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.flow.quantiles import envelope
from tfrctrace.reports.elements import OTHER, Curve, Figure, Section, Words
from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted, format_bytes, format_count

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.report_content import ReportContent

_MOST_POINTS: Final = 400
"""Of each kind in the overview; a zoomed-in view has more."""

_KINDS: Final[tuple[tuple[str, str, int, Literal["dots", "steps"]], ...]] = (
    ("data", "data sent", 1, "dots"),
    ("sent_again", "retransmitted data", 2, "dots"),
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
    figures = (_figure(trace, trace.of(sequence)) for trace in content.traces)
    return Section(key, title, figures=tuple(filter(None, figures)))


def _not_drawn(content: ReportContent) -> tuple[Words, ...]:
    if not (content.flows["transport"] == "tcp").any():
        return ()
    if content.is_one_trace:
        return (("Not drawn for several captures together: see the report of a single one.",),)
    return (
        (
            "Not drawn: it needs every packet of a flow, but this trace can be read only once or has too "
            "many packets or flows. Filter one connection, as in `tfrctrace report --filter 'port 5201'`.",
        ),
    )


def _figure(trace: DrawnTrace, own: pl.DataFrame) -> Figure | None:

    if own.is_empty():
        return None
    flow, direction = own.select("flow", "direction").row(0)
    (row,) = records(trace.flows.filter(flow=flow, direction=direction), FlowRow)
    few = envelope(own, ("kind",), "bytes", _MOST_POINTS)
    return Figure(
        key=trace.key("sequence"),
        title=trace.titled("Bytes over time"),
        description=f"Sequence numbers of {row.legend} up to {format_bytes(_highest(own))}.",
        caption=_caption(row, own),
        unit="B",
        curves=_curves(trace, few),
        detail=_curves(trace, own) if len(own) > len(few) else (),
        lasted_s=trace.lasted_s,
        linked=trace.linked,
    )


def _highest(own: pl.DataFrame) -> float:
    highest = own["bytes"].max()
    return float(highest) if isinstance(highest, int) else 0.0


def _curves(trace: DrawnTrace, own: pl.DataFrame) -> tuple[Curve, ...]:
    import polars as pl

    curves = []
    for kind, label, style, form in _KINDS:
        points = own.filter(pl.col("kind") == kind).sort("time_ns", maintain_order=True)
        # of packets at one time the last is drawn: an x axis has each time once
        points = points.unique("time_ns", keep="last", maintain_order=True)
        if points.height:
            times_s = trace.seconds(points["time_ns"].to_list())
            values = tuple(points["bytes"].cast(float).to_list())
            curves.append(Curve(label, style, times_s, values, form=form))
    return tuple(curves)


def _caption(row: FlowRow, own: pl.DataFrame) -> str:
    import polars as pl

    again = own.filter(pl.col("kind") == "sent_again").height
    retransmitted = f", {counted(again, 'point')} of retransmitted data" if again else ""
    return (
        f"Sequence numbers of {row.legend}, the direction with most data, counted from its first "
        f"byte: the first byte of each of {format_count(row.data_packets)} data packets{retransmitted}, "
        "and the captured acknowledgements and windows. The slope is the rate, the height between data and "
        "acknowledgements the data in flight. Of many packets the lowest and the highest of each interval "
        "are drawn."
    )
