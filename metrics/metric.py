"""A metric as it is told: the number, and all that one must know to compare it with another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number about some flows. What is not defined has `value` None, and `reason` says why."""

    name: str
    """As in `tfrctrace.metrics.catalogue.CATALOGUE`."""
    value: float | None
    unit: str
    """Empty for ratios and indices."""
    n: int
    """How many values it was made of: flows, windows, pairs or packets, as the catalogue says."""
    window_s: float | None
    """Width in s of the windows in which rates were taken; None if there are none."""
    warmup_s: float
    """Seconds at the start of each flow that were left out; 0 for numbers about its whole life."""
    flows: tuple[int, ...]
    """Numbers of the flows."""
    group: str | None = None
    """Label or transport of the flows it is about, two for a comparison; None if of all in the set."""
    competing_set: int | None = None
    """Number of the set of flows that competed."""
    reason: str | None = None
    """Why there is no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a user says of the path and the flows, as a trace does not; metrics that need it are told then."""

    capacity_bps: float | None = None
    """What the shared link carries."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Share that each flow of a group ought to have, in any one unit; groups that are not named have 1."""
    step_ns: int | None = None
    """When the path changed, from 0 s of each trace on."""


NO_ASSUMPTIONS: Final = Assumptions()
