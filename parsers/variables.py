"""Assign samples of a log to the flows of a capture that is another input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

ENDS: Final = ("src", "src_port", "dst", "dst_port")
"""Columns that identify a direction of a flow in samples and flows."""


def with_flows(variables: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return `variables` with flow and direction filled in by endpoints where the core found none.

    Of several flows with the same endpoints (reused ports, or one conversation in two captures) a sample gets
    the one that was active at its time, else the first.
    """
    import polars as pl

    if variables.is_empty() or not variables["flow"].null_count():
        return variables
    lasting = pl.col("time_ns").is_between(pl.col("_start_ns"), pl.col("_end_ns"))
    directions = (
        flows.filter(pl.col("transport").is_in(["tcp", "udp", "quic"]))
        .group_by("flow", maintain_order=True)
        .agg(pl.col("start_ns").min().alias("_start_ns"), pl.col("end_ns").max().alias("_end_ns"))
        .join(flows.select("flow", "direction", *ENDS), on="flow")
        .rename({"flow": "_flow", "direction": "_direction"})
    )
    best = (
        variables.with_row_index("_row")
        .join(directions, on=ENDS, how="left")
        .sort(pl.col("_row"), ~lasting.fill_null(value=False), pl.col("_flow"), nulls_last=True)
        .unique("_row", keep="first", maintain_order=True)
    )
    return best.with_columns(
        pl.col("flow").fill_null(pl.col("_flow")), pl.col("direction").fill_null(pl.col("_direction"))
    ).select(variables.columns)
