"""BBR version 1: its states by the draft, and the sign by which it is named."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tfrctrace.replay.controller import Allowed, Report, Start
from tfrctrace.replay.naming.rtt_probes import rtt_probes
from tfrctrace.replay.tcp.bbr import Bbr

if TYPE_CHECKING:
    from collections.abc import Sequence

START = Start(segment_bytes=1000, handshake_rtt_s=0.1)
RATE = 1e6
RTT_S = 0.1


def run_at(rate: float, rounds: int, rtt_s: float = RTT_S) -> list[Allowed]:
    """Return the decisions on a path that delivers at most `rate`, with an empty queue."""
    control = Bbr(START)
    decided: list[Allowed] = []
    for number in range(rounds):
        sent = decided[-1].x if decided else 4000 / rtt_s
        decided.append(
            control.on_feedback(
                Report(
                    time_s=(number + 1) * rtt_s, interval_s=rtt_s, rtt_s=rtt_s, p=0.0, x_recv=min(sent, rate)
                )
            )
        )
    return decided


def test_startup_doubles_in_each_round_and_drains_when_the_bandwidth_no_longer_grows() -> None:
    decided = run_at(RATE, 14)
    startup = [one.x for one in decided if one.mode == "startup"]
    # section 4.3.2.1: 2 / ln 2 of what was delivered
    below = [after / before for before, after in pairwise(startup) if after < RATE]
    assert below == pytest.approx([2 / math.log(2)] * len(below))
    drain = next(one for one in decided if one.mode == "drain")
    assert drain.x == pytest.approx(RATE * math.log(2) / 2)


def test_the_gain_cycle_has_eight_phases_of_a_base_round_trip_time() -> None:
    rates = [one.x / RATE for one in run_at(RATE, 60) if one.mode == "probe_bandwidth"]
    # section 4.3.4.2
    assert rates[:16] == pytest.approx([1.25, 0.75, 1, 1, 1, 1, 1, 1] * 2)


def test_the_base_round_trip_time_is_measured_every_ten_seconds_with_four_segments() -> None:
    decided = run_at(RATE, 250)
    times = [number for number, one in enumerate(decided) if one.mode == "probe_rtt"]
    assert {decided[number].x for number in times} == {4 * 1000 / RTT_S}
    begins = [after for before, after in pairwise([-9, *times]) if after > before + 1]
    assert [(after - before) * RTT_S for before, after in pairwise(begins)] == pytest.approx([10.3], abs=0.15)
    # section 4.3.5: for 200 ms
    assert times[: times.index(begins[1])] == [begins[0], begins[0] + 1]


def test_losses_change_nothing() -> None:
    report = Report(time_s=5.0, interval_s=RTT_S, rtt_s=RTT_S, p=0.1, x_recv=RATE)
    lossy = Report(
        time_s=5.0, interval_s=RTT_S, rtt_s=RTT_S, p=0.1, x_recv=RATE, loss_events=1, lost_packets=9
    )
    assert Bbr(START).on_feedback(report) == Bbr(START).on_feedback(lossy)
    assert Bbr(START).on_nofeedback(9.0, is_idle=False).x == pytest.approx(4000 / RTT_S * 2 / math.log(2))


def rounds_of(windows: Sequence[float], *, round_ms: float = 60.0) -> list[dict[str, Any]]:
    return [
        {
            "duration_ms": round_ms,
            "flight_bytes": int(window * 1448),
            "cwnd_least_bytes": int(window * 1448),
            "repair": None,
        }
        for window in windows
    ]


def test_a_window_that_rests_at_four_segments_and_returns_at_once_is_a_probe() -> None:
    assert rtt_probes(rounds_of([40] * 9 + [4] * 4 + [38] * 9 + [4] * 4 + [41] * 3), 1448.0) == 2


@pytest.mark.parametrize(
    "windows",
    [
        [40] * 9 + [4, 40, 40],  # too short
        [40] * 9 + [4] * 4 + [8, 16, 32, 40],  # a slow start
        [40] * 9 + [3] * 4 + [40] * 9,  # fewer
        [6] * 9 + [4] * 4 + [6] * 9,  # a path that holds hardly more
        [40] * 9 + [4] * 4,  # the end of the data
    ],
)
def test_other_small_windows_are_none(windows: Sequence[float]) -> None:
    assert rtt_probes(rounds_of(windows), 1448.0) == 0


def test_losses_and_hidden_windows_are_none() -> None:
    rows = rounds_of([40] * 9 + [4] * 4 + [40] * 9)
    for row in rows[9:13]:
        row["repair"] = "recovery"
    assert rtt_probes(rows, 1448.0) == 0
    for row in rows[9:13]:
        row["repair"], row["cwnd_least_bytes"] = None, None
    assert rtt_probes(rows, 1448.0) == 0
