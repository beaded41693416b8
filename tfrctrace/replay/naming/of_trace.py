"""Name the congestion control of each direction of a trace, by its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrctrace.metrics.sets.up_down import BELIEVED
from tfrctrace.replay.controller import Start
from tfrctrace.replay.naming.answer import (
    FEW_ROUNDS,
    LEAST_CUTS,
    Answer,
    answer,
)
from tfrctrace.replay.naming.candidates import BBR, CDG
from tfrctrace.replay.naming.delay_backoffs import delay_backoffs
from tfrctrace.replay.naming.observations import observations
from tfrctrace.replay.naming.rtt_probes import rtt_probes
from tfrctrace.replay.tcp.bbr import BASE_RTT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.naming.candidates import Candidate
    from tfrctrace.replay.naming.observations import Observation

_OF_DIRECTION: Final = ("flow", "direction")

OTHER_WAY: Final = {"fwd": "rev", "rev": "fwd"}

FACTS: Final = (
    *_OF_DIRECTION,
    "packets",
    "data_packets",
    "duplicate_acks",
    "data_segments",
    "payload_bytes",
    "mss",
    "ts_rtt_samples",
    "ecn_mode",
)

OF_FLOWS: Final = (*FACTS, "vantage", "vantage_confidence", "reported_ce_packets")
"""Columns of the table of flows that tell where a direction was captured, and what it sent."""

OF_ROUNDS: Final = (
    *_OF_DIRECTION,
    *("time_ns", "packet", "duration_ms", "flight_bytes", "cwnd_least_bytes", "delivered_bytes", "rtt_ms"),
    *("ece_packets", "repair", "flight_error_bytes"),
)
"""Columns of the table of rounds that show windows and their cuts."""

OF_STRETCHES: Final = (*_OF_DIRECTION, "start_ns", "cause")
"""Columns of the table of causes that tell when a window was the limit."""

_OF_PATH: Final = ("bottleneck", "shared_bottleneck", "policer", "loss", "mark", "recovery", "timeout")
"""Causes while which the congestion window limits the flight."""

_SLOW_START: Final = "slow_start"

_OF_ENDS: Final = ("application", "server", "receiver", "send_buffer")
"""Causes that let a sender restart, or stop its window from growing (RFC 9438 section 5.8)."""

_MOST_OF_ENDS: Final = 0.1
"""Share of the time that they may hold a flow back."""

_LEAST_OF_PATH: Final = 0.25
"""Share of the time that the path has to limit a flow of which only that sign is looked for."""

_MOST_UNKNOWN: Final = 0.5

_MOST_ERROR: Final = 0.03
"""Share of a flight by which an estimate away from the sender may be wrong, so that it shows the window."""

MOST_ROUNDS: Final = 1_000
"""Rounds of a direction that are looked at: the first."""

_TIMESTAMPS_BYTES: Final = 12
"""RFC 7323 appendix A: what the option takes of each segment, and the MSS does not count (RFC 6691)."""

_LEAST_OF_SEGMENT: Final = 0.9
"""Mean payload over that of a full segment; if it is less, the path takes only shorter ones."""

_ECN: Final = ("rfc3168", "accurate")

NOT_LIMITED_BY_PATH: Final = "not_limited_by_path"
MARKS: Final = "marks"
NOT_AT_SENDER: Final = "not_at_sender"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a trace shows of the windows of a direction that the path limited."""

    rounds: Sequence[Mapping[str, Any]]
    """`OF_ROUNDS`, `cwnd_bytes` where the window, or a pace, limited the flight, and `cause`: what limited it
    when the round began."""
    segment_bytes: float
    segments_per_ack: float
    has_ecn: bool

    def observed(self, *, by_round: bool = False) -> list[Observation]:
        """Return what its rounds show of the window, each decision of its own if `by_round`."""
        rounds = map(_with_slow_start, self.rounds) if by_round else self.rounds
        return list(observations(rounds, self.segment_bytes, self.segments_per_ack, by_round=by_round))

    @property
    def start(self) -> Start:
        """The facts with which a congestion control begins."""
        return Start(segment_bytes=self.segment_bytes)


@dataclass(frozen=True, slots=True)
class Named:
    """The congestion control of a direction, and of what that was seen."""

    key: tuple[int, str]
    """Number of the flow, and direction."""
    answer: Answer
    seen: Seen | None
    """None where too little was seen, or the path did not limit it."""
    is_estimated: bool = False
    """Whether its windows are estimates, from a capture away from its sender."""


class Directions(NamedTuple):
    """What tables tell of directions with sums of causes before their windows are looked at."""

    reasons: pl.DataFrame
    """The reason why each is not named, null if it is, whether it may be, and whether it is looked at."""
    facts: Mapping[tuple[int, str], Mapping[str, Any]]
    """`FACTS` of those that are looked at, and of their other directions."""
    least_rounds: int
    """Rounds that one has to have to be looked at."""


