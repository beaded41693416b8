"""The data packets of flows, from the table of packets: when each was sent, and when it arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.arrivals import layer_rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

CE: Final = 3
"""ECN bits of a packet that was marked congestion experienced (RFC 3168)."""

_READ: Final = (
    "flow",
    "direction",
    "time_ns",
    "payload_bytes",
    "sequence",
    "seq_rel",
    "uid",
    "event",
    "point",
    "layer",
    "ecn",
)


def data_packets(packets: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return a row for each packet with payload, in order of flow, direction and time.

    Columns are `flow`, `direction`, `time_ns`, `arrived_ns`, `waited_ns`, `payload_bytes`, `sequence`,
    `seq_rel`, `is_marked` and `is_two_ended`; `packets` are frames with those of
    `tfrctrace.parsers.schema.PACKETS`. A simulator shows a packet where it is sent and where it arrives
    (`arrived_ns`, null if it never does). A capture shows it once: it was sent and arrived when it was seen,
    and what is lost between has no row. `waited_ns` is the time in queues of wired links, as far as a trace
    shows that, else 0.
    """
    import polars as pl

    kept = [_with_payload(frame) for frame in packets]
    every = pl.concat(kept) if kept else pl.DataFrame(schema=dict.fromkeys(_READ, pl.Null))
    captured = every.filter(pl.col("uid").is_null()).with_columns(
        pl.col("time_ns").alias("arrived_ns"),
        (pl.col("ecn") == CE).alias("is_marked"),
        pl.lit(value=False).alias("is_two_ended"),
        pl.lit(0, dtype=pl.Int64).alias("waited_ns"),
    )
    columns = [
        "flow",
        "direction",
        "time_ns",
        "arrived_ns",
        "waited_ns",
        "payload_bytes",
        "sequence",
        "seq_rel",
        "is_marked",
        "is_two_ended",
    ]
    simulated = _simulated(every.filter(pl.col("uid").is_not_null()))
    return pl.concat([captured.select(columns), simulated.select(columns)]).sort(
        "flow", "direction", "time_ns", maintain_order=True
    )


def _with_payload(packets: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return (
        packets.lazy()
        .filter(pl.col("flow").is_not_null(), pl.col("payload_bytes") > 0)
        .select(_READ)
        .collect()
    )


def _simulated(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets of a simulation, each once."""
    import polars as pl

    key = ("flow", "direction", "uid")
    sent = packets.filter(pl.col("point") == "source").unique(key, keep="first", maintain_order=True)
    arrived = (
        packets.filter((pl.col("event") == "received") & (pl.col("point") == "destination"))
        .with_columns(layer_rank().alias("rank"))
        .filter(pl.col("rank") == pl.col("rank").min().over("flow", "direction"))
        .unique(key, keep="first", maintain_order=True)
        .select(*key, pl.col("time_ns").alias("arrived_ns"), (pl.col("ecn") == CE).alias("is_marked"))
    )
    known = sent.join(arrived, on=key, how="left", maintain_order="left")
    return known.join(_waits(packets), on=key, how="left", maintain_order="left").with_columns(
        pl.col("is_marked").fill_null(value=False),
        pl.col("waited_ns").cast(pl.Int64).fill_null(0),
        pl.lit(value=True).alias("is_two_ended"),
    )


def _waits(packets: pl.DataFrame) -> pl.DataFrame:
    """Return how long each packet waited in queues: where it left each that it came to."""
    import polars as pl

    came, left = (pl.col("time_ns").filter(pl.col("event") == event) for event in ("enqueued", "dequeued"))
    return (
        packets.filter(pl.col("layer") == "link")
        .group_by("flow", "direction", "uid")
        .agg((left.sum() - came.sum()).alias("waited_ns"), came.len().alias("came"), left.len().alias("left"))
        .filter(pl.col("came") == pl.col("left"))
        .select("flow", "direction", "uid", "waited_ns")
    )
