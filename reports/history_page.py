"""The page of a gate's history: each quantity over the builds, and where it changed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from tfrctrace.reports.elements import Axis, Cell, Curve, Figure, Heading, Report, Row, Section, TableView
from tfrctrace.reports.printers.build_trends import amount, change_words, sentence
from tfrctrace.reports.units import counted, format_time_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.trend import Trend
    from tfrctrace.reports.elements import Unit

_BUILDS: Final = Axis("builds, oldest first")

_SHOWN: Final = 200
"""Builds in the table, the latest."""


def history_report(trends: Sequence[Trend], *, title: str, zone: TimeZone | None = None) -> Report:
    """Return the page."""
    trends = sorted(trends, key=lambda trend: trend.first_worse is None)
    worse = [trend for trend in trends if trend.first_worse is not None]
    headline = tuple((f"{trend.quantity}: {sentence(trend, zone)}.",) for trend in worse)
    calm = (f"No quantity of {len(trends)} is worse than it was.",) if trends else ("No build has a value.",)
    sections = [
        Section(
            "trend",
            "Trend",
            headline=headline or (calm,),
            figures=tuple(_figure(number, trend) for number, trend in enumerate(trends)),
            tables=tuple(_changes(trends, zone)),
        )
    ]
    if trends:
        sections.append(Section("builds", "Builds", tables=(_builds(trends, zone),)))
    return Report(title, tuple(sections), kind="History of a gate")


def _figure(number: int, trend: Trend) -> Figure:
    names = [build.name for build in trend.builds]
    at = {name: place for place, name in enumerate(names)}
    bounds = [0, *(at[change.build] for change in trend.changes), len(names)]
    means = [sum(trend.means[a:b]) / (b - a) for a, b in pairwise(bounds) for _ in range(a, b)]
    places = tuple(float(place) for place in range(1, len(names) + 1))
    drawn_unit = trend.unit in {"bit/s", "ms", "B"}
    return Figure(
        key=f"trend-{number}",
        title=trend.quantity,
        description=f"{trend.quantity} of {counted(len(names), 'build')}: {sentence(trend)}.",
        caption="Dots are the means of the runs of a build; the line is the mean between two changes. "
        "A ring marks the first build of each.",
        unit=cast("Unit", trend.unit if drawn_unit else ""),
        curves=(
            Curve(
                "builds",
                1,
                places,
                tuple(trend.means),
                marked=tuple(at[change.build] for change in trend.changes),
                form="dots",
            ),
            Curve("mean between changes", 2, places, tuple(means), form="steps"),
        ),
        lasted_s=len(names) + 1.0,
        axis=_BUILDS,
        value_label="" if drawn_unit else (trend.unit or "value"),
        linked="builds",
    )


def _changes(trends: Sequence[Trend], zone: TimeZone | None) -> Iterator[TableView]:
    rows = [
        Row(
            f"change-{number}-{place}",
            (
                Cell(trend.quantity),
                Cell(change.build),
                Cell(change.direction),
                Cell(change_words(trend, change, zone)),
            ),
        )
        for number, trend in enumerate(trends)
        for place, change in enumerate(trend.changes)
    ]
    if rows:
        headings = (
            Heading("Quantity", numeric=False),
            Heading("First build", numeric=False),
            Heading("Direction", numeric=False),
            Heading("Change", numeric=False, is_prose=True),
        )
        caption = "Changes of a mean by more than the tolerance, which chance does not explain."
        yield TableView("changes", caption, headings, tuple(rows), sortable=True)


def _builds(trends: Sequence[Trend], zone: TimeZone | None) -> TableView:
    """Return the latest builds with their values."""
    values = {
        (build.name, number): mean
        for number, trend in enumerate(trends)
        for build, mean in zip(trend.builds, trend.means, strict=True)
    }
    times = {build.name: build.time_ns for trend in trends for build in trend.builds}
    latest = sorted(times, key=lambda name: -times[name])
    rows = tuple(
        Row(
            f"build-{place}",
            (
                Cell(name),
                Cell(format_time_ns(times[name], zone), sort=times[name] / 1e9),
                *(
                    Cell(amount(trend, value), sort=value)
                    if (value := values.get((name, number))) is not None
                    else Cell("–")
                    for number, trend in enumerate(trends)
                ),
            ),
        )
        for place, name in enumerate(latest[:_SHOWN])
    )
    left_out = len(latest) - len(rows)
    caption = "Means of the runs of each build, the latest first."
    if left_out:
        caption += f" {counted(left_out, 'older build')} {'is' if left_out == 1 else 'are'} left out."
    headings = (
        Heading("Build", numeric=False),
        Heading("First checked"),
        *(Heading(trend.quantity) for trend in trends),
    )
    return TableView("builds", caption, headings, rows, sortable=True)
