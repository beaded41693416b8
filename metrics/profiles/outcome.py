"""Quality of outcome (draft-ietf-ippm-qoo): a network between unacceptable and optimal for an application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Delay:
    """What an application needs of one percentile of the delay."""

    percentile: float
    optimal_ms: float
    unacceptable_ms: float


@dataclass(frozen=True, slots=True)
class Requirement:
    """What an application needs."""

    delays: tuple[Delay, ...]
    least: int
    """Samples below which there is no score."""
    optimal_loss: float | None = None
    unacceptable_loss: float | None = None
    """Shares of the packets; None for an application that does not care."""
    least_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What was measured."""

    delays_ms: Mapping[float, float]
    """By percentile."""
    n: int
    loss: float | None
    """Share of the packets; None where losses do not show."""
    largest_bps: float | None
    """Of all intervals. That it was never more proves nothing: nobody may have asked for more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The score in %, of each component and of all."""

    score: float | None
    delay: float | None
    loss: float | None
    throughput: float | None
    unknown: tuple[str, ...]
    """Components that the application needs and that are not known."""


def quality_of_outcome(needed: Requirement, measured: Conditions) -> Outcome:
    """Return the least of the components that are known; of too few samples there is no score."""
    delay = loss = throughput = None
    if measured.n >= needed.least:
        delay = min(
            _position(measured.delays_ms[one.percentile], one.optimal_ms, one.unacceptable_ms)
            for one in needed.delays
        )
    if needed.optimal_loss is not None and needed.unacceptable_loss is not None and measured.loss is not None:
        loss = _position(measured.loss, needed.optimal_loss, needed.unacceptable_loss)
    if needed.least_bps is not None and measured.largest_bps is not None:
        throughput = 100.0 if measured.largest_bps >= needed.least_bps else None
    unknown = [
        name
        for name, is_needed, value in (
            ("delay", True, delay),
            ("loss", needed.optimal_loss is not None, loss),
            ("throughput", needed.least_bps is not None, throughput),
        )
        if is_needed and value is None
    ]
    known = [value for value in (delay, loss, throughput) if value is not None]
    score = min(known) if delay is not None else None
    return Outcome(score, delay, loss, throughput, tuple(unknown))


def _position(value: float, optimal: float, unacceptable: float) -> float:
    """Return where a value is on the way from unacceptable (0) to optimal (100)."""
    return 100 * min(max(1 - (value - optimal) / (unacceptable - optimal), 0.0), 1.0)
