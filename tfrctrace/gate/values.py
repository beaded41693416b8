"""Quantities taken from one run: the tables that they need, and the values, or why there are none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.runs.quantity import COLUMNS, aggregate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.runs.cache import Record
    from tfrctrace.runs.quantity import Quantity, Term
    from tfrctrace.trace.measuring import MeasuredMetrics
    from tfrctrace.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class QuantityValues:
    """The values of a quantity in one run, in the order of flows; one if they were aggregated."""

    values: tuple[float, ...]
    known: int
    """How many flows, sets or samples have a value, of how many."""
    of: int
    reason: str | None = None
    """Why there is no value, or not one of each flow."""


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """One trace, and what was taken from it; the trace itself is not kept."""

    name: str
    taken: Mapping[str, QuantityValues]
    """By the name of the quantity."""

    def take(self, quantity: Quantity) -> QuantityValues:
        """Return the values of `quantity`."""
        return self.taken[quantity.name]


def take_quantities(
    trace: Trace, measured: MeasuredMetrics, quantities: Sequence[Quantity]
) -> dict[str, QuantityValues]:
    """Return the values of `quantities`, by their names."""
    source = _Source(trace, measured)
    return {one.name: source.take(one) for one in quantities}


def run_of(name: str, record: Record) -> CheckedRun:
    """Return the run that has this record, which may be from the cache."""
    taken = {
        text: QuantityValues(tuple(one["values"]), one["known"], one["of"], one["reason"])
        for text, one in record["taken"].items()
    }
    return CheckedRun(name, taken)


def needs_samples(quantities: Sequence[Quantity]) -> bool:
    """Return whether one of `quantities` is made of RTT samples, which have to be collected."""
    return any(term.kind == "samples" for one in quantities for term in (one.term, one.over) if term)


class _Source:
    """A trace that was measured once for all quantities."""

    def __init__(self, trace: Trace, measured: MeasuredMetrics) -> None:
        self._trace = trace
        self._measured = measured

    def take(self, quantity: Quantity) -> QuantityValues:
        flows = self._chosen(quantity)
        own = self._take_term(quantity.term, flows)
        if quantity.over is None or not own.values:
            return own
        other = self._take_term(quantity.over, flows)
        if not other.values:
            return other
        if not other.values[0]:
            return QuantityValues((), 0, other.of, f"{_shown(quantity.over)} is 0")
        return replace(own, values=(own.values[0] / other.values[0],))

    def _chosen(self, quantity: Quantity) -> pl.DataFrame:
        from tfrctrace.trace.conditions import matching_rows

        flows = self._measured.looked_at
        return flows.filter(matching_rows(flows, quantity.conditions)) if quantity.conditions else flows

    def _take_term(self, term: Term, flows: pl.DataFrame) -> QuantityValues:
        if flows.is_empty() and term.aggregation != "count":
            return QuantityValues((), 0, 0, "no flow is looked at")
        if term.kind == "samples":
            return _aggregated(self._rtts_ms(flows), term, "there is no RTT sample")
        if term.kind == "column":
            values = [None if value is None else float(value) for value in flows[term.name].to_list()]
            return _aggregated(values, term, f"not known if {COLUMNS[term.name].null_when}")
        return self._take_metric(term, set(flows["flow"].to_list()))

    def _take_metric(self, term: Term, flows: set[int]) -> QuantityValues:
        """Take a metric of the flows, groups or sets that have no other flow than `flows`."""
        window_s = self._measured.window_s
        rows = [
            one
            for one in self._measured.metrics
            # one metric is there for several timescales
            if one.name == term.name and flows.issuperset(one.flows) and one.window_s in {None, window_s}
        ]
        reasons = dict.fromkeys(one.reason for one in rows if one.reason)
        undefined = f"not known if {BY_NAME[term.name].null_when}"
        reason = "; ".join(reasons) or (undefined if rows else "no flows are compared in these windows")
        return _aggregated([one.value for one in rows], term, reason)

    @cached_property
    def _rtts(self) -> pl.DataFrame:
        import polars as pl

        # of the kind that the columns of flows count
        samples = self._trace.rtt.filter(pl.col("method") == "ack")
        return samples.select("flow", "direction", (pl.col("rtt_ns") / 1e6).alias("rtt_ms"))

    def _rtts_ms(self, flows: pl.DataFrame) -> Sequence[float]:
        own = self._rtts.join(flows.select("flow", "direction"), on=["flow", "direction"], how="semi")
        return own["rtt_ms"].to_list()


def _aggregated(values: Sequence[float | None], term: Term, reason: str) -> QuantityValues:
    known = [value for value in values if value is not None and math.isfinite(value)]
    partly = reason if len(known) < len(values) else None
    if term.aggregation == "count":
        return QuantityValues((float(len(known)),), len(known), len(values), partly)
    if not known:
        return QuantityValues((), 0, len(values), reason)
    if not term.aggregation:
        return QuantityValues(tuple(known), len(known), len(values), partly)
    value = aggregate(term.aggregation, known)
    return QuantityValues(() if value is None else (value,), len(known), len(values), partly)


def _shown(term: Term) -> str:
    return f"{term.aggregation}({term.name})"
