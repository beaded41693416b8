"""How long a request may wait: ten seconds, or longer where answers usually take so long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.groups import percentile

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.metrics.groups import Groups

_HANGS_NS: Final = 10 * 10**9
"""After so long the core counts a request as unanswered; a late answer is in the distribution, too."""
_TIMES: Final = 5
"""Times the usual 95th percentile that a request may wait."""
_USUAL: Final = 0.95
_WAY: Final = ["group", "direction"]


def with_patience(groups: Groups) -> Groups:
    """Return groups in which answers within five times the 95th percentile of all are not late.

    The percentile is that of a direction of a group, over all of its intervals.
    """
    import polars as pl

    answers = groups.buckets.filter(measure="response")
    limits = percentile(answers, _WAY, _USUAL).select(*_WAY, limit_ns=pl.col("value") * 1e6 * _TIMES)
    patient = limits.filter(pl.col("limit_ns") > _HANGS_NS)
    if patient.is_empty():
        return groups
    late = (
        answers.filter(pl.col("from_ns") >= _HANGS_NS)
        .join(patient, on=_WAY, nulls_equal=True)
        .filter(pl.col("to_ns") <= pl.col("limit_ns"))
        .group_by(*_WAY, "start_ns")
        .agg(late=pl.col("samples").sum())
    )
    rows = groups.rows.join(late, on=[*_WAY, "start_ns"], how="left", nulls_equal=True, maintain_order="left")
    return replace(groups, rows=rows.with_columns(requests_unanswered=_less_late()).drop("late"))


def _less_late() -> pl.Expr:
    import polars as pl

    unanswered = pl.col("requests_unanswered")
    late = pl.min_horizontal(unanswered, pl.col("late").fill_null(0).cast(pl.Int64))
    return (unanswered - late).cast(pl.Int64)
