"""Objectives: what must hold for a group in most intervals, and when it did not (RFC 9544).

An interval is met, violated, severely violated, or without data: a group that sent nothing, or too little to
know, did not meet an objective. Violated and severely violated intervals are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.signs import SIGNS
from tfrctrace.metrics.group_values import values_by_interval
from tfrctrace.metrics.results.verdict import Outcome, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.base.grouping import Grouping
    from tfrctrace.metrics.group_values import GroupQuantity
    from tfrctrace.metrics.groups import Groups

Verdict = Literal["met", "violated", "severe", "no_data"]
"""What is known of one interval."""

DEFAULT_LEAST: Final = 20
"""Samples of an interval, below which it is without data."""

_LARGEST: Final = 2**63 - 1
_GRAVITY: Final = {"no_data": 0, "met": 1, "violated": 2, "severe": 3}
COUNTS: Final = ("met", "violated", "severe")
"""Verdicts of intervals with data."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A limit that a group has to keep in a share of the intervals."""

    name: str
    """As given; else the text of the limit."""
    require: str
    """The limit as it was written, such as `p95(rtt_ms) < 80 ms`."""
    severe: str | None
    """The limit whose violation is severe, as it was written."""
    grouping: Grouping
    quantity: GroupQuantity
    sign: str
    bound: float
    severe_bound: float | None
    unit: str
    """Of values: `ms`, `bit/s`, `bytes`; `%` of shares, which go from 0 to 1; empty for counts."""
    least: int = DEFAULT_LEAST
    target: float = 1.0
    """Share of the intervals with data that have to meet the limit."""
    level: Literal["fail", "warn"] = "fail"
    raise_after: int = 1
    """Consecutive violated intervals that begin a stretch; fewer are none."""
    clear_after: int = 1
    """Intervals without a violation that end it."""
    line: int | None = None
    """Where it begins in its file."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The first and the last packet of a trace."""

    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """What became of an objective in a trace."""

    objective: Objective
    begin_ns: int
    """Start of the first interval of the trace, and end of the last."""
    end_ns: int
    intervals: pl.DataFrame
    """`group`, `start_ns`, `end_ns`, `direction`, `value`, `n` and `verdict` of intervals with packets.

    `direction` is the worst one of those that have a value each, else null. An interval that is missing here
    is without data.
    """
    groups: pl.DataFrame
    """`group`, `intervals`, `met`, `violated`, `severe`, `without_data` and `share_met`, worst first."""
    stretches: pl.DataFrame
    """A row for each `Stretch`, worst first."""
    total: Outcome
    """All groups together."""
    is_complete: bool = True
    """Whether no packet was left out because a trace has too many groups or intervals."""

    @property
    def captured(self) -> int:
        """Number of intervals between the first and the last packet."""
        return (self.end_ns - self.begin_ns) // (self.objective.grouping.every_ns or self.end_ns)

    @property
    def failing(self) -> pl.DataFrame:
        """Rows of `groups` that miss the target."""
        import polars as pl

        return self.groups.filter(pl.col("share_met") < self.objective.target)

    def outcomes(self, groups: pl.DataFrame) -> Iterator[Outcome]:
        """Give the outcome of each of these rows of `groups`."""
        import polars as pl

        names = groups.select("group")
        own = self.stretches.join(names, on="group", how="semi", nulls_equal=True)
        by_group = own.group_by("group").agg(
            pl.len().alias("stretches"), first_ns=pl.col("begin_ns").min(), last_ns=pl.col("end_ns").max()
        )
        worst = {
            row["group"]: Stretch(**row)
            for row in own.unique("group", keep="first", maintain_order=True).iter_rows(named=True)
        }
        rows = groups.drop("share_met").join(
            by_group, on="group", how="left", nulls_equal=True, maintain_order="left"
        )
        for row in rows.with_columns(pl.col("stretches").fill_null(0)).iter_rows(named=True):
            yield Outcome(worst=worst.get(row["group"]), **row)

    def outcome(self, group: str | None) -> Outcome:
        """Return that of one group. Raises `KeyError` if the trace does not have it."""
        import polars as pl

        for one in self.outcomes(self.groups.filter(pl.col("group").eq_missing(pl.lit(group, pl.String)))):
            return one
        raise KeyError(group)


