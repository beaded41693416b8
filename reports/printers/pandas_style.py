"""Styled pandas tables with the units, digits and dashes of a report."""

from __future__ import annotations

import hashlib
import html
import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.pandas_frames import to_pandas
from tfrctrace.parsers.schema import TABLES
from tfrctrace.reports.safe_text import plain_text
from tfrctrace.reports.units import (
    MISSING,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_time_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    import polars as pl
    from pandas.io.formats.style import Styler
    from pandas.io.formats.style_render import CSSDict

    Written = Callable[[Any], str]

FLOW_COLUMNS: Final = (
    "flow",
    "direction",
    "src",
    "src_port",
    "dst",
    "dst_port",
    "transport",
    "state",
    "packets",
    "wire_bytes",
    "goodput_bps",
    "retransmitted_packets",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "pdr",
    "delay_mean_ms",
)
"""Most used columns of the table of flows."""

_BY_UNIT: Final[Mapping[str, Written]] = {
    "bit/s": format_rate_bps,
    "bytes": format_bytes,
    "ms": format_ms,
    "s": format_duration_s,
}

_MOMENTS: Final = frozenset({"start_ns", "end_ns", "time_ns"})
"""Columns that are times of day (or of a simulation); other nanoseconds are durations."""

_NUMBERS_OF_THINGS: Final = frozenset({"uint32"})
"""Ports and other identifiers, written without commas."""

_ROWS_IN_KEY: Final = 100

_KINDS_OF_NUMBERS: Final = "iuf"
"""NumPy's letters; columns of other kinds are aligned to the left."""

_STYLES: Final[list[CSSDict]] = [
    {"selector": "td, th", "props": "text-align: right; padding: 0.2em 0.6em"},
    {"selector": "td", "props": "font-variant-numeric: tabular-nums; white-space: nowrap"},
]


def leading_columns(flows: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    """Return the `limit` flows with most bytes (None for all), with `FLOW_COLUMNS` that have values."""
    import polars as pl

    if limit is not None:
        chosen = (
            flows.group_by("flow")
            .agg(pl.col("wire_bytes").sum())
            .sort("wire_bytes", "flow", descending=[True, False])
            .head(limit)
        )
        flows = flows.join(chosen, on="flow", how="semi", maintain_order="left")
    return flows.select(name for name in FLOW_COLUMNS if flows[name].null_count() < max(flows.height, 1))


def styled(frame: pl.DataFrame | pd.DataFrame) -> Styler:
    """Return a table as pandas' Styler, with the units of its columns written out and missing values a dash.

    Columns are known by the names that `tfrctrace.parsers.schema` gives them; in a table of metrics each row
    has a unit of its own. Other columns are shown as they are. What came out of a capture is escaped.
    """
    import polars as pl

    table = to_pandas(frame) if isinstance(frame, pl.DataFrame) else frame
    shown = table.reset_index(drop=True)
    writers: dict[Any, str | Written | None] = {name: _writer(str(name)) for name in shown.columns}
    left: list[CSSDict] = [
        {"selector": f"th.col{place}, td.col{place}", "props": "text-align: left"}
        for place, name in enumerate(shown.columns)
        if shown[name].dtype.kind not in _KINDS_OF_NUMBERS
    ]
    style = shown.style.format(writers).hide(axis="index").set_table_styles([*_STYLES, *left])
    if {"name", "value", "unit"} <= set(shown.columns):
        for place, unit in enumerate(shown["unit"]):
            style = style.format({"value": _in_unit(unit)}, subset=([place], ["value"]))
        style = style.hide(subset=["unit"], axis="columns")
    return style.format_index(_plain, axis="columns").set_uuid(_key(shown))


def _key(table: pd.DataFrame) -> str:
    """Return a reproducible name of the table; pandas would choose a random one."""
    text = f"{table.shape} {table.head(_ROWS_IN_KEY).to_csv()}"
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]


@cache
def _units() -> dict[str, tuple[str, str]]:
    """Return unit and type of every column; of a name in several tables those of the first, mostly flows."""
    tables = reversed(TABLES.values())
    return {column.name: (column.unit, column.type) for columns in tables for column in columns}


def _writer(name: str) -> Written:
    unit, kind = _units().get(name, ("", ""))
    if name in _MOMENTS:
        return _unless_missing(lambda value: format_time_ns(int(value)))
    if unit == "ns":
        return _unless_missing(lambda value: format_ms(value / 1e6))
    if unit in _BY_UNIT:
        return _unless_missing(_BY_UNIT[unit])
    if kind in {"uint64", "int64"}:
        return _unless_missing(lambda value: format_count(int(value)))
    if kind in _NUMBERS_OF_THINGS:
        return _unless_missing(lambda value: str(int(value)))
    return _unless_missing(_plain)


def _in_unit(unit: str) -> Written:
    return _unless_missing(_BY_UNIT.get(unit, lambda value: f"{value:.4g} {_plain(unit)}".rstrip()))


def _unless_missing(write: Written) -> Written:
    def written(value: Any) -> str:  # noqa: ANN401  a cell has any type
        return MISSING if _is_missing(value) else write(value)

    return written


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value)) or repr(value) == "<NA>"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return html.escape(plain_text(str(value)), quote=True)
