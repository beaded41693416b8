"""A TCP connection as a TFRC receiver would have reported it: once a round, with its repaired losses.

What was lost, and when that was known, are the retransmissions that were needed; where in the stream they lie
shows how many packets passed between two loss events. Round-trip times are the samples of acknowledgements,
the receive rate is what was acknowledged in a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.column_arrays import constant, floats, in_order_of_time, with_series
from tfrctrace.replay.recordings.recording import ReportSeries
from tfrctrace.replay.recordings.sender_losses import with_losses

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tfrctrace.parsers._native import ChosenSender

LENDER: Final = ("flow", "transport", "src", "dst", "rtt_samples", "rtt_p50_ms")
"""Columns of the table of flows from which a round-trip time is borrowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedConnection:
    """What a trace shows of one direction of a TCP connection, each in order of time."""

    packets: pl.DataFrame
    """Those with payload."""
    repaired: pl.DataFrame
    """What was retransmitted because it was lost."""
    rounds: pl.DataFrame
    """`time_ns` and `is_data_limited`; empty where the trace does not show that."""
    round_trips: pl.DataFrame
    """`time_ns` and `rtt_ns` by acknowledgements."""


def borrowed_rtt_ms(tcp: pl.DataFrame, facts: Mapping[str, object]) -> tuple[float, str] | None:
    """Return the median round-trip time of a TCP flow between the same two ends, and whose it is.

    `tcp` has the columns `LENDER` of the TCP flows that have one.
    """
    import polars as pl

    ends = {facts["src"], facts["dst"]}
    alike = tcp.filter(pl.col("src").is_in(ends) & pl.col("dst").is_in(ends)).sort(
        "rtt_samples", descending=True
    )
    if alike.is_empty():
        return None
    # seen from the wrong end the samples are of the receiver alone: the longer one is of the path
    lender = alike.filter(pl.col("flow") == alike["flow"][0]).sort("rtt_p50_ms").row(-1, named=True)
    return lender["rtt_p50_ms"], f"borrowed from flow {lender['flow']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrips:
    """Round-trip times of a connection: samples in order of time, and where they are from."""

    samples: pl.DataFrame
    """`time_ns` and `rtt_ms`."""
    whose: str


def reports_of(
    connection: ObservedConnection,
    facts: Mapping[str, object],
    chosen: ChosenSender,
    *,
    given_rtt_ms: float | None,
    rtt_scale: float,
) -> ReportSeries:
    """Return a report for each round of the direction of a `connection` that `facts` (its row) are of.

    `chosen` is the sender of TFRC whose receiver would have made them, for packets of the flow's size;
    `given_rtt_ms` is for a capture that shows none.
    """
    packets, losses = connection.packets, connection.repaired
    if packets["seq_rel"].null_count():
        return ReportSeries(
            lacks=("its sequence numbers were cut off", "a capture with a longer snap length has them")
        )
    round_trips = _round_trips(connection.round_trips, facts, given_rtt_ms)
    if round_trips is None:
        return ReportSeries(
            lacks=(
                "it gives no round-trip time: its acknowledgements are not in the trace, or came from nearby",
                "a capture at the sender, with the handshake and both directions, does; or `--rtt 50ms`",
            )
        )
    samples = with_series(round_trips.samples, round_trips.samples["rtt_ms"] * rtt_scale)
    reports = with_losses(
        _reports(packets, losses, samples, chosen, facts["vantage"] == "receiver"), losses, packets
    )
    reports = with_series(reports, _data_limited(reports["time_ns"], connection.rounds))
    notes = [f"reports are made of its rounds and losses, with round-trip times {round_trips.whose}"]
    if losses.is_empty():
        notes.append("no loss of it is known, so the equation sets no limit")
    return ReportSeries(reports=reports, notes=tuple(notes))


def _round_trips(
    seen: pl.DataFrame, facts: Mapping[str, object], given_rtt_ms: float | None
) -> RoundTrips | None:
    """Return the round-trip times as they would have been seen at the sender.

    The handshake's is whole wherever it was seen. Samples of acknowledgements are whole at the sender; in the
    middle of the path the way from the sender and back is missing, which the handshake shows, without its
    queue; at the receiver they are the receiver's own delay.
    """
    import polars as pl

    samples = in_order_of_time(pl.DataFrame([seen["time_ns"], (seen["rtt_ns"] / 1e6).alias("rtt_ms")]))
    handshake_ms = facts["handshake_rtt_ms"]
    vantage = facts["vantage"]
    if vantage in (None, "sender") and len(samples):
        return RoundTrips(samples=samples, whose="of its acknowledgements")
    if vantage == "middle" and len(samples) and isinstance(handshake_ms, float):
        least_ms = samples["rtt_ms"].min()
        missing_ms = max(handshake_ms - least_ms, 0.0) if isinstance(least_ms, float) else 0.0
        whole = with_series(samples, samples["rtt_ms"] + missing_ms)
        return RoundTrips(
            samples=whole, whose=f"of its acknowledgements and {missing_ms:.4g} ms to the sender and back"
        )
    constant_ms = given_rtt_ms if given_rtt_ms is not None else handshake_ms
    if not isinstance(constant_ms, float) or constant_ms <= 0:
        return None
    constant = pl.DataFrame({"time_ns": [0], "rtt_ms": [constant_ms]})
    whose = "as given" if given_rtt_ms is not None else "of its handshake, without any queue"
    return RoundTrips(samples=constant, whose=whose)


def _data_limited(times: pl.Series, rounds: pl.DataFrame) -> pl.Series:
    """Return `is_data_limited` of the last of `rounds` at each of `times`; null before the first."""
    import numpy as np
    import polars as pl

    if rounds.is_empty():
        return constant("is_data_limited", None, pl.Boolean(), len(times))
    known = in_order_of_time(rounds)
    last = np.searchsorted(known["time_ns"].to_numpy(), times.to_numpy(), "right").astype(np.int64) - 1
    limited = np.where(last < 0, np.nan, floats(known["is_data_limited"])[last])
    return pl.Series("is_data_limited", limited == 1).set(pl.Series(np.isnan(limited)), None)


def _reports(
    packets: pl.DataFrame,
    losses: pl.DataFrame,
    samples: pl.DataFrame,
    chosen: ChosenSender,
    is_at_receiver: bool,
) -> pl.DataFrame:
    import polars as pl

    from tfrctrace.parsers._native import round_reports

    start_ns = int(packets["time_ns"][0])
    segment_bytes = chosen["segment_bytes"]
    return pl.DataFrame(
        round_reports(
            chosen,
            {
                "start_ns": start_ns,
                "sent_s": floats(packets["time_ns"] - start_ns, 1e9),
                "sent_bytes": floats(packets["payload_bytes"]),
                "sent_end": floats(
                    packets["seq_rel"] + packets["payload_bytes"].cast(pl.Int64), segment_bytes
                ),
                "loss_s": floats(losses["time_ns"] - start_ns, 1e9),
                "loss_packet": floats(losses["seq_rel"], segment_bytes),
                "sample_s": floats(samples["time_ns"] - start_ns, 1e9),
                "sample_rtt_s": floats(samples["rtt_ms"], 1e3),
                "is_at_receiver": is_at_receiver,
            },
        )
    )
