"""Burstiness: the variation of the rate of each flow by the width of the windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.conversations import data_rows
from tfrctrace.reports.elements import STYLES, Axis, Curve, Figure, Section
from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.reports.report_content import ReportContent

_FEWEST_TIMESCALES: Final = 3

_TIMESCALE: Final = Axis("width of the windows in seconds", logarithmic=True)


def burstiness_section(content: ReportContent) -> Section:
    """Return the variation of the rate by timescale of the flows with most bytes; empty if none is known."""
    key, title = "burstiness", "Burstiness"
    measured = content.results.measured
    if measured is None:
        return Section(key, title)
    rows = data_rows(content.flows, measured.metrics)
    known: dict[int, dict[float, float]] = {}
    for metric in measured.metrics:
        if metric.name == "cov" and metric.value is not None and metric.window_s is not None:
            # of a flow in several sets the first counts
            known.setdefault(metric.flows[0], {}).setdefault(metric.window_s, metric.value)
    drawn = sorted(
        (flow for flow, covs in known.items() if len(covs) >= _FEWEST_TIMESCALES and flow in rows),
        key=lambda flow: (-rows[flow].wire_bytes, flow),
    )[:STYLES]
    curves = tuple(
        Curve(rows[flow].legend, style, tuple(sorted(known[flow])), _in_order(known[flow]))
        for style, flow in enumerate(drawn, start=1)
    )
    if not curves:
        return Section(key, title)
    rest = len(known) - len(curves)
    left_out = f" Not drawn: {counted(rest, 'flow')} with fewer bytes." if rest else ""
    figure = Figure(
        key="burstiness-timescales",
        title="Variation of the rate by timescale",
        description=f"Line chart of {counted(len(curves), 'curve')}.",
        caption=(
            "Standard deviation over mean of the goodput (coefficient of variation) in windows of each "
            "width, at least eight of them (Floyd et al. 2000). 0 is an even rate; where a curve falls, "
            f"bursts even out over wider windows.{left_out}"
        ),
        unit="",
        value_label="standard deviation over mean",
        curves=curves,
        axis=_TIMESCALE,
    )
    return Section(key, title, figures=(figure,))


def _in_order(covs: Mapping[float, float]) -> tuple[float, ...]:
    return tuple(covs[width_s] for width_s in sorted(covs))