def judge_objective(
    objective: Objective, groups: Groups, extent: Extent, *, is_complete: bool = True
) -> ObjectiveResult:
    """Return which intervals of `groups` met an objective; both have the same grouping."""
    import polars as pl

    every_ns = groups.grouping.every_ns
    begin_ns, end_ns = _whole_intervals(extent, groups.rows, every_ns)
    intervals = judged_intervals(objective, groups, extent)
    stretches = _stretches(objective, intervals)
    count = 1 if every_ns is None else min((end_ns - begin_ns) // every_ns, _LARGEST)
    found = intervals.group_by("group").agg(
        (pl.col("verdict") == name).sum().cast(pl.Int64).alias(name) for name in COUNTS
    )
    counts = ranked_groups(found, count)
    return ObjectiveResult(
        objective=objective,
        begin_ns=begin_ns,
        end_ns=end_ns,
        intervals=intervals,
        groups=counts,
        stretches=stretches,
        total=total_outcome(counts, stretches),
        is_complete=is_complete,
    )


def judged_intervals(objective: Objective, groups: Groups, extent: Extent) -> pl.DataFrame:
    """Return the verdict of each interval with packets, with the columns of `ObjectiveResult.intervals`."""
    values = values_by_interval(groups, objective.quantity)
    judged = values.with_columns(verdict=verdicts(objective, extent, groups.grouping.every_ns))
    return _worst_direction(objective, judged).collect()


def _whole_intervals(extent: Extent, rows: pl.DataFrame, every_ns: int | None) -> tuple[int, int]:
    """Return the begin of the first interval and the end of the last."""
    if every_ns is None:
        return extent.first_ns, extent.last_ns
    starts = rows["start_ns"]
    # clocks that step may put a packet outside of what its file claims
    first_ns = min([extent.first_ns, *(one for one in [starts.min()] if isinstance(one, int))])
    last_ns = max([extent.last_ns, *(one for one in [starts.max()] if isinstance(one, int))])
    return first_ns // every_ns * every_ns, (last_ns // every_ns + 1) * every_ns


def verdicts(objective: Objective, extent: Extent, every_ns: int | None) -> pl.Expr:
    """Return the verdict of each interval, of `value`, `n` and the times."""
    import polars as pl

    value, sign = pl.col("value"), SIGNS[objective.sign]
    holds = sign(value, objective.bound)
    is_known = value.is_not_null() & (pl.col("n") >= objective.least)
    if objective.quantity.grows_with_time and every_ns is not None:
        # what the trace shows of the interval is the least that it was
        is_whole = (pl.col("start_ns") >= extent.first_ns) & (pl.col("end_ns") - 1 <= extent.last_ns)
        is_certain = {"<": ~holds, "<=": ~holds, ">": holds, ">=": holds}
        is_above = value > objective.bound
        is_known &= is_whole | is_certain.get(objective.sign, is_above)
    violated = pl.lit("violated")
    if objective.severe_bound is not None:
        violated = pl.when(sign(value, objective.severe_bound)).then(violated).otherwise(pl.lit("severe"))
    judged = pl.when(holds).then(pl.lit("met")).otherwise(violated)
    return pl.when(is_known).then(judged).otherwise(pl.lit("no_data"))


def _worst_direction(objective: Objective, values: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row for each interval: a group meets an objective if each direction with data does."""
    import polars as pl

    gravity = pl.col("verdict").replace_strict(_GRAVITY, return_dtype=pl.UInt8)
    worst_first = values.sort(
        pl.col("group"),
        pl.col("start_ns"),
        gravity,
        badness(objective),
        pl.col("direction"),
        descending=[False, False, True, True, True],
        nulls_last=[False, False, False, True, True],
    )
    return worst_first.unique(["group", "start_ns"], keep="first", maintain_order=True)


def badness(objective: Objective) -> pl.Expr:
    """Return a number that is larger the more a value breaks the limit."""
    import polars as pl

    value = pl.col("value")
    if objective.sign == "==":
        return (value - objective.bound).abs()
    return value if objective.sign in {"<", "<="} else -value


def _stretches(objective: Objective, intervals: pl.DataFrame) -> pl.DataFrame:
    """Return the violated intervals of each group that follow each other closely, the worst first.

    Each stretch has as many consecutive ones as begin it, and no gap that would end it.
    """
    import polars as pl

    broken = intervals.filter(pl.col("verdict").is_in(["violated", "severe"]))
    is_other = pl.col("group").ne_missing(pl.col("group").shift())
    gap_ns = pl.col("start_ns") - pl.col("end_ns").shift()
    most_ns = (objective.clear_after - 1) * (objective.grouping.every_ns or 0)

    def numbered(is_first: pl.Expr) -> pl.Expr:
        return is_first.fill_null(value=True).cast(pl.UInt32).cum_sum()

    found = broken.with_columns(
        run=numbered(is_other | (gap_ns != 0)), stretch=numbered(is_other | (gap_ns > most_ns))
    ).filter((pl.len().over("run") >= objective.raise_after).any().over("stretch"))
    return summed_stretches(objective, found)


def summed_stretches(objective: Objective, broken: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each `stretch` of violated intervals of one group, the worst first."""
    import polars as pl

    bad = badness(objective)
    worst = bad.arg_max()
    return (
        broken.group_by("stretch", maintain_order=True)
        .agg(
            pl.col("group").first(),
            begin_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            intervals=pl.len().cast(pl.Int64),
            severe=(pl.col("verdict") == "severe").sum().cast(pl.Int64),
            value=pl.col("value").get(worst),
            n=pl.col("n").get(worst),
            at_ns=pl.col("start_ns").get(worst),
            bad=bad.max(),
        )
        .sort("severe", "intervals", "bad", "begin_ns", "group", descending=[True, True, True, False, False])
        .drop("stretch", "bad")
    )


def ranked_groups(counts: pl.DataFrame, intervals: int) -> pl.DataFrame:
    """Return groups with the `COUNTS` of their verdicts, of so many intervals each, the worst first."""
    import polars as pl

    with_data = pl.sum_horizontal(COUNTS)
    return counts.select(
        "group",
        pl.lit(intervals, pl.Int64).alias("intervals"),
        *COUNTS,
        without_data=intervals - with_data,
        share_met=pl.when(with_data > 0).then(pl.col("met") / with_data),
    ).sort("share_met", "severe", "violated", "group", descending=[False, True, True, False], nulls_last=True)


def total_outcome(groups: pl.DataFrame, stretches: pl.DataFrame) -> Outcome:
    """Return all groups together: `groups` has a row for each, `stretches` the worst first."""
    sums: dict[str, int] = {name: int(groups[name].sum()) for name in COUNTS}
    # many groups over many intervals are more than 64 bits hold
    intervals = int(groups["intervals"][0]) * len(groups) if len(groups) else 0
    worst = next(stretches.head(1).iter_rows(named=True), None)
    ends = [stretches["begin_ns"].min(), stretches["end_ns"].max()]
    first_ns, last_ns = (end if isinstance(end, int) else None for end in ends)
    return Outcome(
        group=None,
        intervals=intervals,
        without_data=intervals - sum(sums.values()),
        stretches=len(stretches),
        worst=None if worst is None else Stretch(**worst),
        first_ns=first_ns,
        last_ns=last_ns,
        **sums,
    )
