"""What a TCP connection lost, as its sender counts it: once for each window, with timeouts apart.

A sender cuts its window once for all that was lost of it: what it had sent before it knew of the first loss
belongs to the same event (`recover` of RFC 6582 section 3.2, RecoveryPoint of RFC 6675 section 5), however
many round-trip times the repairs take. A TFRC receiver groups by time instead (RFC 5348 section 5.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.replay.column_arrays import constant, with_series

if TYPE_CHECKING:
    import numpy.typing as npt
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

_COUNTS: Final = ("loss_events", "lost_packets", "timeouts")

_BELOW_ALL: Final = -(2**63)
"""Below every sequence number: those from before the first packet of the capture are negative."""


def repairs(losses: pl.DataFrame) -> pl.DataFrame:
    """Return those of `losses` (`tfrctrace.parsers.schema.LOSSES`) that were needed, in order of time.

    Those of packets that had arrived belong to them, too, if only the trace shows the arrival.
    """
    import polars as pl

    return losses.filter(pl.col("class").is_in(LOSSES) & seems_needed()).sort("time_ns", maintain_order=True)


def seems_needed() -> pl.Expr:
    """Return whether a retransmission was needed as far as its sender knows."""
    import polars as pl

    return pl.col("spurious").fill_null("arrived").eq("arrived")


def loss_events(repaired: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Return `time_ns`, `lost_packets` and `is_timeout` of each event that `repaired` packets reveal.

    `packets` are those of one direction, in order of time, with `seq_rel`. An event is known when its first
    packet is retransmitted, and counts all that were lost of that window.
    """
    import numpy as np
    import polars as pl

    numbers = packets["seq_rel"]
    if numbers.has_nulls():
        # a packet without a number sets no limit
        numbers = numbers.fill_null(_BELOW_ALL)
    sent_to = np.maximum.accumulate(numbers.to_numpy())
    before = np.searchsorted(packets["time_ns"].to_numpy(), repaired["time_ns"].to_numpy(), "left")
    limits = np.concatenate([[_BELOW_ALL], sent_to])[before].tolist()
    times, counts, timeouts = list[int](), list[int](), list[bool]()
    recover, resent_to = _BELOW_ALL, _BELOW_ALL
    columns = (repaired["time_ns"], repaired["seq_rel"], repaired["class"] == TIMEOUT)
    for time_ns, place, is_timer, limit in zip(*columns, limits, strict=True):
        # the timer sends all again, from the first that was not acknowledged (RFC 6298 section 5.4): that
        # again, or a timer after another cause of repairs, means that it ran out anew
        ran_out = is_timer and not (timeouts and timeouts[-1] and resent_to < place <= recover)
        if place > recover or ran_out:
            times.append(time_ns)
            counts.append(0)
            timeouts.append(is_timer)
            recover = limit
        counts[-1] += 1
        if is_timer:
            resent_to = place
    return pl.DataFrame(
        {"time_ns": times, "lost_packets": counts, "is_timeout": timeouts},
        schema={"time_ns": pl.Int64, "lost_packets": pl.UInt32, "is_timeout": pl.Boolean},
    )


def with_losses(reports: pl.DataFrame, repaired: pl.DataFrame, packets: pl.DataFrame) -> pl.DataFrame:
    """Return `reports` of one direction with what the sender lost.

    Columns are `loss_events`, `lost_ns` (when the first of them was detected), `lost_packets` and `timeouts`.
    An event counts in the report nearest to it: in the next one it would come half a round-trip time late at
    the mean, and a whole one where a report precedes the repair by the time of a packet.
    """
    import numpy as np
    import polars as pl

    lost_ns = constant("lost_ns", None, pl.Int64(), reports.height)
    if repaired.is_empty() or reports.is_empty():
        none = (constant(name, 0, pl.UInt32(), reports.height) for name in _COUNTS)
        return with_series(reports, lost_ns, *none)
    events = loss_events(repaired, packets)
    times = reports["time_ns"].to_numpy()
    places = np.searchsorted(times[:-1] + np.diff(times) / 2, events["time_ns"].to_numpy())

    def summed(name: str, amounts: npt.NDArray[np.generic]) -> pl.Series:
        return pl.Series(name, np.bincount(places, amounts, reports.height)).cast(pl.UInt32)

    reporting, first = np.unique(places, return_index=True)
    amounts = (np.ones(events.height), events["lost_packets"].to_numpy(), events["is_timeout"].to_numpy())
    return with_series(
        reports,
        lost_ns.scatter(pl.Series(reporting, dtype=pl.UInt32), events["time_ns"].to_numpy()[first]),
        *map(summed, _COUNTS, amounts),
    )
