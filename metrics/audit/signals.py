"""What a link showed during an incident and in its usual state: the numbers that decide where the cause is.

The near side of a link opens connections (clients), the far side accepts them. Each signal belongs to one
place: round-trip times and losses between the capture and a side, the time that servers take, the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from tfrctrace.metrics.statistics.confidence import median_limits, share_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

Place = Literal["client side", "server side", "server", "capture", "radio", "load", "unknown"]

EVIDENCE_SUMS: Final = (
    "packets",
    "wire_bytes",
    "payload_bytes",
    "tcp_data_packets",
    "retransmitted_packets",
    "arrivals_shown",
    "lost_before_capture",
    "losses_shown",
    "lost_behind_capture",
    "capture_gap_bytes",
    "zero_windows",
    "network_limited_ns",
    "connection_attempts",
    "connections_established",
    "connections_refused",
    "connections_unanswered",
    "dns_queries",
    "dns_failures",
    "dns_unanswered",
    "echo_requests",
    "echo_unanswered",
    "rtt_samples",
    "rtt_sum_ns",
    "response_samples",
    "wifi_frames",
    "wifi_retry_frames",
    "wifi_signal_samples",
    "wifi_signal_sum_dbm",
)
"""Sums of the table of groups that evidence is made of."""

EVIDENCE_MEDIANS: Final = ("rtt_p50_ms", "response_p50_ms", "dns_p50_ms", "echo_p50_ms")

EVIDENCE_COLUMNS: Final = (
    "group",
    "direction",
    "start_ns",
    "end_ns",
    *EVIDENCE_SUMS,
    *EVIDENCE_MEDIANS,
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A quantity over some intervals: the median of their medians, or a share of sums."""

    value: float | None
    low: float | None
    high: float | None
    """Confidence limits of 95 %."""
    n: int
    """Intervals of a median; packets or attempts of a share."""
    part: float = 0.0
    """Of a share: how many."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A quantity in usual times and during an incident."""

    name: str
    place: Place
    """Where the cause is if it is this that changed."""
    unit: str
    """`ms`, `bit/s`, `dBm`, or empty for a share."""
    before: Measured
    during: Measured
    has_changed: bool | None
    """Whether it got worse by more than chance; None where one of both is not known."""

    @property
    def increase(self) -> float:
        """How much it got worse; 0 where that is not known."""
        if self.before.value is None or self.during.value is None:
            return 0.0
        return self.during.value - self.before.value

    @property
    def excess(self) -> float:
        """Of a share: how many more there were than usual."""
        if self.before.value is None:
            return 0.0
        return self.during.part - self.before.value * self.during.n


@dataclass(frozen=True, slots=True)
class _Share:
    name: str
    place: Place
    part: str
    whole: str
    least: float
    """By how much it has to be larger, however sure that is."""


@dataclass(frozen=True, slots=True)
class _Median:
    name: str
    place: Place
    column: str
    unit: str
    least: float
    """The same of a median, in its unit."""
    least_share: float
    """And as a share of the usual value."""
    falls: bool = False
    """Whether less is worse."""


SHARES: Final = (
    _Share("loss on the client side", "client side", "near_lost", "near_shown", 0.005),
    _Share("loss on the server side", "server side", "far_lost", "far_shown", 0.005),
    _Share("connections without an answer", "server side", "unanswered", "attempts", 0.05),
    _Share("connections refused", "server", "refused", "attempts", 0.05),
    _Share("handshakes not completed", "client side", "incomplete", "attempts", 0.05),
    _Share("DNS queries without an answer", "server side", "dns_unanswered", "dns_queries", 0.05),
    _Share("DNS queries that failed", "server", "dns_failures", "dns_queries", 0.05),
    _Share("pings without a reply", "server side", "echo_unanswered", "echo_requests", 0.05),
    _Share("data that the capture missed", "capture", "gap_bytes", "payload_bytes", 0.01),
    _Share("frames repeated on the radio", "radio", "wifi_retry_frames", "wifi_frames", 0.05),
)
MEDIANS: Final = (
    _Median("RTT on the client side", "client side", "near_rtt_ms", "ms", 2.0, 0.2),
    _Median("RTT on the server side", "server side", "far_rtt_ms", "ms", 2.0, 0.2),
    _Median("time of servers", "server", "server_ms", "ms", 20.0, 0.5),
    _Median("rate", "load", "rate_bps", "bit/s", 0.0, 0.5),
    _Median("signal", "radio", "signal_dbm", "dBm", 3.0, 0.0, falls=True),
)
_LEAST_INTERVALS: Final = 3
"""Intervals with data from which a median counts."""
_LEAST_TRIALS: Final = {"payload_bytes": 10_000}
_FEW_TRIALS: Final = 10
"""Packets or attempts from which a share counts."""


