"""What a link showed during an incident and in its usual state: the numbers that decide where it was.

The near side of a link opens connections (clients), the far side accepts them. Each signal belongs to one
place: round-trip times and losses between the capture and a side, the time that servers take, the rate.
`SHARES` and `MEDIANS` register all of them, with the kinds of trouble that they explain; their names in
English stand in `reports/audit/place_words.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tfrctrace.metrics.flow.causes import CAUSE_SUMS
from tfrctrace.metrics.statistics.confidence import median_limits, share_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from tfrctrace.metrics.objectives import Objective

Place = Literal["client side", "server side", "server", "link", "capture", "radio", "load", "unknown"]

Trouble = Literal["delay", "loss", "connections", "requests", "answers", "names", "ping", "radio"]
"""Kinds of trouble, one of which a violated objective is."""

SignalKey = Literal[
    "near_loss",
    "far_loss",
    "unanswered",
    "refused",
    "incomplete",
    "near_stalls",
    "far_stalls",
    "near_holes",
    "far_holes",
    "unserved",
    "dns_unanswered",
    "dns_failures",
    "echo_unanswered",
    "capture_gaps",
    "radio_retries",
    "near_rtt",
    "far_rtt",
    "server_time",
    "dns_time",
    "echo_time",
    "rate",
    "radio_signal",
]

EVIDENCE_SUMS: Final = (
    "packets",
    "wire_bytes",
    "payload_bytes",
    "tcp_data_segments",
    "numbered_packets",
    "arrivals_shown",
    "lost_before_capture",
    "losses_shown",
    "lost_behind_capture",
    "capture_gap_bytes",
    "zero_windows",
    *CAUSE_SUMS,
    "connection_attempts",
    "connections_established",
    "connections_refused",
    "connections_unanswered",
    "requests",
    "requests_unanswered",
    "stalls",
    "large_stalls",
    "large_holes",
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

    key: SignalKey
    place: Place
    """Where the trouble is if it is this that changed."""
    unit: str
    """`ms`, `bit/s`, `dBm`, or empty for a share."""
    per_trial: float
    """Of a share: how much goes together, so that shares of bytes compare with those of packets."""
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
        return (self.during.part - self.before.value * self.during.n) / self.per_trial


@dataclass(frozen=True, slots=True)
class _Share:
    key: SignalKey
    place: Place
    explains: tuple[Trouble, ...]
    part: str
    whole: str
    least: float
    """By how much it has to be larger, however sure that is."""


@dataclass(frozen=True, slots=True)
class _Median:
    key: SignalKey
    place: Place
    explains: tuple[Trouble, ...]
    column: str
    unit: str
    least: float
    """The same of a median, in its unit."""
    least_share: float
    """And as a share of the usual value."""
    falls: bool = False
    """Whether less is worse."""


Definition: TypeAlias = _Share | _Median

_CLIENT: Final = "client side"
_SERVER: Final = "server side"
_TRANSFER: Final = ("loss", "connections")
_WAIT: Final = ("delay", "ping")

SHARES: Final = (
    _Share("near_loss", _CLIENT, _TRANSFER, "near_lost", "near_shown", 0.005),
    _Share("far_loss", _SERVER, _TRANSFER, "far_lost", "far_shown", 0.005),
    _Share("unanswered", _SERVER, ("connections", "requests"), "unanswered", "attempts", 0.05),
    _Share("refused", "server", ("connections",), "refused", "attempts", 0.05),
    _Share("incomplete", _CLIENT, ("connections",), "incomplete", "attempts", 0.05),
    _Share("near_stalls", _CLIENT, ("requests",), "near_stalls", "requests", 0.05),
    _Share("far_stalls", _SERVER, ("requests",), "far_stalls", "requests", 0.05),
    _Share("near_holes", _CLIENT, ("requests",), "near_holes", "requests", 0.05),
    _Share("far_holes", _SERVER, ("requests",), "far_holes", "requests", 0.05),
    _Share("unserved", "server", ("requests",), "unserved", "requests", 0.05),
    _Share("dns_unanswered", _SERVER, ("names",), "dns_unanswered", "dns_queries", 0.05),
    _Share("dns_failures", "server", ("names",), "dns_failures", "dns_queries", 0.05),
    _Share("echo_unanswered", _SERVER, ("ping",), "echo_unanswered", "echo_requests", 0.05),
    _Share("capture_gaps", "capture", ("loss",), "gap_bytes", "payload_bytes", 0.002),
    _Share("radio_retries", "radio", ("radio",), "wifi_retry_frames", "wifi_frames", 0.05),
)
MEDIANS: Final = (
    _Median("near_rtt", _CLIENT, _WAIT, "near_rtt_ms", "ms", 2.0, 0.2),
    _Median("far_rtt", _SERVER, (*_WAIT, "answers", "names"), "far_rtt_ms", "ms", 2.0, 0.2),
    _Median("server_time", "server", ("answers",), "server_ms", "ms", 20.0, 0.5),
    _Median("dns_time", "server", ("names",), "dns_server_ms", "ms", 20.0, 0.5),
    _Median("echo_time", _SERVER, ("delay", "ping"), "echo_ms", "ms", 2.0, 0.2),
    _Median("rate", "load", (), "rate_bps", "bit/s", 0.0, 0.5),
    _Median("radio_signal", "radio", ("radio",), "signal_dbm", "dBm", 3.0, 0.0, falls=True),
)
SIGNALS: Final[tuple[Definition, ...]] = (*SHARES, *MEDIANS)
"""Every signal, in the order of the evidence on the page."""

_TROUBLES: Final[tuple[tuple[str, Trouble], ...]] = (
    ("wifi_", "radio"),
    ("rtt", "delay"),
    ("delay", "delay"),
    ("oneway_", "delay"),
    ("echo_unanswered", "ping"),
    ("echo", "delay"),
    ("lost", "loss"),
    ("capture_gap", "loss"),
    ("retransmi", "loss"),
    ("spurious", "loss"),
    ("path_lo", "loss"),
    ("connect_", "delay"),
    ("connection", "connections"),
    ("syn_", "connections"),
    ("requests", "requests"),
    ("stalls", "requests"),
    ("large_stalls", "requests"),
    ("large_holes", "requests"),
    ("response", "answers"),
    ("dns", "names"),
)
"""What begins the name of a quantity, and the kind of trouble that it is about."""

UNSEEN_TIMES: Final = 4
"""Packets of which a handshake, a question or a lost segment needs each to be seen as it was."""

_LEAST_INTERVALS: Final = 3
"""Intervals with data from which a median counts."""
_LEAST_TRIALS: Final = {"payload_bytes": 10_000}
_PER_TRIAL: Final = {"payload_bytes": 1_000}
"""Bytes are no independent trials: those of one packet go together."""
_FEW_TRIALS: Final = 10
"""Packets or attempts from which a share counts."""


def trouble_of(objective: Objective) -> Trouble | None:
    """Return the kind of trouble that a violation of an objective is; None if its quantity says nothing."""
    terms = [objective.quantity.term.name]
    if objective.quantity.over is not None:
        terms.append(objective.quantity.over.name)
    for name in terms:
        for begin, trouble in _TROUBLES:
            if name.startswith(begin):
                return trouble
    return None


def is_of_capture(objective: Objective) -> bool:
    """Return whether an objective is about what the capture itself missed, wherever the link was bad."""
    return objective.quantity.term.name.startswith("capture_gap")


def signals_about(trouble: Trouble | None) -> list[Definition]:
    """Return the signals that explain a kind of trouble; of an unknown one all but the load."""
    if trouble is None:
        return [signal for signal in SIGNALS if signal.place != "load"]
    return [signal for signal in SIGNALS if trouble in signal.explains]


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
        "stalls": pl.col("stalls_in"),
        "holes": pl.col("large_holes"),
    }
    other = {
        "lost": known_sum("lost_before_capture_in", "lost_behind_capture"),
        "shown": known_sum("arrivals_shown_in", "losses_shown"),
        "rtt_ms": pl.col("rtt_p50_ms"),
        "stalls": pl.col("stalls"),
        "holes": pl.col("large_holes_in"),
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
        requests=asked("requests"),
        requests_unanswered=asked("requests_unanswered"),
        dns_queries=asked("dns_queries"),
        dns_unanswered=asked("dns_unanswered"),
        dns_failures=asked("dns_failures"),
        echo_requests=asked("echo_requests"),
        echo_unanswered=asked("echo_unanswered"),
        response_ms=asked("response_p50_ms"),
        dns_ms=asked("dns_p50_ms"),
        echo_ms=asked("echo_p50_ms"),
        gap_bytes=known_sum("capture_gap_bytes", "capture_gap_bytes_in"),
        payload_bytes=known_sum("payload_bytes", "payload_bytes_in"),
        wire_bytes=known_sum("wire_bytes", "wire_bytes_in"),
        up_bytes=asked("wire_bytes"),
        down_bytes=pl.when(pl.col("is_near")).then(pl.col("wire_bytes_in")).otherwise(pl.col("wire_bytes")),
        wifi_frames=known_sum("wifi_frames", "wifi_frames_in"),
        wifi_retry_frames=known_sum("wifi_retry_frames", "wifi_retry_frames_in"),
        signals=known_sum("wifi_signal_samples", "wifi_signal_samples_in"),
        signal_sum=known_sum("wifi_signal_sum_dbm", "wifi_signal_sum_dbm_in"),
    )
    return two_ways.with_columns(
        incomplete=pl.col("attempts").cast(pl.Int64)
        - pl.sum_horizontal("unanswered", "refused", "established").cast(pl.Int64),
        # what reached the server: the rest was sent again and again on the way there
        unserved=(pl.col("requests_unanswered").cast(pl.Int64) - pl.col("far_stalls").cast(pl.Int64)).clip(0),
        server_ms=pl.col("response_ms") - pl.col("far_rtt_ms"),
        # a host without TCP has no RTT to take off
        dns_server_ms=pl.col("dns_ms") - pl.col("far_rtt_ms").fill_null(0),
        rate_bps=pl.col("wire_bytes") * 8e9 / every_ns,
        up_bps=pl.col("up_bytes") * 8e9 / every_ns,
        down_bps=pl.col("down_bytes") * 8e9 / every_ns,
        signal_dbm=pl.when(pl.col("signals") > 0).then(pl.col("signal_sum") / pl.col("signals")),
    )


def together(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of `by_place` of one side with one row for each interval: sums, and medians over hosts."""
    import polars as pl

    sums = [name for share in SHARES for name in (share.part, share.whole)]
    medians = [median.column for median in MEDIANS if median.column != "rate_bps"]
    return rows.group_by("start_ns").agg(
        *(pl.col(name).sum() for name in dict.fromkeys(sums)),
        *(pl.col(name).median() for name in medians),
        pl.col("rate_bps", "up_bps", "down_bps").sum(),
    )


