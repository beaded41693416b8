"""The fluid model of a bottleneck against ns-2's own counts of what it let through, and what theory says."""

import json
import math
from pathlib import Path as File

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.parsers._native import LossIntervals
from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays
from tfrctrace.replay.closed_loop.fluid import MAX_ROUNDS, simulate
from tfrctrace.replay.closed_loop.path import Background, Path
from tfrctrace.replay.closed_loop.queue import Queue
from tfrctrace.replay.controller import Allowed, Start
from tfrctrace.replay.tfrc import Tfrc, TfrcVariant

HERE = File(__file__).resolve()
PAGE = HERE.parents[4] / "docs" / "validation.md"
NS2 = File(__file__).parents[3] / "data" / "ns2"
RUNS = json.loads((NS2 / "dumbbells.json").read_text())
SEGMENT = 1000
START = Start(segment_bytes=SEGMENT)
ALGORITHMS = ["newreno", "sack", "vegas", "veno", "modified-veno", "westwood", "cubic", "tfrc"]


def control_named(name):
    return Tfrc(START) if name == "tfrc" else algorithm_named(name).make(START)


def a_path(**what):
    known = {"capacity": 125_000.0, "base_rtt_s": 0.1, "buffer_bytes": 20_000.0}
    return Path(**{**known, **what})


def run(path, *names, duration_s=60.0):
    controllers = [control_named(name) for name in names]
    return simulate(path, controllers, segment_bytes=SEGMENT, duration_s=duration_s)


def arrived(rounds):
    return sum(one.arrived_bytes for one in rounds)


@pytest.fixture(scope="module")
def dumbbells(load_script):
    for name in ("runs", "model"):
        load_script(HERE.parents[4] / "evaluation" / "dumbbells" / f"{name}.py")
    return load_script(HERE.parents[4] / "evaluation" / "dumbbells" / "measure.py")


def test_a_minute_s_throughput_is_that_of_ns2_within_15_percent_and_as_the_page_says(dumbbells):
    table = dumbbells.alone(RUNS)
    assert table.count("\n") == 2 + 6
    assert "**" not in table
    assert table in PAGE.read_text(), "run `make models`"


def test_what_other_agents_of_ns2_received_is_within_the_interval_predicted_from_one():
    runs = {one["algorithm"]: one for one in RUNS if one["dumbbell"] == "long"}
    trace = tfrctrace.open(NS2 / "dumbbell-newreno.tr.xz")
    loops = trace.closed_loops(*runs, flows=[1], settings={"vegas.agent": "ns2"})
    within = []
    for one in closed_loop_replays(loops).replays:
        assert one.received_low_bps < one.received_mean_bps <= one.received_high_bps
        assert one.rtt_p95_low_ms <= one.rtt_p95_ms <= one.rtt_p95_high_ms
        known = runs[one.algorithm]
        bps = 8 * SEGMENT * known["received_packets"] / known["duration_s"]
        within.append(one.received_low_bps <= bps <= one.received_high_bps)
    assert within == [True] * 7


@pytest.mark.parametrize(
    ("what", "times"),
    [("buffer", 0.5), ("buffer", 2.0), ("buffer", 4.0), ("capacity", 0.5), ("capacity", 2.0)],
)
def test_a_sweep_is_what_ns2_s_agents_do_on_such_a_path(what, times):
    trace = tfrctrace.open(NS2 / "dumbbell-newreno.tr.xz")
    settings = {"vegas.agent": "ns2"}
    loops = trace.closed_loops(
        "newreno", "cubic", "vegas", flows=[1], settings=settings, sweep=f"{what}={times}x,8x"
    )
    bottleneck = loops.flows[0].bottleneck
    shown = (bottleneck.buffer_bytes if what == "buffer" else bottleneck.capacity_bps).value
    known = {
        one["algorithm"]: one
        for one in json.loads((NS2 / "other-paths.json").read_text())
        if (one["dumbbell"], one["swept"], one["times"]) == ("long", what, times)
    }
    found = [one for one in closed_loop_replays(loops).replays if one.swept == pytest.approx(shown * times)]
    assert {one.algorithm for one in found} == set(known)
    for one in found:
        own = known[one.algorithm]
        # after a slow start that loses much, NewReno repairs one loss in a round, and answers no other
        off = 0.4 if (one.algorithm, what, times) == ("newreno", "capacity", 2.0) else 0.15
        assert one.received_mean_bps == pytest.approx(own["received_bps"], rel=off), one.algorithm


def test_the_table_of_other_paths_is_on_the_page(dumbbells):
    known = json.loads((NS2 / "other-paths.json").read_text())
    paths = len(dumbbells.SWEPT_IN) * sum(len(multiples) for _, multiples in dumbbells.SWEEPS.values())
    assert len(known) == paths * len(dumbbells.OTHERS)
    between = PAGE.read_text().partition("<!-- measured: swept -->")[2].partition("<!-- end of swept -->")[0]
    assert between.count("\n| ") == 2 + paths


