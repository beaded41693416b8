"""Two sides of a comparison on one page: what changed, and both over time and by their round-trip times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.compared import conclusion_words
from tfrctrace.reports.elements import Axis, Cell, Curve, Figure, Heading, Report, Row, Section, TableView
from tfrctrace.reports.figures.drawing import is_wide
from tfrctrace.reports.printers.comparison import HEADS, comparison_cells
from tfrctrace.reports.units import counted, format_duration_s, format_ms, format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.metrics.groups import Groups
    from tfrctrace.metrics.results.comparison import Difference

_TIME: Final = Axis("seconds since the start", is_time=True)
_FAR: Final = " Between the capture and the receivers of the slower direction."


@dataclass(frozen=True)
class _Measure:
    """What is drawn over time and by its distribution over intervals."""

    key: str
    title: str
    meaning: str
    axis: str
    column: str
    scale: float
    """From the column to the unit of the axis."""

    def value(self) -> pl.Expr:
        """Return the value of an interval in the unit of the axis."""
        import polars as pl

        return pl.col(self.column).cast(pl.Float64) * self.scale


_GOODPUT: Final = _Measure("goodput", "Goodput of all flows", "", "Mbit/s", "goodput_bps", 1e-6)
_LOSSES: Final = (
    _Measure(
        "path-losses",
        "Packets lost on the path",
        "Packets sent in an interval that never arrived, of all that the trace shows at both ends",
        "percent of the packets",
        "path_loss_ratio",
        100.0,
    ),
    _Measure(
        "retransmissions",
        "Retransmitted packets of TCP",
        "Retransmissions of all data packets of TCP, as captured",
        "percent of the data packets",
        "retransmission_ratio",
        100.0,
    ),
)


@dataclass(frozen=True)
class ComparedSide:
    """One side: its runs as groups by link, over intervals that all runs share."""

    called: str
    """`A` or `B`."""
    name: str
    runs: tuple[Groups, ...]


def comparison_report(
    differences: Sequence[Difference], sides: Sequence[ComparedSide], *, title: str
) -> Report:
    """Return the page: `differences` are judged, the most important first."""
    drawn = [_goodput_figure(sides), _intervals_figure(sides, _GOODPUT)]
    for loss in _LOSSES:
        drawn += [_loss_figure(sides, loss), _intervals_figure(sides, loss)]
    for measure, what in (("rtt", "Round-trip time"), ("delay", "One-way delay")):
        drawn += [_time_figure(sides, measure, what), _distribution_figure(sides, measure, what)]
    figures = [figure for figure in drawn if figure is not None]
    names = [f"{side.called}: {side.name} ({counted(len(side.runs), 'run')})" for side in sides]
    sections = [
        Section(
            "changes",
            "What changed",
            headline=((conclusion_words(differences),),),
            paragraphs=tuple((name,) for name in names),
            tables=(_table(differences),),
        )
    ]
    if figures:
        sections.append(Section("overlaid", "Both sides", figures=tuple(figures)))
    return Report(title, tuple(sections), kind="Comparison")


def _table(differences: Sequence[Difference]) -> TableView:
    headings = tuple(Heading(head, numeric=head in {"A", "B", "change", "p"}) for head in HEADS)
    written = []
    for number, found in enumerate(differences):
        name, *cells = comparison_cells(found)
        sort = (None, found.mean_a, found.mean_b, found.change, found.tested_p, None)
        values = (Cell(text, sort=value) for text, value in zip(cells, sort, strict=True))
        written.append(Row(f"change-{number}", (Cell(name, found.metric), *values)))
    return TableView(
        "changes-table",
        "B compared with A: first what users notice, then the rest by verdict. Better and worse are said "
        "where a test says that it is not chance (p < 0.05).",
        headings,
        tuple(written),
        sortable=True,
    )


def _far_side(run: Groups, measure: str) -> Groups:
    """Return all groups of a run together, of round-trip times those of the slower side of the capture.

    Mixed, the side with more packets would hide the other.
    """
    if measure != "rtt":
        return run.in_total()
    sides = run.whole().rows.drop_nulls("rtt_p50_ms").sort("rtt_p50_ms", descending=True)
    if not len(sides):
        return run.in_total()
    way = sides["direction"][0]
    far = replace(run, rows=run.rows.filter(direction=way), buckets=run.buckets.filter(direction=way))
    return far.in_total()


def _by_time(side: ComparedSide, measure: str, value: pl.Expr) -> pl.DataFrame:
    """Return mean, least and most of a value over the runs, by seconds since the start of each."""
    import polars as pl

    frames = []
    for run in side.runs:
        rows = _far_side(run, measure).rows
        if len(rows):
            start = pl.col("start_ns") - rows["start_ns"].min()
            frames.append(rows.select(at_s=start / 1e9, value=value))
    if not frames:
        return pl.DataFrame(
            schema={"at_s": pl.Float64, "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        )
    joined = pl.concat(frames).drop_nulls("value").group_by("at_s")
    value_of = pl.col("value")
    return joined.agg(mean=value_of.mean(), low=value_of.min(), high=value_of.max()).sort("at_s")


def _curves(sides: Sequence[ComparedSide], measure: str, value: pl.Expr) -> tuple[Curve, ...]:
    curves = []
    for style, side in enumerate(sides, start=1):
        found = _by_time(side, measure, value)
        if not len(found):
            continue
        width_s = (side.runs[0].grouping.every_ns or 0) / 1e9
        has_band = len(side.runs) > 1
        curves.append(
            Curve(
                f"{side.called}: {side.name}",
                style,
                tuple(at_s + width_s / 2 for at_s in found["at_s"]),
                tuple(found["mean"]),
                low=tuple(found["low"]) if has_band else (),
                high=tuple(found["high"]) if has_band else (),
            )
        )
    return tuple(curves)


def _goodput_figure(sides: Sequence[ComparedSide]) -> Figure | None:
    import polars as pl

    curves = _curves(sides, "goodput", pl.col("goodput_bps").cast(pl.Float64))
    if not curves:
        return None
    means = ", ".join(
        f"{curve.label} {format_rate_bps(sum(v or 0 for v in curve.values) / len(curve.values))}"
        for curve in curves
    )
    return Figure(
        key="compared-goodput",
        title="Goodput of all flows",
        description=f"Goodput over time of both sides; means {means}.",
        caption=f"Sum of both directions{_of_runs(sides)}, in intervals of {_width(sides)}.",
        unit="bit/s",
        curves=curves,
        lasted_s=max(curve.x[-1] for curve in curves),
        axis=_TIME,
        linked="compared",
    )


def _loss_figure(sides: Sequence[ComparedSide], loss: _Measure) -> Figure | None:
    """Return the course of losses or retransmissions, if a side has any."""
    curves = _curves(sides, loss.key, loss.value())
    if not any(value for curve in curves for value in curve.values):
        return None
    tops = ", ".join(
        f"{curve.label} {max(v or 0 for v in curve.values):.3g} %" for curve in curves if curve.values
    )
    return Figure(
        key=f"compared-{loss.key}",
        title=loss.title,
        description=f"{loss.title} over time of both sides; largest {tops}.",
        caption=f"{loss.meaning}{_of_runs(sides)}, in intervals of {_width(sides)}.",
        unit="",
        value_label=loss.axis,
        curves=curves,
        lasted_s=max(curve.x[-1] for curve in curves),
        axis=_TIME,
        linked="compared",
    )


def _intervals_figure(sides: Sequence[ComparedSide], measure: _Measure) -> Figure | None:
    """Return how the intervals of each side are distributed by a value."""
    import polars as pl

    curves = []
    for style, side in enumerate(sides, start=1):
        rows = [_far_side(run, measure.key).rows.select(value=measure.value()) for run in side.runs]
        values = pl.concat(rows)["value"].drop_nulls().sort() if rows else pl.Series(dtype=pl.Float64)
        if len(values):
            shares = tuple((rank + 1) / len(values) for rank in range(len(values)))
            curves.append(Curve(f"{side.called}: {side.name}", style, tuple(values), shares, form="steps"))
    if not any(x for curve in curves for x in curve.x):
        return None
    return Figure(
        key=f"compared-{measure.key}-cdf",
        title=f"Distribution: {measure.title[:1].lower()}{measure.title[1:]}",
        description=f"Share of the intervals at or below each value, of {counted(len(curves), 'side')}.",
        caption=f"All intervals of {_width(sides)} of a side, each counted once.",
        unit="",
        is_share=True,
        value_label="share of the intervals",
        curves=tuple(curves),
        axis=Axis(measure.axis),
    )


def _time_figure(sides: Sequence[ComparedSide], measure: str, what: str) -> Figure | None:
    """Return the course of round-trip times, or of delays."""
    import polars as pl

    curves = _curves(sides, measure, pl.col(f"{measure}_p95_ms").cast(pl.Float64))
    if not curves:
        return None
    tops = ", ".join(f"{curve.label} {format_ms(max(v or 0 for v in curve.values))}" for curve in curves)
    return Figure(
        key=f"compared-{measure}",
        title=f"{what} of all flows, 95th percentile",
        description=f"95th percentile over time of both sides; largest {tops}.",
        caption=(
            f"Of all samples of an interval of {_width(sides)}{_of_runs(sides)}."
            f"{_FAR if measure == 'rtt' else ''}"
        ),
        unit="ms",
        curves=curves,
        lasted_s=max(curve.x[-1] for curve in curves),
        axis=_TIME,
        linked="compared",
    )


def _distribution_figure(sides: Sequence[ComparedSide], measure: str, what: str) -> Figure | None:
    import polars as pl

    curves = []
    for style, side in enumerate(sides, start=1):
        buckets = pl.concat([_far_side(run, measure).buckets.filter(measure=measure) for run in side.runs])
        if not len(buckets):
            continue
        summed = (
            buckets.group_by("from_ns").agg(pl.col("to_ns").first(), pl.col("samples").sum()).sort("from_ns")
        )
        share = summed["samples"].cum_sum() / summed["samples"].sum()
        rtt_ms = tuple(to_ns / 1e6 for to_ns in summed["to_ns"])
        curves.append(Curve(f"{side.called}: {side.name}", style, rtt_ms, tuple(share), form="steps"))
    if not curves:
        return None
    return Figure(
        key=f"compared-{measure}-cdf",
        title=f"Distribution: {what.lower()}",
        description=f"Share of samples at or below each value, of {counted(len(curves), 'side')}.",
        caption=f"All samples of a side, within 0.8 %.{_FAR if measure == 'rtt' else ''}",
        unit="",
        is_share=True,
        value_label="share of the samples",
        curves=tuple(curves),
        axis=Axis("ms", logarithmic=is_wide([x for curve in curves for x in (curve.x[0], curve.x[-1])])),
    )


def _of_runs(sides: Sequence[ComparedSide]) -> str:
    if all(len(side.runs) == 1 for side in sides):
        return ""
    return ": the mean over the runs of a side, and the range of the runs as a band"


def _width(sides: Sequence[ComparedSide]) -> str:
    return format_duration_s((sides[0].runs[0].grouping.every_ns or 0) / 1e9)
