"""Metrics as text, JSON or CSV: what `tfrctrace metrics` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, TextIO

from tfrctrace.base.errors import printable, source_name
from tfrctrace.metrics.catalogue import BY_NAME, WITHOUT_SPARSE
from tfrctrace.parsers.csv_text import frame_csv
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.units import (
    MISSING,
    counted,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

Facts = dict[str, Any]

METRICS_SCHEMA_VERSION: Final = 1

_SHARES: Final = {"pdr", "plr", "drop_ratio", "goodput_share", "timeout_share", "link_utilisation"}
_FLOWS_SHOWN: Final = 12


def write_metrics_json(file: TextIO, document: Mapping[str, Any], *, version: str) -> None:
    """Write all metrics with their competing sets; docs/metrics.md explains the names."""
    import json

    head = {"schema_version": METRICS_SCHEMA_VERSION, "tool": {"name": "tfrctrace", "version": version}}
    rest = {name: value for name, value in document.items() if name != "metrics"}
    encode = json.JSONEncoder(allow_nan=False).encode
    lines = ",\n".join(encode(metric) for metric in document["metrics"])
    file.write(f'{encode({**head, **rest})[:-1]},\n"metrics": [\n{lines}\n]}}\n')


def write_metrics_table(
    file: BinaryIO, form: Literal["csv", "parquet"], frame: pl.DataFrame, *, raw: bool
) -> None:
    """Write a row for each metric; in CSV the flows are numbers with blanks between them."""
    import polars as pl

    if form == "parquet":
        file.write(parquet_bytes(frame))
    else:
        flows = pl.col("flows").cast(pl.List(pl.String)).list.join(" ")
        file.write(frame_csv(frame.with_columns(flows), raw=raw))


def write_metrics_text(file: TextIO, document: Mapping[str, Any]) -> None:
    """Write a block for each competing set, then one for whole flows."""
    for line in _lines(document):
        file.write(printable(line) + "\n")


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    windows = f"{document['basis']} in windows of {format_duration_s(document['window_s'])}"
    if document["warmup_s"]:
        windows += f", without the first {format_duration_s(document['warmup_s'])} of each flow"
    sets = counted(len(document["competing_sets"]), "competing set")
    yield f"{counted(document['flows'], 'flow')}, {sets}; {windows}"
    for one in document["competing_sets"]:
        own = [metric for metric in document["metrics"] if metric["competing_set"] == one["number"]]
        yield from ("", _title(one), *_small_flows(one), *_of_set(own))
    whole = [metric for metric in document["metrics"] if metric["competing_set"] is None]
    if whole:
        yield from ("", "whole flows", *_of_flows(whole))
    for line in left_out(document):
        yield from ("", line)


def _title(one: Mapping[str, Any]) -> str:
    duration_s = (one["end_ns"] - one["start_ns"]) / 1e9
    return (
        f"set {one['number']}: {_flows(one['flows'])} of {source_name(one['source'])}, "
        f"{format_duration_s(duration_s)} from {format_time_ns(one['start_ns'])}"
    )


def _small_flows(one: Mapping[str, Any]) -> Iterator[str]:
    """Give a line for each flow with a rate far below a share, sparse ones first."""
    small = sorted(one["small_flows"], key=lambda flow: (not flow["is_sparse"], flow["flow"]))
    for flow in small[:_FLOWS_SHOWN]:
        kind = "sparse" if flow["is_sparse"] else "small, not sparse"
        yield (
            f"{kind}: flow {flow['flow']}, {format_share(flow['of_mean'])} of the mean rate; "
            f"{flow['evidence']}"
        )
    if len(small) > _FLOWS_SHOWN:
        yield f"and {len(small) - _FLOWS_SHOWN} more flows far below the mean"


def _flows(flows: Sequence[int]) -> str:
    shown = ", ".join(map(str, flows[:_FLOWS_SHOWN]))
    more = f" and {len(flows) - _FLOWS_SHOWN} more" if len(flows) > _FLOWS_SHOWN else ""
    return f"{'flow' if len(flows) == 1 else 'flows'} {shown}{more}"


def _of_set(metrics: Sequence[Facts]) -> Iterator[str]:
    """Give the lines about the set and its groups, then the table of its flows."""
    has_sparse = any(metric["name"] == "sparse_flows" and metric["value"] for metric in metrics)
    names = {metric["name"] for metric in metrics}
    together = [
        metric
        for metric in metrics
        if BY_NAME[metric["name"]].subject != "flow"
        # without a sparse flow they are the same numbers again
        and (has_sparse or metric["name"].removesuffix(WITHOUT_SPARSE) not in names - {metric["name"]})
    ]
    rows = [
        (
            metric["name"],
            metric["group"] or "all",
            _value(metric),
            f"n = {metric['n']}",
            metric["reason"] or "",
        )
        for metric in together
    ]
    yield from aligned(rows, left={0, 1, 3, 4})
    alone = [metric for metric in metrics if BY_NAME[metric["name"]].subject == "flow"]
    if alone and rows:
        yield ""
    yield from _of_flows(alone)


def _of_flows(metrics: Sequence[Facts]) -> Iterator[str]:
    """Give a table with a line for each flow and a column for each metric."""
    headings = list(dict.fromkeys(_heading(metric) for metric in metrics if metric["value"] is not None))
    cells: dict[tuple[int, str], dict[str, str]] = {}
    unknown: dict[str, str] = {}
    for metric in metrics:
        if _heading(metric) in headings:
            cells.setdefault((metric["flows"][0], metric["group"]), {})[_heading(metric)] = _value(metric)
        else:
            unknown[_heading(metric)] = metric["reason"]
    if cells:
        rows = [("flow", "group", *headings)]
        for (flow, group), own in cells.items():
            rows.append((str(flow), group, *(own.get(heading, MISSING) for heading in headings)))
        yield from aligned(rows, left={1})
    for reason in dict.fromkeys(unknown.values()):
        names = ", ".join(name for name, why in unknown.items() if why == reason)
        yield f"unknown for all flows: {names} ({reason})"


def _heading(metric: Facts) -> str:
    """Return the metric's name, with the timescale of `cov`."""
    name: str = metric["name"]
    return f"cov {metric['window_s']:g} s" if name == "cov" else name


def _value(metric: Facts) -> str:
    value = metric["value"]
    if value is None:
        return MISSING
    if metric["name"] in _SHARES:
        return format_share(value)
    if metric["unit"] == "bit/s":
        return format_rate_bps(value)
    if metric["unit"] == "ms":
        return format_ms(value)
    return f"{value:.3g} s" if metric["unit"] == "s" else f"{value:.4g}"


def left_out(document: Mapping[str, Any]) -> Iterator[str]:
    """Give a line for flows, and one for sets, that no metric counts."""
    if document["flows_left_out"]:
        yield (
            f"left out: {counted(document['flows_left_out'], 'flow')} "
            "with few data packets (`--least-packets`)"
        )
    if document["sets_left_out"]:
        yield f"left out: {counted(document['sets_left_out'], 'smaller competing set')}"
