"""Metrics as text, JSON or CSV: what `tfrctrace metrics` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import printable, source_name
from tfrctrace.metrics.catalogue import BY_NAME, WITHOUT_SPARSE
from tfrctrace.metrics.flow_metrics import FlowMetrics, metric_frames, metric_schema
from tfrctrace.metrics.results.metrics import Metric
from tfrctrace.metrics.sets.fairness import times_others
from tfrctrace.parsers.csv_text import frame_csv
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.metric_words import SHARES, is_between_groups
from tfrctrace.reports.printers.aligned import fitted, noted
from tfrctrace.reports.units import counted, format_duration_s, format_share, format_time_ns, format_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.flow_metrics import FlowColumn, MetricRows
    from tfrctrace.metrics.results.metrics import MeasuredSet, MetricsSummary

METRICS_SCHEMA_VERSION: Final = 1

_FLOWS_SHOWN: Final = 12


def write_metrics_json(
    file: TextIO, summary: MetricsSummary, rows: Sequence[MetricRows], *, version: str
) -> None:
    """Write all metrics with their competing sets; docs/metrics.md explains the names."""
    import json

    import msgspec

    from tfrctrace.metrics.results.document import Tool

    head = {"schema_version": METRICS_SCHEMA_VERSION, "tool": msgspec.to_builtins(Tool("tfrctrace", version))}
    encode = json.JSONEncoder(allow_nan=False).encode
    file.write(f'{encode({**head, **msgspec.to_builtins(summary)})[:-1]},\n"metrics": [')
    separator = "\n"
    for frame in metric_frames(rows):
        for metric in frame.iter_rows(named=True):
            file.write(separator + encode(metric))
            separator = ",\n"
    file.write("\n]}\n")


def write_metrics_table(
    file: BinaryIO, form: Literal["csv", "parquet"], rows: Sequence[MetricRows], *, raw: bool
) -> None:
    """Write a row for each metric; in CSV the flows are numbers with blanks between them."""
    import polars as pl

    empty = pl.DataFrame(schema=metric_schema())
    if form == "parquet":
        file.write(parquet_bytes(pl.concat([empty, *metric_frames(rows)])))
        return
    flows = pl.col("flows").cast(pl.List(pl.String)).list.join(" ")
    file.write(frame_csv(empty.with_columns(flows), raw=raw))
    for frame in metric_frames(rows):
        file.write(frame_csv(frame.with_columns(flows), raw=raw, header=False))


def write_metrics_text(
    file: TextIO,
    summary: MetricsSummary,
    rows: Sequence[MetricRows],
    *,
    shown: Collection[int],
    zone: TimeZone | None = None,
    width: int | None = None,
) -> None:
    """Write a block for each competing set, then one for whole flows, of which those `shown` have a line.

    Tables fit a `width` (of a terminal, in columns).
    """
    for line in _lines(summary, rows, shown, zone, width):
        file.write(printable(line) + "\n")


def _lines(
    summary: MetricsSummary,
    rows: Sequence[MetricRows],
    shown: Collection[int],
    zone: TimeZone | None,
    width: int | None,
) -> Iterator[str]:
    windows = f"{summary.basis} in windows of {format_duration_s(summary.window_s)}"
    if summary.warmup_s:
        windows += f", without the first {format_duration_s(summary.warmup_s)} of each flow"
    sets = counted(len(summary.competing_sets), "competing set")
    yield f"{counted(summary.flows, 'flow')}, {sets}; {windows}"
    for found in summary.competing_sets:
        of_set = [metrics for metrics in rows if metrics.competing_set == found.number]
        yield from ("", _title(found, zone), *_small_flows(found), *_of_set(of_set, shown, width))
    whole = [
        row for row in rows if isinstance(row, FlowMetrics) and row.competing_set is None and len(row.flows)
    ]
    if whole:
        yield from ("", "whole flows", *_of_flows(whole, shown, width))
    for line in left_out(summary):
        yield from ("", line)


def _title(found: MeasuredSet, zone: TimeZone | None) -> str:
    duration_s = (found.end_ns - found.start_ns) / 1e9
    return (
        f"set {found.number}: {_flows(found.flows)} of {source_name(found.source)}, "
        f"{format_duration_s(duration_s)} from {format_time_ns(found.start_ns, zone)}"
    )


def _small_flows(found: MeasuredSet) -> Iterator[str]:
    """Give a line for each flow with a rate far below a share, sparse ones first."""
    small = sorted(found.small_flows, key=lambda flow: (not flow.is_sparse, flow.flow))
    for flow in small[:_FLOWS_SHOWN]:
        kind = "sparse" if flow.is_sparse else "small, not sparse"
        yield f"{kind}: flow {flow.flow}, {format_share(flow.of_mean)} of the mean rate; {flow.evidence}"
    if len(small) > _FLOWS_SHOWN:
        yield f"and {len(small) - _FLOWS_SHOWN} more flows far below the mean"


def _flows(flows: Sequence[int]) -> str:
    shown = ", ".join(map(str, flows[:_FLOWS_SHOWN]))
    more = f" and {len(flows) - _FLOWS_SHOWN} more" if len(flows) > _FLOWS_SHOWN else ""
    return f"{'flow' if len(flows) == 1 else 'flows'} {shown}{more}"


def _of_set(rows: Sequence[MetricRows], shown: Collection[int], width: int | None) -> Iterator[str]:
    """Give the lines about the set and its groups, then the table of its flows."""
    together = [row for row in rows if isinstance(row, Metric)]
    alone = [row for row in rows if isinstance(row, FlowMetrics)]
    has_sparse = any(metric.name == "sparse_flows" and metric.value for metric in together)
    names = {metric.name for metric in together}
    groups = [metric.group for metric in together if metric.name == "mean_rate_bps" and metric.group]
    lines = [
        (
            metric.name,
            metric.group or "all",
            _value(metric.name, metric.value),
            f"n = {metric.n}",
            metric.reason or _who_got_more(metric, groups),
        )
        for metric in together
        # without a sparse flow they are the same numbers again
        if has_sparse or metric.name.removesuffix(WITHOUT_SPARSE) not in names - {metric.name}
    ]
    yield from noted(lines, left={0, 1, 3}, width=width)
    if alone and lines:
        yield ""
    yield from _of_flows(alone, shown, width)


def _who_got_more(metric: Metric, groups: Sequence[str]) -> str:
    """Return who has how many times the mean rate of the others, such as `bbr 1.61 times cubic`."""
    own, times = metric.group, times_others(metric.value) if is_between_groups(metric.name) else None
    if not times or own is None:
        return ""
    rest = [group for group in groups if group != own]
    others = rest[0] if len(rest) == 1 else "the others"
    return f"{own} {times:.3g} times {others}" if times >= 1 else f"{others} {1 / times:.3g} times {own}"


def _of_flows(blocks: Sequence[FlowMetrics], shown: Collection[int], width: int | None) -> Iterator[str]:
    """Give a table with a line for each of the flows `shown` and a column for each metric.

    All blocks are of the same flows.
    """
    columns = [column for block in blocks for column in block.columns]
    known = [column for column in columns if not column.is_unknown]
    if known:
        flows, groups = blocks[0].flows, blocks[0].groups
        places = [place for place, flow in enumerate(flows) if flow in shown]
        lines = [("flow", "group", *map(_heading, known))]
        lines += [
            (str(flows[place]), groups[place], *(_value(one.name, one.values[place]) for one in known))
            for place in places
        ]
        yield from fitted(lines, left={1}, keys=2, width=width)
        if len(places) < len(flows):
            yield f"and {len(flows) - len(places):,} more flows; `--format csv` has all"
    unknown: dict[str, str] = {}
    for column in columns:
        if column.is_unknown:
            unknown[_heading(column)] = column.reason_at(-1)
    for reason in dict.fromkeys(unknown.values()):
        names = ", ".join(name for name, why in unknown.items() if why == reason)
        yield f"unknown for all flows: {names} ({reason})"


def _heading(column: FlowColumn) -> str:
    """Return the metric's name, with the timescale of `cov`."""
    return f"cov {column.window_s:g} s" if column.name == "cov" else column.name


def _value(name: str, value: float | None) -> str:
    return format_value(value, "%" if name in SHARES else BY_NAME[name].unit)


def left_out(summary: MetricsSummary) -> Iterator[str]:
    """Give a line for flows, and one for sets, that no metric counts."""
    if summary.flows_left_out:
        yield (
            f"left out: {counted(summary.flows_left_out, 'flow')} with few data packets (`--least-packets`)"
        )
    if summary.sets_left_out:
        yield f"left out: {counted(summary.sets_left_out, 'smaller competing set')}"
