"""Sparse flows: those that asked for far less than a share of the link.

A probe of 1.5 kbit/s beside two bulk transfers turns Jain's index from 0.98 to 0.66, though nobody took
anything from it. A starved flow has as small a rate, but wanted more. Only evidence that the application,
not the network, limited a flow makes it sparse; without evidence it stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.results.metrics import SmallFlow
from tfrctrace.metrics.thresholds import SPARSE_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

MOST_LOST: Final = 0.05
"""Share of packets that a flow with congestion control may lose or retransmit: more limit its rate."""

LEAST_LIMITED: Final = 0.5
"""Share of the time in which a sparse TCP flow had no data to send: most of it."""

MOST_OUTSTANDING: Final = 0.5
"""Packets outstanding on average: below this nothing was outstanding half of the time or more."""

MOST_DISPERSION: Final = 0.2
"""Variance over mean of the packets in windows; 0 at a constant rate, p if chance takes away a share p,
1 in a Poisson process."""

_PACKETS_OF_WINDOW: Final = 4
_LEAST_WINDOWS: Final = 4

_ADAPTIVE: Final = {"tcp", "dccp", "tfrc"}
"""Transports that send less when packets are lost."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Whether the application limited a flow, and the evidence for or against it."""

    is_limited: bool
    evidence: str


def small_flows(
    amounts: Mapping[int, int],
    row_of: Callable[[int], Mapping[str, Any]],
    packets: Callable[[int], NDArray[Any] | None],
    share: float = SPARSE_SHARE,
    *,
    counts_received: bool = False,
) -> list[SmallFlow]:
    """Return the flows of a set whose rate lies below `share` of the mean of those that are not sparse.

    `amounts` are bytes in the windows of the set, `row_of` gives the row of a flow, and `packets` the
    packets of a flow in each of many equal windows, or None if they are not known. With
    `counts_received` amounts and packets are those that arrived.
    """
    largest = max(amounts.values(), default=0)
    limit = Fraction(share)
    # a whole number is below a fraction if it is below the next whole one
    least = math.ceil(limit * largest)
    demands = {
        flow: demand(row_of(flow), packets(flow), counts_received=counts_received)
        for flow, amount in amounts.items()
        if amount < least
    }
    asked = {
        flow: amounts[flow] / (_arrived(row_of(flow)) if counts_received else Fraction(1))
        for flow, one in demands.items()
        if one.is_limited
    }
    sparse = _sparse(amounts, asked, limit)
    rest = [amount for flow, amount in amounts.items() if flow not in sparse]
    mean = Fraction(sum(rest), len(rest) or 1)
    return [
        SmallFlow(flow, float(amounts[flow] / mean), flow in sparse, demands[flow].evidence)
        for flow in sorted(demands)
        if amounts[flow] < limit * mean
    ]


def demand(row: Mapping[str, Any], packets: NDArray[Any] | None, *, counts_received: bool = False) -> Demand:
    """Return whether the application limited the flow of `row`, which sent `packets` in windows."""
    if row.get("transport") in _ADAPTIVE:
        lost = _lost_share(row)
        if lost > MOST_LOST:
            return Demand(False, f"{lost:.1%} of its packets lost or retransmitted")
    if row.get("transport") == "tcp":
        return _tcp_demand(row)
    if row.get("feedback_packets") and row.get("transport") == "rtp":
        return Demand(False, "it may adapt its rate to feedback")
    return _even_demand(packets, float(1 - _arrived(row)) if counts_received else 0.0)


def _sparse(amounts: Mapping[int, int], asked: Mapping[int, Fraction], limit: Fraction) -> set[int]:
    """Return the largest set of flows that each asked for less than `limit` of the mean of all others."""
    ascending = sorted(asked, key=lambda flow: (asked[flow], flow))
    left, number = sum(amounts[flow] for flow in amounts if flow not in asked), len(amounts) - len(asked)
    for taken in range(len(ascending), 0, -1):
        if number and asked[ascending[taken - 1]] * number < limit * left:
            return set(ascending[:taken])
        left, number = left + amounts[ascending[taken - 1]], number + 1
    return set()


def _tcp_demand(row: Mapping[str, Any]) -> Demand:
    share = row.get("no_data_share")
    if share is not None:
        return Demand(share > LEAST_LIMITED, f"it had no data to send for {share:.0%} of the time")
    outstanding = _outstanding_packets(row)
    if outstanding is None:
        return Demand(False, "the trace does not show whether data was waiting")
    return Demand(outstanding < MOST_OUTSTANDING, f"{outstanding:.2f} packets outstanding on average")


def _outstanding_packets(row: Mapping[str, Any]) -> float | None:
    """Return the mean number of packets outstanding, by Little's law: packets a second times the RTT."""
    rtt_ms, duration_s = row.get("rtt_mean_ms"), row.get("duration_s")
    if row.get("vantage") not in {"sender", "both"} or rtt_ms is None or not duration_s:
        return None
    return float((row.get("data_packets") or row["packets"]) / duration_s * rtt_ms / 1e3)


def _even_demand(packets: NDArray[Any] | None, lost: float) -> Demand:
    """Return whether packets were sent at a constant rate; `lost` is the share that is missing among them."""
    dispersion = None if packets is None else _dispersion(packets)
    if dispersion is None:
        return Demand(False, "too few packets to see whether its rate was constant")
    if dispersion > MOST_DISPERSION + lost:
        return Demand(False, "its rate was not constant")
    return Demand(True, "it sent at a constant rate")


def _dispersion(packets: NDArray[Any]) -> float | None:
    """Return variance over mean of the packets in windows of four on average; None if these are too few."""
    import numpy as np

    total = float(packets.sum())
    if not total:
        return None
    factor = max(math.ceil(_PACKETS_OF_WINDOW * len(packets) / total), 1)
    windows = len(packets) // factor
    if windows < _LEAST_WINDOWS:
        return None
    counts = packets[: windows * factor].reshape(windows, factor).sum(axis=1)
    mean = float(counts.mean())
    return float(np.var(counts, ddof=1)) / mean if mean else None


def _lost_share(row: Mapping[str, Any]) -> float:
    """Return the share of packets lost or of segments retransmitted, whichever is more."""
    lost, sent = row.get("lost_packets") or 0, row.get("sent_packets") or 0
    again, data = row.get("retransmitted_segments") or 0, row.get("data_segments") or 0
    return max(lost / sent if sent else 0.0, again / data if data else 0.0)


def _arrived(row: Mapping[str, Any]) -> Fraction:
    """Return the share of the packets that arrived; 1 if it is not known or none did."""
    sent, received = row.get("sent_packets") or 0, row.get("received_packets") or 0
    return Fraction(received, sent) if 0 < received < sent else Fraction(1)