def directions_of(parts: Iterable[Sequence[pl.DataFrame]], *, with_others: bool = False) -> Directions:
    """Return what is known of the directions in `parts`, of which those that may be named are looked at.

    `with_others`, all that were captured at their sender are, too.
    """
    import polars as pl

    reasons = list[pl.DataFrame]()
    facts = dict[tuple[int, str], dict[str, Any]]()
    for cause_sums, flows in parts:
        known = _reasons(cause_sums, flows)
        known = known.with_columns(is_seen=pl.col("may_be_named") | (pl.col("is_at_sender") & with_others))
        seen = flows.select(FACTS).join(known.filter("is_seen"), on="flow", how="semi")
        facts |= {(row["flow"], row["direction"]): row for row in seen.iter_rows(named=True)}
        reasons.append(known)
    return Directions(pl.concat(reasons), facts, 1 if with_others else LEAST_CUTS)


def controls_frame(directions: Directions, every_named: Iterable[Named]) -> pl.DataFrame:
    """Return a row for each of the directions, in order."""
    import polars as pl

    rows = [
        {
            "flow": named.key[0],
            "direction": named.key[1],
            "congestion_control": "|".join(named.answer.names) or None,
            "congestion_control_reason": named.answer.reason,
            "compared_rounds": named.answer.rounds,
            "predicted_rounds": named.answer.predicted_rounds,
            "window_left": named.answer.kept,
            "rtt_probes": named.answer.rtt_probes,
            "delay_backoffs": named.answer.delay_backoffs,
            "windows_estimated": named.is_estimated if named.answer.names else None,
        }
        for named in every_named
    ]
    types = {
        "flow": pl.UInt32,
        "direction": pl.String,
        "congestion_control": pl.String,
        "congestion_control_reason": pl.String,
        "compared_rounds": pl.UInt64,
        "predicted_rounds": pl.UInt64,
        "window_left": pl.Float64,
        "rtt_probes": pl.UInt64,
        "delay_backoffs": pl.UInt64,
        "windows_estimated": pl.Boolean,
    }
    named = pl.DataFrame(rows, schema=types)
    return (
        directions.reasons.join(named, on=_OF_DIRECTION, how="left", maintain_order="left")
        .with_columns(
            # of others than those that may be named the reason is known without their windows
            pl.coalesce("congestion_control_reason", pl.when(~pl.col("may_be_named")).then("reason")),
            pl.col("compared_rounds", "predicted_rounds").fill_null(0),
        )
        .select(*types)
    )


def named_directions(
    rounds: Iterable[pl.DataFrame],
    stretches: Iterable[pl.DataFrame],
    directions: Directions,
    *,
    own: Sequence[Candidate] = (),
) -> Iterator[Named]:
    """Give the congestion control of each direction that is looked at; of others the reason is known."""
    looked_at = directions.reasons.filter("is_seen")
    left = {(row["flow"], row["direction"]): row for row in looked_at.iter_rows(named=True)}
    if not left:
        return
    for key, seen in seen_directions(rounds, stretches, directions):
        row = left.pop(key)
        shows_windows = any(round_["cwnd_bytes"] for round_ in seen.rounds)
        reason = None if row["reason"] == NOT_AT_SENDER and shows_windows else row["reason"]
        found = _answer(seen, reason, own) if row["may_be_named"] else Answer((), reason)
        # the queue of its own interface may stand between a sender and a capture beside it
        is_estimated = not row["is_at_sender"] or any(round_["flight_error_bytes"] for round_ in seen.rounds)
        yield Named(key, found, seen, is_estimated=is_estimated)
    for key, row in left.items():
        yield Named(key, Answer((), row["reason"] or FEW_ROUNDS), None)


def seen_directions(
    rounds: Iterable[pl.DataFrame], stretches: Iterable[pl.DataFrame], directions: Directions
) -> Iterator[tuple[tuple[int, str], Seen]]:
    """Give what is seen of the windows of directions that are looked at and have enough rounds."""
    import polars as pl

    looked_at = directions.reasons.filter("is_seen")
    own_rounds, own_stretches = (
        [one.join(looked_at, on=_OF_DIRECTION, how="semi") for one in frames]
        for frames in (rounds, stretches)
    )
    if looked_at.is_empty() or not own_rounds:
        return
    first = pl.concat(own_rounds).group_by(_OF_DIRECTION, maintain_order=True).head(MOST_ROUNDS)
    windows = _windows(first, pl.concat(own_stretches))
    for (flow, direction), group in windows.group_by(_OF_DIRECTION, maintain_order=True):
        if group.height < directions.least_rounds:
            continue
        own, other = (directions.facts.get((flow, way)) for way in (direction, OTHER_WAY[direction]))
        if own is not None and other is not None and own["data_segments"]:
            yield (flow, direction), seen_of(group.rows(named=True), own, other)


