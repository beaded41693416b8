"""Window algorithms whose decisions were predicted one by one from what was observed before each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.metrics.results.replay import AlgorithmRun, FlowDirection, Replays

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Agreement:
    """Decisions, and how many of them are within one segment or 1 % of the observed window."""

    decisions: int
    within: int

    @property
    def share(self) -> float:
        """Share of the decisions that are."""
        return self.within / self.decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFlow(FlowDirection):
    """A flow whose window was observed."""

    transport: str
    segment_bytes: float
    segments_per_ack: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepRun(AlgorithmRun):
    """How an algorithm agrees with the window of a flow."""

    settings: Mapping[str, float | str]
    """Of the variant that predicts best."""
    decisions: int
    within_share: float
    """Share of the decisions within one segment or 1 % of the observed window, whichever is more."""
    deviation_median_segments: float
    """Predicted less observed window."""
    by_event: Mapping[str, Agreement]


class OneSteps(Replays[ObservedFlow, OneStepRun]):
    """Flows with predicted decisions, and flows without."""
