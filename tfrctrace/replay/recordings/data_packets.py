"""The data packets of flows: when each was sent, and when it arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.flow.arrivals import layer_rank
from tfrctrace.replay.column_arrays import constant, in_order_of_time, with_series

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.parsers._native import DirectionSpool

CE: Final = 3
"""ECN bits of a packet that was marked congestion experienced (RFC 3168)."""

_COLUMNS: Final = (
    "time_ns",
    "arrived_ns",
    "waited_ns",
    "payload_bytes",
    "sequence",
    "seq_rel",
    "is_marked",
    "is_two_ended",
)

_CAPTURED: Final = ("time_ns", "payload_bytes", "sequence", "seq_rel", "ecn")


def data_packets(spool: DirectionSpool, flow: int, direction: str) -> pl.DataFrame:
    """Return a row for each packet with payload of a direction, in order of time.

    Columns are `time_ns`, `arrived_ns`, `waited_ns`, `payload_bytes`, `sequence`, `seq_rel`, `is_marked` and
    `is_two_ended`. A simulator shows a packet where it is sent and where it arrives (`arrived_ns`, null if it
    never does). A capture shows it once: it was sent and arrived when it was seen, and what is lost between
    has no row. `waited_ns` is the time in queues of wired links, as far as a trace shows that, else 0.
    """
    import polars as pl

    packets = spool.packets(flow, direction)
    if not spool.is_simulated(flow, direction):
        return in_order_of_time(_captured(pl.DataFrame(packets.select(_CAPTURED))))
    every = pl.DataFrame(packets)
    captured = _captured(every.filter(pl.col("uid").is_null()).select(_CAPTURED))
    simulated = _simulated(every.filter(pl.col("uid").is_not_null())).select(_COLUMNS)
    return in_order_of_time(pl.concat([captured, simulated]))


def _captured(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets of a capture, which shows each once."""
    import polars as pl

    known = with_series(
        packets,
        packets["time_ns"].alias("arrived_ns"),
        (packets["ecn"] == CE).alias("is_marked"),
        constant("is_two_ended", value=False, dtype=pl.Boolean(), length=packets.height),
        constant("waited_ns", 0, pl.Int64(), packets.height),
    )
    return pl.DataFrame([known[name] for name in _COLUMNS])


def _simulated(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the packets of a simulation, each once."""
    import polars as pl

    sent = packets.filter(pl.col("point") == "source").unique("uid", keep="first", maintain_order=True)
    arrived = (
        packets.filter((pl.col("event") == "received") & (pl.col("point") == "destination"))
        .with_columns(layer_rank().alias("rank"))
        .filter(pl.col("rank") == pl.col("rank").min())
        .unique("uid", keep="first", maintain_order=True)
        .select("uid", pl.col("time_ns").alias("arrived_ns"), (pl.col("ecn") == CE).alias("is_marked"))
    )
    known = sent.join(arrived, on="uid", how="left", maintain_order="left")
    return known.join(_waits(packets), on="uid", how="left", maintain_order="left").with_columns(
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
        .group_by("uid")
        .agg((left.sum() - came.sum()).alias("waited_ns"), came.len().alias("came"), left.len().alias("left"))
        .filter(pl.col("came") == pl.col("left"))
        .select("uid", "waited_ns")
    )
