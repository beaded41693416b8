"""Infer the senders and rates of a simulated 802.11 network from the air time of frames in ns-2's MAC lines.

A line has no rate, but `Mac/802_11` logs a frame at the start of its transmission and at its arrival. In
between are the preamble at 1 Mbit/s and the other bits at the rate of the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.wlan.rates import DSSS_MBPS, OFDM_MBPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

PREAMBLE_BITS: Final = (192, 120)
"""PreambleLength_ 144 (ns-2's default) or 72 and PLCPHeaderLength_ 48, all at PLCPDataRate_, 1 Mbit/s, and
part of the size that a MAC line names. A script has one of them for all nodes."""

LONGEST_WAY_US: Final = 3.0
"""Longest propagation delay: 900 m."""

ROUNDED_US: Final = 0.01
"""Error from rounding to nanoseconds."""

FRAMES: Final = ("time_ns", "transmitter", "receiver", "bssid", "kind", "bytes", "rate_mbps")
"""Columns as in the frames of a capture (`Trace.link_samples`)."""


def frames_in_the_air(packets: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return a row with the columns `FRAMES` for each received data frame; empty without MAC lines.

    `transmitter` and `receiver` are node numbers. `bssid` is that of the base station, a node that also has
    wired links or else a hub (`_hub`), or null if there is none. `rate_mbps` is null if no rate matches the
    air time.
    """
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    of_mac = (pl.col("layer") == "mac") & pl.col("event").is_in(["sent", "received"])
    data = of_mac & (pl.col("payload_bytes") > 0) & pl.col("uid").is_not_null()
    of_link = (pl.col("layer") == "link") & (pl.col("event") == "dequeued")
    kinds = polars_schema("packets")
    schema = {name: kinds[name] for name in ("time_ns", "node", "event", "uid", "wire_bytes")}
    lines, wireless, wired = [pl.DataFrame(schema=schema)], set[str](), set[str]()
    for frame in packets:
        lines.append(frame.filter(data).select(pl.col(name).cast(kind) for name, kind in schema.items()))
        wireless.update(frame.filter(of_mac)["node"].drop_nulls().unique())
        wired.update(frame.filter(of_link)["node"].drop_nulls().unique())
    frames = _in_the_air(pl.concat(lines).sort("time_ns", maintain_order=True))
    base_station = min(wired & wireless, default=None) or _hub(frames)
    return _with_rates(frames).select(
        pl.col("begins_ns").alias("time_ns"),
        pl.col("node").alias("transmitter"),
        "receiver",
        pl.lit(base_station, dtype=pl.String).alias("bssid"),
        pl.lit("data").alias("kind"),
        pl.col("wire_bytes").alias("bytes"),
        "rate_mbps",
    )


def _in_the_air(lines: pl.DataFrame) -> pl.DataFrame:
    """Return each received frame with its last transmission time; retries have the same uid."""
    import polars as pl

    sent = lines.filter(pl.col("event") == "sent").select(
        "uid", "node", "wire_bytes", "time_ns", pl.col("time_ns").alias("begins_ns")
    )
    arrived = lines.filter(pl.col("event") == "received").select(
        "uid", "time_ns", pl.col("node").alias("receiver")
    )
    taken = arrived.join_asof(sent, on="time_ns", by="uid", check_sortedness=False)
    return taken.drop_nulls("node")


def _hub(frames: pl.DataFrame) -> str | None:
    """Return the node that sends or receives each frame and relays none; None without one, or with one other.

    It stands for a base station whose wired links a trace leaves out. The middle of an ad-hoc chain relays.
    """
    import polars as pl

    ends = frames.select("node", "receiver").unique()
    stations = pl.concat([ends["node"], ends["receiver"]]).unique()
    hubs = [node for node in stations if ((ends["node"] == node) | (ends["receiver"] == node)).all()]
    if len(hubs) != 1 or len(stations) < 3:
        return None
    (hub,) = hubs
    own = frames.filter(pl.col("node") == hub)["uid"]
    relayed = frames.filter(pl.col("receiver") == hub)["uid"].is_in(own.implode())
    return None if relayed.any() else hub


def _with_rates(frames: pl.DataFrame) -> pl.DataFrame:
    """Return the frames with `rate_mbps`, assuming the preamble that explains most of them."""
    explained = [frames.with_columns(_rate_mbps(bits).alias("rate_mbps")) for bits in PREAMBLE_BITS]
    return min(explained, key=_unexplained)


def _unexplained(frames: pl.DataFrame) -> int:
    return frames["rate_mbps"].null_count()


def _rate_mbps(preamble_bits: int) -> pl.Expr:
    """Return the slowest 802.11 rate, in Mbit/s, at which a frame takes no longer than observed.

    Null if propagation delay cannot explain the difference.
    """
    import polars as pl

    lasts_us = (pl.col("time_ns") - pl.col("begins_ns")) / 1e3
    rest_bits = 8 * pl.col("wire_bytes").cast(pl.Int64) - preamble_bits
    found = []
    for mbps in sorted((*DSSS_MBPS, *OFDM_MBPS)):
        way_us = lasts_us - preamble_bits - rest_bits / mbps
        found.append(pl.when(way_us.is_between(-ROUNDED_US, LONGEST_WAY_US)).then(pl.lit(mbps)))
    return pl.coalesce(found)
