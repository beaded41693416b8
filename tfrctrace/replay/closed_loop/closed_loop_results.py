"""What closed loops come to: a summary for each algorithm and flow."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.results.closed_loop import (
    ClosedLoopReplays,
    ClosedLoopRun,
    InferredBottleneck,
    ReplacedFlow,
)
from tfrctrace.metrics.results.replay import OF_DIRECTION, ReplayHead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops, ModelledFlow
    from tfrctrace.replay.closed_loop.infer_path import Bottleneck
    from tfrctrace.replay.recordings.recording import Recording

KEY: Final = (*OF_DIRECTION, "swept", "algorithm", "profile")

_ENDS: Final = (
    ("received_mean_bps", "received_low_bps", "received_high_bps"),
    ("rtt_p95_ms", "rtt_p95_low_ms", "rtt_p95_high_ms"),
)
"""What is predicted with an interval, and the columns of its ends."""

_ERRORS_ALONE: Final = {"received_mean_bps": 0.03, "rtt_p95_ms": 0.2}
_ERRORS_BESIDE: Final = {"received_mean_bps": 0.3, "rtt_p95_ms": 0.05}
"""Shares by which the model was off in at most one of ten runs of kernels (docs/models.md), alone and beside
flows that react: together they fill a queue, but chance decides whose packets it drops."""


def closed_loop_replays(loops: ClosedLoops) -> ClosedLoopReplays:
    """Return the results; docs/models.md explains the names."""
    usual = _by_run(loops.frame.drop_nulls("time_ns"))
    beside = {(one.recording.flow, one.recording.direction) for one in loops.flows if one.competitors}
    ends: defaultdict[tuple[Any, ...], list[pl.DataFrame]] = defaultdict(list)
    for frame in loops.ends:
        for key, rounds in _by_run(frame).items():
            ends[key].append(rounds)
    return ClosedLoopReplays(
        head=ReplayHead(loop="closed", notes=loops.notes, sweep=loops.sweep),
        flows=tuple(map(_replaced_flow, loops.flows)),
        lacking=loops.lacking,
        replays=tuple(
            ClosedLoopRun(
                **dict(zip(KEY, key, strict=True)),
                **_summary(rounds),
                **_between([rounds, *ends[key]], _ERRORS_BESIDE if key[:2] in beside else _ERRORS_ALONE),
                series=_series(rounds),
            )
            for key, rounds in usual.items()
        ),
    )


def _by_run(frame: pl.DataFrame) -> dict[tuple[Any, ...], pl.DataFrame]:
    return frame.drop("lacking").partition_by(KEY, maintain_order=True, as_dict=True, include_key=True)


def _between(alternatives: Sequence[pl.DataFrame], errors: Mapping[str, float]) -> dict[str, Any]:
    """Return the least and the most of what alternatives come to, and beyond it what the model may be off.

    They are None if there is one alternative only.
    """
    found = [_summary(rounds) for rounds in alternatives]
    ends: dict[str, float | None] = {}
    for column, low, high in _ENDS:
        known = [one[column] for one in found if one[column] is not None]
        is_known = len(alternatives) > 1 and known
        ends[low] = min(known) * (1 - errors[column]) if is_known else None
        ends[high] = max(known) * (1 + errors[column]) if is_known else None
    return ends


def _replaced_flow(modelled: ModelledFlow) -> ReplacedFlow:
    recording = modelled.recording
    return ReplacedFlow(
        flow=recording.flow,
        direction=recording.direction,
        **asdict(recording.ends),
        transport=recording.transport,
        segment_bytes=recording.segment_bytes,
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        sent_mean_bps=_sent_mean_bps(recording),
        bottleneck=_bottleneck(modelled.bottleneck),
        competitors=tuple(f"flow {one.flow} {one.algorithm.name}" for one in modelled.competitors),
    )


def _bottleneck(bottleneck: Bottleneck) -> InferredBottleneck:
    rates = bottleneck.background.rates
    return InferredBottleneck(
        capacity_bps=bottleneck.capacity_bps,
        base_rtt_ms=bottleneck.base_rtt_ms,
        buffer_bytes=bottleneck.buffer_bytes,
        random_loss=bottleneck.random_loss,
        least_rto_s=bottleneck.least_rto_s,
        background_mean_bps=8 * sum(rates) / len(rates) if rates else 0.0,
        receive_window_bytes=bottleneck.receive_window_bytes,
        outages_s=bottleneck.outages_s,
        queue=bottleneck.discipline,
        has_ecn=bottleneck.has_ecn,
    )


def _sent_mean_bps(recording: Recording) -> float | None:
    """Return the recorded rate between the first and the last data packet, with retransmissions."""
    elapsed_ns = recording.end_ns - recording.start_ns
    return 8e9 * float(recording.sends["payload_bytes"].sum()) / elapsed_ns if elapsed_ns > 0 else None


def _summary(rounds: pl.DataFrame) -> dict[str, Any]:
    """Return time-weighted means over the rounds, and the share of time per mode."""
    total_ms = float(rounds["duration_ms"].sum())
    modes = rounds.group_by("mode", maintain_order=True).agg(rounds["duration_ms"].name)
    return {
        "rounds": rounds.height,
        "seconds": total_ms / 1e3,
        "sent_mean_bps": _mean(rounds, "sent_bps", total_ms),
        "received_mean_bps": _mean(rounds, "received_bps", total_ms),
        "rtt_mean_ms": _mean(rounds, "rtt_ms", total_ms),
        "rtt_p95_ms": _not_exceeded(rounds, 0.95 * total_ms),
        "queued_mean_bytes": _mean(rounds, "queued_bytes", total_ms),
        "losses": int(rounds["lost_packets"].sum()),
        "p_end": rounds["p"][-1],
        "time_in_mode": {
            mode: sum(durations) / total_ms if total_ms else None for mode, durations in modes.iter_rows()
        },
    }


def _mean(rounds: pl.DataFrame, column: str, total_ms: float) -> float | None:
    """Return the mean over time; None without any time."""
    weighted = (rounds[column] * rounds["duration_ms"]).sum()
    return float(weighted) / total_ms if total_ms > 0 else None


def _not_exceeded(rounds: pl.DataFrame, time_ms: float) -> float | None:
    """Return the round-trip time that was not exceeded for so long; None without any time."""
    ordered = rounds.filter(rounds["duration_ms"] > 0).sort("rtt_ms")
    longer = ordered.filter(ordered["duration_ms"].cum_sum() >= time_ms)
    return None if longer.is_empty() else float(longer["rtt_ms"][0])


def _series(rounds: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: rounds[name].to_list() for name in rounds.columns if name not in KEY}
