"""Infer the bottleneck of a trace: each value with its evidence, or the reason why it is unknown.

A queue shows as delay: a round-trip time above the minimum. While a queue persists the bottleneck is busy, so
the rates of all flows add up to its capacity and do not vary. If both the total and the flow's own rate vary,
traffic that the trace does not show shares the bottleneck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.closed_loop import Inferred
from tfrctrace.metrics.statistics.confidence import share_limits
from tfrctrace.replay.closed_loop.path import Background
from tfrctrace.replay.tcp.timer import LEAST_RTO_S

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.replay.closed_loop.observed_path import ObservedPath
    from tfrctrace.replay.closed_loop.overrides import BottleneckOverrides
    from tfrctrace.replay.closed_loop.path import DisciplineName

STANDING_SHARE: Final = 0.1
"""A queue stands in a window if all of its round-trip times are above the smallest by this share of the range
to the 99th percentile, and by `LEAST_STANDING` of the smallest: what varies less is no queue."""

LEAST_STANDING: Final = 0.02

LEAST_WINDOWS: Final = 2
"""Fewest windows with a standing queue from which a capacity is inferred."""

FLAT_SPREAD: Final = 0.2
"""Rates are flat if their 10th and 90th percentile differ by less than this share of the median."""

LONG_QUEUE_SEGMENTS: Final = 3.0
"""A loss counts as random if fewer packets were queued: Veno's beta, for the queue of all flows."""

LONG_QUEUE_SHARE: Final = 0.5
"""It also counts as random below this share of the range of round-trip times."""

BURST_PACKETS: Final = 3
"""More packets than this are not lost at once at random. TFRC's reports have too few round-trip times to show
each queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The inferred bottleneck. Sizes and rates count the flow's payload."""

    capacity_bps: Inferred
    base_rtt_ms: Inferred
    buffer_bytes: Inferred
    random_loss: Inferred
    background: Background
    """Rate of the other flows in bytes/s, from the flow's first packet."""
    receive_window_bytes: float | None
    outages_s: tuple[tuple[float, float], ...]
    """Outages, in seconds from the flow's first packet."""
    least_rto_s: Inferred
    """Minimum retransmission timeout of the recorded sender."""
    discipline: DisciplineName
    """How the queue drops: as given, else what does not fit."""
    has_ecn: bool


def infer(observed: ObservedPath, given: BottleneckOverrides) -> Bottleneck:
    """Return the bottleneck that explains the observations, with the given overrides."""
    shown_bps, is_shared = capacity(observed)
    capacity_bps = _or_override(shown_bps, given.capacity_bps)
    window_bytes = given.receive_window_bytes
    return Bottleneck(
        capacity_bps=capacity_bps,
        base_rtt_ms=_or_override(base_rtt(observed), given.base_rtt_ms),
        buffer_bytes=_or_override(buffer(observed, capacity_bps), given.buffer_bytes),
        random_loss=_or_override(random_loss(observed, capacity_bps.value), given.random_loss),
        # a capacity given by the user is that of the link, which the other flows share
        background=background(observed, 1.0 if given.others == "react" else given.others)
        if is_shared or given.capacity_bps
        else Background(),
        receive_window_bytes=observed.receive_window_bytes if window_bytes is None else window_bytes,
        outages_s=tuple(
            ((from_ns - observed.start_ns) / 1e9, (until_ns - observed.start_ns) / 1e9)
            for from_ns, until_ns in observed.outages
        ),
        least_rto_s=least_rto(observed),
        discipline=given.discipline,
        has_ecn=given.has_ecn,
    )


def _or_override(shown: Inferred, given: float | None) -> Inferred:
    return shown if given is None else Inferred(given, "as given")


