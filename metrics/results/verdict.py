"""What a gate found: a verdict for each limit, objective and comparison with a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tfrctrace.metrics.results.document import Tool
    from tfrctrace.metrics.results.trend import Trend

CheckOutcome = Literal["pass", "fail", "unknown"]
Effect = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Violated intervals of a group that follow each other, and the worst of their values."""

    group: str | None
    begin_ns: int
    end_ns: int
    """End of the last interval."""
    intervals: int
    severe: int
    """Of them severely violated."""
    value: float
    n: int
    """Samples of the worst value."""
    at_ns: int
    """Start of its interval."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The intervals of a group, or of all groups together, by verdict."""

    group: str | None
    intervals: int
    """Those between the first and the last packet of the trace."""
    met: int
    violated: int
    severe: int
    without_data: int
    stretches: int
    worst: Stretch | None
    first_ns: int | None
    """Begin of the first violated interval, end of the last."""
    last_ns: int | None

    @property
    def with_data(self) -> int:
        """Intervals that were judged."""
        return self.met + self.violated + self.severe

    @property
    def share_met(self) -> float | None:
        """Share of the intervals with data that met the limit; None without any."""
        return self.met / self.with_data if self.with_data else None

    def meets(self, target: float) -> bool | None:
        """Return whether enough intervals met the limit; None without any with data."""
        share = self.share_met
        return None if share is None else share >= target


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """An objective in one run: counts of all groups, and the worst of those that miss the target."""

    run: str
    total: Outcome
    worst_share: float | None
    """Share of the intervals with data that met the limit, in the worst group."""
    groups: int
    failing_groups: int
    groups_without_data: int
    is_complete: bool
    """Whether no packet was left out because the run has too many groups or intervals."""
    failing: tuple[Outcome, ...]
    stretches: tuple[Stretch, ...]
    """Those of failing groups, worst first."""


@dataclass(frozen=True, slots=True)
class ObjectiveFacts:
    """How an objective was judged, and in which groups and stretches it was not met."""

    require: str
    severe: str | None
    by: str
    every_ns: int | None
    least: int
    unit: str
    """Of values of stretches."""
    runs: tuple[RunOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one check found."""

    check: str
    """What was asked, as the user wrote it."""
    kind: Literal["limit", "baseline", "objective"]
    name: str | None
    outcome: CheckOutcome
    effect: Effect
    """What it means for the gate: by its level, and for what is not known by `--unknown`."""
    unit: str
    value: float | None
    """The worst value of a limit, the mean of the runs beside a baseline.

    Of an objective the share of the intervals that met it, in the worst group; beside the target.
    """
    against: float | None
    """The limit, or the mean of the baseline."""
    runs: int
    """Runs that have a value."""
    reason: str
    """Why it is so, for a person."""
    flows_left_out: int
    """Flows of all runs with too few data packets for the quantity."""
    sparse_flows: int
    """Flows of all runs that asked for far less than a share and are counted."""
    line: int | None = None
    """Where the limit begins in the file of limits; None if it is not from there."""
    asked_unit: str = ""
    """The unit in which a limit was written, such as `%` or `Mbit/s`; empty if it had none."""
    p_value: float | None = None
    objective: ObjectiveFacts | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """The document of `check --format json`."""

    schema_version: int
    tool: Tool
    runs: tuple[str, ...]
    baseline: str | None
    """The file, as it was named."""
    status: Effect
    """The gravest effect."""
    checks: tuple[Verdict, ...]
    trends: tuple[Trend, ...]


@dataclass(frozen=True, slots=True)
class BaselineQuantity:
    """What a quantity was in the good runs."""

    quantity: str
    values: tuple[Any, ...]
    """One for each run that has it; whoever reads them checks that they are numbers."""


@dataclass(frozen=True, slots=True)
class BaselineFile:
    """What is read of a baseline."""

    measured_with: dict[str, Any]
    quantities: tuple[BaselineQuantity, ...]
