"""The quantities of a study file: a metric, a column, a series or a replayed rate of each run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from tfrctrace.base.durations import parse_duration_ns, parse_offset_ns
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import one_of, optional_text, refuse_unknown, text
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.runs.quantity import COLUMNS, OverTime, Quantity, Term
from tfrctrace.study.definition import Reduction
from tfrctrace.study.file.names import file_name

if TYPE_CHECKING:
    from tfrctrace.base.toml import Table
    from tfrctrace.runs.quantity import Kind

_KINDS: Final[tuple[Kind, ...]] = ("metric", "column", "replay", "series")
_OF_SERIES: Final = ("over_time", "from", "until")


def quantity_of(table: Table, called: str) -> Quantity:
    """Parse a `[[quantity]]`; errors call it `called`."""
    refuse_unknown(
        table,
        {"name", *_KINDS, *_OF_SERIES, "group", "over", "flows", "timescale"},
        f"`[[quantity]]` {called}",
    )
    kinds: list[Kind] = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise UsageError(f"{called} needs one of `metric`, `column`, `replay` and `series`")
    (kind,) = kinds
    name = text(table[kind], kind)
    if kind == "metric":
        one_of(name, BY_NAME, "metric")
    if kind == "column" and name not in COLUMNS:
        raise UsageError(
            f"{called}: the table of flows has no numbers `{name}`", hint="docs/columns.md has its columns"
        )
    timescale_s = (
        parse_duration_ns(text(table["timescale"], "timescale")) / 1e9 if "timescale" in table else None
    )
    if (kind == "metric" and name == "cov") != (timescale_s is not None):
        raise UsageError(f"{called}: `cov`, and nothing else, needs a `timescale`, such as `1s`")
    flows = one_of(table.get("flows", "mean"), get_args(Reduction), "flows")
    group, over = (optional_text(table, key) for key in ("group", "over"))
    if over is not None and (group is None or flows == "each"):
        raise UsageError(f"{called}: `over` divides by another group, so `group` must be given, not `each`")
    term = Term(
        name, "" if flows == "each" else flows, kind, group, timescale_s, **_of_series(table, kind, called)
    )
    return Quantity(
        file_name(table.get("name", name), f"name of {called}"),
        term,
        None if over is None else replace(term, group=over),
    )


def _of_series(table: Table, kind: Kind, called: str) -> dict[str, Any]:
    """Parse what a series has besides its name: how it becomes one value, and which part of it."""
    if kind != "series":
        if wrong := [name for name in _OF_SERIES if name in table]:
            raise UsageError(f"{called}: `{wrong[0]}` needs a `series`")
        return {}
    over_time = cast("OverTime", one_of(table.get("over_time", "mean"), get_args(OverTime), "over_time"))
    from_s, until_s = (
        parse_offset_ns(text(table[name], name)) / 1e9 if name in table else None
        for name in ("from", "until")
    )
    if from_s is not None and until_s is not None and until_s <= from_s:
        raise UsageError(f"{called}: `until` is not after `from`")
    return {"over_time": over_time, "from_s": from_s, "until_s": until_s}
