"""What closed loops come to: a summary for each algorithm and flow."""

from __future__ import annotations

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
    import polars as pl

    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops, ModelledFlow
    from tfrctrace.replay.closed_loop.infer_path import Bottleneck
    from tfrctrace.replay.recordings.recording import Recording

KEY: Final = (*OF_DIRECTION, "algorithm", "profile")


def closed_loop_replays(loops: ClosedLoops) -> ClosedLoopReplays:
    """Return the results; docs/models.md explains the names."""
    return ClosedLoopReplays(
        head=ReplayHead(loop="closed", notes=loops.notes),
        flows=tuple(map(_replaced_flow, loops.flows)),
        lacking=loops.lacking,
        replays=tuple(
            ClosedLoopRun(**dict(zip(KEY, key, strict=True)), **_summary(rounds), series=_series(rounds))
            for key, rounds in loops.frame.filter(loops.frame["lacking"].is_null())
            .drop("lacking")
            .group_by(KEY, maintain_order=True)
        ),
    )


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


def _series(rounds: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: rounds[name].to_list() for name in rounds.columns if name not in KEY}
