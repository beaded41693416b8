"""The parts of a study: its runs, what is measured of each, and what is made of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tfrctrace.metrics.thresholds import SPARSE_SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.metrics.results.metrics import Basis
    from tfrctrace.parsers.reading_settings import ReadingArguments
    from tfrctrace.replay.tfrc import Profile
    from tfrctrace.runs.quantity import Quantity
    from tfrctrace.study.criteria import Judging
    from tfrctrace.study.file.claims import Claim
    from tfrctrace.wlan.cell import Preset

Value: TypeAlias = int | float | str
"""Of a parameter: a number if all runs have one, else a text."""

Where: TypeAlias = "Mapping[str, tuple[Value, ...]]"
"""Values of parameters (or of the group) that are looked at; of what is not named, all."""

FigureKind = Literal["line", "bars", "box", "cdf", "time series"]
FigureStatus = Literal["drawn", "drawing", "text only", "not run"]
"""What a study has of a figure of its paper; of a drawing there is nothing to measure."""

Reduction = Literal["mean", "sum", "min", "max", "median", "weighted", "each"]
"""How the flows of one group in one run become one value, or stay a value each."""

Share = Literal["all", "most", "average"]

GROUP: Final = "group"
"""Stands for the labels of flows where a parameter may stand."""

NOT_APPLICABLE: Final = ""
"""The value of a parameter that a run does not have."""

NO_FLOW: Final = "no flow of this group"
"""The reason why a run has no value for a label that fits none of its flows."""

RESERVED = {"file", GROUP, "quantity", "flow", "value", "unit", "made_of", "reason", "runs", "missing"}
RESERVED |= {"mean", "std", "low", "high", "bootstrap_low", "bootstrap_high", "min", "median", "max"}
"""Names of the columns of results, which stand beside those of the parameters."""

RATE: Final = "rate"
"""As the `y` of a time series: the rate of the flows; anything else is a variable such as `cwnd`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRule:
    """Where runs are, how the parameters of each are known, and how they are measured."""

    files: tuple[str, ...]
    """Patterns of a shell, relative to the study file; a directory that fits is one run."""
    pattern: str | None = None
    """Path with `{name}` for each parameter; it is compared with the end of a run's path."""
    table: str | None = None
    """CSV file with a column `file` and one for each parameter."""
    constants: Mapping[str, Value] = field(default_factory=dict)
    """Parameters that all of these runs have in common."""
    parameters: tuple[str, ...] = ()
    repetition: str | None = None
    measure: MeasuringPlan | None = None
    """How these runs are measured, if not as all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRules:
    """All runs of a study."""

    rules: tuple[RunRule, ...]
    parameters: tuple[str, ...] = ()
    """Those of all rules; a run lacks those of other rules."""
    repetition: str | None = None
    """The parameter in which repetitions of one scenario differ."""
    is_paired: bool = False
    """Whether runs of different scenarios with the same repetition belong together."""
    made_by: str | None = None
    """The command that makes the runs."""

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
    both_ends: bool = False
    """Whether traces would show what arrives: a flow without an arrival then received nothing."""
    capacity: str | None = None
    weight: Mapping[str, float] = field(default_factory=dict)
    step: str | None = None
    filter: str | None = None
    input_format: str | None = None
    layer: str | None = None
    since: str | None = None
    until: str | None = None
    last: str | None = None
    timezone: str = "UTC"
    dissect: tuple[str, ...] = ()
    tfrc: Mapping[str, float | str] = field(default_factory=dict)
    replay: ReplayPlan | None = None

    @property
    def reading(self) -> ReadingArguments:
        """The keywords of `tfrctrace.open`."""
        return {
            "filter": self.filter,
            "input_format": self.input_format,
            "layer": self.layer,
            "since": self.since,
            "until": self.until,
            "last": self.last,
            "timezone": self.timezone,
            "dissect": self.dissect,
            "tfrc": self.tfrc,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlace:
    """What a table or figure stands for in the paper that the study repeats."""

    id: str | None = None
    """As the paper calls it, `figure 7`; several panels may have the same."""
    setting: str = ""
    """The paper's set-up."""
    set_up: str = ""
    """This study's, beside that of the whole study."""
    status: FigureStatus = "drawn"
    states: str = ""
    """What the paper says of it, where no claim does."""
    reason: str = ""
    """Why there is nothing of ours, or why it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table: a row for each combination of `rows` (parameters or `group`), a column for each quantity."""

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    where: Where
    paper: PaperPlace = PaperPlace()


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan:
    """A figure of the quantity `y`; `x` and `series` are parameters or `group`."""

    name: str
    title: str
    kind: FigureKind
    y: str
    """Empty for a figure of the paper that is not drawn here."""
    x: str | None = None
    series: str | None = None
    where: Where
    x_label: str | None = None
    y_label: str | None = None
    paper: PaperPlace = PaperPlace()

    @property
    def is_drawn(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.y)


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
    figures: tuple[str, ...] = ()
    """Figures and tables of the paper that the claim is about."""
    holds_in_paper: bool | None = None
    """What the paper states; None for a question of the study's own."""
    reason: str = ""
    """Why these runs do not show what the paper states."""
    share: Share = "all"
    """In how many of the scenarios that it covers the claim must hold, or of the average over them."""
    is_required: bool = True
    """Whether the exit status depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A published value for one scenario and group, in the unit of the quantity."""

    quantity: str
    source: str
    where: Where
    group: str | None
    value: float
    figure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All of a study file; paths in it are relative to `folder`."""

    path: str
    folder: str
    settings: Mapping[str, str]
    """Its `[values]`."""
    title: str
    paper: str
    """The paper that the study repeats; empty if it is about none."""
    description: str
    set_up: str
    """With which all runs were made."""
    confidence: float
    """Level of the intervals and of verdicts, such as 0.95."""
    cannot_tell: str
    """What to do where a claim cannot be told."""
    runs: RunRules
    measure: MeasuringPlan
    quantities: tuple[Quantity, ...]
    tables: tuple[TablePlan, ...]
    figures: tuple[FigurePlan, ...]
    comparisons: tuple[ComparisonPlan, ...]
    expectations: tuple[Expectation, ...]
    references: tuple[Reference, ...]
    judging: Judging | None = None
    """What it judges by criteria."""