def test_a_bottleneck_that_is_given_has_no_interval():
    trace = tfrctrace.open(NS2 / "dumbbell-newreno.tr.xz")
    given = ("capacity=0.8M", "base_rtt=150ms", "buffer=15000", "loss=0.004")
    (run,) = closed_loop_replays(trace.closed_loops("newreno", flows=[1], bottleneck=given)).replays
    assert run.received_low_bps is None
    assert run.rtt_p95_high_ms is None
    assert run.rtt_p95_ms is not None


@pytest.mark.parametrize("name", ["inferred", "replaced", "references"])
def test_each_table_has_its_place_on_the_page(dumbbells, name):
    assert "| new |" in dumbbells.with_table(PAGE.read_text(), name, "| new |")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing_arrives_faster_than_the_bottleneck_lets_through(name):
    path = a_path()
    [rounds] = run(path, name)
    assert arrived(rounds) <= path.capacity * 60 + path.buffer_bytes + SEGMENT


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_was_sent_has_arrived_or_is_lost(name):
    path = a_path(random_loss=0.01)
    [rounds] = run(path, name)
    sent_bytes = sum(one.sent_bytes for one in rounds)
    lost_bytes = SEGMENT * sum(one.lost_packets for one in rounds)
    # what is lost in the last window does not become known any more
    assert -0.001 <= sent_bytes - arrived(rounds) - lost_bytes <= path.capacity * 1.0


@pytest.mark.parametrize("name", ALGORITHMS)
@settings(max_examples=15, deadline=None)
@given(
    capacity=st.floats(2e4, 5e6),
    base_rtt_s=st.floats(0.005, 0.5),
    buffer_packets=st.floats(0, 200),
    random_loss=st.sampled_from([0, 0, 1e-4, 1e-2, 0.3]),
)
def test_no_path_breaks_the_model(name, capacity, base_rtt_s, buffer_packets, random_loss):
    path = Path(
        capacity=capacity,
        base_rtt_s=base_rtt_s,
        buffer_bytes=buffer_packets * SEGMENT,
        random_loss=random_loss,
    )
    [rounds] = run(path, name, duration_s=20)
    assert all(one.sent_bytes >= 0 and one.arrived_bytes >= 0 for one in rounds)
    assert all(0 <= one.queued_bytes <= path.buffer_bytes for one in rounds)
    assert all(0 <= one.p <= 1 for one in rounds)
    assert arrived(rounds) <= capacity * 20 + path.buffer_bytes + 2 * SEGMENT
    ends_s = [one.time_s + one.duration_s for one in rounds]
    assert ends_s[-1] == pytest.approx(20)
    assert [one.time_s for one in rounds[1:]] == pytest.approx(ends_s[:-1])


@pytest.mark.parametrize("name", ALGORITHMS)
def test_more_capacity_never_carries_less(name):
    totals = [arrived(run(a_path(capacity=capacity), name)[0]) for capacity in (5e4, 1e5, 2e5, 4e5)]
    assert totals == sorted(totals)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_same_path_gives_the_same_rounds(name):
    path = a_path(random_loss=0.005)
    assert run(path, name) == run(path, name)


def test_two_alike_share_alike():
    first, second = run(a_path(), "newreno", "newreno")
    assert arrived(first) == pytest.approx(arrived(second), rel=1e-6)
    assert arrived(first) + arrived(second) <= 125_000 * 60 + 20_000 + 2 * SEGMENT


def test_vegas_alone_rests_with_its_segments_in_the_queue():
    [rounds] = run(a_path(), "vegas")
    assert sum(one.lost_packets for one in rounds) == 0
    assert 2 <= rounds[-1].queued_bytes / SEGMENT <= 4


def test_reno_with_losses_by_chance_sends_what_the_formula_says():
    path = a_path(capacity=1e9, random_loss=0.002)
    [rounds] = run(path, "sack", duration_s=600)
    # losses come at even distances: between the formula of Mathis and that for random distances
    # sqrt(2 (1 - p) / p) / R: Reno's counterpart of Westwood's mean rate, losses by chance
    fluid_pps = math.sqrt(2 * (1 - 0.002) / 0.002) / 0.1
    assert arrived(rounds) / 600 / SEGMENT == pytest.approx(fluid_pps, rel=0.2)


def test_a_background_takes_its_share_and_leaves_the_rest():
    [rounds] = run(a_path(background=Background((0.0, 30.0), (62_500.0, 0.0))), "vegas")
    before = [one for one in rounds if 10 < one.time_s < 29]
    after = [one for one in rounds if one.time_s > 40]
    for half, expected in ((before, 62_500), (after, 125_000)):
        assert arrived(half) / sum(one.duration_s for one in half) == pytest.approx(expected, rel=0.02)


def test_the_receiver_s_window_bounds_the_rate():
    [rounds] = run(a_path(window_bytes=5000.0), "cubic")
    assert arrived(rounds) / 60 <= 5000 / 0.1
    assert sum(one.lost_packets for one in rounds) == 0


