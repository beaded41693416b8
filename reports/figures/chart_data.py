"""The values that a figure draws, as CSV: a row for each point, or each sample of a box or a distribution."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tfrctrace.parsers.csv_text import csv_cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.reports.figures.charts import Chart, Series

_HEADS = ("series", "x", "value", "low", "high")


def chart_csv(chart: Chart, *, raw: bool = False) -> str:
    """Return the columns `series`, `x`, `value`, `low` and `high`; texts are made safe unless `raw`."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(_HEADS)
    for one in chart.series:
        name = csv_cell(one.label, raw=raw)
        lines.writerows(
            (
                name,
                csv_cell(place, raw=raw),
                *("" if number is None else f"{number:.17g}" for number in numbers),
            )
            for place, numbers in _points(chart, one)
        )
    return written.getvalue()


def _points(chart: Chart, one: Series) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """Give each place on the x axis with the value there, and its interval if there is one."""
    if chart.kind == "cdf":
        yield from (("", (value, None, None)) for value in sorted(one.x))
        return
    for place, x in enumerate(one.x):
        name = chart.categories[int(x)] if chart.categories else f"{x:.17g}"
        if chart.kind == "box" and one.samples:
            yield from ((name, (value, None, None)) for value in one.samples[place])
        else:
            low, high = (bounds[place] if bounds else None for bounds in (one.low, one.high))
            yield name, (one.values[place], low, high)