def by_place(evidence: pl.DataFrame, near: Iterable[str] | None) -> pl.DataFrame:
    """Return evidence of hosts with one row for each host and interval, and columns by place.

    `near` are the hosts of the near side. Without known sides all hosts count as near, and what lies on the
    other side of the capture as far.
    """
    import polars as pl

    is_near = pl.lit(value=True) if near is None else pl.col("group").is_in(list(near)).fill_null(value=False)
    sent, received = (
        evidence.filter(direction=way).drop("direction", "end_ns") for way in ("sent", "received")
    )
    every_ns = evidence.select((pl.col("end_ns") - pl.col("start_ns")).first()).item() or 1
    both = sent.join(
        received, on=["group", "start_ns"], how="full", coalesce=True, nulls_equal=True, suffix="_in"
    )

    def known_sum(*names: str) -> pl.Expr:
        return pl.when(pl.any_horizontal(pl.col(name).is_not_null() for name in names)).then(
            pl.sum_horizontal(pl.col(name).fill_null(0) for name in names)
        )

    own = {
        "lost": known_sum("lost_behind_capture_in", "lost_before_capture"),
        "shown": known_sum("losses_shown_in", "arrivals_shown"),
        "rtt_ms": pl.col("rtt_p50_ms_in"),
    }
    other = {
        "lost": known_sum("lost_before_capture_in", "lost_behind_capture"),
        "shown": known_sum("arrivals_shown_in", "losses_shown"),
        "rtt_ms": pl.col("rtt_p50_ms"),
    }

    def asked(name: str) -> pl.Expr:
        """Of requests and connections: what went from the near side to the far one."""
        return pl.when(pl.col("is_near")).then(pl.col(name)).otherwise(pl.col(f"{name}_in"))

    two_ways = both.with_columns(is_near=is_near).select(
        "group",
        "start_ns",
        "is_near",
        *(pl.when("is_near").then(own[name]).otherwise(other[name]).alias(f"near_{name}") for name in own),
        *(pl.when("is_near").then(other[name]).otherwise(own[name]).alias(f"far_{name}") for name in own),
        attempts=asked("connection_attempts"),
        unanswered=asked("connections_unanswered"),
        refused=asked("connections_refused"),
        established=asked("connections_established"),
        dns_queries=asked("dns_queries"),
        dns_unanswered=asked("dns_unanswered"),
        dns_failures=asked("dns_failures"),
        echo_requests=asked("echo_requests"),
        echo_unanswered=asked("echo_unanswered"),
        response_ms=asked("response_p50_ms"),
        gap_bytes=known_sum("capture_gap_bytes", "capture_gap_bytes_in"),
        payload_bytes=known_sum("payload_bytes", "payload_bytes_in"),
        tcp_data_packets=known_sum("tcp_data_packets", "tcp_data_packets_in"),
        retransmitted_packets=known_sum("retransmitted_packets", "retransmitted_packets_in"),
        wire_bytes=known_sum("wire_bytes", "wire_bytes_in"),
        wifi_frames=known_sum("wifi_frames", "wifi_frames_in"),
        wifi_retry_frames=known_sum("wifi_retry_frames", "wifi_retry_frames_in"),
        signals=known_sum("wifi_signal_samples", "wifi_signal_samples_in"),
        signal_sum=known_sum("wifi_signal_sum_dbm", "wifi_signal_sum_dbm_in"),
    )
    return two_ways.with_columns(
        incomplete=pl.col("attempts").cast(pl.Int64)
        - pl.sum_horizontal("unanswered", "refused", "established").cast(pl.Int64),
        server_ms=pl.col("response_ms") - pl.col("far_rtt_ms"),
        rate_bps=pl.col("wire_bytes") * 8e9 / every_ns,
        signal_dbm=pl.when(pl.col("signals") > 0).then(pl.col("signal_sum") / pl.col("signals")),
    )


