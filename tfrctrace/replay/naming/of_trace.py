"""Name the congestion control of each direction of a trace, by its tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.sets.up_down import BELIEVED
from tfrctrace.replay.controller import Start
from tfrctrace.replay.naming.answer import FEW_ROUNDS, LEAST_CUTS, Answer, answer
from tfrctrace.replay.naming.candidates import BBR
from tfrctrace.replay.naming.observations import observations
from tfrctrace.replay.naming.rtt_probes import rtt_probes
from tfrctrace.replay.tcp.bbr import BASE_RTT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

_OF_DIRECTION: Final = ("flow", "direction")

_OTHER_WAY: Final = {"fwd": "rev", "rev": "fwd"}

_FACTS: Final = (
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

OF_FLOWS: Final = (*_FACTS, "vantage", "vantage_confidence", "reported_ce_packets")
"""Columns of the table of flows that tell where a direction was captured, and what it sent."""

OF_ROUNDS: Final = (
    *_OF_DIRECTION,
    *("time_ns", "duration_ms", "flight_bytes", "cwnd_bytes", "delivered_bytes", "rtt_ms"),
    *("ece_packets", "repair"),
)
"""Columns of the table of rounds that show windows and their cuts."""

OF_STRETCHES: Final = (*_OF_DIRECTION, "start_ns", "cause")
"""Columns of the table of causes that tell when a window was the limit."""

_OF_PATH: Final = ("bottleneck", "shared_bottleneck", "policer", "loss", "mark", "recovery", "timeout")
"""Causes while which the congestion window limits the flight."""

_OF_ENDS: Final = ("application", "server", "receiver", "send_buffer")
"""Causes that let a sender restart, or stop its window from growing (RFC 9438 section 5.8)."""

_MOST_OF_ENDS: Final = 0.1
"""Share of the time that they may hold a flow back."""

_LEAST_OF_PATH: Final = 0.25
"""Share of the time that the path has to limit a flow of which only that sign is looked for."""

_MOST_UNKNOWN: Final = 0.5

_MOST_ROUNDS: Final = 1_000
"""Rounds of a direction that are looked at: the first."""

_TIMESTAMPS_BYTES: Final = 12
"""RFC 7323 appendix A: what the option takes of each segment, and the MSS does not count (RFC 6691)."""

_LEAST_OF_SEGMENT: Final = 0.9
"""Mean payload over that of a full segment; if it is less, the path takes only shorter ones."""

_ECN: Final = ("rfc3168", "accurate")

NOT_LIMITED_BY_PATH: Final = "not_limited_by_path"
MARKS: Final = "marks"
NOT_AT_SENDER: Final = "not_at_sender"


def congestion_controls(
    rounds: Iterable[pl.DataFrame],
    stretches: Iterable[pl.DataFrame],
    parts: Iterable[tuple[pl.DataFrame, pl.DataFrame]],
) -> pl.DataFrame:
    """Return the congestion control of each direction with sums of causes, or why it is not known.

    `rounds` are frames with the columns `OF_ROUNDS`, `stretches` with `OF_STRETCHES`; they are made only if
    the path limited a direction. `parts` are sums of causes, and the columns `OF_FLOWS` of the same flows.
    """
    import polars as pl

    # a paced sender may look as if its application were slow
    is_open = pl.col("reason").is_null() | pl.col("may_be_paced")
    reasons = list[pl.DataFrame]()
    facts = dict[tuple[int, str], dict[str, Any]]()
    for cause_sums, flows in parts:
        own = _reasons(cause_sums, flows)
        of_open = flows.select(_FACTS).join(own.filter(is_open), on="flow", how="semi")
        facts |= {(row["flow"], row["direction"]): row for row in of_open.iter_rows(named=True)}
        reasons.append(own)
    every = pl.concat(reasons)
    answers = _answers(rounds, stretches, every.filter(is_open), facts)
    rows = [
        {
            "flow": flow,
            "direction": direction,
            "congestion_control": "|".join(found.names) or None,
            "congestion_control_reason": found.reason,
            "compared_rounds": found.rounds,
            "predicted_rounds": found.predicted_rounds,
            "window_left": found.kept,
            "rtt_probes": found.rtt_probes,
        }
        for (flow, direction), found in answers.items()
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
    }
    named = pl.DataFrame(rows, schema=types)
    return (
        every.join(named, on=_OF_DIRECTION, how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("congestion_control_reason", pl.when(~is_open).then("reason")),
            pl.col("compared_rounds", "predicted_rounds").fill_null(0),
        )
        .select(*types)
    )


def _answers(
    rounds: Iterable[pl.DataFrame],
    stretches: Iterable[pl.DataFrame],
    open_ones: pl.DataFrame,
    facts: Mapping[tuple[int, str], Mapping[str, Any]],
) -> dict[tuple[int, str], Answer]:
    """Return what is known of the directions `open_ones`, which have no other reason or may be paced."""
    import polars as pl

    reasons = {(flow, direction): reason for flow, direction, reason, _ in open_ones.iter_rows()}
    answers = {direction: Answer((), reason or FEW_ROUNDS) for direction, reason in reasons.items()}
    if not answers:
        return answers
    own_rounds, own_stretches = (
        [one.join(open_ones, on=_OF_DIRECTION, how="semi") for one in frames]
        for frames in (rounds, stretches)
    )
    if not own_rounds:
        return answers
    first = pl.concat(own_rounds).group_by(_OF_DIRECTION, maintain_order=True).head(_MOST_ROUNDS)
    windows = _windows(first, pl.concat(own_stretches))
    for (flow, direction), group in windows.group_by(_OF_DIRECTION, maintain_order=True):
        other = facts.get((flow, _OTHER_WAY[direction]))
        answers[flow, direction] = _answer(group, facts[flow, direction], other, reasons[flow, direction])
    return answers


def _reasons(cause_sums: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """Return each direction with the reason why it is not looked at, null if it is."""
    import polars as pl

    length = pl.col("duration_ns").cast(pl.Float64)
    unknown = pl.col("cause") == "unknown"
    reason = (
        pl.when(length.filter(unknown).sum() > _MOST_UNKNOWN * length.sum())
        .then(pl.col("sign").filter(unknown).sort_by(pl.col("longest_ns").filter(unknown)).last())
        .when(length.filter(pl.col("cause").is_in(_OF_ENDS)).sum() > _MOST_OF_ENDS * length.sum())
        .then(pl.lit(NOT_LIMITED_BY_PATH))
    )
    of_path = length.filter(pl.col("cause").is_in(_OF_PATH)).sum()
    may_be_paced = (of_path > _LEAST_OF_PATH * length.sum()) & (length.sum() > 1e9 * BASE_RTT_S)
    found = cause_sums.group_by(_OF_DIRECTION, maintain_order=True).agg(
        reason.alias("reason"), may_be_paced=may_be_paced & (reason == NOT_LIMITED_BY_PATH)
    )
    is_at_sender = (pl.col("vantage") == "sender") & (pl.col("vantage_confidence") >= BELIEVED)
    signs = flows.select(
        *_OF_DIRECTION,
        marks=pl.when(pl.col("reported_ce_packets") > 0).then(pl.lit(MARKS)),
        away=pl.when(~is_at_sender.fill_null(value=False)).then(pl.lit(NOT_AT_SENDER)),
    )
    rows = found.join(signs, on=_OF_DIRECTION, how="left", maintain_order="left")
    return rows.select(
        *_OF_DIRECTION,
        pl.coalesce("reason", "away", "marks").alias("reason"),
        may_be_paced=pl.col("may_be_paced") & pl.col("away").is_null(),
    )


def _windows(rounds: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """Return rounds with their window only where it was the limit; `any_cwnd_bytes` has every one."""
    import polars as pl

    joined = rounds.sort("time_ns", maintain_order=True).join_asof(
        stretches.sort("start_ns"),
        left_on="time_ns",
        right_on="start_ns",
        by=_OF_DIRECTION,
        check_sortedness=False,
    )
    shown = pl.when(pl.col("cause").is_in(_OF_PATH)).then("cwnd_bytes")
    return joined.with_columns(cwnd_bytes=shown, any_cwnd_bytes="cwnd_bytes").select(
        *OF_ROUNDS, "any_cwnd_bytes"
    )


def _answer(
    rounds: pl.DataFrame, facts: Mapping[str, Any], other: Mapping[str, Any] | None, reason: str | None
) -> Answer:
    if rounds.height < LEAST_CUTS or other is None or not facts["data_segments"]:
        return Answer((), reason or FEW_ROUNDS)
    segment_bytes = _segment_bytes(facts, other)
    # duplicates acknowledge nothing
    not_counted = (other["data_packets"] or 0) + (other["duplicate_acks"] or 0)
    acknowledgements = (other["packets"] or 0) - not_counted
    segments_per_ack = facts["data_segments"] / max(acknowledgements, 1)
    rows = rounds.rows(named=True)
    probes = rtt_probes(rows, segment_bytes)
    if probes:
        return Answer((BBR,), rtt_probes=probes)
    if reason is not None:
        return Answer((), reason)
    segments_per_ack = max(segments_per_ack, 1.0)
    observed = list(observations(rows, segment_bytes, segments_per_ack))
    start = Start(segment_bytes=segment_bytes)
    return answer(observed, start, segments_per_ack, has_ecn=facts["ecn_mode"] in _ECN)


def _segment_bytes(facts: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the payload of a full segment."""
    mean = (facts["payload_bytes"] or 0) / facts["data_segments"]
    mss = other["mss"] or math.inf
    full = mss - _TIMESTAMPS_BYTES if facts["ts_rtt_samples"] else mss
    return float(full) if _LEAST_OF_SEGMENT * full < mean <= full else max(round(mean), 1)
