"""Algorithms replayed on the reports of recorded flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfrctrace.metrics.results.replay import AlgorithmRun, FlowDirection, NotReplayable, Replays

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFlow(FlowDirection):
    """A flow, and what its reports were made of."""

    transport: str
    reports_from: Literal["reports", "simulated_reports", "tcp"]
    reports: int
    segment_bytes: float
    start_ns: int
    end_ns: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoopRun(AlgorithmRun):
    """Means from the first step to the last data packet; docs/replay.md explains the names."""

    reports: str
    rtt_scale: float
    steps: int
    x_mean_bps: float | None
    x_min_bps: float
    x_max_bps: float
    sent_mean_bps: float | None
    received_mean_bps: float | None
    p_mean: float | None
    r_mean_ms: float | None
    time_in_mode: Mapping[str, float | None]
    """Shares of the time."""


OpenLoopItem = RecordedFlow | NotReplayable | OpenLoopRun
"""What a loop gives one after the other: each flow before its runs."""


class OpenLoops(Replays[RecordedFlow, OpenLoopRun]):
    """Flows with their replays in open loop, and flows without."""
