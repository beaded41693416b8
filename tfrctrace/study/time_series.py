"""What figures over time show of one run: a series for each of its flows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.base.durations import parse_duration_ns
from tfrctrace.base.errors import TfrctraceWarning, input_problem
from tfrctrace.metrics.flow.whole_flow import MAX_LIFE_WINDOWS
from tfrctrace.parsers.schema import FEEDBACK
from tfrctrace.runs.problems import NO_SERIES
from tfrctrace.study.definition import RATE
from tfrctrace.trace.measuring import BYTES_OF, base_width_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.api import Trace
    from tfrctrace.study.definition import MeasuringPlan
    from tfrctrace.trace.measuring import MeasuredMetrics

MAX_POINTS: Final = 100_000
"""Of the series of one flow; of more every second, third, ... is kept."""

MAX_ALL_POINTS: Final = 2_400_000
"""Of the series of all flows together, each of which may have its share."""

MAX_CURVES: Final = 120
"""Flows of one label that have a series, those with most data packets; a figure shows fewer."""

CURVES: Final = "curves"
"""Kind of the problem with a run that has more flows than a figure would show."""

_FEEDBACK_NUMBERS: Final = {column.name: column.unit for column in FEEDBACK if column.type == "float64"}


def series_of(
    trace: Trace, measured: MeasuredMetrics, measuring: MeasuringPlan, name: str
) -> Iterator[dict[str, Any]]:
    """Give a series for each flow: times in s since the first packet of any, and values in `unit`.

    `name` is `rate`, a number of TFRC's reports, or a variable that senders wrote down.
    """
    import polars as pl

    start_ns = measured.asked.rows("start_ns")["start_ns"].min()
    origin_ns = start_ns if isinstance(start_ns, int) else 0
    size = pl.coalesce("data_packets", "packets").rank("ordinal", descending=True).over("group")
    flows = measured.looked_at.filter(size <= MAX_CURVES)
    if left_out := measured.looked_at.height - flows.height:
        words = f"curves of `{name}` are kept of the {MAX_CURVES} flows of each label with most data packets"
        warn(CURVES, f"{words}, and {left_out} are left out")
    if name == RATE:
        points, unit = _rates(trace, flows, measuring), "bit/s"
    elif name in _FEEDBACK_NUMBERS:
        points, unit = trace.feedback.with_columns(_value(name)), _FEEDBACK_NUMBERS[name]
    else:
        points, unit = _variable(trace, name)
    of_flow = points.join(
        flows.select("flow", "direction"), on=["flow", "direction"], how="semi"
    ).partition_by("flow", "direction", as_dict=True, maintain_order=True)
    most_points = min(MAX_POINTS, MAX_ALL_POINTS // max(len(of_flow), 1))
    for flow, group, direction in flows.select("flow", "group", "direction").iter_rows():
        own = _thinned(of_flow.get((flow, direction), points.clear()), most_points)
        if len(own):
            yield {
                "flow": flow,
                "group": group,
                "unit": unit,
                "time_s": ((own["time_ns"] - origin_ns) / 1e9).to_list(),
                "values": own["value"].to_list(),
            }


def _thinned(points: pl.DataFrame, most: int = MAX_POINTS) -> pl.DataFrame:
    return points.gather_every(max(-(-len(points) // most), 1))


def _value(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).alias("value")


def _rates(trace: Trace, flows: pl.DataFrame, measuring: MeasuringPlan) -> pl.DataFrame:
    """Return the rate of each flow (bit/s) in the windows of its life, at the middle of each."""
    import polars as pl

    from tfrctrace.metrics.windows import FlowBins, whole_windows

    window_ns = parse_duration_ns(measuring.window)
    base_ns = base_width_ns(window_ns)
    counted = trace.counted(measuring.basis, base_ns)
    bins = FlowBins(counted.join(flows.select("flow", "direction"), on=["flow", "direction"], how="semi"))
    start_ns = min(flows["start_ns"].to_list(), default=0)
    parts = [
        pl.DataFrame(
            schema={"flow": pl.UInt32, "direction": pl.String, "time_ns": pl.Int64, "value": pl.Float64}
        )
    ]
    for flow, direction, first_ns, last_ns in flows.select(
        "flow", "direction", "start_ns", "end_ns"
    ).iter_rows():
        own_ns = bins.first_ns(flow)
        if own_ns is None:
            continue
        # one grid for all flows, so that their curves can be compared, from the bin of the first packet on
        origin_ns = own_ns + (start_ns - own_ns) // base_ns * base_ns
        windows = whole_windows(origin_ns, window_ns, first_ns - window_ns + 1, last_ns)
        if windows.count > MAX_LIFE_WINDOWS:
            warn("series", f"flow {flow} has more than {MAX_LIFE_WINDOWS:,} windows, too many to be drawn")
            continue
        sizes = bins.rates(flow, windows, BYTES_OF[measuring.basis])
        middle_ns = windows.start_ns + window_ns // 2
        times_ns = pl.int_range(windows.count, dtype=pl.Int64, eager=True) * window_ns + middle_ns
        own = _thinned(pl.DataFrame({"time_ns": times_ns, "value": sizes * (8e9 / window_ns)}))
        parts.append(
            own.select(
                pl.lit(flow, dtype=pl.UInt32).alias("flow"),
                pl.lit(direction).alias("direction"),
                "time_ns",
                "value",
            )
        )
    return pl.concat(parts)


def _variable(trace: Trace, name: str) -> tuple[pl.DataFrame, str]:
    """Return the samples of a variable that senders wrote down, with its unit."""
    import polars as pl

    samples = trace.variables.filter(pl.col("name") == name)
    if samples.is_empty():
        known = sorted(trace.variables["name"].unique().to_list())
        hint = f"a time series is of `{RATE}`, of {', '.join(_FEEDBACK_NUMBERS)}"
        warn(
            NO_SERIES,
            "has no values",
            hint + (f", or of {', '.join(known)}" if known else ""),
            source=name,
        )
        return samples, ""
    return samples, samples["unit"][0]


def warn(kind: str, message: str, hint: str | None = None, *, source: str = "") -> None:
    """Warn about `source`: an option, or the run that is being measured."""
    problem = input_problem(source, kind, message, severity="warning", hint=hint)
    warnings.warn(TfrctraceWarning(problem), stacklevel=1)
