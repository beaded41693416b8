"""What an open loop comes to: a summary for each algorithm and flow."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.results.open_loop import OpenLoopRun, RecordedFlow
from tfrctrace.metrics.results.replay import OF_DIRECTION
from tfrctrace.replay.column_arrays import floats
from tfrctrace.replay.open_loop import FlowReplay

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from tfrctrace.metrics.results.open_loop import OpenLoopItem
    from tfrctrace.replay.open_loop import OpenLoop, OpenLoopReplay
    from tfrctrace.replay.recordings.recording import Recording

KEY: Final = (*OF_DIRECTION, "algorithm", "profile", "reports", "rtt_scale")

SERIES: Final = (
    "time_ns",
    "event",
    "x_bps",
    "mode",
    "reason",
    "p",
    "rtt_ms",
    "r_ms",
    "x_calc_bps",
    "x_recv_bps",
    "x_recv_set_bps",
    "x_limit_bps",
    "sent_bps",
    "x_tfrc_bps",
    "x_t_bps",
    "x_fair_bps",
    "window_bytes",
)


def open_loop_runs(replayed: OpenLoopReplay) -> list[OpenLoopRun]:
    """Return the summaries of steps that were collected."""
    recordings = {(recording.flow, recording.direction): recording for recording in replayed.recordings}
    return [
        _run(steps, recordings[steps["flow"][0], steps["direction"][0]])
        for _, steps in replayed.frame.group_by(KEY, maintain_order=True)
    ]


def open_loop_items(found: OpenLoop, *, series: bool) -> Iterator[OpenLoopItem]:
    """Run the algorithms and give each flow before its summaries, with all steps if `series`."""
    known = set[tuple[int, str]]()
    for one in found.flows():
        flow = one.recording if isinstance(one, FlowReplay) else one
        # further scales of round-trip times repeat the flows
        is_first = (flow.flow, flow.direction) not in known
        if found.is_repeated:
            known.add((flow.flow, flow.direction))
        if not isinstance(one, FlowReplay):
            if is_first:
                yield one
            continue
        if is_first:
            yield _recorded_flow(one.recording)
        for steps in one.steps:
            if not steps.is_empty():
                yield _run(steps, one.recording, series=series)
            del steps
        del one, flow


def _run(steps: pl.DataFrame, recording: Recording, *, series: bool = True) -> OpenLoopRun:
    return OpenLoopRun(
        **{name: steps[name][0] for name in KEY},
        **_summary(steps, recording),
        series=_series(steps) if series else {},
    )


def _recorded_flow(recording: Recording) -> RecordedFlow:
    return RecordedFlow(
        flow=recording.flow,
        direction=recording.direction,
        **asdict(recording.ends),
        transport=recording.transport,
        reports_from=recording.source,
        reports=recording.reports.height,
        segment_bytes=recording.segment_bytes,
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        notes=tuple(recording.notes),
    )


def _summary(steps: pl.DataFrame, recording: Recording) -> dict[str, Any]:
    """Return means from the first step to the last data packet, and shares of that time by mode."""
    import numpy as np
    import polars as pl

    times = steps["time_ns"].to_numpy()
    lasts_ns = pl.Series(np.maximum(np.diff(times, append=max(recording.end_ns, times[-1])), 0))
    total_ns = int(lasts_ns.sum())
    modes = steps["mode"]
    return {
        "steps": steps.height,
        "x_mean_bps": _mean(steps["x_bps"], lasts_ns),
        "x_min_bps": steps["x_bps"].min(),
        "x_max_bps": steps["x_bps"].max(),
        "sent_mean_bps": _sent_mean_bps(recording, int(steps["time_ns"][0])),
        "received_mean_bps": _received_mean_bps(steps, recording),
        "p_mean": _mean(steps["p"], lasts_ns),
        "r_mean_ms": _mean(steps["r_ms"], lasts_ns),
        "time_in_mode": {
            mode: lasts_ns.filter(modes == mode).sum() / total_ns if total_ns else None
            for mode in dict.fromkeys(modes.to_list())
        },
    }


def _mean(values: pl.Series, lasts_ns: pl.Series) -> float | None:
    """Return the mean of a step function where it is known; None if it never lasts."""
    if values.has_nulls():
        is_known = values.is_not_null()
        values, lasts_ns = values.filter(is_known), lasts_ns.filter(is_known)
    weights = lasts_ns.cast(float)
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0 else None


def _sent_mean_bps(recording: Recording, since_ns: int) -> float | None:
    """Return the recorded rate from a time to the last data packet, in bit/s."""
    return _rate_bps(_sent_since(recording, since_ns), recording.end_ns - since_ns)


def _received_mean_bps(steps: pl.DataFrame, recording: Recording) -> float | None:
    """Return the rate of the sent packets that arrived, as far as the trace shows that, else by X_recv.

    X_recv counts the time before its report: a round of a TCP connection, else since the previous report.
    """
    import numpy as np
    import polars as pl

    is_report = np.isfinite(floats(steps["p"]))
    times = steps["time_ns"].to_numpy()[is_report]
    if not len(times):
        return None
    since_ns, until_ns = int(times[0]), int(times[-1])
    sent = _sent_since(recording, since_ns)
    if sent["arrives"].null_count() < sent.height:
        return _rate_bps(sent.filter(sent["arrives"]), recording.end_ns - since_ns)
    covered_ns = np.concatenate([[np.nan], np.diff(times)])
    if recording.source == "tcp":
        covered_ns = np.fmin(covered_ns, floats(steps["rtt_ms"])[is_report] * 1e6)
    # what is not known counts nothing
    bit_ns = np.nan_to_num(floats(steps["x_recv_bps"])[is_report] * covered_ns, nan=0.0)
    elapsed_ns = until_ns - since_ns
    return float(pl.Series(bit_ns).sum()) / elapsed_ns if elapsed_ns > 0 else None


def _sent_since(recording: Recording, since_ns: int) -> pl.DataFrame:
    """Return what was sent after a time."""
    times = recording.sends["time_ns"].to_numpy()
    return recording.sends.slice(int(times.searchsorted(since_ns, "right")))


def _rate_bps(sends: pl.DataFrame, elapsed_ns: int) -> float | None:
    return 8e9 * float(sends["payload_bytes"].sum()) / elapsed_ns if elapsed_ns > 0 else None


def _series(steps: pl.DataFrame) -> dict[str, list[Any]]:
    """Return the columns with any value."""
    return {name: steps[name].to_list() for name in SERIES if steps[name].null_count() < steps.height}
