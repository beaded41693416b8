"""Values of a quantity in one run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SingleValue:
    """Value of one flow, or of one set or pair of flows; None if it is unknown."""

    value: float | None
    n: int
    """The `n` of a metric; 1 of a column."""
    flow: int | None
    reason: str | None
    """Why the value is unknown."""


@dataclass(frozen=True, slots=True)
class QuantityValues:
    """The values of a quantity in one run, in the order of flows; one if they were aggregated."""

    values: tuple[float, ...]
    known: int
    """How many flows, sets or samples have a value, of how many."""
    of: int
    reason: str | None = None
    """Why there is no value, or not one of each flow."""
    made_of: int = 0
    """Sum of `n` of those that have a value."""
    flows_left_out: int = 0
    """Flows with too few data packets, which fulfil the conditions."""
    sparse_flows: int = 0
    """Flows that asked for far less than a share, of those that a metric counts which they spoil."""
