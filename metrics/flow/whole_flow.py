"""Metrics of each flow over its whole life: convergence, delivery, round-trip times and delay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.catalogue import OF_FLOWS
from tfrctrace.metrics.flow.convergence import (
    aggressiveness,
    first_window_after,
    rate_shapes,
    response_time_s,
)
from tfrctrace.metrics.flow_metrics import FlowColumn, FlowMetrics
from tfrctrace.metrics.windows import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.metrics.assumptions import Assumptions
    from tfrctrace.metrics.windows import FlowBins, LifeWindows

MAX_LIFE_WINDOWS: Final = 10_000_000
"""Longest series that is held in memory: 80 MB at 8 bytes a window."""

COLUMNS: Final = frozenset(
    {"flow", "group", "start_ns", "end_ns"}.union(
        *({*one.columns, one.n_column} for one in OF_FLOWS.values())
    )
)
"""Columns of the table of flows that these metrics need."""


def whole_flow_metrics(
    flows: pl.DataFrame, bins: FlowBins, column: str, window_ns: int, assumptions: Assumptions
) -> FlowMetrics:
    """Return the metrics of each flow over its whole life; rates are taken in windows of `window_ns`.

    With a step, `flows` has a column `begin_ns`: 0 s of the trace.
    """
    windows = bins.life_windows(flows["flow"], flows["start_ns"], flows["end_ns"], window_ns)
    columns = [*_shape(flows, windows, bins, column)]
    if assumptions.step_ns is not None:
        columns += _response(flows, windows, bins, column, assumptions.step_ns)
    return FlowMetrics(flows["flow"], flows["group"], (*columns, *_of_the_table(flows)))


def _shape(flows: pl.DataFrame, windows: LifeWindows, bins: FlowBins, column: str) -> Iterator[FlowColumn]:
    """Give the metrics of the rate over time, without values for a flow of too many windows."""
    import numpy as np

    counts = np.where(windows.counts > MAX_LIFE_WINDOWS, 0, windows.counts)
    own = replace(windows, counts=counts)
    shapes = rate_shapes(bins.life_windowed(flows["flow"], own, column), counts, windows.width_s)
    reasons = _too_long(windows)
    for name in ("convergence_s", "rise_s", "stability"):
        yield FlowColumn(name, shapes[name], shapes["windows"], windows.width_s, reasons)


def _too_long(windows: LifeWindows) -> pl.Series:
    """Return the reason why there is no value for flows of too many windows, null for others."""
    import polars as pl

    reason = f"more than {MAX_LIFE_WINDOWS:,} windows"
    return pl.Series(
        [reason if count > MAX_LIFE_WINDOWS else None for count in windows.counts], dtype=pl.String
    )


def _response(
    flows: pl.DataFrame, windows: LifeWindows, bins: FlowBins, column: str, step_ns: int
) -> Iterator[FlowColumn]:
    """Give the metrics of the flows' response to a step."""
    import polars as pl

    known: list[tuple[float | None, float | None, int]] = []
    for place, (flow, begin_ns) in enumerate(flows.select("flow", "begin_ns").iter_rows()):
        own = windows.of(place)
        if own.count > MAX_LIFE_WINDOWS:
            known.append((None, None, 0))
            continue
        rates = bins.rates(flow, own, column)
        step_s = (begin_ns + step_ns - own.start_ns) / NS_PER_S
        first = first_window_after(own.width_s, step_s)
        after = max(len(rates) - first, 0) if first > 0 else 0
        increase = aggressiveness(rates[first - 1 :]) if after else None
        increase_bps = None if increase is None else 8 * increase / own.width_s
        known.append((response_time_s(rates, own.width_s, step_s), increase_bps, after))
    schema: dict[str, Any] = {"responsiveness_s": pl.Float64, "aggressiveness_bps": pl.Float64, "n": pl.Int64}
    frame = pl.DataFrame(known, schema=schema, orient="row")
    for name in ("responsiveness_s", "aggressiveness_bps"):
        yield FlowColumn(name, frame[name], frame["n"], windows.width_s, _too_long(windows))


def _of_the_table(flows: pl.DataFrame) -> Iterator[FlowColumn]:
    """Give the metrics of the table of flows, as the catalogue defines them."""
    import polars as pl

    values = flows.select(one.value().alias(name) for name, one in OF_FLOWS.items())
    counts = flows.select(pl.col(one.n_column).fill_null(0).alias(name) for name, one in OF_FLOWS.items())
    for name in OF_FLOWS:
        yield FlowColumn(name, values[name], counts[name])
