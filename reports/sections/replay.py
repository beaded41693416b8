"""TFRC replayed on the reports of a flow: the allowed rate beside the sent and the received one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tfrctrace.reports.elements import FLOW_HEADING, Cell, Curve, Figure, Heading, Row, Section, TableView
from tfrctrace.reports.figures.thinning import thinned
from tfrctrace.reports.flow_rows import FlowRow, flow_anchor
from tfrctrace.reports.records import records
from tfrctrace.reports.units import counted, format_count, format_rate_bps, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.elements import Unit
    from tfrctrace.reports.report_content import ReportContent

_KEY: Final = ("flow", "direction")
_Names: TypeAlias = "Mapping[tuple[object, ...], str]"
"""Labels of directions."""

MOST_POINTS: Final = 1_500
"""Points of a curve; a flow of an hour has more reports than a figure has pixels."""

_READING: Final = (
    "TFRC's rules, applied to the reports that reached the sender. Where the flow sent less than X, the "
    "application or the host was the limit; where it sent more, the sender follows other rules. The replay "
    "is open loop: at another rate, losses and round-trip times would have been different."
)

_MODES: Final = {
    "slow_start": "slow start",
    "equation": "the equation",
    "receive_limited": "the receive rate",
    "no_feedback": "missing reports",
    "idle": "missing reports",
}
"""Modes, as the legend names them; the last two are one curve."""

_STYLES: Final = {"slow start": 1, "the equation": 2, "the receive rate": 3, "missing reports": 4}
_BREAK_S: Final = 1e-6
"""Time from the end of a run to the break after it: the resolution of the page."""

_SENT_STYLE: Final = 5
_RECEIVED_STYLE: Final = 6

_HEADINGS: Final = (
    FLOW_HEADING,
    Heading("Direction", numeric=False, meaning="where the data went"),
    Heading("Mode", numeric=False, meaning="docs/replay.md explains each mode"),
    Heading("Time", meaning="share of the time from the first report to the last data packet"),
    Heading("Mean X", meaning="allowed rate over that time, payload"),
    Heading("Times", meaning="how often the mode began"),
    Heading("Reasons", numeric=False, meaning="reasons of the steps, most frequent first", is_prose=True),
)


def replay_section(content: ReportContent) -> Section:
    """Return figures and table of the replayed flows, empty without any."""
    steps = content.results.table("replay")
    if steps.is_empty():
        return Section("replay", "TFRC replay")
    names: _Names = {
        row.key: row.legend for row in records(content.flows.join(steps, on=_KEY, how="semi"), FlowRow)
    }
    figures = [figure for trace in content.traces for figure in _figures_of(trace, trace.of(steps), names)]
    return Section(
        "replay", "TFRC replay", ((_READING,),), figures=tuple(figures), tables=(_table(steps, names),)
    )


def _figures_of(trace: DrawnTrace, steps: pl.DataFrame, names: _Names) -> Iterator[Figure]:
    flows = steps.partition_by(_KEY, maintain_order=True, as_dict=True)
    for key, own in flows.items():
        yield _rates(trace, own, names[key])
        if own["x_calc_bps"].null_count() < own.height:
            yield _limits(trace, own, names[key])
    if flows:
        named = [(names[key], own) for key, own in flows.items()]
        yield _of_reports(trace, named, "p", "Loss event rate p of the replays", unit="")
        yield _of_reports(trace, named, "r_ms", "Smoothed round-trip time R of the replays", unit="ms")


def _rates(trace: DrawnTrace, steps: pl.DataFrame, name: str) -> Figure:
    """Return X, in a curve for each mode, with what was sent and received."""
    import polars as pl

    words = steps["mode"].replace_strict(_MODES, default="", return_dtype=pl.String)
    curves = [_runs(trace, word, steps, words == word) for word in _STYLES if (words == word).any()]
    curves.append(_sent(trace, steps))
    received = steps.filter(pl.col("x_recv_bps").is_not_null())
    curves.append(_steps(trace, "received (X_recv)", _RECEIVED_STYLE, received, "x_recv_bps"))
    first = steps.row(0, named=True)
    return trace.over_time(
        f"replay-rate-{first['flow']}-{first['direction']}",
        f"Allowed, sent and received rate, flow {name}",
        curves,
        unit="bit/s",
        caption=(
            f"Payload. X is the rate that {first['algorithm']} ({first['profile']}) allows after each of "
            f"{counted(steps.height, 'step')}, coloured by mode. Sent is the mean over R or from one step to "
            "the next, X_recv the rate in the report."
        ),
    )


def _runs(trace: DrawnTrace, word: str, steps: pl.DataFrame, governs: pl.Series) -> Curve:
    """Return X while a mode governs it, each run up to the step that ends it."""
    times, values = list[float](), list[float | None]()
    held: float | None = None
    for time_s, x_bps, is_here in zip(
        trace.seconds(steps["time_ns"].to_list()), steps["x_bps"], governs, strict=True
    ):
        if held is not None and not is_here:
            times += [time_s, time_s + _BREAK_S]
            values += [held, None]
        held = x_bps if is_here else None
        if is_here:
            times.append(time_s)
            values.append(x_bps)
    curve = Curve(f"X, by {word}", _STYLES[word], tuple(times), tuple(values), form="steps")
    return thinned(curve, MOST_POINTS)


def _sent(trace: DrawnTrace, steps: pl.DataFrame) -> Curve:
    """Return what was sent, over R at least: two packets between two steps at once are no rate."""
    times_s = trace.seconds(steps["time_ns"].to_list())
    times, values = list[float](), list[float | None]()
    since_s, bits = times_s[0], 0.0
    rows = zip(times_s[1:], times_s[:-1], steps["sent_bps"][1:], steps["r_ms"][1:], strict=True)
    for time_s, before_s, sent_bps, r_ms in rows:
        # the rate of a row is that from the row before to it
        bits += (sent_bps or 0.0) * (time_s - before_s)
        if time_s > since_s and time_s - since_s >= (r_ms or 0.0) / 1e3:
            times.append(since_s)
            values.append(bits / (time_s - since_s))
            since_s, bits = time_s, 0.0
    curve = Curve("sent", _SENT_STYLE, tuple(times), tuple(values), form="steps")
    return thinned(curve, MOST_POINTS)


def _limits(trace: DrawnTrace, steps: pl.DataFrame, name: str) -> Figure:
    """Return the two rates of which X is the lower one."""
    first = steps.row(0, named=True)
    curves = [
        _steps(trace, label, style, steps, column)
        for style, (label, column) in enumerate(
            (
                ("X_calc, the equation", "x_calc_bps"),
                ("limit by the receive rate", "x_limit_bps"),
                ("X_recv_set, highest receive rate", "x_recv_set_bps"),
            ),
            start=1,
        )
        if steps[column].null_count() < steps.height
    ]
    return trace.over_time(
        f"replay-limits-{first['flow']}-{first['direction']}",
        f"What limits X, flow {name}",
        curves,
        unit="bit/s",
        caption=(
            "After slow start X is the lower one of the throughput equation and of the limit, twice the "
            "highest receive rate that counts (RFC 5348 section 4.3)."
        ),
    )


def _of_reports(
    trace: DrawnTrace, named: Sequence[tuple[str, pl.DataFrame]], column: str, title: str, *, unit: Unit
) -> Figure:
    import polars as pl

    curves = [
        _steps(trace, label, style, steps.filter(pl.col(column).is_not_null()), column)
        for style, (label, steps) in enumerate(named, start=1)
    ]
    return trace.over_time(
        f"replay-{column}",
        title,
        [curve for curve in curves if curve.x],
        unit=unit,
        caption="Value in the replay after each report.",
        value_label="p" if column == "p" else "",
    )


def _steps(trace: DrawnTrace, label: str, style: int, steps: pl.DataFrame, column: str) -> Curve:
    return thinned(trace.steps(label, style, steps["time_ns"].to_list(), steps[column]), MOST_POINTS)


def _table(steps: pl.DataFrame, names: _Names) -> TableView:
    """Return what governed X of each flow, for how long, how often and why."""
    rows = [
        row
        for key, own in steps.partition_by(_KEY, maintain_order=True, as_dict=True).items()
        for row in _mode_rows(own, names[key])
    ]
    return TableView(
        "replay-modes",
        "What governed the allowed rate, longest first; `tfrctrace replay` has every step with its reason.",
        _HEADINGS,
        tuple(rows),
        sortable=True,
    )


def _mode_rows(steps: pl.DataFrame, name: str) -> Iterator[Row]:
    import polars as pl

    timed = steps.with_columns(
        (pl.col("time_ns").shift(-1) - pl.col("time_ns")).fill_null(0).alias("lasts_ns"),
        (pl.col("mode") != pl.col("mode").shift(1)).fill_null(value=True).alias("begins"),
    )
    total_ns = int(timed["lasts_ns"].sum())
    modes = (
        timed.group_by("mode", maintain_order=True)
        .agg(
            pl.col("lasts_ns").sum().alias("time_ns"),
            (pl.col("x_bps") * pl.col("lasts_ns")).sum().alias("weighted"),
            pl.col("begins").sum().alias("times"),
            pl.col("reason").value_counts(sort=True).alias("reasons"),
        )
        .sort("time_ns", "mode", descending=[True, False])
    )
    first = steps.row(0, named=True)
    for mode in modes.iter_rows(named=True):
        share = mode["time_ns"] / total_ns if total_ns else None
        mean_bps = mode["weighted"] / mode["time_ns"] if mode["time_ns"] else None
        yield Row(
            f"replay-{flow_anchor(first['flow'])}-{first['direction']}-{mode['mode']}",
            (
                Cell(str(first["flow"]), sort=first["flow"]),
                Cell(name.partition(": ")[2]),
                Cell(mode["mode"].replace("_", " ")),
                Cell(format_share(share), sort=share),
                Cell(format_rate_bps(mean_bps), sort=mean_bps),
                Cell(format_count(mode["times"]), sort=mode["times"]),
                Cell(_reasons(mode["reasons"])),
            ),
        )


def _reasons(counts: Sequence[dict[str, Any]]) -> str:
    ordered = sorted(counts, key=lambda one: (-one["count"], one["reason"]))
    return ", ".join(f"{one['reason'].replace('_', ' ')} {format_count(one['count'])}" for one in ordered)
