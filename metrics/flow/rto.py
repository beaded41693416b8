"""The retransmission timer that RTT samples make: SRTT, RTTVAR and RTO of RFC 6298 over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

RFC_MIN_RTO_MS: Final = 1000.0
"""RFC 6298 section 2.4 asks for a second; Linux takes 200 ms."""

RFC_MAX_RTO_MS: Final = 60_000.0
"""The least upper bound that RFC 6298 section 2.5 allows."""

ALPHA: Final = 1 / 8
BETA: Final = 1 / 4
K: Final = 4


def rto_series(rtt: pl.DataFrame, *, min_rto_ms: float = RFC_MIN_RTO_MS) -> pl.DataFrame:
    """Return SRTT, RTTVAR and RTO in ms after each RTT sample, for each flow and direction.

    `rtt` has the columns of the table of RTT samples. The clock has no granularity (G = 0) and the timeout is
    that without backoff. A direction without samples has no row.
    """
    import polars as pl

    timers = [_of_direction(direction, min_rto_ms) for direction in _directions(rtt)]
    columns = ("srtt_ms", "rttvar_ms", "rto_ms")
    keys = rtt.select("flow", "direction", "time_ns").clear()
    empty = keys.with_columns(pl.lit(None, dtype=pl.Float64).alias(column) for column in columns)
    return pl.concat([empty, *timers])


def _directions(samples: pl.DataFrame) -> list[pl.DataFrame]:
    return samples.partition_by("flow", "direction", maintain_order=True)


def _of_direction(samples: pl.DataFrame, min_rto_ms: float) -> pl.DataFrame:
    import polars as pl

    ordered = samples.select("flow", "direction", "time_ns", "rtt_ns").sort("time_ns", maintain_order=True)
    rtts_ms = (ordered["rtt_ns"] / 1e6).to_list()
    timers = list(timer_states(rtts_ms, min_rto_ms=min_rto_ms, max_rto_ms=RFC_MAX_RTO_MS))
    names = {"srtt_ms": 0, "rttvar_ms": 1, "rto_ms": 2}
    return ordered.drop("rtt_ns").with_columns(
        pl.Series(name, [timer[place] for timer in timers], dtype=pl.Float64) for name, place in names.items()
    )


def timer_states(
    rtts: Iterable[float], *, min_rto_ms: float, max_rto_ms: float
) -> Iterator[tuple[float, float, float]]:
    """Give SRTT, RTTVAR and RTO after each of `rtts` (all in ms), by equations 2.2 and 2.3 of RFC 6298."""
    srtt = rttvar = 0.0
    for number, rtt in enumerate(rtts):
        if number == 0:
            srtt, rttvar = rtt, rtt / 2
        else:
            # RTTVAR first: it is about the SRTT before this sample
            rttvar = (1 - BETA) * rttvar + BETA * abs(srtt - rtt)
            srtt = (1 - ALPHA) * srtt + ALPHA * rtt
        yield srtt, rttvar, min(max(srtt + K * rttvar, min_rto_ms), max_rto_ms)
