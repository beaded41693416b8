"""What is asked of a run: `p95(rtt_ms)`, `sum(lost_packets) / sum(sent_packets) where port 5201`.

Limits and baselines write quantities as text, study files as tables.
"""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.metrics.exact_sums import nearest_rank
from tfrctrace.metrics.flow.causes import SHARE_NAMES
from tfrctrace.parsers.schema import FLOWS, TABLES
from tfrctrace.trace.conditions import CONDITIONS, Scanner, read_conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrctrace.trace.conditions import Condition

Better = Literal["higher", "lower", "same"]
Kind = Literal["column", "metric", "cause", "samples", "replay", "series", "group column"]
OverTime = Literal["mean", "std", "cov", "min", "max"]
"""How a series over time becomes one value; `cov` is std/mean."""

RTT_SAMPLES: Final = "rtt_ms"
"""Every RTT sample of the flows, where columns have statistics of one flow."""

COLUMNS: Final = {column.name: column for column in FLOWS if column.type != "string"}
GROUP_COLUMNS: Final = {column.name: column for column in TABLES["groups"] if column.type != "string"}

_SYNTAX: Final = (
    "write a name, `max(NAME)` or `sum(NAME) / sum(NAME)`, and perhaps `where port 5201`; after `where` are "
    f"conditions joined by `and`: {CONDITIONS}, and `label NAME`"
)
_PERCENTILE: Final = re.compile(r"p([1-9][0-9]?)", re.ASCII)
_NAME: Final = "[a-z_0-9]+"
AGGREGATIONS: Final = ("min", "max", "mean", "sum", "count", "median")

