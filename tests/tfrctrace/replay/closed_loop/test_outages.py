"""Times at which a path carries nothing: found where a trace shows them, and lived through by the model."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path as File

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.results.replay import NotReplayable
from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.fluid import simulate
from tfrctrace.replay.closed_loop.observed_path import PathTables, observe_path
from tfrctrace.replay.closed_loop.outages import outages
from tfrctrace.replay.closed_loop.path import Path
from tfrctrace.replay.closed_loop.receiver import LossHistory
from tfrctrace.replay.controller import Start
from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
from tfrctrace.replay.tfrc import Tfrc, TfrcVariant

NS2 = File(__file__).parents[3] / "data" / "ns2"
START = Start(segment_bytes=1000)
RTT_NS = 100


def rates(*arrived: float) -> pl.DataFrame:
    times = [RTT_NS * step for step in range(len(arrived))]
    return pl.DataFrame({"time_ns": times, "own_bps": list(arrived), "others_bps": [0.0] * len(times)})


def sends(*times_ns: int) -> pl.DataFrame:
    return pl.DataFrame({"time_ns": times_ns}, schema={"time_ns": pl.Int64})


def test_what_is_sent_and_does_not_arrive_for_long_is_an_outage() -> None:
    silent = rates(1, 1, 0, 0, 0, 0, 0, 0, 1, 1)
    assert outages(silent, sends(0, 210, 400, 600), RTT_NS) == ((200, 800),)


@pytest.mark.parametrize(
    ("arrived", "sent_ns"),
    [
        ((1, 1, 0, 0, 0, 0, 1, 1), (210, 300, 400, 590)),  # four round-trip times
        ((1, 1, 0, 0, 0, 0, 0, 0, 1), ()),  # nothing was sent
        ((1, 1, 0, 0, 0, 0, 0, 0, 1), (205, 210, 220, 230)),  # a window, and then its timer
        ((1, 1, 1), (0, 100, 200)),
        ((), ()),
    ],
)
def test_other_silences_are_none(arrived: tuple[float, ...], sent_ns: tuple[int, ...]) -> None:
    assert outages(rates(*arrived), sends(*sent_ns), RTT_NS) == ()


def test_the_outage_of_ns_2_s_script_is_found() -> None:
    # all packets are lost at the last link from 9.0 to 11.2 s
    trace = tfrctrace.open(NS2 / "tfrc" / "outage.tr.xz")
    (recorded,) = FlowRecordings(trace).recordings(RecordingOptions(), [TfrcVariant()])
    assert not isinstance(recorded, NotReplayable)
    ((from_ns, until_ns),) = observe_path(PathTables(trace), recorded[TfrcVariant()]).outages
    assert from_ns / 1e9 == pytest.approx(9.0, abs=0.3)
    assert until_ns / 1e9 == pytest.approx(11.2, abs=0.5)


def test_a_trace_without_an_outage_shows_none() -> None:
    trace = tfrctrace.open(NS2 / "dumbbell-newreno.tr.xz")
    assert trace.closed_loops("newreno").flows[0].bottleneck.outages_s == ()


@pytest.mark.parametrize("name", ["newreno", "cubic", "vegas", "tfrc"])
def test_nothing_arrives_in_an_outage_and_senders_recover(name: str) -> None:
    path = Path(capacity=125_000.0, base_rtt_s=0.1, buffer_bytes=20_000.0, outages_s=((20.0, 22.0),))
    control = Tfrc(START) if name == "tfrc" else algorithm_named(name).make(START)
    [rounds] = simulate(path, [control], segment_bytes=1000, duration_s=60)
    inside = [one for one in rounds if one.time_s >= 20.0 and one.time_s + one.duration_s <= 22.0]
    assert inside
    # what is no whole packet yet is not lost yet
    assert sum(one.arrived_bytes for one in inside) <= 1000
    after = [one for one in rounds if one.time_s > 40.0]
    rate = sum(one.arrived_bytes for one in after) / sum(one.duration_s for one in after)
    assert rate > 0.8 * 125_000


@pytest.mark.parametrize(("outage_s", "received"), [((6.0, 10.0), 14622), ((6.0, 6.5), 18037)])
def test_an_outage_leaves_ns_2_s_tfrc_what_its_sink_received(
    outage_s: tuple[float, float], received: int
) -> None:
    # `evaluation/bcp133/run.py --controller tfrc --ns2 --scenario outage --scenario short-outage --seed 1`
    path = Path(
        capacity=10e6 / 8 * 1460 / 1492, base_rtt_s=0.0419, buffer_bytes=32 * 1460.0, outages_s=(outage_s,)
    )
    control = Tfrc(Start(segment_bytes=1460), TfrcVariant(profile="ns2"))
    [rounds] = simulate(path, [control], segment_bytes=1460, duration_s=24)
    assert sum(one.arrived_bytes for one in rounds) / 1460 == pytest.approx(received, rel=0.08)


def test_a_rate_in_an_outage_is_halved_by_its_timer_and_no_loss_is_known_before_a_packet_arrives() -> None:
    path = Path(capacity=125_000.0, base_rtt_s=0.1, buffer_bytes=20_000.0, outages_s=((20.0, 22.0),))
    [rounds] = simulate(path, [Tfrc(START)], segment_bytes=1000, duration_s=30)
    unheard = [one for one in rounds if 20.3 < one.time_s < 22.0 and one.time_s + one.duration_s < 22.1]
    rates = [one.allowed.x for one in unheard if one.allowed is not None]
    # RFC 5348 section 4.4: each expiry halves the rate, after four round-trip times at least
    halvings = [before / after for before, after in pairwise(rates) if before != after]
    assert halvings == pytest.approx([2.0] * len(halvings))
    assert 1 <= len(halvings) <= 2.0 / 0.4
    assert not any(one.lost_packets or one.arrived_bytes for one in unheard)
    [told] = [one for one in rounds if one.time_s + one.duration_s > 22.0 and one.lost_packets][:1]
    # the first packet, and the way of its report
    assert told.time_s + told.duration_s <= 22.0 + 1000 / rates[-1] + 0.1 + 1e-9
    sent = sum(one.sent_bytes for one in unheard) / 1000
    assert told.lost_packets >= sent


def test_losses_of_an_outage_are_spread_over_it_before_they_are_grouped_into_loss_events() -> None:
    # RFC 5348 section 5.2: 21 losses in 2.2 s are 0.1 s apart, so that every third is more than 0.25 s later
    history = LossHistory(TfrcVariant().for_core(1000, None))
    assert history.lost_run(21, (9.0, 11.2), 0.25, 50.0) == 7
    history.lost_run(210, (20.0, 42.0), 0.25, 50.0)
    assert history.p == pytest.approx(1 / 3)
    # ns-2's sink begins one event in a run of losses
    of_ns2 = LossHistory(TfrcVariant(profile="ns2").for_core(1000, None))
    assert of_ns2.lost_run(21, (9.0, 11.2), 0.25, 50.0) == 1


def test_thousands_of_outages_are_looked_up_and_not_gone_through() -> None:
    spans = tuple((float(n), n + 0.5) for n in range(100_000))
    path = Path(capacity=1e5, base_rtt_s=0.1, buffer_bytes=1e4, outages_s=spans)
    for n in range(0, 100_000, 997):
        assert path.is_down(n + 0.25)
        assert not path.is_down(n + 0.5)
        assert path.changes_after(n - 0.25) == n
        assert path.changes_after(float(n)) == n + 0.5
    assert path.changes_after(100_000.0) == float("inf")
    assert not path.is_down(-1.0)
