"""Window controls against the RFCs and papers that define them, round by round."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.replay.algorithms import BUILT_IN, algorithm_named
from tfrctrace.replay.controller import Controller, Report, Start
from tfrctrace.replay.tcp.cubic import CUBIC_BETA, Cubic, cubic_period_s, cubic_window
from tfrctrace.replay.tcp.dctcp import Dctcp
from tfrctrace.replay.tcp.modified_veno import ModifiedVeno
from tfrctrace.replay.tcp.newreno import NewReno
from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.timer import MAX_RTO_S, RetransmissionTimer
from tfrctrace.replay.tcp.vegas import Vegas
from tfrctrace.replay.tcp.veno import Veno
from tfrctrace.replay.tcp.westwood import Westwood
from tfrctrace.replay.tcp.window import WindowControl, rfc3390_window

VECTORS = Path(__file__).parents[2] / "data" / "vectors"
TIMERS = json.loads((VECTORS / "rto_rfc6298.json").read_text())

CUBIC_WINDOWS = json.loads((VECTORS / "tcp_models.json").read_text())["cubic_window"]

TCP = [name for name in BUILT_IN if name != "bbr"]
"""BBR sets a rate."""

START = Start(segment_bytes=1460)


def a_round(at=0, rtt_s=0.1, **what):
    """Return the report of the round that ends `at` rounds after the first."""
    known = {"time_s": (at + 1) * rtt_s, "interval_s": rtt_s, "rtt_s": rtt_s, "p": 0.0, "x_recv": 1e8}
    return Report(**{**known, **what})


def windows(control, reports):
    """Return the window in segments after each report."""
    return [control.on_feedback(report).window_bytes / 1460 for report in reports]


def in_avoidance(control, cwnd, *, rtt_s=0.1, base_rtt_s=0.1):
    """Return `control` past slow start, with a window and round-trip times."""
    control.cwnd = control.ssthresh = cwnd
    control.rtt_s, control.base_rtt_s = rtt_s, base_rtt_s
    return control


@pytest.mark.parametrize(("segment", "window"), [(536, 4), (1095, 4), (1460, 3), (2190, 2), (9000, 2)])
def test_the_first_window_is_that_of_rfc_3390(segment, window):
    assert rfc3390_window(segment) == window


@pytest.mark.parametrize("entry", TIMERS, ids=lambda entry: f"min_rto={entry['min_rto']}")
def test_the_timer_agrees_with_the_vectors(entry):
    timer = RetransmissionTimer(min_rto_s=entry["min_rto"])
    for rtt_s, expected in zip(entry["samples"], entry["expect"], strict=True):
        timer.sample(rtt_s)
        assert [timer.srtt_s, timer.rttvar_s, timer.rto_s] == pytest.approx(expected, rel=1e-9)


def test_the_timer_doubles_up_to_a_minute_and_a_sample_ends_that():
    timer = RetransmissionTimer()
    seen = []
    for _ in range(20):
        seen.append(timer.rto_s)
        timer.back_off()
    assert seen[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert timer.rto_s == MAX_RTO_S
    timer.sample(0.1)
    assert timer.rto_s == 1


@pytest.mark.parametrize("name", TCP)
def test_every_tcp_is_found_by_its_name_and_is_a_controller(name):
    control = algorithm_named(name).make(START)
    assert isinstance(control, Controller)
    assert isinstance(control, WindowControl)


@pytest.mark.parametrize("kind", [NewReno, Sack, Vegas, Veno, Westwood, Cubic, ModifiedVeno])
def test_slow_start_doubles_the_window_in_each_round(kind):
    assert windows(kind(START), [a_round(at) for at in range(3)]) == [6, 12, 24]


def test_the_slow_start_of_ns2s_vegas_doubles_in_every_other_round():
    assert windows(Vegas(START, agent="ns2"), [a_round(at) for at in range(4)]) == [3, 6, 6, 12]


# TCP_INFO of Linux 6.1's Vegas on a path of 197 ms: tcpi_snd_cwnd once in a round, until the queue is seen
LINUX_VEGAS_STARTS = (10, 20, 40, 80, 160, 320)


def test_the_slow_start_of_linuxs_vegas_doubles_in_every_round():
    control = Vegas(START, initial_window=LINUX_VEGAS_STARTS[0])
    assert windows(control, [a_round(at) for at in range(5)]) == list(LINUX_VEGAS_STARTS[1:])


def test_newreno_halves_and_repairs_one_loss_per_round():
    control = in_avoidance(NewReno(START), 20)
    lost = a_round(loss_events=1, lost_packets=3)
    assert windows(control, [lost, *(a_round(at) for at in range(1, 6))]) == [10, 10, 10, 10, 11, 12]


def test_sack_halves_and_repairs_all_losses_in_one_round():
    control = in_avoidance(Sack(START), 20)
    lost = a_round(loss_events=1, lost_packets=3)
    assert windows(control, [lost, *(a_round(at) for at in range(1, 4))]) == [10, 10, 11, 12]


def test_losses_of_the_window_that_was_cut_do_not_cut_it_again():
    control = in_avoidance(Sack(START), 20)
    lost = a_round(loss_events=1, lost_packets=1, acked_bytes=1e5)
    assert windows(control, [lost, lost, lost]) == [10, 10, 5]


def test_a_window_grows_by_the_acknowledgements_that_there_were():
    slow = in_avoidance(NewReno(START), 40)
    assert windows(slow, [a_round(acked_bytes=10 * 1460)]) == pytest.approx([40 + 10 / 40])
    starting = NewReno(START)
    starting.cwnd = 40
    assert windows(starting, [a_round(acked_bytes=10 * 1460)]) == pytest.approx([50])


# RFC 3168 section 6.1.2: as after a loss, once in a window; RFC 8257 section 3.3: by the share of marks
@pytest.mark.parametrize(("kind", "after"), [(Sack, 20), (Cubic, 28), (Dctcp, 20 + 20 / 16)])
def test_a_mark_cuts_the_window_once_in_a_round(kind, after):
    control = in_avoidance(kind(START), 40)
    marked = a_round(marked=0.0 if kind is Dctcp else 0.1)
    if kind is Dctcp:
        # alpha falls from 1 to 15/16 in a round without marks, and the window grows
        assert windows(control, [marked]) == [41]
        control.cwnd = 40.0
        marked = a_round(marked=1.0)
        after = 40 * (1 - (15 / 16 + 1 / 256) / 2)
    assert windows(control, [marked, marked]) == pytest.approx([after, after])
    assert control.on_feedback(a_round()).mode == "congestion_avoidance"


def test_a_timer_that_runs_out_again_leaves_the_threshold():
    # RFC 5681 section 3.1: ssthresh is held if the segment was already sent again by the timer
    control = in_avoidance(NewReno(START), 20)
    control.on_nofeedback(1.0, is_idle=False)
    control.on_nofeedback(3.0, is_idle=False)
    assert control.ssthresh == 10


@pytest.mark.parametrize("kind", [NewReno, Sack, Vegas, Veno, Westwood, ModifiedVeno])
def test_a_timeout_leaves_one_segment_and_half_the_window_as_threshold(kind):
    control = in_avoidance(kind(START), 20)
    decided = control.on_nofeedback(1.0, is_idle=False)
    assert (decided.window_bytes, decided.mode) == (1460, "timeout")
    assert control.ssthresh == 10


def test_a_timer_that_fires_while_nothing_was_sent_is_no_timeout():
    control = in_avoidance(NewReno(START), 20)
    assert control.on_nofeedback(1.0, is_idle=True).window_bytes == 20 * 1460


@pytest.mark.parametrize(("cwnd", "after"), [(20, 21), (40, 40), (65, 64)])
def test_vegas_keeps_between_alpha_and_beta_segments_in_the_queue(cwnd, after):
    # R = 1.08 R_min: Linux counts 1 segment in the queue of a window of 20, 3 of 40, 5 of 65
    control = in_avoidance(Vegas(START), cwnd, rtt_s=0.108)
    assert windows(control, [a_round(rtt_s=0.108)]) == [after]


def test_vegas_leaves_slow_start_when_more_than_gamma_segments_wait():
    control = Vegas(START)
    control.cwnd = 30.0
    control.base_rtt_s = 0.1
    decided = control.on_feedback(a_round(rtt_s=0.12))
    assert decided.window_bytes / 1460 == pytest.approx(30 * 0.1 / 0.12 + 1)
    assert decided.reason == "queue"
    assert control.on_feedback(a_round(1, rtt_s=0.1)).mode == "congestion_avoidance"


def test_linuxs_vegas_drains_what_its_slow_start_left_segment_by_segment():
    """TCP_INFO of Linux 6.1 has 74, 69, ..., 40, 37 as window and threshold, at 10 Mbit/s and 40 ms."""
    control = Vegas(START)
    control.base_rtt_s = 0.0396
    control.cwnd = control.ssthresh = 74.0
    drained = []
    for number in range(40):
        # a segment takes 1.211 ms; what is more than the path holds waits
        rtt_s = max(0.0396, control.cwnd * 0.001211)
        drained += windows(control, [a_round(number, rtt_s=rtt_s)])
    assert drained[:36] == list(range(73, 37, -1))
    assert set(drained[36:]) == {37}


# TCP_INFO of Linux 6.1's Vegas: tcpi_snd_cwnd before a loss, and tcpi_snd_ssthresh, which it leaves
@pytest.mark.parametrize(("before", "after"), [(22, 11), (41, 20), (39, 19), (81, 40), (628, 314)])
def test_linuxs_vegas_halves_its_window_at_a_loss(before, after):
    [left] = windows(in_avoidance(Vegas(START), before), [a_round(loss_events=1)])
    assert int(left) == after


def test_ns2s_vegas_keeps_three_quarters_after_a_loss():
    assert windows(in_avoidance(Vegas(START, agent="ns2"), 20), [a_round(loss_events=1)]) == [15]


def test_veno_grows_half_as_fast_once_three_segments_wait():
    assert windows(in_avoidance(Veno(START), 20), [a_round()]) == [21]
    # N = 20 (1 - 0.1 / 0.12) = 3.33
    assert windows(in_avoidance(Veno(START), 20), [a_round(rtt_s=0.12)]) == [20.5]


def test_veno_asks_the_queue_what_a_loss_leaves():
    assert windows(in_avoidance(Veno(START), 20), [a_round(loss_events=1)]) == [16]
    assert windows(in_avoidance(Veno(START), 20), [a_round(rtt_s=0.12, loss_events=1)]) == [10]


def test_veno_learns_the_base_round_trip_time_anew_after_a_timeout():
    control = in_avoidance(Veno(START), 20, rtt_s=0.2)
    control.on_nofeedback(1.0, is_idle=False)
    control.on_feedback(a_round(20, rtt_s=0.2))
    assert control.queued == 0


def test_modified_veno_grows_by_a_segment_in_four_rounds():
    control = in_avoidance(ModifiedVeno(START), 20)
    assert windows(control, [a_round(at) for at in range(4)]) == [20.25, 20.5, 20.75, 21]


def test_modified_veno_taken_literally_grows_by_a_quarter_of_the_window():
    assert windows(in_avoidance(ModifiedVeno(START, growth="literal"), 20), [a_round()]) == [25]


def test_modified_veno_ends_slow_start_when_a_segment_waits():
    control = ModifiedVeno(START)
    control.on_feedback(a_round(0))
    assert control.on_feedback(a_round(1, rtt_s=0.125)).mode == "slow_start"
    # N = 6 * 0.2 = 1.2: the window stays, and from there it grows slowly
    assert windows(control, [a_round(2, rtt_s=0.125)]) == [6.25]


def test_modified_veno_cuts_twice_if_the_queue_stays():
    twice = in_avoidance(ModifiedVeno(START), 32)
    once = in_avoidance(ModifiedVeno(START), 32)
    loss = a_round(rtt_s=0.2, loss_events=1)
    assert windows(twice, [loss, a_round(1, rtt_s=0.2)]) == [24, 18]
    assert windows(once, [loss, a_round(1, rtt_s=0.1)]) == [24, 24]
    assert windows(in_avoidance(ModifiedVeno(START), 20), [a_round(loss_events=1)]) == [16]


def test_westwood_keeps_what_the_path_was_seen_to_carry():
    control = in_avoidance(Westwood(START), 40)
    carried = [a_round(at, x_recv=146_000) for at in range(100)]
    windows(control, carried)
    # 146000 bytes/s * 0.1 s are ten segments
    assert windows(control, [a_round(100, x_recv=146_000, loss_events=1)]) == pytest.approx([10])


def test_westwood_filters_samples_of_the_bandwidth_twice():
    control = in_avoidance(Westwood(START), 40)
    rates = [100_000, 200_000, 50_000, 150_000]
    windows(control, [a_round(at, x_recv=rate) for at, rate in enumerate(rates)])
    first = second = rates[0]
    for rate in rates[1:]:
        first = 7 / 8 * first + rate / 8
        second = 7 / 8 * second + first / 8
    assert windows(control, [a_round(4, x_recv=0, interval_s=0.04, loss_events=1)]) == pytest.approx(
        [second * 0.1 / 1460]
    )


def test_westwood_without_a_sample_halves():
    assert windows(in_avoidance(Westwood(START), 20), [a_round(interval_s=0.01, loss_events=1)]) == [10]


@pytest.mark.parametrize("entry", CUBIC_WINDOWS)
def test_the_window_of_cubic_over_time_agrees_with_the_vectors(entry):
    period_s = cubic_period_s(entry["W_max"], CUBIC_BETA * entry["W_max"])
    assert period_s == pytest.approx(entry["K"], rel=1e-9)
    for elapsed_s, window in entry["W_at"]:
        assert cubic_window(elapsed_s, entry["W_max"], period_s) == pytest.approx(window, rel=1e-9)


def test_cubic_follows_its_cubic_function():
    control = in_avoidance(Cubic(START), 400)
    windows(control, [a_round(loss_events=1), a_round()])  # the loss, and the round of recovery
    assert control.cwnd == pytest.approx(400 * CUBIC_BETA)
    period_s = cubic_period_s(400, 400 * CUBIC_BETA)
    rounds = int(period_s / 0.1)
    windows(control, [a_round()] * rounds)
    assert control.cwnd == pytest.approx(400, rel=1e-3)
    windows(control, [a_round()] * 40)
    assert control.cwnd == pytest.approx(cubic_window((rounds + 40) * 0.1, 400, period_s), rel=1e-3)


def test_cubic_is_never_slower_than_reno():
    cubic = in_avoidance(Cubic(START), 10)
    cubic.on_feedback(a_round(loss_events=1))
    for at in range(50):
        cubic.on_feedback(a_round(at))
    # an AIMD with beta = 0.7 and alpha = 9/17 until it is back at 10, then one segment per round
    increase = 3 * 0.3 / 1.7
    rounds_below = 6  # 7 + 6 * 9/17 > 10
    assert cubic.cwnd >= 7 + increase * rounds_below + (49 - rounds_below)


def test_cubic_converges_fast_where_the_window_falls():
    control = in_avoidance(Cubic(START), 1000)
    windows(control, [a_round(loss_events=1), a_round(), a_round(loss_events=1), a_round()])
    assert control.cwnd == pytest.approx(1000 * CUBIC_BETA**2)
    # W_max is not 700 but 700 (1 + 0.7) / 2, and it takes K = cbrt((595 - 490) / 0.4) s to come back to it
    windows(control, [a_round()] * int(((595 - 490) / 0.4) ** (1 / 3) / 0.1))
    assert control.cwnd == pytest.approx(595, rel=1e-3)


def test_cubic_ends_slow_start_after_a_timeout_at_its_own_share():
    control = in_avoidance(Cubic(START), 100)
    control.on_nofeedback(1.0, is_idle=False)
    assert control.ssthresh == pytest.approx(70)


reports = st.lists(
    st.builds(
        a_round,
        at=st.integers(0, 1000),
        rtt_s=st.floats(1e-4, 10),
        interval_s=st.floats(0, 100),
        x_recv=st.floats(0, 1e10),
        loss_events=st.integers(0, 3),
        lost_packets=st.integers(0, 1000),
        marked=st.sampled_from([0, 0, 0.3, 1]),
        acked_bytes=st.none() | st.floats(0, 1e9),
    ),
    max_size=60,
)


@given(reports=reports, silent=st.integers(0, 60))
def test_a_window_is_never_below_a_segment_and_always_finite(reports, silent):
    # to make reports takes ten times as long as to take them in: all algorithms get the same
    for name in TCP:
        control = algorithm_named(name).make(START)
        for at, report in enumerate(reports):
            decided = control.on_feedback(report)
            if at == silent:
                decided = control.on_nofeedback(report.time_s + 1, is_idle=False)
            assert 1460 <= decided.window_bytes < float("inf"), name
            assert 0 < decided.x < float("inf"), name
            assert decided.timer_s > report.time_s, name


@given(reports=reports)
def test_the_same_reports_make_the_same_windows(reports):
    for name in TCP:
        first, second = (algorithm_named(name).make(START) for _ in range(2))
        assert windows(first, reports) == windows(second, reports), name


@pytest.mark.parametrize("name", TCP)
def test_without_a_round_trip_time_a_window_takes_the_first_timeout(name):
    decided = algorithm_named(name).make(START).on_feedback(replace(a_round(), rtt_s=None))
    assert decided.x == pytest.approx(decided.window_bytes / 1.0)