def base_rtt(observed: ObservedPath) -> Inferred:
    """Return R_min, the smallest round-trip time of data, in ms."""
    smallest_ms = observed.rtts["rtt_ms"].min()
    if not isinstance(smallest_ms, float):
        return Inferred(None, "no acknowledgement or report gives a round-trip time")
    if smallest_ms <= 0:
        return Inferred(None, "data and acknowledgement have the same time: the clock of the trace is coarse")
    if observed.vantage == "receiver":
        return Inferred(None, "the trace was taken at the receiver, where round trips do not show")
    return Inferred(smallest_ms, f"smallest of {observed.rtts.height} round-trip times")


def capacity(observed: ObservedPath) -> tuple[Inferred, bool]:
    """Return the capacity in bit/s of payload, and whether the other flows share it."""
    busy = _busy_windows(observed)
    if busy.height < LEAST_WINDOWS:
        fastest_bps = observed.windows["own_bps"].max()
        at_least = f"; it carried {fastest_bps:.0f} bit/s at most" if isinstance(fastest_bps, float) else ""
        return Inferred(None, f"no queue stood long enough, so the path was never seen full{at_least}"), False
    own_and_others = busy["own_bps"] + busy["others_bps"]
    # what arrives during a repair is acknowledged when the gap before it is filled
    is_whole = ~busy["is_repairing"]
    for rates, whose, is_shared in (
        (own_and_others, "of all flows", True),
        (busy["own_bps"], "of this flow", False),
        (own_and_others.filter(is_whole), "of all flows", True),
        (busy["own_bps"].filter(is_whole), "of this flow", False),
    ):
        if 2 * len(rates) > busy.height and _spread(rates) <= FLAT_SPREAD:
            evidence = f"the rates {whose} in {len(rates)} windows with a standing queue are within"
            low_bps, high_bps = rates.quantile(0.1), rates.quantile(0.9)
            found = Inferred(_median(rates), f"{evidence} {_spread(rates):.0%}", low_bps, high_bps)
            return found, is_shared
    return Inferred(
        None,
        f"while a queue stood the rate varied by {_spread(own_and_others):.0%}: others that the trace does "
        "not show share the bottleneck, or it is none with one rate",
    ), False


def buffer(observed: ObservedPath, capacity: Inferred) -> Inferred:
    """Return the buffer in bytes of payload: capacity times the longest queueing delay.

    That is the 99th percentile, or the median when packets were lost, as a queue may be full only once.
    """
    if capacity.value is None:
        return Inferred(None, "it follows from the capacity, which is unknown")
    base_ms, high_ms = _range_ms(observed)
    is_long = _is_long_queue(observed, capacity.value)
    is_of_queue = _is_of_queue(is_long)
    in_queue = _lost(observed, is_of_queue)
    at_losses_ms = _median(observed.losses.filter(is_of_queue)["rtt_ms"])

    longest_ms = max(high_ms, at_losses_ms)
    usual_bytes = _waiting_bytes(capacity.value, longest_ms - base_ms)
    if not in_queue:
        return Inferred(None, f"nothing was lost to a full queue; at least {usual_bytes:.0f} bytes waited")
    # what is lost and what is delayed elsewhere hide how long a full queue is
    usual_ms = min(observed.rtts["rtt_ms"].quantile(0.95) or base_ms, at_losses_ms)
    return Inferred(
        usual_bytes,
        f"longest delay in the queue, which lost {in_queue} packets while long",
        _waiting_bytes(capacity.low or capacity.value, usual_ms - base_ms),
        _waiting_bytes(capacity.high or capacity.value, longest_ms - base_ms),
    )


def _waiting_bytes(capacity_bps: float, delay_ms: float) -> float:
    return capacity_bps / 8 * max(delay_ms, 0.0) / 1e3


def random_loss(observed: ObservedPath, capacity_bps: float | None) -> Inferred:
    """Return the share of packets lost at random, that is, while the queue was short."""
    if capacity_bps is None:
        return Inferred(None, "only the capacity separates random losses from those of a queue")
    is_long = _is_long_queue(observed, capacity_bps)
    by_chance = _lost(observed, ~_is_of_queue(is_long))
    short_share = observed.rtts.select((~is_long).mean()).item()
    packets = observed.packets * short_share
    if packets < 1:
        return Inferred(None, "a long queue stood all the time, in which losses by chance do not show")
    total = observed.losses["packets"].sum()
    return Inferred(
        min(1.0, by_chance / packets),
        f"{by_chance} of {total} losses met a short queue, as {packets:.0f} packets did",
        *share_limits(min(by_chance, packets), packets),
    )


