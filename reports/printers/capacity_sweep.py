"""The capacity over the number of stations: what `tfrctrace capacity --sweep` prints and draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from tfrctrace.reports.figures.charts import Chart, Series
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.capacity import network_line, network_notes
from tfrctrace.reports.units import MISSING, format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEANINGS: Final = {
    "x_t": ("X_t", "payload of each station"),
    "x_m": ("X_m", "whole frames of each station"),
    "x_fair": ("X_fair", "fair share of each flow, whole frames"),
}


def write_sweep_text(file: TextIO, network: Mapping[str, Any], swept: Mapping[str, Any], rate: str) -> None:
    """Write a line for each number of stations, and a column for each mix."""
    curves = [one["points"] for one in swept["mixes"]]
    rows = [
        (str(count), *(_shown(points[place][f"{rate}_bps"]) for points in curves))
        for place, count in enumerate(swept["stations"])
    ]
    head = ("stations", *(one["mix"] for one in swept["mixes"]))
    symbol, meaning = _MEANINGS[rate]
    lines = [network_line(network), "", f"{symbol}: {meaning}", "", *aligned([head, *rows], left=set())]
    notes = [f"note: {note}" for note in network_notes(network)]
    lines += ["", *notes] if notes else []
    file.writelines(f"{line}\n" for line in lines)


def _shown(bps: float | None) -> str:
    return MISSING if bps is None else format_rate_bps(bps)


def sweep_chart(swept: Mapping[str, Any], rate: str) -> Chart:
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
                label=one["mix"],
                x=tuple(float(count) for count in swept["stations"]),
                values=tuple(point[f"{rate}_bps"] for point in one["points"]),
            )
            for one in swept["mixes"]
        ),
    )
