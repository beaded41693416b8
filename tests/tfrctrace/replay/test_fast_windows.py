"""Windows for fast and long paths, against their papers and against what Linux 6.1 did with them.

Numbers of Linux are `tcpi_snd_cwnd` before a loss and `tcpi_snd_ssthresh` after it, as the kernels of
`evaluation/kernel_farm` logged them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from tfrctrace.replay.controller import Report, Start
from tfrctrace.replay.naming.observations import At, Cut, Growth
from tfrctrace.replay.naming.predict import predictions
from tfrctrace.replay.tcp.bic import Bic
from tfrctrace.replay.tcp.cubic import Cubic
from tfrctrace.replay.tcp.high_speed import HighSpeed, decrease, steps
from tfrctrace.replay.tcp.htcp import Htcp
from tfrctrace.replay.tcp.hybla import Hybla
from tfrctrace.replay.tcp.illinois import Illinois
from tfrctrace.replay.tcp.low_priority import LowPriority
from tfrctrace.replay.tcp.nv import Nv
from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.scalable import Scalable
from tfrctrace.replay.tcp.veno import Veno
from tfrctrace.replay.tcp.westwood import Westwood
from tfrctrace.replay.tcp.yeah import Yeah

if TYPE_CHECKING:
    from tfrctrace.replay.tcp.window import WindowControl

START = Start(segment_bytes=1448)


def at_window(
    control: WindowControl, cwnd: float, *, rtts_s: tuple[float, ...] = (0.1,), last: float = 0.0
) -> WindowControl:
    """Return `control` in congestion avoidance, with round-trip times and a loss before at a window."""
    for rtt_s in rtts_s:
        control.sample_rtt(rtt_s)
    if last:
        control.cwnd = last
        control.after_loss()
    control.cwnd = control.ssthresh = cwnd
    return control


def grown(control: WindowControl, rounds: int = 1) -> float:
    """Return by how much the window grows in some rounds."""
    before = control.cwnd
    for _ in range(rounds):
        control.avoid_congestion(1.0)
    return control.cwnd - before


@pytest.mark.parametrize(
    ("kind", "before", "left"),
    [
        *((Scalable, before, left) for before, left in [(41, 36), (28, 25), (25, 22), (139, 122), (67, 59)]),
        *((Bic, before, left) for before, left in [(197, 157), (162, 129), (129, 103), (111, 88), (14, 7)]),
        *((Yeah, before, left) for before, left in [(39, 35), (32, 28), (28, 25), (25, 22), (43, 38)]),
        *((HighSpeed, before, left) for before, left in [(22, 11), (14, 7), (8, 4)]),
        *((Hybla, before, left) for before, left in [(96, 48), (138, 69), (62, 31)]),
        *((LowPriority, before, left) for before, left in [(88, 44), (54, 27), (31, 15)]),
        *((Htcp, before, left) for before, left in [(19, 9), (21, 10), (12, 6)]),
        *((Cubic, before, left) for before, left in [(30, 21), (113, 79), (105, 73)]),
        *((Nv, before, left) for before, left in [(20, 15), (25, 19), (30, 23), (50, 39), (12, 9)]),
    ],
)
def test_linux_leaves_the_same_after_a_loss(kind: type[WindowControl], before: float, left: float) -> None:
    assert int(at_window(kind(START), before).after_loss()) == left


# RFC 3649 appendix B: w, a(w), b(w)
TABLE = [(38, 1, 0.50), (118, 2, 0.44), (221, 3, 0.41), (347, 4, 0.38), (495, 5, 0.37), (1058, 8, 0.33),
         (2378, 13, 0.28)]  # fmt: skip


@pytest.mark.parametrize(("window", "segments", "part"), TABLE)
def test_high_speed_has_the_table_of_its_rfc(window: float, segments: int, part: float) -> None:
    assert steps()[segments - 1] == pytest.approx(window, rel=0.003)
    assert decrease(window) == pytest.approx(part, abs=0.006)
    control = at_window(HighSpeed(START), window * 0.99)
    assert grown(control) == segments


@pytest.mark.parametrize("kind", [HighSpeed, Hybla, Sack])
def test_a_rule_that_counts_acknowledgements_grows_half_as_fast(kind: type[Sack]) -> None:
    assert grown(at_window(kind(START, segments_per_ack=2), 20, rtts_s=(0.02,))) == 0.5


@pytest.mark.parametrize(("cwnd", "growth"), [(40, 1), (100, 1), (250, 2.5)])
def test_scalable_grows_by_a_hundredth(cwnd: float, growth: float) -> None:
    assert grown(at_window(Scalable(START), cwnd)) == growth


@pytest.mark.parametrize(
    ("cwnd", "growth"),
    [
        (10, 1),
        (160, 10),
        # Linux counts the distance in whole segments
        (192, 2),
        (195, 0.2),
        (196, 0.2),
        (197, 0.2),
        (201, 0.2),
        (200 + 9, 3),
        (200 + 60, 16),
        (100, 16),
    ],
)
def test_bic_searches_for_the_window_of_the_last_loss(cwnd: float, growth: float) -> None:
    assert grown(at_window(Bic(START), cwnd, last=200)) == pytest.approx(growth)


@pytest.mark.parametrize(("base_s", "growth"), [(0.01, 1), (0.025, 1), (0.05, 4), (0.1, 16)])
def test_hybla_grows_by_the_square_of_the_round_trip_time(base_s: float, growth: float) -> None:
    assert grown(at_window(Hybla(START), 50, rtts_s=(base_s, 2 * base_s))) == growth


def test_hybla_starts_faster_on_a_long_path() -> None:
    control = Hybla(START, initial_window=2)
    control.sample_rtt(0.075)
    control.slow_start(1.0)
    assert control.cwnd == pytest.approx(2 * 2**3)


def test_h_tcp_grows_as_reno_for_a_second_and_then_by_the_square_of_time() -> None:
    control = at_window(Htcp(START), 50)
    assert grown(control, 10) == pytest.approx(10)
    # alpha = 1 + 10 (t - 1) + ((t - 1) / 2)^2 at t = 2 s: the last of ten more rounds
    grown(control, 9)
    assert grown(control) == pytest.approx(1 + 10 + 0.25)


def test_h_tcp_keeps_the_share_of_the_path_if_its_throughput_is_steady() -> None:
    control = at_window(Htcp(START), 50, rtts_s=(0.1, 0.115, 0.13))
    left = []
    for _ in range(3):
        grown(control, 3)
        control.cwnd = 50
        left.append(control.after_loss())
        control.cwnd = 50
    assert left[0] == 25
    assert left[2] == pytest.approx(50 * 0.1 / 0.1285, rel=0.02)


@pytest.mark.parametrize(
    ("rtt_s", "growth", "left"), [(0.1, 10, 7 / 8), (0.15, 0.58, 11 / 16 - 0.0268), (0.2, 0.3, 1 / 2)]
)
def test_illinois_reads_the_queueing_delay(rtt_s: float, growth: float, left: float) -> None:
    control = at_window(Illinois(START), 60, rtts_s=(0.1, 0.2, rtt_s))
    assert grown(control) == pytest.approx(growth, rel=0.02)
    control.cwnd = 60
    assert control.after_loss() / 60 == pytest.approx(left, abs=0.03)


def test_illinois_trusts_an_empty_queue_after_five_rounds() -> None:
    control = at_window(Illinois(START), 60, rtts_s=(0.1, 0.2))
    grown(control)
    control.sample_rtt(0.1)
    assert [round(grown(control), 3) for _ in range(5)] == [0.3, 0.3, 0.3, 0.3, 10]


def test_low_priority_yields_to_a_queue_and_waits() -> None:
    control = at_window(LowPriority(START), 40, rtts_s=(0.1, 0.2, *(0.1,) * 30))
    assert grown(control) == 1
    for _ in range(4):
        control.sample_rtt(0.2)
    control.cwnd = 40
    grown(control)
    assert control.cwnd == 20
    for _ in range(30):
        control.sample_rtt(0.1)
    assert [grown(control), grown(control), grown(control)] == [0, 0, 1]


def test_yeah_takes_its_queue_back_at_a_loss() -> None:
    # a queue of 60 (1 - 0.1 / 0.125) = 12 segments
    control = at_window(Yeah(START), 60, rtts_s=(0.1, *(0.125,) * 3))
    assert control.after_loss() == pytest.approx(48)


def test_yeah_drains_a_long_queue() -> None:
    # 400 (1 - 0.1 / 0.15) = 133 segments, above 80
    control = at_window(Yeah(START), 400, rtts_s=(0.1, *(0.15,) * 3))
    assert grown(control) == pytest.approx(4 - 404 / 3, rel=0.01)


def test_cubic_of_linux_keeps_its_slow_growth_beyond_the_last_window() -> None:
    # Linux 6.1 at 17 ms with windows of 14 to 22 segments grew by 0.46 a round
    linux, rfc = (
        at_window(Cubic(START, increase_beyond=beyond), 20, rtts_s=(0.017,), last=10) for beyond in (0, 1)
    )
    assert grown(linux, 10) == pytest.approx(10 * 0.46, rel=0.1)
    assert grown(rfc, 10) == pytest.approx(10, rel=0.02)


def test_cubic_of_linux_grows_by_a_twentieth_until_it_knows_a_window_that_was_too_much() -> None:
    # Linux 6.18 behind a token bucket left slow start by HyStart at 21 segments: 71 (tcpi_snd_cwnd) were 295
    # when 4,491 more segments were acknowledged, at 80 to 340 ms
    linux, other = (
        at_window(Cubic(START, increase_beyond=0, least_growth=least), 71, rtts_s=(0.08,))
        for least in (0.05, 0)
    )
    for control in (linux, other):
        left = 4_491.0
        while left > 0:
            control.sample_rtt(control.cwnd / 825)
            share = min(left / control.cwnd, 1.0)
            left -= control.cwnd
            control.avoid_congestion(share)
    assert linux.cwnd == pytest.approx(295, rel=0.03)
    assert other.cwnd < 200
    # a timeout lets it forget, a loss does not
    for timed_out, growth in ((True, 5), (False, 0)):
        linux.after_timeout() if timed_out else linux.after_loss()
        linux.cwnd = 100.0
        linux.sample_rtt(0.001)
        assert grown(linux) == pytest.approx(growth, abs=0.5)


def test_westwood_of_linux_halves_first_and_sets_its_window_at_the_end_of_a_recovery() -> None:
    control = at_window(Westwood(START, late=1), 40)
    carried = Report(time_s=0.1, interval_s=0.1, rtt_s=0.1, p=0.0, x_recv=10 * 1448 / 0.1)
    for _ in range(50):
        control.measure(carried)
    assert control.after_loss() == 20
    assert control.after_recovery() == pytest.approx(10)


def test_hybla_of_linux_goes_by_the_shortest_smoothed_round_trip_time() -> None:
    # Linux 6.1 on a path of 74 ms, with acknowledgements for 2.75 segments after 90 to 110 ms: 13 segments
    # became 18 in a round (tcpi_snd_cwnd)
    shortest, smoothed = (Hybla(START, segments_per_ack=2.75, smoothed=how) for how in (0, 1))
    for control in (shortest, smoothed):
        control.cwnd = 13.0
        for rtt_s in (0.092, 0.095, 0.074, 0.1, 0.092):
            control.sample_rtt(rtt_s)
        control.avoid_congestion(1.0)
    assert shortest.cwnd == pytest.approx(13 + (0.074 / 0.025) ** 2 / 2.75)
    assert smoothed.cwnd == pytest.approx(18, abs=1)


def test_veno_judges_a_loss_by_the_last_round_trip_time_before_it() -> None:
    control = at_window(Veno(START), 20, rtts_s=(0.1,))
    assert control.after_loss() == 16
    control.before_loss(0.12)
    # N = 20 (1 - 0.1 / 0.12) = 3.33
    assert control.after_loss() == 10


def test_losses_in_a_row_lower_the_window_of_the_last_loss_each_time() -> None:
    # Linux 6.1's CUBIC at 225 segments: tcpi_snd_ssthresh was 157, 76 and 53 in one recovery; 13 rounds later
    # tcpi_snd_cwnd was 63, on its way to 0.85 of 76 (RFC 9438 section 4.7) and not to 225
    control = Cubic(START, increase_beyond=0)
    control.sample_rtt(0.1)
    report = Report(time_s=1.0, interval_s=0.1, rtt_s=0.1, p=0.0, x_recv=0.0)
    rounds = Growth(((report, 1.0),) * 13, 53.0, 63.0, At(1, 1))
    predicted = []
    for settled in (53.0, None):
        cut = Cut((225.0,), (), is_timeout=False, rounds=3, at=At(0, 0), settled=settled)
        predicted += [one.predicted for one in predictions(copy.copy(control), [cut, rounds])]
    assert predicted[0] == pytest.approx(63, abs=1)
    assert predicted[1] > 80


def nv_after(*rtts_s: float, cwnd: float = 100.0) -> Nv:
    """Return NV after rounds of 100 segments, each with an acknowledgement, over a path of 0.1 s."""
    control = Nv(START)
    control.cwnd = control.ssthresh = cwnd
    for number, rtt_s in enumerate(rtts_s):
        control.measure(Report(time_s=number / 10, interval_s=rtt_s, rtt_s=rtt_s, p=0.0, x_recv=0.0))
        control.avoid_congestion(1.0)
    return control


def test_nv_takes_three_tenths_of_what_waits_beyond_ten_segments_and_grows_no_more() -> None:
    # nv_pad is 10, nv_cong_dec_mult 38/128: 100 segments in 150 ms are 66 in 100 ms, and of 101 (one is of
    # this round) 25 wait beyond 76
    control = nv_after(0.1)
    control._begin_decision()
    control.cwnd = 100.0
    for _ in range(2):  # nv_rtt_min_cnt
        control.measure(Report(time_s=1.0, interval_s=0.15, rtt_s=0.15, p=0.0, x_recv=0.0))
        control.cwnd = 100.0
        control.avoid_congestion(1.0)
    assert control.cwnd == 101 - 7
    assert grown(control) == 0


def test_nv_grows_as_reno_until_eight_segments_wait() -> None:
    control = nv_after(0.1, 0.1, 0.1)
    assert control.cwnd == pytest.approx(103)
    # 100 segments in 109 ms are 91 in 100 ms: within 2 (nv_pad_buffer) of 101
    stays = nv_after(0.1)
    stays.cwnd = 100.0
    stays._begin_decision()
    stays._may_grow = False
    stays.measure(Report(time_s=1.0, interval_s=0.109, rtt_s=0.109, p=0.0, x_recv=0.0))
    assert grown(stays) == 0


def test_nv_grows_only_after_a_round_below_once_it_has_lost() -> None:
    control = nv_after(0.1, 0.1)
    control.cwnd = control.after_loss()
    report = Report(time_s=1.0, interval_s=0.1, rtt_s=0.12, p=0.0, x_recv=0.0)
    control.measure(report)
    assert grown(control) == 0
    # it measures the round-trip time anew: 120 ms are no queue any more
    control.measure(report)
    assert grown(control) == 1