def test_a_window_too_small_for_duplicate_acknowledgements_waits_for_the_timer():
    [rounds] = run(a_path(random_loss=0.3), "newreno")
    silent = [one for one in rounds if one.sent_bytes == 0 and one.duration_s > 0]
    assert silent
    assert max(one.duration_s for one in silent) >= 0.9  # the least timeout is a second


def test_an_algorithm_without_a_window_sends_at_its_rate():
    class Constant:
        def __init__(self, start):
            self.reports = []

        def on_feedback(self, report):
            self.reports.append(report)
            return Allowed(x=150_000.0)

        def on_nofeedback(self, time_s, *, is_idle):
            raise AssertionError("it names no timer")

    control = Constant(START)
    [rounds] = simulate(a_path(), [control], segment_bytes=SEGMENT, duration_s=60)
    assert arrived(rounds) / 60 == pytest.approx(125_000, rel=0.02)
    # a sixth of what is sent is lost, and a report shows one loss event in each round-trip time
    last = control.reports[-1]
    assert last.p == pytest.approx(1 / (150 * 0.26), rel=0.1)


@pytest.mark.parametrize("x", [-1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(x):
    class Broken:
        def on_feedback(self, report):
            return Allowed(x=x)

        def on_nofeedback(self, time_s, *, is_idle):
            return Allowed(x=x)

    with pytest.raises(UsageError, match="returned an invalid rate"):
        simulate(a_path(), [Broken()], segment_bytes=SEGMENT, duration_s=1)


def test_ten_minutes_take_well_under_a_second_of_rounds():
    [rounds] = run(a_path(base_rtt_s=0.05), "cubic", duration_s=600)
    assert len(rounds) < 13_000 < MAX_ROUNDS


def test_a_run_ends_where_its_rounds_do(monkeypatch):
    monkeypatch.setattr("tfrctrace.replay.closed_loop.fluid.MAX_ROUNDS", 1000)
    [rounds] = run(a_path(base_rtt_s=1e-6), "vegas", duration_s=1e6)
    assert len(rounds) <= 1000
    assert rounds[-1].time_s < 1e6


def test_a_queue_is_what_came_and_did_not_go():
    queue = Queue(a_path())
    assert queue.advance(0.1, 225_000.0) == []
    assert queue.queued_bytes == pytest.approx(10_000)
    [overflow] = queue.advance(0.3, 225_000.0)
    assert overflow.begins_s == pytest.approx(0.2)
    assert overflow.share == pytest.approx(100 / 225)
    assert queue.queued_bytes == 20_000
    queue.advance(0.4, 0.0)
    assert queue.queued_bytes == pytest.approx(7_500)
    queue.advance(1.0, 0.0)
    assert queue.queued_bytes == 0


def equation_pps(p, rtt_s):
    """Return the rate of RFC 5348 section 3.1 in packets/s, with t_RTO = 4 R and b = 1."""
    timeouts = 4 * rtt_s * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
    return 1 / (rtt_s * math.sqrt(2 * p / 3) + timeouts)


@given(p=st.floats(1e-5, 0.9), rtt_s=st.floats(1e-3, 1))
def test_the_rate_of_a_loss_event_rate_leads_back_to_it(p, rtt_s):
    intervals = LossIntervals(TfrcVariant().for_core(1460.0, None))
    intervals.begin(1460 * equation_pps(p, rtt_s), rtt_s)
    assert intervals.p(0.0) == pytest.approx(p, rel=1e-9)


def test_loss_intervals_are_those_of_the_vectors():
    entries = json.loads(
        (File(__file__).parents[3] / "data" / "vectors" / "average_loss_interval.json").read_text()
    )
    checked = 0
    for entry in entries:
        if entry["discount"]:
            continue
        plain = TfrcVariant(parameters=(("discounting", 0.0),))
        intervals = LossIntervals(plain.for_core(1460.0, None))
        for packets in reversed(entry["intervals"][1:9]):
            intervals.close(packets)
        assert intervals.p(entry["intervals"][0]) == pytest.approx(entry["expect"]["p"], rel=1e-9)
        checked += 1
    assert checked


def test_parameters_of_the_receiver_reach_the_model():
    totals = {
        n: arrived(
            simulate(
                a_path(random_loss=0.01),
                [Tfrc(START, TfrcVariant(parameters=(("n", float(n)),)))],
                segment_bytes=SEGMENT,
                duration_s=60,
            )[0]
        )
        for n in (1, 8)
    }
    assert totals[1] != totals[8]


def test_bbr_keeps_two_base_paths_in_flight_in_a_deep_buffer():
    # section 4.2.3.1; in rounds that losses cut short it took bursts for bandwidth, and filled the buffer
    path = a_path(buffer_bytes=100_000.0)
    [rounds] = run(path, "bbr")
    later = [one for one in rounds if one.time_s > 5]
    assert max(one.rtt_s for one in later) <= 2 * path.base_rtt_s
    assert arrived(later) / 55 > 0.9 * path.capacity
    assert sum(one.lost_packets for one in later) == 0
