"""A link is slow, or more of its samples are of hosts that are always far.

The median of a link is that of all its samples. When others are quiet, one far host may give more than half
of them: then the median is what that host's always is, though no round-trip time has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.base.signs import SIGNS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import polars as pl

    from tfrctrace.metrics.audit.states import State
    from tfrctrace.metrics.objectives import Objective

_MEDIANS: Final = {
    "rtt_ms": ("rtt_p50_ms", "rtt_samples"),
    "response_ms": ("response_p50_ms", "response_samples"),
}
"""Medians of hosts in the evidence of an audit, and of how many samples they are."""


def hosts_beyond(objective: Objective, states: Sequence[State], objectives: Sequence[Objective]) -> set[str]:
    """Return the hosts that always violate the limit of a link's median; none of other objectives."""
    term = objective.quantity.term
    if objective.grouping.by != "link" or term.aggregation != "median" or term.name not in _MEDIANS:
        return set()
    keeps = SIGNS[objective.sign]
    return {
        state.group
        for state in states
        if state.group is not None
        and objectives[state.objective].grouping.by == "host"
        and objectives[state.objective].quantity.term.name == term.name
        and not keeps(state.value, objective.bound)
    }


def is_mixture(objective: Objective, evidence: pl.DataFrame, beyond: Collection[str]) -> bool:
    """Return whether the median of one direction of a link was that of the hosts `beyond` its limit.

    So it was if the other hosts kept the limit together, or had no samples. `evidence` are the
    intervals within a stretch of the hosts to which this direction goes.
    """
    import polars as pl

    median, samples = _MEDIANS[objective.quantity.term.name]
    # what a host sent has the samples of those that received it
    rows = evidence.filter(
        pl.col("direction") == "received", pl.col(samples) > 0, pl.col(median).is_not_null()
    )
    is_beyond = pl.col("group").is_in(list(beyond))
    if rows.filter(is_beyond).is_empty():
        return False
    others = rows.filter(~is_beyond).sort(median).with_columns(pl.col(samples).cum_sum())
    if others.is_empty():
        return True
    middle = others.filter(2 * pl.col(samples) >= others[samples][-1])
    return bool(SIGNS[objective.sign](middle[median][0], objective.bound))
