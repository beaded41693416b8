"""What algorithms would have done, beside what was seen: rates, windows, and closed loops."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.results.closed_loop import SWEPT
from tfrctrace.reports.elements import Axis, Curve, Figure
from tfrctrace.reports.figures.thinning import thinned
from tfrctrace.reports.units import enumerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.closed_loop import ClosedLoopReplays, ClosedLoopRun, ReplacedFlow
    from tfrctrace.metrics.results.replay import NotReplayable
    from tfrctrace.reports.elements import Unit
    from tfrctrace.reports.figures.kinds import PlotKind

    Form = Literal["line", "steps", "dots"]

_MOST_POINTS: Final = 4_000


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The columns of a table of replays that are drawn, and how."""

    key: str
    title: str
    observed: tuple[str, str] | None
    """Label and column of what was seen, if the table has it."""
    column: str
    label: str
    unit: Unit
    form: Form
    caption: str


_DRAWN: Final[Mapping[PlotKind, _Drawn]] = {
    "replay": _Drawn(
        "replay",
        "Rate of flow {flow}, sent and as {names} would allow",
        ("sent", "sent_bps"),
        "x_bps",
        "{name}",
        "bit/s",
        "steps",
        "Payload sent between the reports of the receiver, and the rates that the algorithms compute of "
        "these reports. None was in control: losses and delays are those of what was sent.",
    ),
    "cwnd": _Drawn(
        "windows",
        "Congestion window of flow {flow}, observed and as {names} would decide",
        ("observed", "observed_bytes"),
        "predicted_bytes",
        "as {name} predicts",
        "B",
        "dots",
        "Windows of rounds and after losses. Each dot is predicted from the window observed before it.",
    ),
    "closed-loop": _Drawn(
        "closed-loop",
        "Rate of {names} in place of flow {flow}",
        None,
        "received_bps",
        "{name}",
        "bit/s",
        "steps",
        "Payload that arrives in each round of a model of the bottleneck that the trace shows.",
    ),
}


_AXES: Final = {"bit/s": ("Mbit/s", 1e6), "bytes": ("kB", 1e3), "ms": ("ms", 1.0), "%": ("%", 0.01)}
"""Of the values of a sweep by their unit: the unit of the axis, and what divides them."""
_SWEPT_FIGURES: Final[Sequence[tuple[str, str, Unit, Sequence[str]]]] = (
    ("rate", "Rate", "bit/s", ("received_mean_bps", "received_low_bps", "received_high_bps")),
    ("rtt", "Round-trip time p95", "ms", ("rtt_p95_ms", "rtt_p95_low_ms", "rtt_p95_high_ms")),
)


def replay_figures(kind: PlotKind, steps: pl.DataFrame, zero_ns: int) -> Iterator[Figure]:
    """Give a figure of each direction in `steps`, rows of `replay`, `one_step` or `closed_loop`."""
    drawn = _DRAWN[kind]
    known = steps.drop_nulls("time_ns")
    known = known.with_columns(time_s=(known["time_ns"] - zero_ns) / 1e9)
    for flow, direction in known.select("flow", "direction").unique(maintain_order=True).iter_rows():
        own = known.filter(flow=flow, direction=direction)
        names = own["algorithm"].unique(maintain_order=True).to_list()
        by_name = [own.filter(algorithm=name).sort("time_ns") for name in names]
        curves = [
            _curve(drawn.label.format(name=name), style, rows["time_s"], rows[drawn.column], drawn.form)
            for style, (name, rows) in enumerate(zip(names, by_name, strict=True), start=2)
        ]
        if drawn.observed is not None:
            label, column = drawn.observed
            form = "line" if drawn.form == "dots" else drawn.form
            curves.insert(0, _curve(label, 1, by_name[0]["time_s"], by_name[0][column], form))
        yield Figure(
            key=f"{drawn.key}-{flow}-{direction}",
            title=drawn.title.format(flow=flow, names=enumerated(names)),
            description=f"Chart of {len(curves)} curves.",
            caption=drawn.caption,
            unit=drawn.unit,
            curves=tuple(curves),
            lasted_s=max((curve.x[-1] for curve in curves if curve.x), default=0.0),
        )


def sweep_figures(loops: ClosedLoopReplays, flow: ReplacedFlow) -> Iterator[Figure]:
    """Give the rate and the delay of each algorithm in place of a flow over the values of a sweep."""
    words, unit = SWEPT[loops.head.sweep or ""]
    axis_unit, divisor = _AXES[unit]
    by_name: defaultdict[str, list[ClosedLoopRun]] = defaultdict(list)
    for run in loops.replays:
        if run.key == flow.key:
            by_name[run.algorithm].append(run)
    for key, title, of_unit, columns in _SWEPT_FIGURES:
        yield Figure(
            key=f"sweep-{key}-{flow.flow}-{flow.direction}",
            title=f"{title} of {enumerated(list(by_name))} in place of flow {flow.flow}, by {words}",
            description=f"Chart of {len(by_name)} curves.",
            caption=f"Each point is a model of the bottleneck with another {words}. A band reaches from the "
            "least to the most that comes out as the rest of the bottleneck is known.",
            unit=of_unit,
            axis=Axis(f"{words} in {axis_unit}"),
            curves=tuple(
                _swept_curve(name, style, runs, divisor, columns)
                for style, (name, runs) in enumerate(by_name.items(), start=2)
            ),
        )


def _swept_curve(
    name: str, style: int, runs: Sequence[ClosedLoopRun], divisor: float, columns: Sequence[str]
) -> Curve:
    values, low, high = (tuple(getattr(run, column) for run in runs) for column in columns)
    has_band = any(one is not None for one in low)
    return Curve(
        name,
        style,
        tuple((run.swept or 0.0) / divisor for run in runs),
        values,
        low=low if has_band else (),
        high=high if has_band else (),
    )


def not_drawn(lacking: Iterable[NotReplayable]) -> tuple[str, ...]:
    """Return a line for each kind of reason why flows have no figure: of the first, and how many more."""
    alike: defaultdict[str, list[NotReplayable]] = defaultdict(list)
    for one in lacking:
        alike[one.hint].append(one)
    return tuple(map(_reason, alike.values()))


def _reason(lacking: Sequence[NotReplayable]) -> str:
    first, *others = lacking
    more = f"; {len(others):,} more likewise" if others else ""
    return f"flow {first.flow} {first.direction} cannot be replayed: {first.what} ({first.hint}){more}"


def _curve(label: str, style: int, times_s: pl.Series, values: pl.Series, form: Form) -> Curve:
    curve = Curve(label, style, tuple(times_s.to_list()), tuple(values.to_list()), form=form)
    return thinned(curve, _MOST_POINTS)
