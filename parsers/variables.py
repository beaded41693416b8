"""Which flow a sample of a log belongs to, when the log is one input and the capture another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

ENDS: Final = ("src", "src_port", "dst", "dst_port")
"""What a sample and a direction of a flow have in common."""


def with_flows(variables: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return `variables` with the flow and direction that has the same ends, where the core found none.

    Of several flows with the same ends (ports used again, or one conversation in two captures) a sample gets
    the one that lasted while it was taken, else the first.
    """
    import polars as pl

    if variables.is_empty() or not variables["flow"].null_count():
        return variables
    lasting = pl.col("time_ns").is_between(pl.col("_start_ns"), pl.col("_end_ns"))
    directions = (
        flows.filter(pl.col("transport").is_in(["tcp", "udp"]))
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
