"""What is measured of a run: `p95(rtt_ms)`, `sum(lost_packets) / sum(sent_packets) where port 5201`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.base.errors import UsageError
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.parsers.schema import FLOWS
from tfrctrace.trace.labels import parse_conditions

if TYPE_CHECKING:
    from tfrctrace.trace.labels import Condition

Better = Literal["higher", "lower", "same"]
Kind = Literal["column", "metric", "samples"]

RTT_SAMPLES: Final = "rtt_ms"
"""Every RTT sample of the flows, where columns have statistics of one flow."""

COLUMNS: Final = {column.name: column for column in FLOWS if column.type != "string"}

_TERM: Final = re.compile(r"\s*(?:([a-z]+[0-9]*)\s*\(\s*([a-z_0-9]+)\s*\)|([a-z_0-9]+))\s*", re.ASCII)
_PERCENTILE: Final = re.compile(r"p([1-9][0-9]?)", re.ASCII)
_AGGREGATIONS: Final = ("min", "max", "mean", "sum", "count", "median")

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
        "jain",
        "jain_weighted",
        "jain_window_mean",
        "jain_window_p5",
        "jain_window_p50",
        "jain_window_p95",
        "max_min",
        "equivalence_ratio",
        "link_utilisation",
    }
)
_LESS_IS_BETTER: Final = re.compile(
    r"(?:.*_)?rtt_(?:.*_)?ms|delay_.*|jitter_ms|srtt_ms|plr|drop_ratio"
    r"|(?:lost|dropped|retransmitted)_.*|.*_retransmissions|loss_event.*|missing_bytes|out_of_order_packets"
    r"|timeouts|timeout_share|.*_episodes|(?:rto|recovery|zero_window)_ms"
    r"|burstiness|cov|cov_sample|mean_relative_change|worst_ratio|stability"
    r"|(?:fairness_settling|convergence|rise|responsiveness)_s"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One name, and how the values of flows (or samples) become one number; empty for each by itself."""

    name: str
    aggregation: str
    kind: Kind

    @property
    def unit(self) -> str:
        """The unit; empty for counts and ratios."""
        if self.aggregation == "count":
            return ""
        if self.kind == "samples":
            return "ms"
        return COLUMNS[self.name].unit if self.kind == "column" else BY_NAME[self.name].unit


@dataclass(frozen=True, slots=True)
class Quantity:
    """A term, or the ratio of two, of all flows or those that fulfil conditions."""

    text: str
    term: Term
    over: Term | None
    conditions: tuple[Condition, ...]

    @property
    def unit(self) -> str:
        """The unit; a ratio of equal units has none."""
        if self.over is None:
            return self.term.unit
        own, other = self.term.unit, self.over.unit
        return "" if own == other else f"{own or '1'}/{other}" if other else own

    @property
    def is_one_number(self) -> bool:
        """Whether a run has one value of it, and not one for each flow."""
        return bool(self.term.aggregation)

    @property
    def better(self) -> Better:
        """Which way is good; `same` where a change in either direction is bad, or nobody can know."""
        if self.term.aggregation == "count":
            return "same"
        if self.term.name in _MORE_IS_BETTER:
            return "higher"
        return "lower" if _LESS_IS_BETTER.fullmatch(self.term.name) else "same"


def parse_quantity(text: str) -> Quantity:
    """Return the quantity that `text` describes. Raises `UsageError` if it is none."""
    formula, where, rest = text.partition(" where ")
    own, slash, other = formula.partition("/")
    term, over = _term(own, text), _term(other, text) if slash else None
    if over is not None and not (term.aggregation and over.aggregation):
        raise UsageError(
            f"`{text}` is a ratio of what each flow has by itself",
            hint="say how flows become one number, such as `sum(lost_packets) / sum(sent_packets)`",
        )
    return Quantity(" ".join(text.split()), term, over, parse_conditions(rest) if where else ())


def percent_of(aggregation: str) -> int | None:
    """Return the percentage of a percentile such as `p95` or `median`; None of other aggregations."""
    if aggregation == "median":
        return 50
    match = _PERCENTILE.fullmatch(aggregation)
    return int(match[1]) if match else None


def _term(text: str, whole: str) -> Term:
    match = _TERM.fullmatch(text)
    if not match:
        raise UsageError(
            f"`{whole}` is no quantity",
            hint="write a name, `max(NAME)` or `sum(NAME) / sum(NAME)`, and perhaps `where port 5201`",
        )
    aggregation, name = match[1] or "", match[2] or match[3]
    if aggregation and aggregation not in _AGGREGATIONS and percent_of(aggregation) is None:
        raise UsageError(
            f"`{whole}` has an unknown aggregation `{aggregation}`",
            hint=f"there are {', '.join(_AGGREGATIONS)} and percentiles from p1 to p99",
        )
    kind = _kind(name)
    if kind == "samples" and not aggregation:
        raise UsageError(
            f"`{name}` are all samples of the round-trip time", hint=f"write such as `p95({name})`"
        )
    return Term(name, aggregation, kind)


def _kind(name: str) -> Kind:
    """Return what a name stands for; columns and metrics of one name are the same number."""
    if name == RTT_SAMPLES:
        return "samples"
    if name in COLUMNS:
        return "column"
    if name in BY_NAME:
        return "metric"
    import difflib

    known = [*COLUMNS, *BY_NAME, RTT_SAMPLES]
    near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
    raise UsageError(
        f"there is no column of flows and no metric `{name}`",
        hint=f"the nearest are {', '.join(near)}" if near else "docs/columns.md and docs/metrics.md have all",
    )