_MORE_IS_BETTER: Final = frozenset(
    {
        "throughput_bps",
        "goodput_bps",
        "x_recv_bps",
        "rate_bps",
        "mean_rate_bps",
        "unique_bytes",
        "received_packets",
        "received_bytes",
        "pdr",
        "goodput_share",
        *(name for name in BY_NAME if name.startswith(("jain", "max_min"))),
        "equivalence_ratio",
        "link_utilisation",
    }
)
_LESS_IS_BETTER: Final = re.compile(
    r"(?:.*_)?rtt_(?:.*_)?ms|delay_.*|(?:reported_)?jitter_ms|srtt_ms|plr|reported_plr|drop_ratio"
    r"|(?:lost|dropped|retransmitted)_.*|.*_retransmissions|loss_event.*|missing_bytes|out_of_order_packets"
    r"|timeouts|timeout_share|retransmission_ratio|.*_episodes|(?:rto|recovery|zero_window)_ms"
    r"|burstiness|cov|cov_sample|mean_relative_change|worst_ratio|stability|loss_synchronisation"
    r"|(?:fairness_settling|convergence|rise|responsiveness)_s"
)
_AT_MOST_1: Final = re.compile(
    r".*_share|pdr|plr|reported_plr|drop_ratio|loss_event_rate|retransmission_ratio|vantage_confidence"
    r"|jain(?:_.*)?|max_min(?:_.*)?|equivalence_ratio|inter_protocol_normalized(?:_.*)?"
    r"|loss_synchronisation"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One name, and how the values of flows (or samples) become one number; empty for each by itself."""

    name: str
    aggregation: str
    kind: Kind
    group: str | None = None
    """A label, whose flows alone count."""
    timescale_s: float | None = None
    """Which of the windows of `cov`; None for those in which rates are taken."""
    over_time: OverTime | None = None
    """Of a series."""
    from_s: float | None = None
    """Start of the part of a series that counts, since the first flow; None for all of it."""
    until_s: float | None = None

    @property
    def unit(self) -> str:
        """The unit; empty for counts and ratios, and for a series, whose values name theirs."""
        if self.aggregation == "count" or self.kind == "series":
            return ""
        if self.kind in {"samples", "replay"}:
            return "ms" if self.kind == "samples" else "bit/s"
        if self.kind == "group column":
            return GROUP_COLUMNS[self.name].unit
        if self.kind == "cause":
            return ""
        return COLUMNS[self.name].unit if self.kind == "column" else BY_NAME[self.name].unit

    @property
    def is_of_flows(self) -> bool:
        """Whether a flow has a value of it, and not only a set or a pair of flows."""
        return self.kind != "metric" or BY_NAME[self.name].subject not in {"set", "pair"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A term, or the ratio of two, of all flows or those that fulfil conditions."""

    name: str
    """Its name in results: the text of a limit, the name in a study."""
    term: Term
    over: Term | None = None
    conditions: tuple[Condition, ...] = ()

    @property
    def unit(self) -> str:
        """The unit; a ratio of equal units has none."""
        if self.over is None:
            return self.term.unit
        own, other = self.term.unit, self.over.unit
        return "" if own == other else f"{own or '1'}/{other}" if other else own

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value that can be; nothing that is measured is below 0."""
        is_share = self.over is None and self.term.aggregation not in {"sum", "count"}
        return 0.0, 1.0 if is_share and _AT_MOST_1.fullmatch(self.term.name) else math.inf

    @property
    def is_about_groups(self) -> bool:
        """Whether each label has a value of it, and not all flows together or one label."""
        return self.term.is_of_flows and self.term.group is None

    @property
    def is_one_number(self) -> bool:
        """Whether a run has one value of it, and not one for each flow."""
        return bool(self.term.aggregation)

    @property
    def better(self) -> Better:
        """Which direction is good; `same` where any change is bad or the direction is unknown."""
        if self.term.aggregation == "count":
            return "same"
        if self.term.name in _MORE_IS_BETTER:
            return "higher"
        return "lower" if _LESS_IS_BETTER.fullmatch(self.term.name) else "same"


@dataclass(frozen=True, slots=True)
class Language:
    """The names and conditions that a quantity may have: those of flows, or those of groups."""

    kind: Callable[[str], Kind]
    """Return what a name stands for. Raises `UsageError` for an unknown one."""
    conditions: Callable[[Scanner], tuple[Condition, ...]]
    """Read what follows `where`."""


def parse_quantity(text: str) -> Quantity:
    """Return the quantity that `text` describes. Raises `UsageError` for invalid text."""
    name = " ".join(text.split())
    scanner = Scanner(name, "quantity", _SYNTAX)
    term, over = read_formula(scanner)
    conditions = read_where(scanner)
    scanner.end("`/`, `where`, `and` or the end")
    return Quantity(name, term, over, conditions)


def read_formula(scanner: Scanner, language: Language | None = None) -> tuple[Term, Term | None]:
    """Return a term, and the one by which it is divided."""
    kind = (language or OF_FLOWS).kind
    term = _term(scanner, kind)
    over = _term(scanner, kind) if scanner.accept("/") else None
    if over is not None and not (term.aggregation and over.aggregation):
        raise UsageError(
            f"`{scanner.text}`: a ratio needs an aggregated numerator and denominator",
            hint="write such as `sum(lost_packets) / sum(sent_packets)`",
        )
    return term, over


def read_where(scanner: Scanner, language: Language | None = None) -> tuple[Condition, ...]:
    """Return the conditions after `where`, if it is there."""
    return (language or OF_FLOWS).conditions(scanner) if scanner.accept(r"where(?!\S)") else ()


def aggregate(aggregation: str, values: Sequence[float], weights: Sequence[int] = ()) -> float | None:
    """Return one number of `values`; None if there are none, or the weights of a mean are all 0.

    The median of an even number of values is the mean of the two in the middle. A percentile is by nearest
    rank: the smallest value that so many percent do not exceed.
    """
    if aggregation == "count":
        return float(len(values))
    if not values or (aggregation == "weighted" and not any(weights)):
        return None
    if aggregation == "weighted":
        total = sum((Fraction(value) * n for value, n in zip(values, weights, strict=True)), Fraction())
        return float(total / sum(weights))
    if aggregation in _AGGREGATES:
        return _AGGREGATES[aggregation](values)
    return nearest_rank(values, int(aggregation[1:]) / 100)


_AGGREGATES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "min": min,
    "max": max,
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "median": statistics.median,
}


def _term(scanner: Scanner, kind_of: Callable[[str], Kind]) -> Term:
    name, aggregation = scanner.expect(_NAME, "a name"), ""
    if scanner.accept(r"\("):
        aggregation, name = name, scanner.expect(_NAME, "a name")
        scanner.expect(r"\)", "`)`")
        if aggregation not in AGGREGATIONS and not _PERCENTILE.fullmatch(aggregation):
            raise UsageError(
                f"`{scanner.text}` has an unknown aggregation `{aggregation}`",
                hint=f"there are {', '.join(AGGREGATIONS)} and percentiles from p1 to p99",
            )
    kind = kind_of(name)
    if kind == "samples" and not aggregation:
        raise UsageError(f"`{name}` are all samples of a duration", hint=f"write such as `p95({name})`")
    return Term(name, aggregation, kind)


def _kind(name: str) -> Kind:
    """Return what a name stands for; columns and metrics of one name are the same number."""
    if name == RTT_SAMPLES:
        return "samples"
    if name in COLUMNS:
        return "column"
    if name in BY_NAME:
        return "metric"
    if name in SHARE_NAMES:
        return "cause"
    import difflib

    known = [*COLUMNS, *BY_NAME, *SHARE_NAMES, RTT_SAMPLES]
    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
    raise UsageError(
        f"there is no column of flows and no metric `{name}`",
        hint=f"the nearest are {', '.join(near)}" if near else "see docs/columns.md, docs/all-metrics.md",
    )


def _conditions(scanner: Scanner) -> tuple[Condition, ...]:
    return read_conditions(scanner, has_labels=True)


OF_FLOWS: Final = Language(_kind, _conditions)
