"""How two sides differ, metric by metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tfrctrace.metrics.results.document import Tool
    from tfrctrace.metrics.results.metrics import Basis

Judgement = Literal["worse", "better", "different", "no test", "unclear", "equal"]

Conclusion = Literal["worse", "better", "mixed", "no difference", "not tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A metric of B compared with that of A."""

    metric: str
    group: str | None
    unit: str
    runs_a: int
    runs_b: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    """B less A, with its interval."""
    low: float | None
    high: float | None
    effect: float | None
    """Hedges' g."""
    p_value: float | None
    p_holm: float | None
    reason: str | None
    change: float | None = None
    """Difference over A."""
    verdict: Judgement | None = None
    """What B is; None if there is nothing to compare."""

    @property
    def tested_p(self) -> float | None:
        """The p value that counts: corrected for the number of metrics, if it was."""
        return self.p_value if self.p_holm is None else self.p_holm


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The document of `compare --format json`."""

    schema_version: int
    tool: Tool
    a: str
    b: str
    basis: Basis
    window: str
    warmup: str | None
    confidence: float
    verdict: Conclusion
    """What B is by rate, delay, losses and retransmissions."""
    differences: tuple[Difference, ...]
    """By harm to users: these metrics first."""
