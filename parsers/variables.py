"""Assign samples of a log to the flows of a capture that is another input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

ENDS: Final = ("src", "src_port", "dst", "dst_port")
"""Columns that identify a direction of a flow in samples and flows."""

OF_FLOWS: Final = (
    "flow",
    "direction",
    "transport",
    "start_ns",
    "end_ns",
    *ENDS,
    "quic_connection_id",
)
"""Columns of the table of flows by which a sample finds its own."""

_LOGGED_END: Final = "^(?<role>client|server) of (?<id>[0-9a-f]+)$"
"""An end of QUIC whose log names no addresses."""


def with_flows(variables: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return `variables` with flow and direction filled in by endpoints where the core found none.

    Of several flows with the same endpoints (reused ports, or one conversation in two captures) a sample gets
    the one that was active at its time, else the first.
    """
    import polars as pl

    if variables.is_empty() or not variables["flow"].null_count():
        return variables
    if "quic_connection_id" in flows.columns:
        variables = _with_quic_flows(variables, flows)
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


def _with_quic_flows(variables: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Fill in flow and direction of samples whose log names the connection by its identifier alone."""
    import polars as pl

    named = variables["src"].str.extract_groups(_LOGGED_END).struct.unnest()
    connections = (
        flows.filter(pl.col("direction") == "fwd", pl.col("quic_connection_id").is_not_null())
        .unique("quic_connection_id", keep="first", maintain_order=True)
        .select(pl.col("quic_connection_id").alias("id"), pl.col("flow").alias("_flow"))
    )
    found = named.join(connections, on="id", how="left", maintain_order="left")
    direction = pl.when(found["_flow"].is_null()).then(None).when(found["role"] == "client")
    return variables.with_columns(
        pl.col("flow").fill_null(found["_flow"]),
        pl.col("direction").fill_null(direction.then(pl.lit("fwd")).otherwise(pl.lit("rev"))),
    )
