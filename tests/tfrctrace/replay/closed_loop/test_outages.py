"""Times at which a path carries nothing: found where a trace shows them, and lived through by the model."""

from __future__ import annotations

from pathlib import Path as File

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.results.replay import NotReplayable
from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.fluid import simulate
from tfrctrace.replay.closed_loop.observed_path import observe_path
from tfrctrace.replay.closed_loop.outages import outages
from tfrctrace.replay.closed_loop.path import Path
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
    ((from_ns, until_ns),) = observe_path(trace, recorded[TfrcVariant()]).outages
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
