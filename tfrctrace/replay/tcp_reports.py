"""A TCP connection as a TFRC receiver would have reported it: once a round, with its repaired losses.

What was lost, and when that was known, are the retransmissions that were needed; where in the stream they lie
tells how many packets passed between two loss events. Round-trip times are the samples of acknowledgements,
the receive rate is what was acknowledged in a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.arrays import floats
from tfrctrace.replay.recording import Made

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

LOSSES: Final = (
    "fast_retransmission",
    "sack_retransmission",
    "rto_retransmission",
    "tail_loss_probe",
    "unexplained_retransmission",
    "retransmission_of_unseen",
)
"""Classes of packets that repair a loss."""

TIMEOUT: Final = "rto_retransmission"

_KEY: Final = ("flow", "direction")


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpTables:
    """What a trace tells of its TCP connections: the tables of that name."""

    rounds: pl.DataFrame
    losses: pl.DataFrame
    rtt: pl.DataFrame

    def borrowed_rtt_ms(self, flows: pl.DataFrame, facts: Mapping[str, object]) -> tuple[float, str] | None:
        """Return the median round-trip time of a TCP flow between the same two ends, and whose it is."""
        import polars as pl

        ends = {facts["src"], facts["dst"]}
        alike = flows.filter(
            (pl.col("transport") == "tcp")
            & pl.col("rtt_p50_ms").is_not_null()
            & pl.col("src").is_in(ends)
            & pl.col("dst").is_in(ends)
        ).sort("rtt_samples", descending=True)
        if alike.is_empty():
            return None
        # seen from the wrong end the samples are of the receiver alone: the longer one is of the path
        lender = alike.filter(pl.col("flow") == alike["flow"][0]).sort("rtt_p50_ms").row(-1, named=True)
        return lender["rtt_p50_ms"], f"borrowed from flow {lender['flow']}"


def reports_of(
    tables: TcpTables, facts: Mapping[str, object], packets: pl.DataFrame, rtt_scale: float
) -> Made:
    """Return a report for each round of the direction of a flow that `facts` (its row) are of."""
    import polars as pl

    key = {name: facts[name] for name in _KEY}
    rounds = _rounds(tables, key, facts, rtt_scale)
    if rounds.is_empty():
        return Made(
            lacks=(
                "its acknowledgements are not in the trace, so it gives no round-trip times",
                "a capture of both directions has them",
            )
        )
    without = rounds["rtt_ms"].null_count()
    rounds = rounds.filter(pl.col("rtt_ms").is_not_null())
    if rounds.is_empty():
        return Made(lacks=("none of its rounds gives a round-trip time", "`--rtt 50ms` supplies it"))
    losses = _of(tables.losses, key).filter(pl.col("class").is_in(LOSSES) & pl.col("spurious").is_null())
    segment_bytes = facts["mss"] if isinstance(facts["mss"], int) else packets["payload_bytes"].max()
    assert isinstance(segment_bytes, int)
    counted = _rates(rounds, losses, segment_bytes, int(packets["time_ns"][0]))
    timeouts = _timeouts(rounds, losses)
    reports = pl.concat([rounds, counted], how="horizontal").select(
        "time_ns",
        "rtt_ms",
        "p",
        "x_recv_bps",
        "loss_events",
        "lost_packets",
        pl.Series("timeouts", timeouts, dtype=pl.UInt32),
        (pl.col("limit") == "application").alias("is_data_limited"),
    )
    notes = ["reports are made of its rounds and losses"]
    if without:
        notes.append(f"{without} rounds before the first round-trip time are left out")
    if losses.is_empty():
        notes.append("no loss of it is known, so the equation sets no limit")
    return Made(reports=reports, notes=tuple(notes))


def _of(table: pl.DataFrame, key: Mapping[str, object]) -> pl.DataFrame:
    import polars as pl

    return table.filter(*(pl.col(name) == value for name, value in key.items()))


def _rounds(
    tables: TcpTables, key: Mapping[str, object], facts: Mapping[str, object], rtt_scale: float
) -> pl.DataFrame:
    """Return the rounds at their end, with the round-trip time that is known then."""
    import polars as pl

    samples = _of(tables.rtt, key).select("time_ns", (pl.col("rtt_ns") / 1e6).alias("sample_ms"))
    handshake_ms = facts["handshake_rtt_ms"]
    return (
        _of(tables.rounds, key)
        .filter(pl.col("duration_ms") > 0)
        .with_columns(
            (pl.col("time_ns") + (pl.col("duration_ms") * 1e6).round().cast(pl.Int64)).alias("time_ns"),
            (pl.col("delivered_bytes") * 8e3 / pl.col("duration_ms")).alias("x_recv_bps"),
            pl.col("delivered_bytes").cum_sum().alias("delivered"),
        )
        .sort("time_ns")
        .join_asof(samples.sort("time_ns"), on="time_ns")
        .with_columns(pl.coalesce("rtt_ms", "sample_ms", pl.lit(handshake_ms, dtype=pl.Float64)) * rtt_scale)
    )


def _rates(rounds: pl.DataFrame, losses: pl.DataFrame, segment_bytes: int, start_ns: int) -> pl.DataFrame:
    """Return p and the new losses of each round."""
    import polars as pl

    from tfrctrace.parsers._native import loss_event_rates

    in_order = losses.sort("time_ns", maintain_order=True)
    return pl.DataFrame(
        loss_event_rates(
            segment_bytes=float(segment_bytes),
            loss_time_s=floats(in_order["time_ns"] - start_ns, 1e9),
            loss_packet=floats(in_order["seq_rel"], segment_bytes),
            time_s=floats(rounds["time_ns"] - start_ns, 1e9),
            packets=floats(rounds["delivered"], segment_bytes),
            rtt_s=floats(rounds["rtt_ms"], 1e3),
            x_recv=floats(rounds["x_recv_bps"], 8),
        )
    )


def _timeouts(rounds: pl.DataFrame, losses: pl.DataFrame) -> list[int]:
    """Return the retransmission timeouts of each round.

    After a timeout all that was outstanding is sent again (RFC 6298 section 5), so that only the first of
    what the timer sent in consecutive rounds is one.
    """
    import numpy as np
    import polars as pl

    times = losses.filter(pl.col("class") == TIMEOUT)["time_ns"].sort().to_numpy()
    counts = np.diff(np.searchsorted(times, rounds["time_ns"].to_numpy(), "right"), prepend=0)
    began = (counts > 0) & np.concatenate([[True], counts[:-1] == 0])[: len(counts)]
    found: list[int] = began.astype(int).tolist()
    return found
