"""Fairness: which flows competed, what share each had, and how that changed.

The metrics are those of `tfrctrace metrics` (docs/metrics.md); only the index over time is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.flow.bins import bin_width_for
from tfrctrace.metrics.sets.fairness import jain_over_time
from tfrctrace.metrics.windows import NS_PER_S, Windows, whole_windows, windowed
from tfrctrace.reports.conversations import data_rows
from tfrctrace.reports.elements import (
    FLOW_HEADING,
    Cell,
    Curve,
    Figure,
    Heading,
    Row,
    Section,
    TableView,
    ends_heading,
)
from tfrctrace.reports.flow_rows import FlowRow, flow_anchor
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_count,
    format_duration_s,
    format_rate_bps,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.metrics import MeasuredSet, Metric, TraceMetrics
    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.report_content import ReportContent

_MOST_SETS: Final = 3
"""Competing sets in the report; with many short flows there are twenty."""

_MOST_ROWS: Final = 100

_MOST_NAMED: Final = 6
"""Flows of a set that are named; the table has the others."""

_MOST_WINDOWS: Final = 240

_FEWEST_WINDOWS: Final = 4

_COMPETED: Final = (
    "Flows compete if they are active at the same time; a trace is taken as one shared link. Only their "
    "common time counts. Jain's index is 1 if all flows have the same rate, and 1/n if one of n has all."
)

_HEADINGS: Final = (
    FLOW_HEADING,
    ends_heading("the direction of the data"),
    Heading("Group", numeric=False, meaning="label, or the transport"),
    Heading("Rate", meaning="goodput in the common time of the flows"),
    Heading("Share", meaning="share of the sum of the rates of the set"),
    Heading("Burstiness", meaning="standard deviation over mean of the rate in windows"),
    Heading("Change", meaning="mean relative change from one window to the next"),
)


def fairness_section(content: ReportContent) -> Section:
    """Return fairness and shares of the largest competing sets; empty if no two flows competed."""
    measured = content.results.measured
    sets = _largest_sets(measured)
    if measured is None or not sets:
        return Section("fairness", "Fairness")
    rows = data_rows(content.flows, measured.metrics)
    trace_of = {flow: trace for trace in content.traces for flow in trace.flows["flow"].unique()}
    figures = (
        _index_figure(competing, rows, content.results.bins, trace_of[competing.flows[0]])
        for competing in sets
        if competing.flows[0] in trace_of
    )
    words = [(*_words(competing, measured.metrics), *_small_flows(competing)) for competing in sets]
    return Section(
        "fairness",
        "Fairness",
        paragraphs=((_COMPETED,), *((text,) for of_set in words for text in of_set)),
        figures=tuple(filter(None, figures)),
        tables=tuple(_shares(competing, rows, measured) for competing in sets),
    )


def _largest_sets(measured: TraceMetrics | None) -> list[MeasuredSet]:
    """Return the sets of several flows with most flows times time, in order of time."""
    sets = [] if measured is None else [found for found in measured.competing_sets if len(found.flows) > 1]
    largest = sorted(
        sets, key=lambda found: (-len(found.flows) * (found.end_ns - found.start_ns), found.number)
    )
    return sorted(largest[:_MOST_SETS], key=lambda found: found.number)


def _of_set(found: MeasuredSet, metrics: Sequence[Metric], name: str) -> list[tuple[Metric, float]]:
    """Return the metrics of a set with this name that are known, and their values."""
    return [
        (metric, metric.value)
        for metric in metrics
        if metric.competing_set == found.number and metric.name == name and metric.value is not None
    ]


def _words(competing: MeasuredSet, metrics: Sequence[Metric]) -> Iterator[str]:
    """Give the paragraph on one set."""
    lasted_s = (competing.end_ns - competing.start_ns) / NS_PER_S
    words = f"Set {competing.number}, {_members(competing)}: together for {format_duration_s(lasted_s)}"
    for _, index in _of_set(competing, metrics, "jain"):
        words += f", Jain's index {index:.3f}"
    for metric, index in _of_set(competing, metrics, "jain_window_mean"):
        window = format_duration_s(metric.window_s)
        words += f" overall and {index:.3f} on average over {counted(metric.n, 'window')} of {window}"
    groups = [
        f"{metric.group} {format_rate_bps(rate)} (mean of {counted(metric.n, 'flow')})"
        for metric, rate in _of_set(competing, metrics, "mean_rate_bps")
    ]
    rest = _of_set(competing, metrics, "jain_without_sparse")
    if competing.sparse_flows and rest:
        metric, index = rest[0]
        sparse = counted(len(competing.sparse_flows), "sparse flow")
        words += f". Without {sparse}: {index:.3f} of {counted(metric.n, 'flow')}"
    yield f"{words}." + (f" By group: {', '.join(groups)}." if len(groups) > 1 else "")


def _small_flows(competing: MeasuredSet) -> Iterator[str]:
    """Give a paragraph on the flows with a rate far below a share, sparse or not."""
    for is_sparse, words in (
        (True, "Sparse, asked for far less than a share"),
        (False, "Far below the mean, but counted, as nothing shows that they asked for little"),
    ):
        found = [flow for flow in competing.small_flows if flow.is_sparse is is_sparse]
        if found:
            named = "; ".join(
                f"flow {flow.flow} ({format_share(flow.of_mean)} of the mean rate; {flow.evidence})"
                for flow in found[:_MOST_NAMED]
            )
            rest = len(found) - _MOST_NAMED
            yield f"{words}: {named}" + (f"; and {format_count(rest)} more." if rest > 0 else ".")


def _members(competing: MeasuredSet) -> str:
    """Return which flows competed: `flows 1, 3, 4`, of many the first."""
    return f"flows {', '.join(map(str, competing.flows[:_MOST_NAMED]))}{_more(competing.flows)}"


def _without_sparse(competing: MeasuredSet) -> list[int]:
    """Return the flows of a set that are not sparse; none if all are there anyway, or one is left."""
    sparse = {flow.flow for flow in competing.sparse_flows}
    rest = [flow for flow in competing.flows if flow not in sparse]
    return rest if sparse and len(rest) > 1 else []


def _more(flows: Sequence[int]) -> str:
    rest = len(flows) - _MOST_NAMED
    return f" and {format_count(rest)} more" if rest > 0 else ""


def _index_figure(
    competing: MeasuredSet, rows: Mapping[int, FlowRow], bins: pl.DataFrame, trace: DrawnTrace
) -> Figure | None:
    import polars as pl

    own = _data_bins(competing, rows, bins)
    if own.is_empty():
        return None
    windows = _windows(competing, own, trace.window_ns)
    if windows.count < _FEWEST_WINDOWS:
        return None
    frame = windowed(own, windows, "unique_bytes")
    by_window = dict(jain_over_time(frame, len(competing.flows)).iter_rows())
    curves: list[tuple[Sequence[int], dict[Any, Any]]] = [(competing.flows, by_window)]
    if rest := _without_sparse(competing):
        of_rest = frame.filter(pl.col("flow").is_in(rest))
        curves.append((rest, dict(jain_over_time(of_rest, len(rest)).iter_rows())))
    middles_ns = [
        windows.start_ns + windows.width_ns * place + windows.width_ns // 2 for place in range(windows.count)
    ]
    return Figure(
        key=f"fairness-{competing.number}",
        title=trace.titled(f"Jain's index over time, set {competing.number}: {_members(competing)}"),
        description=f"Line chart; {counted(len(by_window), 'window')} with bytes.",
        caption=(
            f"Jain's index (Jain et al. 1984) of the goodputs of {counted(len(competing.flows), 'flow')} in "
            f"each window of {format_duration_s(windows.width_s)}, {counted(len(by_window), 'window')}; a "
            "flow without bytes in a window counts as 0. Equal rates give 1, one "
            f"active flow {1 / len(competing.flows):.3g}."
        ),
        unit="",
        is_share=True,
        value_label="Jain's index",
        curves=tuple(
            Curve(
                ", ".join(rows[flow].legend for flow in flows[:_MOST_NAMED] if flow in rows) + _more(flows),
                style,
                trace.seconds(middles_ns),
                tuple(index.get(place) for place in range(windows.count)),
            )
            for style, (flows, index) in enumerate(curves, start=1)
        ),
        lasted_s=trace.lasted_s,
        linked=trace.linked,
    )


def _data_bins(competing: MeasuredSet, rows: Mapping[int, FlowRow], bins: pl.DataFrame) -> pl.DataFrame:
    """Return the bins of the flows of a set, each in the direction of its data."""
    import polars as pl

    keys = [(flow, rows[flow].direction) for flow in competing.flows if flow in rows]
    wanted = pl.DataFrame(keys, schema={"flow": pl.UInt32, "direction": pl.String}, orient="row")
    return bins.join(wanted, on=["flow", "direction"], how="semi").sort("flow", "time_ns")


def _windows(competing: MeasuredSet, bins: pl.DataFrame, window_ns: int | None) -> Windows:
    """Return windows as narrow as a figure shows, but a second at least where the bins allow that."""
    base_ns, origin_ns = int(bins["width_ns"][0]), int(bins["time_ns"][0])
    base = whole_windows(origin_ns, base_ns, competing.start_ns, competing.end_ns)
    if window_ns is not None:
        return base.coarser(window_ns // base_ns)
    least = max(NS_PER_S // base_ns, 1) if base.duration_s > _FEWEST_WINDOWS else 1
    drawn_ns = bin_width_for(base.width_ns * base.count, base_ns, _MOST_WINDOWS)
    return base.coarser(max(least, drawn_ns // base_ns))


def _shares(competing: MeasuredSet, rows: Mapping[int, FlowRow], measured: TraceMetrics) -> TableView:
    values: dict[str, dict[int, float]] = {
        name: {metric.flows[0]: value for metric, value in _of_set(competing, measured.metrics, name)}
        for name in ("rate_bps", "burstiness", "mean_relative_change")
    }
    groups = {metric.flows[0]: metric.group for metric, _ in _of_set(competing, measured.metrics, "rate_bps")}
    total = sum(values["rate_bps"].values())
    known = values["rate_bps"].keys() & rows.keys()
    flows = sorted(known, key=lambda flow: (-values["rate_bps"][flow], flow))
    rest = len(flows) - _MOST_ROWS
    left_out = f" Not shown: {counted(rest, 'flow')} with smaller rates." if rest > 0 else ""
    return TableView(
        f"fairness-shares-{competing.number}",
        f"The flows of set {competing.number}, largest rate first; goodput in windows of "
        f"{format_duration_s(measured.window_s)}.{left_out}",
        _HEADINGS,
        tuple(_share_row(competing, rows[flow], groups[flow], values, total) for flow in flows[:_MOST_ROWS]),
        sortable=True,
    )


def _share_row(
    competing: MeasuredSet,
    row: FlowRow,
    group: str | None,
    values: Mapping[str, Mapping[int, float]],
    total: float,
) -> Row:
    flow = row.flow
    rate = values["rate_bps"][flow]
    share = rate / total if total else None
    variation = (values[name].get(flow) for name in ("burstiness", "mean_relative_change"))
    return Row(
        f"fairness-{competing.number}-{flow_anchor(flow)}",
        (
            Cell(str(flow), sort=flow),
            Cell(row.ends, row.transport.upper()),
            Cell(group or ""),
            Cell(format_rate_bps(rate), sort=rate),
            Cell(format_share(share), sort=share),
            *(Cell(MISSING if value is None else f"{value:.3f}", sort=value) for value in variation),
        ),
    )
