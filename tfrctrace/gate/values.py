"""Quantities taken from an open trace, by name, and the runs that a gate has of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tfrctrace.metrics.catalogue import SPOILT_BY_SPARSE
from tfrctrace.metrics.flow.causes import MOST_UNKNOWN, UNKNOWN_SHARE
from tfrctrace.metrics.flow.place import (
    HIDDEN_LOSSES,
    HIDDEN_RTTS,
    OF_PLACE,
    WHY_HIDDEN,
    has_lower_bound,
    has_receivers_rtts,
)
from tfrctrace.metrics.results.quantities import QuantityValues, SingleValue
from tfrctrace.reports.units import format_share
from tfrctrace.reports.why_words import SIGN_WORDS
from tfrctrace.runs.quantity import aggregate
from tfrctrace.runs.quantity_values import aggregated, aggregated_column, divided, metric_value
from tfrctrace.trace.conditions import (
    CONDITION_COLUMNS,
    CONGESTION_CONTROL,
    MAIN_CAUSE,
    Beyond,
    matching_rows,
    needs,
)
from tfrctrace.trace.labels import name_causes, name_controls
from tfrctrace.trace.passes import OF_CONTROLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.verdict import RunOutcome
    from tfrctrace.runs.cache import Record
    from tfrctrace.runs.quantity import Quantity, Term
    from tfrctrace.trace.labels import Rule
    from tfrctrace.trace.measuring import MeasuredMetrics
    from tfrctrace.trace.passes import TableName
    from tfrctrace.trace.tables import Tables


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """One trace, and what was taken from it; the trace itself is not kept."""

    name: str
    taken: Mapping[str, QuantityValues]
    """By the name of the quantity."""
    objectives: Sequence[RunOutcome] = ()
    """One for each objective of the plan."""

    def values_of(self, quantity: Quantity) -> QuantityValues:
        """Return the values of `quantity`."""
        return self.taken[quantity.name]


def take_quantities(
    trace: Tables, measured: MeasuredMetrics, quantities: Sequence[Quantity]
) -> dict[str, QuantityValues]:
    """Return the values of `quantities`, by their names."""
    source = _Source(trace, measured, quantities)
    return {quantity.name: source.take(quantity) for quantity in quantities}


def run_of(name: str, record: Record) -> CheckedRun:
    """Return the run that has this record, which may be from the cache."""
    import msgspec

    from tfrctrace.metrics.results.records import CheckRecord

    found = msgspec.convert(record, CheckRecord)
    return CheckedRun(name, found.taken, found.objectives)


def needed_tables(quantities: Sequence[Quantity], rules: Sequence[Rule]) -> tuple[TableName, ...]:
    """Return the tables that have to be collected for `quantities` of flows with labels by `rules`."""
    if not quantities:
        return ("flows",)
    kinds = {term.kind for quantity in quantities for term in (quantity.term, quantity.over) if term}
    samples: tuple[TableName, ...] = ("rtt",) if "samples" in kinds else ()
    beyond: tuple[TableName, ...] = ("cause_sums",) if _name_causes(quantities) or name_causes(rules) else ()
    if _name_controls(quantities) or name_controls(rules):
        beyond = OF_CONTROLS
    return "flows", "bins", *samples, *beyond


def _name_controls(quantities: Sequence[Quantity]) -> bool:
    return any(needs(quantity.conditions, CONGESTION_CONTROL) for quantity in quantities)


def _name_causes(quantities: Sequence[Quantity]) -> bool:
    return any(
        quantity.term.kind == "cause"
        or (quantity.over is not None and quantity.over.kind == "cause")
        or needs(quantity.conditions, MAIN_CAUSE)
        for quantity in quantities
    )


class _Source:
    """A trace that was measured once for all quantities."""

    def __init__(self, trace: Tables, measured: MeasuredMetrics, quantities: Sequence[Quantity]) -> None:
        self._trace = trace
        self._measured = measured
        self._columns = {
            term.name
            for quantity in quantities
            for term in (quantity.term, quantity.over)
            if term and term.kind == "column"
        }
        self._columns |= set(OF_PLACE) - {"transport"}
        self._has_causes = _name_causes(quantities)
        self._has_controls = _name_controls(quantities)
        if any(quantity.conditions for quantity in quantities):
            self._columns |= {"start_ns", *CONDITION_COLUMNS}

    def take(self, quantity: Quantity) -> QuantityValues:
        flows = self._chosen(quantity)
        if quantity.conditions and flows.is_empty():
            where = quantity.name.partition(" where ")[2]
            return aggregated((), quantity.term, f"no flow fulfils `where {where}`")
        over = quantity.over
        if over is None:
            return self._take_term(quantity.term, flows)
        if quantity.term.kind == over.kind == "column":
            # where one of them is not known, the other would spoil the ratio
            both = _of_path(_of_path(flows, quantity.term.name), over.name).drop_nulls(
                [quantity.term.name, over.name]
            )
            flows = flows if both.is_empty() else both
        own = self._take_term(quantity.term, flows)
        return divided(own, self._take_term(over, flows), f"{over.aggregation}({over.name})")

    def _chosen(self, quantity: Quantity) -> pl.DataFrame:
        flows = self._flows
        return flows.filter(matching_rows(flows, quantity.conditions)) if quantity.conditions else flows

    def _take_term(self, term: Term, asked: pl.DataFrame) -> QuantityValues:
        """Take a term of those rows of `asked` that it counts, and how many flows that leaves out."""
        if term.kind != "samples":
            asked = asked.filter("is_data_direction")
        if term.kind == "metric":
            flows = asked.join(self._measured.looked_at.select("flow"), on="flow", how="semi")
        else:
            flows = asked.filter("is_counted")
        left_out = asked["flow"].n_unique() - flows["flow"].n_unique()
        shown = flows if term.kind == "samples" else _of_path(flows, term.name)
        taken = self._take_counted(term, shown)
        hidden = flows.height - shown.height
        if hidden:
            taken = replace(taken, of=taken.of + hidden, reason=WHY_HIDDEN[term.name])
        return replace(taken, flows_left_out=left_out)

    def _take_counted(self, term: Term, flows: pl.DataFrame) -> QuantityValues:
        if flows.is_empty():
            return aggregated((), term, "no flow is looked at")
        if term.kind == "samples":
            return self._take_samples(term, flows)
        if term.kind == "column":
            return aggregated_column(flows[term.name], term)
        if term.kind == "cause":
            return aggregated(list(_shares(flows, term.name)), term, "no flow is looked at")
        return self._take_metric(term, set(flows["flow"].to_list()))

    def _take_metric(self, term: Term, flows: set[int]) -> QuantityValues:
        """Take a metric of the flows, groups or sets that have no other flow than `flows`."""
        window_s = self._measured.window_s
        found = [
            metric_value(metric)
            for metric in self._measured.named(term.name)
            # one metric is there for several timescales
            if flows.issuperset(metric.flows) and metric.window_s in {None, window_s}
        ]
        taken = aggregated(found, term, "no flows are compared in these windows")
        return (
            replace(taken, sparse_flows=self._sparse_flows(flows)) if term.name in SPOILT_BY_SPARSE else taken
        )

    def _sparse_flows(self, flows: set[int]) -> int:
        small = (one for own in self._measured.small_flows.values() for one in own)
        return len({one.flow for one in small if one.is_sparse and one.flow in flows})

    def _take_samples(self, term: Term, flows: pl.DataFrame) -> QuantityValues:
        own = self._rtts.join(flows.select("flow", "direction"), on=["flow", "direction"], how="semi")
        rtts_ms: list[float] = own["rtt_ms"].to_list()
        value, count = aggregate(term.aggregation, rtts_ms), len(rtts_ms)
        if value is None:
            return aggregated((), term, "there is no RTT sample")
        of_path = own.join(_of_path(flows, term.name), on=["flow", "direction"], how="semi").height
        if term.aggregation != "count" and count > 2 * of_path:
            return aggregated((), term, f"most of them {WHY_HIDDEN[term.name]}")
        return QuantityValues((value,), count, count, made_of=count)

    @cached_property
    def _flows(self) -> pl.DataFrame:
        """Rows of all flows, with the columns that the quantities name."""
        flows = self._measured.asked.rows(*self._columns)
        return Beyond(
            self._trace.cause_sums if self._has_causes else None,
            self._trace.named_controls if self._has_controls else None,
        ).joined(flows)

    @cached_property
    def _rtts(self) -> pl.DataFrame:
        import polars as pl

        return self._trace.rtt.select("flow", "direction", (pl.col("rtt_ns") / 1e6).alias("rtt_ms"))


def _of_path(flows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the directions of which `name` says something of the path."""
    if name in HIDDEN_RTTS:
        return flows.filter(~has_receivers_rtts())
    return flows.filter(~has_lower_bound()) if name in HIDDEN_LOSSES else flows


def _shares(flows: pl.DataFrame, name: str) -> Iterator[SingleValue]:
    """Give a share of time by cause; it is not known where too much of the time has no known cause."""
    columns = flows.select("flow", name, unknown=UNKNOWN_SHARE, sign="unknown_sign")
    for flow, share, unknown, sign in columns.iter_rows():
        reason: str | None = None
        if share is None:
            reason = "it is no captured TCP connection with data"
        elif name != UNKNOWN_SHARE and unknown > MOST_UNKNOWN:
            reason = f"the cause is unknown for {format_share(unknown)} of the time: {SIGN_WORDS[sign]}"
        yield SingleValue(None if reason else share, 1, flow, reason)