def _reasons(cause_sums: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return each direction with the reason why it is not named, null if it is, and whether it may be."""
    import polars as pl

    length = pl.col("duration_ns").cast(pl.Float64)
    is_unknown = pl.col("cause") == "unknown"
    sums = cause_sums.group_by(_OF_DIRECTION, maintain_order=True).agg(
        all=length.sum(),
        unknown=pl.when(is_unknown).then(length).sum(),
        of_ends=pl.when(pl.col("cause").is_in(_OF_ENDS)).then(length).sum(),
        of_path=pl.when(pl.col("cause").is_in(_OF_PATH)).then(length).sum(),
    )
    hidden = cause_sums.filter(is_unknown).sort("longest_ns", maintain_order=True)
    sign = hidden.unique(_OF_DIRECTION, keep="last").select(*_OF_DIRECTION, "sign")
    reason = (
        pl.when(pl.col("unknown") > _MOST_UNKNOWN * pl.col("all"))
        .then(pl.col("sign"))
        .when(pl.col("of_ends") > _MOST_OF_ENDS * pl.col("all"))
        .then(pl.lit(NOT_LIMITED_BY_PATH))
    )
    may_be_paced = (pl.col("of_path") > _LEAST_OF_PATH * pl.col("all")) & (pl.col("all") > 1e9 * BASE_RTT_S)
    found = sums.join(sign, on=_OF_DIRECTION, how="left", maintain_order="left").select(
        *_OF_DIRECTION, reason=reason, may_be_paced=may_be_paced & (reason == NOT_LIMITED_BY_PATH)
    )
    is_at_sender = (pl.col("vantage") == "sender") & (pl.col("vantage_confidence") >= BELIEVED)
    signs = flows.select(
        *_OF_DIRECTION,
        marks=pl.when(pl.col("reported_ce_packets") > 0).then(pl.lit(MARKS)),
        away=pl.when(~is_at_sender.fill_null(value=False)).then(pl.lit(NOT_AT_SENDER)),
    )
    rows = found.join(signs, on=_OF_DIRECTION, how="left", maintain_order="left")
    # away from the sender this is the reason if its windows do not show there either
    told = pl.coalesce("reason", "marks", "away")
    # a paced sender may look as if its application were slow
    may_be_named = pl.coalesce("reason", "marks").is_null() | (
        pl.col("may_be_paced") & pl.col("away").is_null()
    )
    return rows.select(
        *_OF_DIRECTION, reason=told, may_be_named=may_be_named, is_at_sender=pl.col("away").is_null()
    )


def _windows(rounds: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """Return rounds with `cwnd_bytes` where the window was the limit, or a pace that keeps below it."""
    import polars as pl

    joined = rounds.sort("time_ns", maintain_order=True).join_asof(
        stretches.sort("start_ns"),
        left_on="time_ns",
        right_on="start_ns",
        by=_OF_DIRECTION,
        check_sortedness=False,
    )
    error = pl.col("flight_error_bytes")
    # the bound is the flight less its error: the flight itself is likelier, and the same at the sender
    likely = pl.col("cwnd_least_bytes") + error
    shows_window = pl.col("cause").is_in(_OF_PATH) & (error <= _MOST_ERROR * pl.col("flight_bytes"))
    shown = pl.when(shows_window).then(likely)
    return joined.with_columns(cwnd_least_bytes=likely).select(*OF_ROUNDS, "cause", cwnd_bytes=shown)


def _with_slow_start(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a round with its window also where slow start was the limit."""
    return {**row, "cwnd_bytes": row["cwnd_least_bytes"]} if row["cause"] == _SLOW_START else row


def seen_of(rounds: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], other: Mapping[str, Any]) -> Seen:
    """Return what rounds show of a direction, by `FACTS` of it and of the other one."""
    # each duplicate is for one segment that arrived (RFC 5681 section 4.2)
    duplicates = other["duplicate_acks"] or 0
    acknowledgements = (other["packets"] or 0) - (other["data_packets"] or 0) - duplicates
    segments_per_ack = (facts["data_segments"] - duplicates) / max(acknowledgements, 1)
    return Seen(
        rounds,
        _segment_bytes(facts, other),
        max(segments_per_ack, 1.0),
        has_ecn=facts["ecn_mode"] in _ECN,
    )


def _answer(seen: Seen, reason: str | None, own: Sequence[Candidate]) -> Answer:
    probes = rtt_probes(seen.rounds, seen.segment_bytes)
    if probes:
        return Answer((BBR,), rtt_probes=probes)
    backoffs = delay_backoffs(seen.rounds, seen.segment_bytes)
    if backoffs:
        return Answer((CDG,), delay_backoffs=backoffs)
    if reason is not None:
        return Answer((), reason)
    return answer(seen.observed(), seen.start, seen.segments_per_ack, has_ecn=seen.has_ecn, own=own)


def _segment_bytes(facts: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the payload of a full segment."""
    mean = (facts["payload_bytes"] or 0) / facts["data_segments"]
    mss = other["mss"] or math.inf
    full = mss - _TIMESTAMPS_BYTES if facts["ts_rtt_samples"] else mss
    return float(full) if _LEAST_OF_SEGMENT * full < mean <= full else max(round(mean), 1)
