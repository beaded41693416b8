"""Find outages of a path, such as a link that was down or a station out of range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

LEAST_RTTS: Final = 5
"""Minimum duration in base round-trip times; in a shorter gap a window may have been lost."""

LEAST_SENT: Final = 3
"""Fewest packets sent during an outage."""

SPREAD_SHARE: Final = 0.4
"""Share of the time over which they were sent: a timer that doubles leaves the last half of it silent."""

Span = tuple[int, int]
"""From one time in ns to another."""


def outages(rates: pl.DataFrame, sends: pl.DataFrame, rtt_ns: int) -> tuple[Span, ...]:
    """Return the spans in which no flow's packets arrived although this flow sent.

    `rates` are what arrived in steps of `rtt_ns` (`time_ns`, `own_bps`, `others_bps`), `sends` the packets of
    one flow (`time_ns`).
    """
    import polars as pl

    carries = (pl.col("own_bps") > 0) | (pl.col("others_bps") > 0)
    silent = (
        rates.with_columns(carries.alias("carries"), carries.cum_sum().alias("run"))
        .filter(~pl.col("carries"))
        .group_by("run", maintain_order=True)
        .agg(pl.col("time_ns").first().alias("from_ns"), pl.col("time_ns").last().alias("last_ns"))
        .filter(pl.col("last_ns") + rtt_ns - pl.col("from_ns") >= LEAST_RTTS * rtt_ns)
    )
    times = sends["time_ns"].sort().to_numpy()
    spans = ((from_ns, last_ns + rtt_ns) for from_ns, last_ns in silent.select("from_ns", "last_ns").rows())
    return tuple(span for span in spans if _sends_throughout(times, span))


def _sends_throughout(times: NDArray[Any], span: Span) -> bool:
    import numpy as np

    first, last = np.searchsorted(times, span, "left")
    if last - first < LEAST_SENT:
        return False
    return bool(times[last - 1] - times[first] >= SPREAD_SHARE * (span[1] - span[0]))
