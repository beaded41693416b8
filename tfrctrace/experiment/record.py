"""What is kept of one run: its metrics, its flows and, if a figure asks for them, its series.

A record is plain names and values, so that it can be stored and sent between processes. Quantities are
taken from it afterwards (`quantities.py`): another quantity does not need the run to be read again.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.durations import parse_duration_ns
from tfrctrace.errors import InputError, TfrctraceError, TfrctraceWarning, UsageError, input_problem
from tfrctrace.experiment.study import RATE
from tfrctrace.labels import UNUSED
from tfrctrace.measuring import BYTES_OF, base_width_ns
from tfrctrace.parsers.schema import FEEDBACK, FLOWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.experiment.study import Measuring
    from tfrctrace.measuring import Measured
    from tfrctrace.metrics.competing import CompetingSet
    from tfrctrace.parsers._native import Problem
    from tfrctrace.trace import Trace

Record = dict[str, Any]

MAX_POINTS: Final = 100_000
"""Of the series of one flow; of more every second, third, ... is kept."""

_NUMBERS: Final = [column.name for column in FLOWS if column.type != "string"]
_FEEDBACK_NUMBERS: Final = {column.name: column.unit for column in FEEDBACK if column.type == "float64"}


def record_run(path: str, called: str, measuring: Measuring, series: Sequence[str]) -> Record:
    """Return the record of the run at `path`, with the `series` that are asked for.

    Nothing is raised for a run that cannot be read: its record has `failed` set, and the problems.
    """
    problems: list[Problem] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            record: Record = {"failed": False, **_measured(path, measuring, series)}
        except InputError as error:
            record, problems = {"failed": True}, list(error.problems)
        except TfrctraceError as error:
            record, problems = {"failed": True}, [input_problem(called, "run", str(error), hint=error.hint)]
    told = [one.message.problem for one in caught if isinstance(one.message, TfrctraceWarning)]
    record["problems"] = [_of_run(problem, path, called) for problem in (*told, *problems)]
    return record


def _of_run(problem: Problem, path: str, called: str) -> Problem:
    """Return a problem that says of which run it is, called as the study calls it."""
    source = problem["source"]
    if problem["kind"] in {"label", UNUSED, "weight"}:
        what = "weight" if problem["kind"] == "weight" else "label"
        return {**problem, "source": called, "message": f"{what} `{source}` {problem['message']}"}
    below = os.path.relpath(source, path) if source.startswith(os.path.join(path, "")) else ""
    return {**problem, "source": os.path.join(called, below) if below else called}


def _measured(path: str, measuring: Measuring, series: Sequence[str]) -> Record:
    import tfrctrace

    window_ns = parse_duration_ns(measuring.window)
    trace = tfrctrace.open(
        path,
        filter=measuring.filter,
        input_format=measuring.input_format,
        layer=measuring.layer,
        dissect=measuring.dissect,
        tfrc=measuring.tfrc,
        bin_width=None if measuring.basis == "received" else f"{base_width_ns(window_ns)}ns",
    )
    measured = trace.measure(
        window=measuring.window,
        warmup=measuring.warmup,
        basis=measuring.basis,
        labels=measuring.labels,
        only_labelled=measuring.only_labelled,
        least_packets=measuring.least_packets,
        capacity=measuring.capacity,
        weight=measuring.weight,
        step=measuring.step,
    )
    chosen = max(measured.sets, key=_weight, default=None)
    number = None if chosen is None else chosen.number
    return {
        "sets": len(measured.sets) + measured.sets_left_out,
        "set": None if chosen is None else _set_facts(chosen),
        "flows_left_out": measured.flows_left_out,
        "metrics": [
            {**asdict(one), "flows": list(one.flows)}
            for one in measured.metrics
            if one.competing_set in {None, number}
        ],
        "flows": measured.looked_at.select("group", *_NUMBERS).to_dicts(),
        "series": {name: list(_series(trace, measured, measuring, name)) for name in series},
    }


def _weight(one: CompetingSet) -> tuple[int, int]:
    """Return how much there is to compare; of equal sets the first counts."""
    return len(one.flows) * (one.windows.end_ns - one.windows.start_ns), -one.number


def _set_facts(one: CompetingSet) -> Record:
    return {
        "source": one.source,
        "flows": list(one.flows),
        "start_ns": one.windows.start_ns,
        "end_ns": one.windows.end_ns,
    }


def _series(trace: Trace, measured: Measured, measuring: Measuring, name: str) -> Iterator[Record]:
    """Give a series for each flow: times in s since the first packet of any, and values in `unit`."""
    flows = measured.looked_at
    start_ns = flows["start_ns"].min()
    origin_ns = start_ns if isinstance(start_ns, int) else 0
    if name == RATE:
        points, unit = _rates(trace, flows, measuring), "bit/s"
    elif name in _FEEDBACK_NUMBERS:
        points, unit = trace.feedback.with_columns(_value(name)), _FEEDBACK_NUMBERS[name]
    else:
        points, unit = _variable(trace, name)
    for flow, group, direction in flows.select("flow", "group", "direction").iter_rows():
        own = points.filter((points["flow"] == flow) & (points["direction"] == direction))
        own = own.gather_every(max(-(-len(own) // MAX_POINTS), 1))
        if len(own):
            yield {
                "flow": flow,
                "group": group,
                "unit": unit,
                "time_s": ((own["time_ns"] - origin_ns) / 1e9).to_list(),
                "values": own["value"].to_list(),
            }


def _value(name: str) -> pl.Expr:
    import polars as pl

    return pl.col(name).alias("value")


def _rates(trace: Trace, flows: pl.DataFrame, measuring: Measuring) -> pl.DataFrame:
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
        # one grid for all flows, so that their curves can be compared
        origin_ns = own_ns + -(-(start_ns - own_ns) // base_ns) * base_ns
        windows = whole_windows(origin_ns, window_ns, first_ns - window_ns + 1, last_ns)
        sizes = bins.rates(flow, windows, BYTES_OF[measuring.basis])
        parts.append(
            pl.DataFrame(
                {
                    "time_ns": pl.int_range(windows.count, dtype=pl.Int64, eager=True) * window_ns
                    + (windows.start_ns + window_ns // 2),
                    "value": sizes * (8e9 / window_ns),
                }
            ).select(
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
        raise UsageError(
            f"the run has no variable `{name}`",
            hint=f"a time series is of `{RATE}`, of {', '.join(_FEEDBACK_NUMBERS)}"
            + (f", or of {', '.join(known)}" if known else ""),
        )
    return samples, samples["unit"][0]