def signals_between(before: pl.DataFrame, during: pl.DataFrame) -> list[Signal]:
    """Return every signal of rows of `by_place`, in usual times and during an incident."""
    return [_compared(signal, _measured(signal, before), _measured(signal, during)) for signal in SIGNALS]


def signals_of_hosts(key: SignalKey, before: pl.DataFrame, during: pl.DataFrame) -> dict[str, Signal]:
    """Return one signal of each host that has packets in both times, by name."""
    signal = next(signal for signal in SIGNALS if signal.key == key)
    usual, now = (_measured_by_host(signal, frame) for frame in (before, during))
    return {host: _compared(signal, usual[host], now[host]) for host in sorted(now.keys() & usual.keys())}


def _compared(signal: Definition, usual: Measured, now: Measured) -> Signal:
    unit = "" if isinstance(signal, _Share) else signal.unit
    per_trial = _PER_TRIAL.get(signal.whole, 1) if isinstance(signal, _Share) else 1
    return Signal(signal.key, signal.place, unit, per_trial, usual, now, _has_changed(signal, usual, now))


def _has_changed(signal: Definition, usual: Measured, now: Measured) -> bool | None:
    """Return whether it got worse: the limits of both do not overlap, and the difference matters."""
    if usual.value is None or now.value is None:
        return None
    increase = now.value - usual.value
    is_sure = (now.low or 0.0) > (usual.high or 0.0)
    if isinstance(signal, _Share):
        least_n, least = _LEAST_TRIALS.get(signal.whole, _FEW_TRIALS), signal.least
    else:
        least_n, least = _LEAST_INTERVALS, max(signal.least, signal.least_share * abs(usual.value))
        if signal.falls:
            increase, is_sure = -increase, (now.high or 0.0) < (usual.low or 0.0)
    return None if min(usual.n, now.n) < least_n else is_sure and increase >= least


