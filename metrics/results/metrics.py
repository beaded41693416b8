"""The metrics of a trace, and which flows competed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Basis = Literal["goodput", "throughput", "received"]
"""What counts as the rate of a flow."""


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


@dataclass(frozen=True, slots=True)
class SmallFlow:
    """A flow whose rate lies below the share, whether it is sparse, and why."""

    flow: int
    of_mean: float
    """Its rate over the mean of the flows that are not sparse."""
    is_sparse: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSet:
    """Flows that were active together."""

    number: int
    source: str
    flows: tuple[int, ...]
    small_flows: tuple[SmallFlow, ...]
    """Those with a rate far below a share, sparse or not."""
    start_ns: int
    end_ns: int
    windows: int
    """Whole windows that the flows have in common."""

    @property
    def sparse_flows(self) -> list[SmallFlow]:
        """Those that asked for far less than a share."""
        return [flow for flow in self.small_flows if flow.is_sparse]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSummary:
    """What was measured, and which flows competed, without the metrics."""

    basis: Basis
    window_s: float
    warmup_s: float
    sparse_share: float
    flows: int
    flows_left_out: int
    """Flows with fewer data packets than needed, or of a trace without what counts as a rate."""
    competing_sets: tuple[MeasuredSet, ...]
    sets_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMetrics(MetricsSummary):
    """What `metrics --format json` has below its head."""

    metrics: tuple[Metric, ...]
