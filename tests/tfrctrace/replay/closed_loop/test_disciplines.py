"""Disciplines of the model's queue against their RFCs, and against kernels that had them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.disciplines import DISCIPLINES, Codel, Pie, Red
from tfrctrace.replay.closed_loop.fluid import simulate
from tfrctrace.replay.closed_loop.path import Path as ModelledPath
from tfrctrace.replay.controller import Start
from tfrctrace.replay.tcp.hystart import HyStart
from tfrctrace.replay.tcp.sack import Sack

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[3] / "data"
DUMBBELL = DATA / "ns2" / "dumbbell-newreno.tr.xz"
CAPACITY = 125_000.0


def a_path(**what: Any) -> ModelledPath:
    known = {"capacity": CAPACITY, "base_rtt_s": 0.05, "buffer_bytes": 30_000.0}
    return ModelledPath(**{**known, **what})


def test_red_drops_by_the_average_queue() -> None:
    # Floyd and Jacobson: p_b rises from 0 at the lower threshold to max_p at the upper one
    red = Red(a_path())
    for queued, share in ((4_000.0, 0.0), (10_000.0, 2 * 0.05 / 1.05), (16_000.0, 1.0)):
        for _ in range(3_000):
            found = red.share(0.01, queued, 125.0)
        assert found == pytest.approx(share, abs=1e-3)


def test_codel_drops_as_its_control_law_says() -> None:
    # RFC 8289 section 3.3: the next drop is interval / sqrt(count) after the last one
    codel, drops = Codel(a_path()), 0.0
    queued = CAPACITY * 0.02
    for _ in range(10):
        assert codel.share(0.01, queued, 1_000.0) < 0.02
    for _ in range(100):
        drops += 0.01 * 1_000 * codel.share(0.01, queued, 1_000.0)
    by_the_rfc, at_s = 0, 0.0
    while at_s <= 1.0:
        by_the_rfc += 1
        at_s += 0.1 / math.sqrt(by_the_rfc)
    assert drops == pytest.approx(by_the_rfc, rel=0.15)
    assert codel.share(0.01, CAPACITY * 0.004, 1_000.0) == 0.0


def test_pie_moves_its_probability_as_rfc_8033_says() -> None:
    pie = Pie(a_path())
    pie.p = 0.2
    pie.share(0.015, CAPACITY * 0.035, 100.0)
    # section 4.2: 0.125 (35 ms - 15 ms) + 1.25 (35 ms - 0); section 5.2: no more than 2 % at once
    assert pie.p == pytest.approx(0.2 + 0.02)
    pie.share(0.015, CAPACITY * 0.035, 100.0)
    assert pie.p == pytest.approx(0.22 + 0.125 * 0.02)


@pytest.mark.parametrize("name", ["codel", "pie", "red"])
def test_marks_take_the_place_of_drops(name: str) -> None:
    totals = {}
    for has_ecn in (False, True):
        path = a_path(discipline=name, has_ecn=has_ecn, buffer_bytes=100_000.0)
        control = Sack(Start(segment_bytes=1000))
        [rounds] = simulate(path, [control], segment_bytes=1000, duration_s=60)
        reasons = {one.allowed.reason for one in rounds if one.allowed}
        assert ("mark" in reasons) == has_ecn
        totals[has_ecn] = sum(one.arrived_bytes for one in rounds) / 60
        if has_ecn:
            assert sum(one.lost_packets for one in rounds[len(rounds) // 2 :]) == 0
    assert totals[True] >= 0.9 * totals[False]
    assert totals[True] > 0.8 * CAPACITY


# what a kernel's flow was set up with, and what it received and waited: the mean of its round-trip times
@pytest.mark.parametrize(
    ("run", "name", "algorithm"),
    [
        ("bottlenecks/0034-bottleneck-vegas", "codel", "vegas"),
        ("causes/0000-bottleneck-reno", "red", "sack"),
    ],
)
def test_a_model_of_a_kernel_s_queue_is_near_what_its_flow_received(
    run: str, name: str, algorithm: str
) -> None:
    drawn = json.loads((DATA / run / "scenario.json").read_text())
    trace = tfrctrace.open(DATA / run / "sender.pcap.gz")
    flow = trace.flows.filter(pl.col("src_port") == drawn["sender"]["port"]).row(0, named=True)
    seconds = flow["duration_ns"] / 1e9 if "duration_ns" in flow else flow["duration_s"]
    rtt_ms = trace.rtt.filter(pl.col("flow") == flow["flow"], pl.col("direction") == flow["direction"])[
        "rtt_ns"
    ]
    low = max(drawn["buffer_bytes"] // 6, 4 * 1514)
    buffer_bytes = {"codel": max(drawn["buffer_bytes"] // 1514, 5) * 1514, "red": 6 * low}[name]
    payload = 1448 / 1514
    path = a_path(
        capacity=drawn["rate_bps"] / 8 * payload,
        base_rtt_s=sum(drawn["delays_s"]),
        buffer_bytes=buffer_bytes * payload,
        discipline=name,
    )
    control = algorithm_named(algorithm).begin(Start(segment_bytes=1448, least_rto_s=0.2))
    [rounds] = simulate(path, [control], segment_bytes=1448, duration_s=seconds)
    received = sum(one.arrived_bytes for one in rounds)
    assert received == pytest.approx(flow["unique_bytes"], rel=0.1)
    mean_s = sum(one.rtt_s * one.duration_s for one in rounds) / seconds
    assert mean_s == pytest.approx(rtt_ms.mean() / 1e9, rel=0.2)


@given(
    name=st.sampled_from(list(DISCIPLINES)),
    spans=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e9), st.floats(0, 1e9)), max_size=50),
    capacity=st.floats(1, 1e9),
    buffer_bytes=st.floats(0, 1e9),
)
def test_a_share_is_one(
    name: str, spans: list[tuple[float, float, float]], capacity: float, buffer_bytes: float
) -> None:
    discipline = DISCIPLINES[name](a_path(capacity=capacity, buffer_bytes=buffer_bytes))
    for span in spans:
        assert 0 <= discipline.share(*span) <= 1


def test_the_command_has_queues_and_marks(run: Callable[..., Any]) -> None:
    options = ["--loop", "closed", "-q", "-a", "newreno", "--format", "json"]
    rtts = {}
    for queue in ("tail_drop", "codel"):
        done = run("replay", *options, "--bottleneck", f"queue={queue}", "--bottleneck", "ecn=1", DUMBBELL)
        document = json.loads(done.out)
        assert document["flows"][0]["bottleneck"]["queue"] == queue
        rtts[queue] = document["replays"][0]["rtt_mean_ms"]
    assert rtts["codel"] < rtts["tail_drop"]
    refused = run("replay", *options, "--bottleneck", "queue=blue", DUMBBELL)
    assert refused.status == 2
    assert "known: tail_drop, red, codel, pie" in refused.err


def test_a_refused_flow_has_nulls_and_the_reason_in_python() -> None:
    trace = tfrctrace.open(DATA / "causes" / "0004-send_buffer-westwood" / "sender.pcap.gz")
    frame = trace.closed_loop("cubic", "tfrc")
    assert set(frame["algorithm"]) == {"cubic", "tfrc"}
    assert frame["lacking"].str.contains("of its bottleneck is not known").all()
    assert frame["x_bps"].null_count() == frame["rtt_ms"].null_count() == frame.height


def test_linux_ends_slow_start_when_the_delay_rises() -> None:
    # a rise of an eighth, 4 to 16 ms
    hystart = HyStart("linux")
    assert hystart.growth(0.105, 0.1, 64.0) == 1.0
    assert hystart.growth(0.113, 0.1, 8.0) == 1.0
    assert hystart.growth(0.113, 0.1, 64.0) == 0.0
    assert hystart.growth(0.0139, 0.01, 64.0) == 1.0
    assert hystart.growth(0.0141, 0.01, 64.0) == 0.0


def test_hystart_plus_plus_grows_by_a_quarter_for_five_rounds() -> None:
    hystart = HyStart("rfc9406")
    found = [
        hystart.growth(rtt_s, 0.1, 64.0) for rtt_s in (0.1, 0.1, 0.113, 0.113, 0.113, 0.113, 0.113, 0.113)
    ]
    assert found == [1, 1, 0.25, 0.25, 0.25, 0.25, 0.25, 0]
    again = HyStart("rfc9406")
    found = [again.growth(rtt_s, 0.1, 64.0) for rtt_s in (0.1, 0.113, 0.11, 0.11)]
    # section 4.2: a false end, as the delay fell below that of the first round of CSS
    assert found == [1, 0.25, 1, 1]


@pytest.mark.parametrize("name", ["linux", "rfc9406"])
def test_a_slow_start_with_hystart_loses_less(name: str) -> None:
    lost = {}
    for how in ("none", name):
        path = a_path(buffer_bytes=60_000.0, base_rtt_s=0.2)
        control = Sack(Start(segment_bytes=1000), hystart=how)  # type: ignore[arg-type]
        [rounds] = simulate(path, [control], segment_bytes=1000, duration_s=5)
        lost[how] = sum(one.lost_packets for one in rounds)
    assert lost[name] < lost["none"] / 2