def least_rto(observed: ObservedPath) -> Inferred:
    """Return the shortest timeout of the recorded sender in s, if below RFC 6298's minimum."""
    shortest_s = min(observed.timeouts_s, default=None)
    if shortest_s is None:
        return Inferred(None, "no timeout of a TCP sender shows, so it is taken to be RFC 6298's second")
    evidence = f"shortest of {len(observed.timeouts_s)} timeouts of the recorded sender"
    return Inferred(min(shortest_s, LEAST_RTO_S), evidence)


def background(observed: ObservedPath, share: float) -> Background:
    """Return a share of the rate of the other flows during the flow."""
    rates = observed.others
    times_s = ((rates["time_ns"] - observed.start_ns) / 1e9).clip(lower_bound=0)
    return Background(tuple(times_s), tuple(share / 8 * rates["bps"]))


def _busy_windows(observed: ObservedPath) -> pl.DataFrame:
    """Return the windows with a queue throughout."""
    import polars as pl

    if observed.windows.is_empty():
        return observed.windows
    base_ms, high_ms = _range_ms(observed)
    least = (
        observed.rtts.sort("time_ns")
        .join_asof(observed.windows.select("time_ns", start_ns="time_ns"), on="time_ns")
        .filter(pl.col("time_ns") < pl.col("start_ns") + observed.width_ns)
        .group_by("start_ns")
        .agg(pl.col("rtt_ms").min())
    )
    queue_ms = max(STANDING_SHARE * (high_ms - base_ms), LEAST_STANDING * base_ms)
    standing = least.filter(pl.col("rtt_ms") > base_ms + queue_ms)
    return observed.windows.join(standing, left_on="time_ns", right_on="start_ns", how="semi")


def _range_ms(observed: ObservedPath) -> tuple[float, float]:
    """Return the minimum and the 99th percentile of round-trip times; a few may be delayed elsewhere."""
    import polars as pl

    rtt_ms = pl.col("rtt_ms")
    low, high = observed.rtts.select(rtt_ms.min(), rtt_ms.quantile(0.99).alias("high_ms")).row(0)
    return low or 0.0, high or 0.0


def _is_long_queue(observed: ObservedPath, capacity_bps: float) -> pl.Expr:
    """Return whether the queue, from `rtt_ms`, is long enough to explain a loss."""
    import polars as pl

    base_ms, high_ms = _range_ms(observed)
    segment_ms = observed.segment_bytes * 8e3 / capacity_bps
    least_ms = max(LONG_QUEUE_SEGMENTS * segment_ms, LONG_QUEUE_SHARE * (high_ms - base_ms))
    return (pl.col("rtt_ms") - base_ms >= least_ms).fill_null(False)


def _is_of_queue(is_long: pl.Expr) -> pl.Expr:
    """Return whether losses are due to a queue: it was long, or many packets were lost at once."""
    import polars as pl

    return is_long | (pl.col("packets") > BURST_PACKETS)


def _lost(observed: ObservedPath, condition: pl.Expr) -> int:
    import polars as pl

    return int(observed.losses.filter(condition).select(pl.col("packets").sum()).item())


def _spread(rates: pl.Series) -> float:
    """Return the distance of the 10th and 90th percentile, as share of the median."""
    low, high = rates.quantile(0.1) or 0.0, rates.quantile(0.9) or 0.0
    median = _median(rates)
    return (high - low) / median if median else float("inf")


def _median(rates: pl.Series) -> float:
    import polars as pl

    median: float | None = rates.to_frame("rate").select(pl.col("rate").median()).item()
    return median or 0.0
