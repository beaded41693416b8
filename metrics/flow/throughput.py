"""Throughput: bytes over time, in windows or as a mean. Results are in bit/s.

The definitions are equations 6 to 8 of M. Casoni and M. L. Merani, "On the performance of TCP and
TFRC over 802.11b networks", with two corrections: the mean divides by `T - t0` (printed `T`), and the
ramp at the start may be divided by the time that has really passed.

Bytes are summed as integers and divided once, so a result does not depend on the order of rows or on
the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import polars as pl

Divisor = Literal["paper", "ramp"]
"""What the first windows of a flow, which reach back before its start, are divided by."""

NS_PER_S: Final = 1_000_000_000
BITS_PER_BYTE: Final = 8


def windowed_throughput(
    events: pl.DataFrame,
    *,
    window_ns: int,
    step_ns: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    divisor: Divisor = "paper",
) -> pl.DataFrame:
    """Return the throughput of one flow in windows that end at `t0 + step`, `t0 + 2 step`, ... up to `T`.

    `events` has `time_ns` and `bytes`, one row per packet, in any order. A window of width δ = `window_ns`
    ending at t holds the bytes with time in (t - δ, t]; the windows that reach back to the start t0 hold
    [t0, t]. Columns of the result: `time_ns` (end of the window), `bytes`, `throughput_bps` (bit/s).

    `divisor` says what the windows with t - δ < t0 are divided by: `paper` by δ (equation 7 as printed),
    `ramp` by t - t0. `step_ns` is δ if not given; t0 = `start_ns` is the first event, T = `end_ns` the last.
    Without events the result has no rows.
    """
    import polars as pl

    step_ns = window_ns if step_ns is None else step_ns
    if window_ns <= 0 or step_ns <= 0:
        raise ValueError("`window_ns` and `step_ns` must be positive")
    counted = _observed(events, start_ns, end_ns)
    if counted.is_empty():
        return pl.DataFrame(
            schema={"time_ns": pl.Int64(), "bytes": pl.UInt64(), "throughput_bps": pl.Float64()}
        )
    first_ns = _default(start_ns, counted["time_ns"][0])
    last_ns = _default(end_ns, counted["time_ns"][-1])
    ends = pl.int_range(first_ns + step_ns, last_ns + 1, step_ns, dtype=pl.Int64, eager=True).alias("time_ns")
    reaches_start = ends - window_ns <= first_ns
    sums = _bytes_until(counted, ends) - _bytes_until(counted, ends - window_ns).set(reaches_start, 0)
    elapsed_ns = pl.min_horizontal(pl.lit(window_ns), pl.col("time_ns") - first_ns)
    return pl.DataFrame({"time_ns": ends, "bytes": sums}).with_columns(
        _rate_bps(pl.col("bytes"), pl.lit(window_ns) if divisor == "paper" else elapsed_ns).alias(
            "throughput_bps"
        )
    )


def mean_throughput(
    events: pl.DataFrame,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    warmup_ns: int = 0,
) -> float | None:
    """Return the mean throughput of one flow in bit/s: bytes in [t0, T] over T - t0 (equation 8, corrected).

    `events` has `time_ns` and `bytes`, one row per packet. t0 = `start_ns` is the first event and
    T = `end_ns` the last if not given. With a warm-up w = `warmup_ns` only events after t0 + w count, over
    T - (t0 + w). None if fewer than two packets lie in [t0, T], or if nothing is left after the warm-up
    (T <= t0 + w).
    """
    import polars as pl

    if warmup_ns < 0:
        raise ValueError("`warmup_ns` must not be negative")
    counted = _observed(events, start_ns, end_ns)
    if counted.height < 2:
        return None
    first_ns = _default(start_ns, counted["time_ns"][0]) + warmup_ns
    last_ns = _default(end_ns, counted["time_ns"][-1])
    if last_ns <= first_ns:
        return None
    if warmup_ns:
        counted = counted.filter(pl.col("time_ns") > first_ns)
    total_bytes = int(counted["bytes"].sum())
    return total_bytes * BITS_PER_BYTE * NS_PER_S / (last_ns - first_ns)


def with_rates(bins: pl.DataFrame) -> pl.DataFrame:
    """Return `bins` with `throughput_bps` (wire bytes) and `goodput_bps` (unique bytes), both in bit/s.

    Each is the bytes of the bin over the width of the bin, so the first and the last bin of a flow, which it
    fills only in part, show less than its rate.
    """
    import polars as pl

    width = pl.col("width_ns")
    return bins.with_columns(
        _rate_bps(pl.col("wire_bytes"), width).alias("throughput_bps"),
        _rate_bps(pl.col("unique_bytes"), width).alias("goodput_bps"),
    )


def goodput_share(unique_bytes: int, wire_bytes: int) -> float | None:
    """Return goodput over throughput: the share of the bytes on the wire that is payload not seen before.

    None if there were no bytes.
    """
    return unique_bytes / wire_bytes if wire_bytes else None


def throughput_series(bins: pl.DataFrame) -> pl.DataFrame:
    """Return evenly spaced throughput and goodput of each flow and direction, in bit/s.

    `bins` has the columns of `tfrctrace.parsers.schema.BINS`. Between the first and the last packet of a
    flow and direction every bin has a row: a bin without packets is a true zero. Outside there are no rows.
    """
    from tfrctrace.metrics.flow.bins import evenly_spaced

    return with_rates(evenly_spaced(bins))


def _observed(events: pl.DataFrame, start_ns: int | None, end_ns: int | None) -> pl.DataFrame:
    """Return the events in [start_ns, end_ns], in order of time."""
    import polars as pl

    if start_ns is not None:
        events = events.filter(pl.col("time_ns") >= start_ns)
    if end_ns is not None:
        events = events.filter(pl.col("time_ns") <= end_ns)
    return events.sort("time_ns")


def _bytes_until(events: pl.DataFrame, times_ns: pl.Series) -> pl.Series:
    """Return for each time the exact number of bytes of all events up to and including it."""
    import polars as pl

    running = pl.concat([pl.Series("bytes", [0], dtype=pl.UInt64), events["bytes"].cast(pl.UInt64).cum_sum()])
    return running.gather(events["time_ns"].search_sorted(times_ns, side="right"))


def _rate_bps(byte_count: pl.Expr, elapsed_ns: pl.Expr) -> pl.Expr:
    """Return bytes over ns as bit/s; the multiplication is exact below 2^53 bits."""
    return byte_count * BITS_PER_BYTE * float(NS_PER_S) / elapsed_ns


def _default(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