def _measured(signal: Definition, frame: pl.DataFrame) -> Measured:
    """Return a quantity over all rows."""
    if isinstance(signal, _Median):
        return _median(frame[signal.column].drop_nulls().cast(float).sort().to_list())
    return _share(signal, *frame.select(_sums(signal)).row(0))


def _measured_by_host(signal: Definition, frame: pl.DataFrame) -> dict[str, Measured]:
    """Return a quantity over the rows of each host."""
    import polars as pl

    hosts = frame.drop_nulls("group").group_by("group")
    if isinstance(signal, _Median):
        values = hosts.agg(pl.col(signal.column).drop_nulls().cast(float).sort())
        return {host: _median(numbers) for host, numbers in values.iter_rows()}
    return {host: _share(signal, part, whole) for host, part, whole in hosts.agg(_sums(signal)).iter_rows()}


def _sums(signal: _Share) -> list[pl.Expr]:
    """Return the sums of what a share is of, as far as both are known."""
    import polars as pl

    part, whole = (pl.col(name).cast(pl.Float64) for name in (signal.part, signal.whole))
    is_known = part.is_not_null() & whole.is_not_null()
    return [part.filter(is_known).sum().alias("part"), whole.filter(is_known).sum().alias("whole")]


def _share(signal: _Share, part: float, whole: float) -> Measured:
    if not whole:
        return Measured(None, None, None, 0)
    # losses of packets of earlier intervals may be counted here: never more than all
    count = min(max(part, 0.0), whole)
    trials = whole / _PER_TRIAL.get(signal.whole, 1)
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
