"""One measured metric: its value and what is needed to compare it with others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number about some flows; if it is undefined, `value` is None and `reason` says why."""

    name: str
    """As in `tfrctrace.metrics.catalogue.CATALOGUE`."""
    value: float | None
    unit: str
    """Empty for ratios and indices."""
    n: int
    """Number of values it is computed from: flows, windows, pairs or packets, as the catalogue says."""
    window_s: float | None
    """Width of the windows of the rates in s; None without windows."""
    warmup_s: float
    """Seconds left out at the start of each flow; 0 for metrics of its whole life."""
    flows: tuple[int, ...]
    group: str | None = None
    """Label or transport of the flows, two for a comparison; None for the whole set."""
    competing_set: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Facts about path and flows that a trace does not show; metrics that need them are computed then."""

    capacity_bps: float | None = None
    """Capacity of the shared link."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Share that each flow of a group should have, in any one unit; 1 for groups without an entry."""
    step_ns: int | None = None
    """Time of the path change since 0 s of each trace."""


NO_ASSUMPTIONS: Final = Assumptions()
