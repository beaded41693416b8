"""The parts of a study: its runs, what is measured of each, and what is made of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tfrctrace.metrics.sets.sparse import SPARSE_SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.replay.tfrc import Profile
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.file.claims import Claim
    from tfrctrace.trace.measuring import Basis
    from tfrctrace.wlan.cell import Preset

Value: TypeAlias = int | float | str
"""Of a parameter: a number if all runs have one, else a text."""

Where: TypeAlias = "Mapping[str, tuple[Value, ...]]"
"""Values of parameters (or of the group) that are looked at; of what is not named, all."""

FigureKind = Literal["line", "bars", "box", "cdf", "time series"]
Reduction = Literal["mean", "sum", "min", "max", "median", "weighted", "each"]
"""How the flows of one group in one run become one value, or stay a value each."""

GROUP: Final = "group"
"""Stands for the labels of flows where a parameter may stand."""

NO_FLOW: Final = "no flow of this group"
"""The reason why a run has no value for a label that fits none of its flows."""

RESERVED = {"file", GROUP, "quantity", "flow", "value", "unit", "made_of", "reason", "runs", "missing"}
RESERVED |= {"mean", "std", "low", "high", "bootstrap_low", "bootstrap_high", "min", "median", "max"}
"""Names of the columns of results, which stand beside those of the parameters."""

RATE: Final = "rate"
"""As the `y` of a time series: the rate of the flows; anything else is a variable such as `cwnd`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRule:
    """Where the runs are, and how the parameters of each are known."""

    files: tuple[str, ...]
    """Patterns of a shell, relative to the study file; a directory that fits is one run."""
    pattern: str | None = None
    """Path with `{name}` for each parameter; it is compared with the end of a run's path."""
    table: str | None = None
    """CSV file with a column `file` and one for each parameter."""
    parameters: tuple[str, ...] = ()
    repetition: str | None = None
    """The parameter in which repetitions of one scenario differ."""

    @property
    def scenario(self) -> tuple[str, ...]:
        """Parameters in which scenarios differ: all but the repetition."""
        return tuple(name for name in self.parameters if name != self.repetition)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """Rate algorithms that are replayed on the flows of runs; the options of `tfrctrace replay`."""

    algorithms: tuple[str, ...]
    profile: Profile = "rfc5348"
    stations: tuple[str, ...] = ()
    """Parameters of the run stand in braces, as in `{n}x11`."""
    downloads: str = "0"
    preset: Preset | None = None
    where: Where = field(default_factory=dict)
    """Runs on which they are; all if it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringPlan:
    """How each run is read and measured; the options of `tfrctrace metrics` by the same names."""

    window: str = "1s"
    warmup: str | None = None
    basis: Basis = "goodput"
    labels: tuple[str, ...] = ()
    """Rules as `reno=port 5201`."""
    only_labelled: bool = False
    least_packets: int | None = None
    """Of all quantities; None if metrics alone leave out flows with few data packets."""
    sparse_share: float = SPARSE_SHARE
    capacity: str | None = None
    weight: Mapping[str, float] = field(default_factory=dict)
    step: str | None = None
    filter: str | None = None
    input_format: str | None = None
    layer: str | None = None
    dissect: tuple[str, ...] = ()
    tfrc: Mapping[str, float | str] = field(default_factory=dict)
    replay: ReplayPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table: a row for each combination of `rows` (parameters or `group`), a column for each quantity."""

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan:
    """A figure of the quantity `y`; `x` and `series` are parameters or `group`."""

    name: str
    title: str
    kind: FigureKind
    y: str
    x: str | None = None
    series: str | None = None
    where: Where
    x_label: str | None = None
    y_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """A test whether a quantity differs between the values of a parameter, or between groups of flows."""

    quantity: str
    between: str
    where: Where
    holm: bool = False
    """Whether p values are corrected for the number of tests of this plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What ought to be seen; `holds` is False for a claim that these runs are known not to show."""

    claim: Claim
    says: str
    where: Where
    holds: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A published value for one scenario and group, in the unit of the quantity."""

    quantity: str
    source: str
    where: Where
    group: str | None
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All of a study file; paths in it are relative to `folder`."""

    path: str
    folder: str
    title: str
    description: str
    confidence: float
    """Level of the intervals, such as 0.95."""
    runs: RunRule
    measure: MeasuringPlan
    quantities: tuple[Quantity, ...]
    tables: tuple[TablePlan, ...]
    figures: tuple[FigurePlan, ...]
    comparisons: tuple[ComparisonPlan, ...]
    expectations: tuple[Expectation, ...]
    references: tuple[Reference, ...]
