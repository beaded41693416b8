"""The capacity over the number of stations: what `tfrctrace capacity --sweep` prints and draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from tfrctrace.reports.figures.charts import Chart, Series
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.capacity import network_line, network_notes
from tfrctrace.reports.units import format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.metrics.results.capacity import CapacitySweep, NetworkTerms, SweptRate

_MEANINGS: Final[Mapping[SweptRate, tuple[str, str]]] = {
    "x_t": ("X_t", "payload of each station"),
    "x_m": ("X_m", "whole frames of each station"),
    "x_fair": ("X_fair", "fair share of each flow, whole frames"),
}


def write_sweep_text(file: TextIO, network: NetworkTerms, swept: CapacitySweep, rate: SweptRate) -> None:
    """Write a line for each number of stations, and a column for each mix."""
    rows = [
        (str(count), *(format_rate_bps(curve.points[place].bps(rate)) for curve in swept.mixes))
        for place, count in enumerate(swept.stations)
    ]
    head = ("stations", *(curve.mix for curve in swept.mixes))
    symbol, meaning = _MEANINGS[rate]
    lines = [network_line(network), "", f"{symbol}: {meaning}", "", *aligned([head, *rows], left=set())]
    notes = [f"note: {note}" for note in network_notes(network)]
    lines += ["", *notes] if notes else []
    file.writelines(f"{line}\n" for line in lines)


def sweep_chart(swept: CapacitySweep, rate: SweptRate) -> Chart:
    """Return the drawing of a sweep: a curve for each mix."""
    _, meaning = _MEANINGS[rate]
    title = f"{meaning}, over the number of stations"
    return Chart(
        key="capacity",
        title=title,
        description=title,
        caption=title,
        kind="line",
        x_label="stations",
        y_label=meaning,
        unit="bit/s",
        series=tuple(
            Series(
                label=curve.mix,
                x=tuple(float(count) for count in swept.stations),
                values=tuple(point.bps(rate) for point in curve.points),
            )
            for curve in swept.mixes
        ),
    )
