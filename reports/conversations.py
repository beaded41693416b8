"""Flows chosen for a report, both directions side by side.

Frames are tidy, one row per flow and direction; people think in conversations. The direction that
carried more bytes leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.records import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tfrctrace.metrics.results.metrics import Metric


SMALLEST_SHARE: Final = 0.05
"""Share of the largest value below which a direction is not drawn by itself."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One flow: the row of its leading direction, and that of the reverse direction, if any."""

    lead: FlowRow
    back: FlowRow | None

    @property
    def directions(self) -> tuple[FlowRow, ...]:
        """The leading direction, and the reverse one if there is any."""
        return (self.lead,) if self.back is None else (self.lead, self.back)


def largest_flows(flows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return the `limit` flows with most bytes (`_total`), largest first, equal ones by number."""
    import polars as pl

    return (
        flows.lazy()
        .group_by("flow")
        .agg(pl.col("wire_bytes").sum().alias("_total"))
        .sort("_total", "flow", descending=[True, False])
        .head(limit)
        .collect()
    )


def largest_conversations(flows: pl.DataFrame, limit: int) -> list[Conversation]:
    """Return the `limit` flows with most bytes on the wire, as in `largest_flows`."""
    totals = largest_flows(flows, limit)
    # not a join with all flows, which would copy every column of them before
    rows = (
        flows.filter(flows["flow"].is_in(totals["flow"].implode()))
        .join(totals, on="flow")
        # within a flow the heavier direction first; `fwd` sorts before `rev` when they are equal
        .sort("_total", "flow", "wire_bytes", "direction", descending=[True, False, True, False])
    )
    by_flow: dict[int, list[FlowRow]] = {}
    for row in records(rows, FlowRow):
        by_flow.setdefault(row.flow, []).append(row)
    return [Conversation(pair[0], pair[1] if len(pair) > 1 else None) for pair in by_flow.values()]


def largest_directions(flows: pl.DataFrame, where: pl.Expr, by: str, limit: int) -> list[FlowRow]:
    """Return the `limit` rows with the largest value of `by` of those that `where` holds of.

    Of a hundred thousand flows a copy of all columns is a fifth of a gigabyte: only few rows are taken.
    """
    ordered = (
        flows.lazy()
        .with_row_index("_row")
        .filter(where)
        .select("_row", by, "flow", "direction")
        .sort(by, "flow", "direction", descending=[True, False, False], nulls_last=True)
        .head(limit)
        .collect()
    )
    return records(flows[ordered["_row"].to_list()], FlowRow)


def distinct_directions(flows: pl.DataFrame, where: pl.Expr, by: str) -> list[FlowRow]:
    """Return the largest directions as in `largest_directions`, as many as have distinct styles.

    Those with less than 5 % of the largest value are left out.
    """
    from tfrctrace.reports.elements import STYLES

    rows = largest_directions(flows, where, by, STYLES)
    return [row for row in rows if getattr(row, by) >= SMALLEST_SHARE * getattr(rows[0], by)]


def of_direction(frame: pl.DataFrame, row: FlowRow) -> pl.DataFrame:
    """Return the rows of the flow and the direction of `row`."""
    import polars as pl

    return frame.filter(pl.col("flow") == row.flow, pl.col("direction") == row.direction)


def data_rows(flows: pl.DataFrame, metrics: Sequence[Metric]) -> dict[int, FlowRow]:
    """Return the row of the direction that carried more payload, of every flow that has a metric."""
    import polars as pl

    named = sorted({flow for metric in metrics for flow in metric.flows})
    own = flows.filter(pl.col("flow").is_in(named), pl.col("packets") > 0).sort(
        "flow", pl.col("payload_bytes").fill_null(0), "wire_bytes", descending=[False, True, True]
    )
    return {row.flow: row for row in records(own.unique("flow", keep="first", maintain_order=True), FlowRow)}
