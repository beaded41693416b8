"""Metrics of groups by interval: one value for each, and Jain's index over the groups of an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.group_values import SINGLE_VALUES, UNITS, GroupQuantity, GroupTerm, values_by_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.metrics.groups import Groups

JAIN: Final = "jain"
"""Jain's index of the goodput of the groups of an interval, by direction; 1 is fair."""

USUAL: Final = (
    JAIN,
    "goodput_bps",
    "retransmission_ratio",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "connect_p95_ms",
    "response_p95_ms",
    "dns_p95_ms",
    "path_loss_ratio",
    "delay_p95_ms",
    "echo_p95_ms",
    "wifi_retry_ratio",
)
"""Metrics that are computed unless others are named; those without a value are left out."""

COLUMNS: Final = ("metric", "unit", "group", "direction", "start_ns", "end_ns", "value", "n")

_LEAST_GROUPS: Final = 2


def check_group_metrics(names: Sequence[str]) -> None:
    """Raise `UsageError` for names of no metric of groups."""
    for name in names:
        if name != JAIN and name not in SINGLE_VALUES:
            raise UsageError(
                f"groups have no metric `{name}`", hint="columns of docs/columns.md#groups, and `jain`"
            )


def group_metrics(groups: Groups, names: Sequence[str] = ()) -> pl.DataFrame:
    """Return the metrics of groups, with `COLUMNS`: a row for each group and interval with a value.

    Amounts and ratios are of both directions together; durations of each, as they are of one side of the
    capture. `n` is what a value is made of; of Jain's index the groups.
    """
    import polars as pl

    frames = []
    for name in names or USUAL:
        quantity = GroupQuantity(GroupTerm(name))
        found = _jain(groups).lazy() if name == JAIN else values_by_interval(groups, quantity)
        unit = UNITS.get(name, "")
        columns = (pl.lit(name).alias("metric"), pl.lit(unit).alias("unit"), *COLUMNS[2:])
        frames.append(found.drop_nulls("value").select(columns).collect())
    order = {name: place for place, name in enumerate(names or USUAL)}
    return pl.concat(frames).sort(
        pl.col("metric").replace_strict(order), "start_ns", "group", "direction", nulls_last=True
    )


def _jain(groups: Groups) -> pl.DataFrame:
    import polars as pl

    rate, count = pl.col("goodput_bps"), pl.len()
    named = groups.rows.filter(pl.col("group").is_not_null() & rate.is_not_null())
    key = ["direction"] if groups.grouping.every_ns is None else ["direction", "start_ns"]
    start = [] if "start_ns" in key else [pl.col("start_ns").min()]
    found = named.group_by(key).agg(
        *start,
        pl.col("end_ns").max(),
        value=rate.sum().pow(2) / (count * rate.pow(2).sum()),
        n=count.cast(pl.Int64),
    )
    return found.filter((pl.col("n") >= _LEAST_GROUPS) & pl.col("value").is_finite()).with_columns(
        group=pl.lit(None, pl.String)
    )