def together(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `by_place` of one side with one row for each interval: sums, and medians over hosts."""
    import polars as pl

    sums = [name for one in SHARES for name in (one.part, one.whole)]
    medians = [one.column for one in MEDIANS if one.column != "rate_bps"]
    return rows.group_by("start_ns").agg(
        *(pl.col(name).sum() for name in dict.fromkeys(sums)),
        *(pl.col(name).median() for name in medians),
        pl.col("rate_bps").sum(),
    )


def signals_between(before: pl.DataFrame, during: pl.DataFrame) -> list[Signal]:
    """Return every signal of rows of `by_place`, in usual times and during an incident."""
    return [_compared(one, _measured(one, before), _measured(one, during)) for one in (*SHARES, *MEDIANS)]


def signals_of_hosts(name: str, before: pl.DataFrame, during: pl.DataFrame) -> dict[str, Signal]:
    """Return one signal of each host that has packets in both times, by name."""
    one = next(one for one in (*SHARES, *MEDIANS) if one.name == name)
    usual, now = (_measured_by_host(one, frame) for frame in (before, during))
    return {host: _compared(one, usual[host], now[host]) for host in sorted(now.keys() & usual.keys())}


def _compared(one: _Share | _Median, usual: Measured, now: Measured) -> Signal:
    unit = "" if isinstance(one, _Share) else one.unit
    return Signal(one.name, one.place, unit, usual, now, _has_changed(one, usual, now))


def _has_changed(one: _Share | _Median, usual: Measured, now: Measured) -> bool | None:
    """Return whether it got worse: the limits of both do not overlap, and the difference matters."""
    if usual.value is None or now.value is None:
        return None
    increase = now.value - usual.value
    is_sure = (now.low or 0.0) > (usual.high or 0.0)
    if isinstance(one, _Share):
        least_n, least = _LEAST_TRIALS.get(one.whole, _FEW_TRIALS), one.least
    else:
        least_n, least = _LEAST_INTERVALS, max(one.least, one.least_share * abs(usual.value))
        if one.falls:
            increase, is_sure = -increase, (now.high or 0.0) < (usual.low or 0.0)
    return None if min(usual.n, now.n) < least_n else is_sure and increase >= least


def _measured(one: _Share | _Median, frame: pl.DataFrame) -> Measured:
    """Return a quantity over all rows."""
    if isinstance(one, _Median):
        return _median(frame[one.column].drop_nulls().cast(float).sort().to_list())
    return _share(one, *frame.select(_sums(one)).row(0))


def _measured_by_host(one: _Share | _Median, frame: pl.DataFrame) -> dict[str, Measured]:
    """Return a quantity over the rows of each host."""
    import polars as pl

    hosts = frame.drop_nulls("group").group_by("group")
    if isinstance(one, _Median):
        values = hosts.agg(pl.col(one.column).drop_nulls().cast(float).sort())
        return {host: _median(own) for host, own in values.iter_rows()}
    return {host: _share(one, part, whole) for host, part, whole in hosts.agg(_sums(one)).iter_rows()}


def _sums(one: _Share) -> list[pl.Expr]:
    """Return the sums of what a share is of, as far as both are known."""
    import polars as pl

    part, whole = (pl.col(name).cast(pl.Float64) for name in (one.part, one.whole))
    is_known = part.is_not_null() & whole.is_not_null()
    return [part.filter(is_known).sum().alias("part"), whole.filter(is_known).sum().alias("whole")]


def _share(one: _Share, part: float, whole: float) -> Measured:
    if not whole:
        return Measured(None, None, None, 0)
    # losses of packets of earlier intervals may be counted here: never more than all
    count = min(max(part, 0.0), whole)
    # bytes are no independent trials: those of one packet go together
    trials = whole / 1_000 if one.whole == "payload_bytes" else whole
    low, high = share_limits(count / whole * trials, trials)
    return Measured(count / whole, low, high, int(whole), count)


def _median(values: Sequence[float]) -> Measured:
    """Return the median of ascending values."""
    if not values:
        return Measured(None, None, None, 0)
    low, high = median_limits(values)
    middle = len(values) // 2
    value = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return Measured(value, low, high, len(values))


def facts(signal: Signal) -> Mapping[str, Any]:
    """Return a signal as names and values."""
    return {
        "name": signal.name,
        "place": signal.place,
        "unit": signal.unit,
        "changed": signal.has_changed,
        **{
            f"{when}_{name}": getattr(measured, name)
            for when, measured in (("before", signal.before), ("during", signal.during))
            for name in ("value", "low", "high", "n")
        },
    }
