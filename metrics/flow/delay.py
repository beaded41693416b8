"""One-way delay and jitter of packets that arrived, and round-trip times. Whole ns go in, ms come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.exact_sums import nearest_rank

if TYPE_CHECKING:
    import polars as pl

NS_PER_MS: Final = 1_000_000

JITTER_GAIN: Final = 1 / 16
"""RFC 3550 section 6.4.1."""


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way or round-trip delays in ms; percentiles by nearest rank, `std_ms` is the population's."""

    packets: int
    """How many were measured."""
    mean_ms: float
    min_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    std_ms: float


def one_way_delays(arrivals: pl.DataFrame) -> Delays | None:
    """Return the delays r - s of `arrivals`, which have `sent_ns` and `received_ns`. None if nothing arrived.

    Negative ones, which mean that the clocks differ, are not left out.
    """
    import polars as pl

    return _statistics(arrivals.select((pl.col("received_ns") - pl.col("sent_ns")).alias("ns"))["ns"])


def round_trip_times(rtt: pl.DataFrame, method: str = "ack") -> Delays | None:
    """Return the round-trip times of the samples of `method` in `rtt` (columns `method` and `rtt_ns`).

    By default those of data and their acknowledgements (Karn's rule; RFC 6298 section 3). None if there are
    no samples.
    """
    import polars as pl

    return _statistics(rtt.filter(pl.col("method") == method)["rtt_ns"])


def _statistics(delays: pl.Series) -> Delays | None:
    """Return what is told of delays in ns; sums are exact."""
    import polars as pl

    number = len(delays)
    if not number:
        return None
    total = int(delays.cast(pl.Int128).sum())
    # deviations from a whole number near the mean stay small, and their squares exact
    near = total // number
    off = (delays - near).cast(pl.Int128)
    squares, rest = int((off * off).sum()), total - near * number
    variance = (number * squares - rest * rest) / number**2
    min_ns, p50_ns, p95_ns, p99_ns, max_ns = (
        nearest_rank(delays, share) or 0.0 for share in (0.0, 0.5, 0.95, 0.99, 1.0)
    )
    return Delays(
        packets=number,
        mean_ms=total / (number * NS_PER_MS),
        min_ms=min_ns / NS_PER_MS,
        p50_ms=p50_ns / NS_PER_MS,
        p95_ms=p95_ns / NS_PER_MS,
        p99_ms=p99_ns / NS_PER_MS,
        max_ms=max_ns / NS_PER_MS,
        std_ms=variance**0.5 / NS_PER_MS,
    )


def interarrival_jitter(arrivals: pl.DataFrame) -> pl.Series:
    """Return the jitter J in ms after each arrival (RFC 3550 section 6.4.1): J += (|D| - J)/16, from 0.

    `arrivals` have `sent_ns` and `received_ns`, in any order; D is the change of the delay from one arrival
    to the next, so the two clocks may differ by a constant.
    """
    changes = _delay_changes(arrivals)
    return (changes.fill_null(0) / NS_PER_MS).ewm_mean(alpha=JITTER_GAIN, adjust=False).alias("jitter_ms")


def mean_delay_variation(arrivals: pl.DataFrame) -> float | None:
    """Return the mean of |D| in ms between one arrival and the next (RFC 3393). None below two arrivals."""
    changes = _delay_changes(arrivals).drop_nulls()
    return int(changes.sum()) / (len(changes) * NS_PER_MS) if len(changes) else None


def _delay_changes(arrivals: pl.DataFrame) -> pl.Series:
    """Return |D| in ns, null for the first arrival."""
    import polars as pl

    delay = pl.col("received_ns") - pl.col("sent_ns")
    return arrivals.sort("received_ns", maintain_order=True).select(delay.diff().abs().alias("change"))[
        "change"
    ]
