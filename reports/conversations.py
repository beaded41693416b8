"""Both directions of a flow side by side, and their names in a report.

Frames are tidy, one row per flow and direction; people think in conversations. The direction that
carried more bytes leads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.metrics import Metric
    from tfrctrace.reports.elements import Name


SMALLEST_SHARE: Final = 0.05
"""Share of the largest value below which a direction is not drawn by itself."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One flow: the row of its leading direction, and that of the reverse direction, if any."""

    lead: dict[str, Any]
    back: dict[str, Any] | None


def largest_conversations(flows: pl.DataFrame, limit: int) -> list[Conversation]:
    """Return the `limit` flows with most bytes on the wire, largest first, equal ones by number."""
    import polars as pl

    totals = (
        flows.lazy()
        .group_by("flow")
        .agg(pl.col("wire_bytes").sum().alias("_total"))
        .sort("_total", "flow", descending=[True, False])
        .head(limit)
        .collect()
    )
    # not a join with all flows, which would copy every column of them before
    rows = (
        flows.filter(flows["flow"].is_in(totals["flow"].implode()))
        .join(totals, on="flow")
        # within a flow the heavier direction first; `fwd` sorts before `rev` when they are equal
        .sort("_total", "flow", "wire_bytes", "direction", descending=[True, False, True, False])
        .drop("_total")
    )
    by_flow: dict[int, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        by_flow.setdefault(row["flow"], []).append(row)
    return [Conversation(pair[0], pair[1] if len(pair) > 1 else None) for pair in by_flow.values()]


def largest_directions(flows: pl.DataFrame, where: pl.Expr, by: str, limit: int) -> list[dict[str, Any]]:
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
    return flows[ordered["_row"].to_list()].to_dicts()


def distinct_directions(flows: pl.DataFrame, where: pl.Expr, by: str) -> list[dict[str, Any]]:
    """Return the largest directions as in `largest_directions`, as many as have distinct styles.

    Those with less than 5 % of the largest value are left out.
    """
    from tfrctrace.reports.elements import STYLES

    rows = largest_directions(flows, where, by, STYLES)
    return [row for row in rows if row[by] >= SMALLEST_SHARE * rows[0][by]]


def of_direction(frame: pl.DataFrame, row: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of the flow and the direction of `row`."""
    import polars as pl

    return frame.filter(pl.col("flow") == row["flow"], pl.col("direction") == row["direction"])


def data_rows(flows: pl.DataFrame, metrics: Sequence[Metric]) -> dict[int, dict[str, Any]]:
    """Return the row of the direction that carried more payload, of every flow that has a metric."""
    import polars as pl

    named = sorted({flow for metric in metrics for flow in metric.flows})
    own = flows.filter(pl.col("flow").is_in(named), pl.col("packets") > 0).sort(
        "flow", pl.col("payload_bytes").fill_null(0), "wire_bytes", descending=[False, True, True]
    )
    return {
        row["flow"]: row
        for row in own.unique("flow", keep="first", maintain_order=True).iter_rows(named=True)
    }


def is_near_receiver(row: Mapping[str, Any]) -> bool:
    """Return whether the RTT samples of a direction are the receiver's own delay, not that of the path.

    They are in a capture at the receiver. If the vantage is unknown, the handshake decides: it spans the
    whole path from everywhere, so samples ten times shorter cannot.
    """
    if row["vantage"] is not None:
        return bool(row["vantage"] == "receiver")
    median_ms, handshake_ms = row["rtt_p50_ms"], row["handshake_rtt_ms"]
    return median_ms is not None and handshake_ms is not None and median_ms * 10 < handshake_ms


def endpoint(address: str | None, port: int | None) -> str:
    """Return an address with its port as one writes it in a URL: `10.0.0.1:80`, `[2001:db8::1]:80`."""
    if address is None:
        return "?"
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def ends(row: Mapping[str, Any]) -> str:
    """Return sender and receiver of a direction."""
    return f"{endpoint(row['src'], row['src_port'])} → {endpoint(row['dst'], row['dst_port'])}"


def direction_label(row: Mapping[str, Any]) -> str:
    """Return the name of a direction in a legend: its flow, the user's label if any, and its ends."""
    called = f"{row['flow']} {row['label']}" if row["label"] else str(row["flow"])
    return f"{called}: {ends(row)}"


def flow_name(row: Mapping[str, Any]) -> Name:
    """Return `flow 3` as a name that points to the row of the flow."""
    # the text table needs no parts of a report, and making their classes takes a tenth of the start
    from tfrctrace.reports.elements import Name

    return Name(f"flow {row['flow']}", flow_anchor(row["flow"]))


def flow_anchor(flow: int) -> str:
    """Return the key of the table row of a flow."""
    return f"flow-{flow}"
