"""The rates that algorithms would have allowed, beside what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Curve, Figure
from tfrctrace.reports.figures.thinning import thinned
from tfrctrace.reports.units import enumerated

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

_MOST_POINTS: Final = 4_000


def replayed_rates(steps: pl.DataFrame, zero_ns: int) -> Iterator[Figure]:
    """Give a figure for each flow and direction of `steps`, rows of `tfrctrace.parsers.schema.REPLAY`."""
    for flow, direction in steps.select("flow", "direction").unique(maintain_order=True).iter_rows():
        own = steps.filter(flow=flow, direction=direction)
        names = own["algorithm"].unique(maintain_order=True).to_list()
        by_name = [own.filter(algorithm=name).sort("time_ns") for name in names]
        columns = [
            ("sent", by_name[0], "sent_bps"),
            *((name, rows, "x_bps") for name, rows in zip(names, by_name, strict=True)),
        ]
        curves = tuple(
            thinned(_curve(label, style, rows, column, zero_ns), _MOST_POINTS)
            for style, (label, rows, column) in enumerate(columns, start=1)
        )
        yield Figure(
            key=f"replay-{flow}-{direction}",
            title=f"Rate of flow {flow}, sent and as {enumerated(names)} would allow",
            description=f"Step chart of {len(curves)} curves.",
            caption="Payload sent between the reports of the receiver, and the rates that the algorithms "
            "compute of these reports. None was in control: losses and delays are those of what was sent.",
            unit="bit/s",
            curves=curves,
            lasted_s=max((curve.x[-1] for curve in curves if curve.x), default=0.0),
        )


def _curve(label: str, style: int, rows: pl.DataFrame, column: str, zero_ns: int) -> Curve:
    times_s = ((rows["time_ns"] - zero_ns) / 1e9).to_list()
    return Curve(label, style, tuple(times_s), tuple(rows[column].to_list()), form="steps")
