"""Flows of which nothing arrived in runs whose traces would show it: a rate and a delivery of 0, not of null.

A trace does not say whether a receiver that leaves no line would have left one; the study does (`both_ends`).
What is a mean over arrived packets, as their delay, stays null.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.errors import NoArrivalsError
from tfrctrace.metrics.results.metrics import Metric
from tfrctrace.study.definition import RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfrctrace.metrics.results.metrics import Basis
    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.trace.measuring import MeasuredMetrics

_REASON: Final = "nothing arrived"
_RATE_BPS: Final = "rate_bps"
_VALUES: Final = {"pdr": 0.0, "plr": 1.0}


def measured_or_nothing(
    measure: Callable[[Basis], MeasuredMetrics], measuring: MeasuringPlan
) -> tuple[MeasuredMetrics, list[Metric]]:
    """Return what is measured, and its metrics; of flows of which nothing arrived those that are then known.

    Raises `NoArrivalsError` where no arrival is shown and the study does not say that it would be.
    """
    try:
        measured = measure(measuring.basis)
    except NoArrivalsError:
        if not measuring.both_ends:
            raise
        measured = measure("throughput")
        # what was sent has rates too, which are not what is asked
        of_flows = [metric for metric in measured.metrics if metric.window_s is None]
        metrics = [*of_flows, *_zero_rates(measured)]
    else:
        metrics = list(measured.metrics)
    if not measuring.both_ends:
        return measured, metrics
    lost = {flow for flow, *counts in _counted(measured) if _is_lost(*counts)}
    return measured, [_known(metric) if lost.issuperset(metric.flows) else metric for metric in metrics]


def _counted(measured: MeasuredMetrics) -> Sequence[tuple[int, int | None, int | None]]:
    return measured.looked_at.select("flow", "sent_packets", "received_packets").rows()


def _is_lost(sent: float | None, received: float | None) -> bool:
    return bool(sent) and received is None


def _zero_rates(measured: MeasuredMetrics) -> Iterator[Metric]:
    for flow, group in measured.looked_at.select("flow", "group").iter_rows():
        yield Metric(
            name=_RATE_BPS,
            value=0.0,
            unit="bit/s",
            n=1,
            window_s=measured.window_s,
            warmup_s=measured.warmup_s,
            flows=(flow,),
            group=group,
        )


def _known(metric: Metric) -> Metric:
    """Return the metric of a flow of which nothing arrived."""
    if metric.name in _VALUES:
        return replace(metric, value=_VALUES[metric.name], reason=None)
    return metric if metric.value is not None else replace(metric, reason=_REASON)


def known_numbers(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a flow with what is known of it if nothing arrived."""
    if not _is_lost(numbers["sent_packets"], numbers["received_packets"]):
        return numbers
    none = {"received_packets": 0, "received_bytes": 0, "duplicate_packets": 0, "in_flight_packets": 0}
    return {**numbers, **none, "lost_packets": numbers["sent_packets"], **_VALUES}


def zero_series(measured: MeasuredMetrics, name: str) -> list[dict[str, Any]]:
    """Return the series of the flows of a run in which nothing arrived: a rate of 0 from start to end."""
    if name != RATE:
        return []
    flows = measured.looked_at.select("flow", "group", "start_ns", "end_ns")
    first_ns = min(flows["start_ns"].to_list(), default=0)
    return [
        {
            "flow": flow,
            "group": group,
            "unit": "bit/s",
            "time_s": [(time_ns - first_ns) / 1e9 for time_ns in (start_ns, end_ns)],
            "values": [0.0, 0.0],
        }
        for flow, group, start_ns, end_ns in flows.iter_rows()
    ]
