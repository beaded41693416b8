"""Metrics of each flow over its whole life: convergence, delivery, round-trip times and delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.catalogue import make_metric
from tfrctrace.metrics.flow.convergence import (
    aggressiveness,
    convergence_time_s,
    first_window_after,
    response_time_s,
    rise_time_s,
    stability,
)
from tfrctrace.metrics.flow.delivery import drop_ratio, goodput_share, timeout_share
from tfrctrace.metrics.windows import NS_PER_S, whole_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl
    from numpy.typing import NDArray

    from tfrctrace.metrics.metric import Assumptions, Metric
    from tfrctrace.metrics.windows import FlowBins, Windows

MAX_LIFE_WINDOWS: Final = 10_000_000
"""Longest series that is held in memory: 80 MB at 8 bytes a window."""

_RTTS: Final = ("rtt_min_ms", "rtt_mean_ms", "rtt_p50_ms", "rtt_p95_ms", "rtt_max_ms", "rtt_std_ms")
_DELAYS: Final = ("delay_mean_ms", "delay_p95_ms", "jitter_ms", "delay_variation_ms")


def whole_flow_metrics(
    flows: pl.DataFrame, bins: FlowBins, column: str, window_ns: int, assumptions: Assumptions
) -> Iterator[Metric]:
    """Give the metrics of each flow over its whole life; rates are taken in windows of `window_ns`.

    With a step, `flows` has a column `begin_ns`: 0 s of the trace.
    """
    for row in flows.iter_rows(named=True):
        windows = _flow_windows(row, bins, window_ns)
        yield from _shape(row, windows, bins, column, assumptions.step_ns)
        yield from _delivery(row)


def _shape(
    row: Mapping[str, Any], windows: Windows, bins: FlowBins, column: str, step_ns: int | None
) -> Iterator[Metric]:
    """Give the metrics of the rate over time, without values for a flow of too many windows."""
    import numpy as np

    is_too_long = windows.count > MAX_LIFE_WINDOWS
    rates = np.zeros(0) if is_too_long else bins.rates(row["flow"], windows, column)
    known = [
        ("convergence_s", convergence_time_s(rates, windows.width_s), len(rates)),
        ("rise_s", rise_time_s(rates, windows.width_s), len(rates)),
        ("stability", stability(rates), len(rates)),
    ]
    if step_ns is not None:
        known += _response(rates, windows.width_s, (row["begin_ns"] + step_ns - windows.start_ns) / NS_PER_S)
    for name, value, n in known:
        yield make_metric(
            name,
            value,
            n,
            flows=[row["flow"]],
            group=row["group"],
            window_s=windows.width_s,
            reason=f"more than {MAX_LIFE_WINDOWS:,} windows" if is_too_long else None,
        )


def _response(rates: NDArray[Any], width_s: float, step_s: float) -> Iterator[tuple[str, float | None, int]]:
    """Give name, value and number of windows of the metrics of a flow's response to a step.

    `rates` are bytes in each window; `step_s` counts from the start of the first.
    """
    first = first_window_after(width_s, step_s)
    after = max(len(rates) - first, 0) if first > 0 else 0
    increase = aggressiveness(rates[first - 1 :]) if after else None
    yield "responsiveness_s", response_time_s(rates, width_s, step_s), after
    yield "aggressiveness_bps", None if increase is None else 8 * increase / width_s, after


def _delivery(row: Mapping[str, Any]) -> Iterator[Metric]:
    """Give the metrics of the table of flows."""
    sent, dropped, unique = row["sent_packets"] or 0, row["dropped_packets"], row["unique_bytes"]
    known = [(name, row[name], sent) for name in ("pdr", "plr")]
    known.append(("drop_ratio", None if dropped is None else drop_ratio(dropped, sent), sent))
    share = None if unique is None else goodput_share(unique, row["wire_bytes"])
    known.append(("goodput_share", share, row["packets"]))
    known.append(("timeout_share", _timeout_share(row), row["rto_episodes"] or 0))
    known += [(name, row[name], row["rtt_samples"] or 0) for name in _RTTS]
    known += [(name, row[name], row["received_packets"] or 0) for name in _DELAYS]
    for name, value, n in known:
        yield make_metric(name, value, n, flows=[row["flow"]], group=row["group"])


def _timeout_share(row: Mapping[str, Any]) -> float | None:
    if row["rto_ms"] is None or row["duration_s"] is None:
        return None
    return timeout_share(row["rto_ms"], row["duration_s"])


def _flow_windows(row: Mapping[str, Any], bins: FlowBins, window_ns: int) -> Windows:
    """Return the whole windows of a flow from its first bin on."""
    width_ns = bins.width_ns or window_ns
    first_ns = bins.first_ns(row["flow"])
    origin_ns = row["start_ns"] if first_ns is None else first_ns
    whole = whole_windows(origin_ns, width_ns, row["start_ns"], row["end_ns"])
    return whole.coarser(window_ns // width_ns)
