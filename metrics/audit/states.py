"""What is always so of a group, and what changed: stretches against all other time of their group.

A stretch is a change if it is worse than the group usually is, by more than chance. What is none, such as
the round-trip time of a far host, is a state of the group, however often it crosses the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.statistics.shares import CHANCE, chance_of_share, usual_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.metrics.objectives import Objective

LEAST_OTHER: Final = 6
"""Intervals with data outside of a stretch, from which it is known what is usual."""

_TIMES_USUAL: Final = 2.0
"""How many times the usual share that of a change is at least."""

_SPREADS: Final = 3.0
"""Standard deviations by which a value differs from the usual ones."""
_DEVIATION: Final = 1.4826
"""Standard deviation of normal values, by their median absolute deviation."""
_LEAST_SHARE: Final = 0.2
"""Share of the usual value by which a changed one differs at least."""
_MUCH: Final = 0.25
"""Share of a group's intervals from which a stretch would decide what is usual."""
_RARELY: Final = 0.05
"""Share of violated intervals below which each one says something."""

_STRETCH: Final = "stretch"
_KEY: Final = "key"


@dataclass(frozen=True, slots=True)
class State:
    """Violated intervals of a group that are no change of it."""

    objective: int
    """Number of the objective."""
    group: str | None
    intervals: int
    """Those with data."""
    violated: int
    value: float
    """The usual one: the median of intervals, or the share of all of them."""
    first_ns: int
    last_ns: int


def split_stretches(
    objective: Objective, number: int, raised: pl.DataFrame, intervals: pl.DataFrame, captured: int
) -> tuple[pl.Series, list[State]]:
    """Return which stretches are changes, and the states of the groups of the others.

    `raised` are stretches of the objective, and `intervals` all intervals of their groups, of `captured` ones
    of the link. A short capture shows no usual state: all that it has are changes.
    """
    import polars as pl

    if captured < 2 * LEAST_OTHER:
        return pl.repeat(value=True, n=len(raised), eager=True), []
    stretches = raised.with_row_index(_STRETCH).with_columns(_keyed())
    labelled = _labelled(objective, stretches, intervals)
    found = _share_changes if objective.unit == "%" else _value_changes
    changed = found(stretches, labelled)
    is_change = stretches[_STRETCH].is_in(changed)
    groups = stretches.filter(~is_change)[_KEY].unique()
    own = labelled.filter(pl.col(_KEY).is_in(groups.implode()))
    return is_change, list(_states(objective, number, own))


def _keyed() -> pl.Expr:
    """Return the name of a group, which may have none, for joins."""
    import polars as pl

    return pl.col("group").fill_null("\0").alias(_KEY)


