"""What held flows back during an incident: why, beside where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tfrctrace.metrics.flow.causes import CAUSE_SUMS, CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.results.why import Cause

Lacking = Literal["not collected", "no data"]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The time of flows by cause, within an incident."""

    lacking: Lacking | None = None
    """Why there is none."""
    ns: Mapping[Cause, int] = field(default_factory=dict)
    """The largest first, summed over flows; those without any time are left out."""


def held_back_within(incident: Incident, evidence: pl.DataFrame | None, hosts: Sequence[str]) -> HeldBack:
    """Return what held back the flows of `hosts`, or of all hosts if none are named, during an incident.

    `evidence` are the hosts of its link around it, None if no causes were collected.
    """
    import polars as pl

    if evidence is None:
        return HeldBack("not collected")

    start = pl.col("start_ns")
    # of two hosts one sends what the other receives; those that are named are of one side
    chosen = pl.col("group").is_in(list(hosts)) if hosts else pl.col("direction") == "sent"
    own = evidence.filter(start >= incident.begin_ns, start < incident.end_ns, chosen)
    times_ns = zip(CAUSES, own.select(pl.col(CAUSE_SUMS).sum()).row(0), strict=True)
    known_ns = dict(sorted(((cause, ns) for cause, ns in times_ns if ns), key=lambda one: -one[1]))
    return HeldBack(ns=known_ns) if known_ns else HeldBack("no data")
