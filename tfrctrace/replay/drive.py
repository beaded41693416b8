"""Drive a controller with the recorded reports of a flow, and its timer between them (open loop)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.recordings.recording import DATA_LIMITED_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfrctrace.replay.controller import Allowed, Controller, Report
    from tfrctrace.replay.recordings.recording import Recording

REPORT: Final = "report"
NO_FEEDBACK: Final = "no_feedback"

MAX_EXPIRIES: Final = 1000
"""Most timer expiries between two reports, so that a timer that never grows ends."""


def drive(controller: Controller, recording: Recording) -> Iterator[tuple[int, str, Report | None, Allowed]]:
    """Yield each decision: time in ns, `report` or `no_feedback`, the report if any, and the decision.

    If the recording does not say whether the sender was data-limited, it counts as such if it sent less than
    nine tenths of what the previous decision allowed.
    """
    sent_ns = recording.sends["time_ns"].to_list()
    decided: Allowed | None = None
    since_s = 0.0

    def expiries(until_s: float) -> Iterator[tuple[int, str, None, Allowed]]:
        nonlocal decided, since_s
        for _ in range(MAX_EXPIRIES):
            timer_s = decided.timer_s if decided else None
            if timer_s is None or timer_s >= until_s:
                return
            is_idle = _idle(sent_ns, recording.start_ns, since_s, timer_s)
            decided = controller.on_nofeedback(timer_s, is_idle=is_idle)
            since_s = timer_s
            yield recording.start_ns + round(timer_s * 1e9), NO_FEEDBACK, None, decided

    limited = recording.reports["is_data_limited"].to_list()
    for report, is_known in zip(recording.steps(), (value is not None for value in limited), strict=True):
        yield from expiries(report.time_s)
        if not is_known and decided and recording.sends.height:
            # a difference of one packet is not significant
            sent_bytes = report.sent_bytes + recording.segment_bytes
            is_limited = sent_bytes < DATA_LIMITED_SHARE * decided.x * report.interval_s
            report = replace(report, is_data_limited=is_limited)  # noqa: PLW2901  one report, completed
        decided = controller.on_feedback(report)
        since_s = report.time_s
        yield recording.start_ns + round(report.time_s * 1e9), REPORT, report, decided
    yield from expiries(recording.seconds(recording.end_ns))


def _idle(sent_ns: list[int], start_ns: int, since_s: float, until_s: float) -> bool:
    """Return whether no packet is known to be sent from one time (exclusive) to another."""
    if not sent_ns:
        return False
    bounds = (bisect_right(sent_ns, start_ns + round(time_s * 1e9)) for time_s in (since_s, until_s))
    first, last = bounds
    return first == last
