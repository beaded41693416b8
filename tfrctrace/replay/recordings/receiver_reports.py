"""A receiver's own reports, as the sender took them: the table of feedback for one flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.replay.column_arrays import sent_between
from tfrctrace.replay.recordings.recording import DATA_LIMITED_SHARE, ReportSeries

if TYPE_CHECKING:
    import polars as pl


def is_usable(reported: pl.DataFrame) -> bool:
    """Return whether any report names a loss event rate and a receive rate, or both could be rebuilt."""
    return not _effective_reports(reported).drop_nulls(["p", "x_recv_bps"]).is_empty()


def received_reports(
    reported: pl.DataFrame, packets: pl.DataFrame, given_rtt_ms: float | None, rtt_scale: float
) -> ReportSeries:
    """Return the reports of a flow (`Trace.feedback`) in the order in which they reached the sender.

    What a report says counts more than what was rebuilt: it is what the sender acted upon. `given_rtt_ms`
    stands where no report gives a round-trip time.
    """
    import polars as pl

    effective = _effective_reports(reported)
    known = effective.drop_nulls(["p", "x_recv_bps"])
    rtt_ms = pl.col("rtt_ms")
    if known["rtt_ms"].null_count() == known.height:
        if given_rtt_ms is None:
            return ReportSeries(
                lacks=("none of its reports gives a round-trip time", "`--rtt 50ms` supplies it")
            )
        rtt_ms = pl.lit(given_rtt_ms)
    event = pl.col("p") > pl.col("p").shift(1, fill_value=0.0)
    reports = known.select(
        pl.col("received_ns").alias("time_ns"),
        (rtt_ms * rtt_scale).alias("rtt_ms"),
        "p",
        "x_recv_bps",
        # a rate that rises is all that a report shows of an event, and most show no more of losses
        event.cast(pl.UInt32).alias("loss_events"),
        pl.lit(None, dtype=pl.Int64).alias("lost_ns"),
        pl.coalesce("lost_packets", event.cast(pl.UInt64)).alias("lost_packets"),
        pl.lit(0, dtype=pl.UInt32).alias("timeouts"),
        _data_limited(packets, known).alias("is_data_limited"),
    )
    return ReportSeries(reports=reports, notes=_notes(effective))


def _effective_reports(reported: pl.DataFrame) -> pl.DataFrame:
    """Return the reports in order of arrival, with what they say, else what was rebuilt."""
    import polars as pl

    return reported.sort("received_ns", maintain_order=True).with_columns(
        pl.coalesce("reported_p", "p").alias("p"),
        pl.coalesce("reported_x_recv_bps", "x_recv_bps").alias("x_recv_bps"),
    )


def _data_limited(packets: pl.DataFrame, reported: pl.DataFrame) -> pl.Series:
    """Return whether the sender sent less than nine tenths of what it might; null where that is not known.

    It might send X, or X_inst where that is less: a sender that yields to a growing queue has more to send.
    One packet more or less is no sign, as reports on loss events cover short intervals.
    """
    import numpy as np
    import polars as pl

    times = reported["received_ns"].to_numpy()
    x_bps = reported.select(pl.min_horizontal("x_bps", "x_inst_bps").shift(1)).to_series()
    allowed = x_bps.to_numpy() * np.diff(times, prepend=times[:1]) / 8e9
    sent = sent_between(packets, times) + packets["payload_bytes"].to_numpy().max(initial=0)
    limited = pl.Series(sent < DATA_LIMITED_SHARE * allowed)
    return pl.select(pl.when(x_bps.is_not_null()).then(limited)).to_series()


def _notes(effective: pl.DataFrame) -> tuple[str, ...]:
    """Return what is odd about the reports of a flow."""
    import polars as pl

    counts = {
        "without p or receive rate, left out": pl.col("p").is_null() | pl.col("x_recv_bps").is_null(),
        "without a round-trip time": pl.col("rtt_ms").is_null(),
        "out of order": pl.col("time_ns").diff() < 0,
        "at the same time as another": pl.col("received_ns").diff() == 0,
    }
    sums = effective.select(**{words: condition.sum() for words, condition in counts.items()})
    found = sums.row(0, named=True)
    return tuple(f"{counted_reports(count)} {words}" for words, count in found.items() if count)


def counted_reports(count: int) -> str:
    """Return a number of reports in words."""
    return f"{count} report{'' if count == 1 else 's'}"