def _labelled(objective: Objective, stretches: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Return the intervals with data of groups with stretches: how bad they are, and within which stretch."""
    import polars as pl

    at_most = objective.sign in {"<", "<="}
    bad = pl.col("value") if at_most else (1 if objective.unit == "%" else 0) - pl.col("value")
    known = intervals.filter(pl.col("verdict") != "no_data").select(
        "group",
        "start_ns",
        _keyed(),
        pl.col("n").cast(pl.Float64),
        "value",
        bad=bad,
        is_bad=pl.col("verdict") != "met",
    )
    begins = stretches.select(_KEY, _STRETCH, "begin_ns", until_ns="end_ns").sort("begin_ns")
    return (
        known.sort("start_ns")
        .join_asof(begins, left_on="start_ns", right_on="begin_ns", by=_KEY, check_sortedness=False)
        .with_columns(pl.when(pl.col("start_ns") < pl.col("until_ns")).then(pl.col(_STRETCH)))
    )


def _share_changes(stretches: pl.DataFrame, labelled: pl.DataFrame) -> list[int]:
    """Return the stretches with a larger share than all other time, by the exact test of a binomial share."""
    import polars as pl

    sums = (pl.len().alias("intervals"), (pl.col("bad") * pl.col("n")).sum().alias("part"), pl.col("n").sum())
    own = labelled.drop_nulls(_STRETCH).group_by(_STRETCH).agg(*sums)
    every = labelled.group_by(_KEY).agg(*sums)
    rows = stretches.select(_STRETCH, _KEY).join(own, on=_STRETCH).join(every, on=_KEY, suffix="_all")
    found = []
    for row in rows.iter_rows(named=True):
        other, part, n = (row[f"{name}_all"] - row[name] for name in ("intervals", "part", "n"))
        usual = usual_share(part, n)
        now = row["part"] / row["n"] if row["n"] else 0.0
        if (
            other >= LEAST_OTHER
            and now >= _TIMES_USUAL * usual
            and chance_of_share(row["part"], row["n"], usual) * row["intervals_all"] < CHANCE
        ):
            found.append(row[_STRETCH])
    return found


def _value_changes(stretches: pl.DataFrame, labelled: pl.DataFrame) -> list[int]:
    """Return the stretches whose values are beyond those of other times."""
    import polars as pl

    own = (
        labelled.drop_nulls(_STRETCH)
        .group_by(_STRETCH)
        .agg(
            pl.len().alias("intervals"),
            pl.col("is_bad").sum().alias("violated"),
            value=pl.col("bad").filter("is_bad").median(),
        )
    )
    every = labelled.group_by(_KEY).agg(*_usual_values(), pl.col("is_bad").sum().alias("violated"))
    rows = stretches.select(_STRETCH, _KEY).join(own, on=_STRETCH).join(every, on=_KEY, suffix="_all")
    rows = _with_others_only(rows, labelled)
    found = []
    for row in rows.iter_rows(named=True):
        usual, spread = row["usual"], row["spread"]
        other = row["intervals_all"] - row["intervals"]
        if other < LEAST_OTHER:
            continue
        is_beyond = row["value"] > usual + max(_SPREADS * spread, _LEAST_SHARE * abs(usual))
        share = (row["violated_all"] - row["violated"] + 0.5) / (other + 1)
        evidence = -row["violated"] * math.log(min(share, 1.0))
        if is_beyond and (share < _RARELY or evidence > math.log(row["intervals_all"] / CHANCE)):
            found.append(row[_STRETCH])
    return found


def _with_others_only(rows: pl.DataFrame, labelled: pl.DataFrame) -> pl.DataFrame:
    """Return rows of stretches, with the usual values of other times where a stretch has much of all time."""
    import polars as pl

    long = rows.filter(pl.col("intervals") > _MUCH * pl.col("intervals_all"))
    # a group has less than four of them
    others = (
        long.select(_KEY, pl.col(_STRETCH).alias("long"))
        .join(labelled, on=_KEY)
        .filter(pl.col(_STRETCH).ne_missing(pl.col("long")))
        .group_by("long")
        .agg(_usual_values()[1:])
        .rename({"long": _STRETCH})
    )
    return rows.update(others, on=_STRETCH, how="left")


def _usual_values() -> tuple[pl.Expr, ...]:
    """Return how many intervals there are, their median, and how much they spread."""
    import polars as pl

    bad = pl.col("bad")
    return (
        pl.len().alias("intervals"),
        bad.median().alias("usual"),
        ((bad - bad.median()).abs().median() * _DEVIATION).alias("spread"),
    )


def _states(objective: Objective, number: int, labelled: pl.DataFrame) -> Iterator[State]:
    """Give the state of each group that violates the objective often: what is rare is chance."""
    import polars as pl

    value = pl.col("value").median()
    if objective.unit == "%":
        value = (pl.col("value") * pl.col("n")).sum() / pl.col("n").sum()
    rows = labelled.group_by(_KEY).agg(
        pl.col("group").first(),
        pl.len().alias("intervals"),
        pl.col("is_bad").sum().alias("violated"),
        value=value,
        first_ns=pl.col("start_ns").min(),
        last_ns=pl.col("start_ns").max(),
    )
    often = max(1 - objective.target, _RARELY)
    rows = rows.filter(pl.col("violated") > often * pl.col("intervals"))
    for row in rows.drop(_KEY).sort("violated", "group", descending=[True, False]).iter_rows(named=True):
        yield State(objective=number, **row)
