"""The distribution of the RTT of each direction as one curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.conversations import of_direction
from tfrctrace.reports.elements import Axis, Curve, Figure
from tfrctrace.reports.figures.drawing import is_wide
from tfrctrace.reports.figures.throughput_and_rtt import most_sampled
from tfrctrace.reports.units import counted, format_count, format_ms

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.reports.drawn_traces import DrawnTrace
    from tfrctrace.reports.flow_rows import FlowRow

_NS_PER_MS: Final = 1e6

_LABEL: Final = "RTT in ms"


def rtt_distribution_figure(trace: DrawnTrace, quantiles: pl.DataFrame) -> Figure | None:
    """Return the share of RTT samples at or below each value; None without samples.

    `quantiles` has `flow`, `direction`, `share` and `rtt_ns` (`tfrctrace.metrics.flow.quantiles`).
    """
    import polars as pl

    curves: list[Curve] = []
    shown: list[FlowRow] = []
    for row in most_sampled(trace.flows):
        own = of_direction(quantiles, row)
        # equal samples are one step of the curve, up to the last share of them
        steps = own.group_by("rtt_ns", maintain_order=True).agg(pl.col("share").max())
        if steps.height:
            rtt_ms = tuple(rtt_ns / _NS_PER_MS for rtt_ns in steps["rtt_ns"].to_list())
            curves.append(
                Curve(
                    row.legend,
                    len(curves) + 1,
                    rtt_ms,
                    tuple(steps["share"].to_list()),
                    form="steps",
                )
            )
            shown.append(row)
    if not curves:
        return None
    samples = sum(row.rtt_samples or 0 for row in shown)
    medians = ", ".join(format_ms(row.rtt_p50_ms) for row in shown)
    return Figure(
        key=trace.key("rtt-cdf"),
        title=trace.titled("Distribution of the RTT"),
        description=f"Distribution of {counted(len(curves), 'direction')}; medians {medians}.",
        caption=(
            f"Share of the samples at or below each RTT; {format_count(samples)} samples (empirical "
            "distribution, drawn through its quantiles in steps of half a percent). A steep part means many "
            "similar samples, a long flat part at the top a tail of slow ones."
        ),
        unit="",
        is_share=True,
        value_label="share of the samples",
        curves=tuple(curves),
        axis=Axis(_LABEL, logarithmic=is_wide([x for curve in curves for x in (curve.x[0], curve.x[-1])])),
    )
