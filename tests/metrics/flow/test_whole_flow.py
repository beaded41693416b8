"""Numbers about a flow's whole life, against what the sending kernel logged of its timers."""

from __future__ import annotations

import lzma
import math
import statistics
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from corpus_case import CorpusCase
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.metrics.flow.delivery import timeout_share

DATA = Path(__file__).parents[2] / "data"
WIRED_MIX = DATA / "ns2" / "wired-mix.tr.xz"


def whole_flow(path, name):
    """Return the metric `name` of the flow in a capture, and the flow's row."""
    measured = tfrctrace.open(path).measure(name, least_packets=2)
    (metric,) = measured.metrics
    return metric, measured.looked_at.row(0, named=True)


@pytest.mark.parametrize(
    "case", ["outage", "outage-no-sack", "ack-outage", "last-ack-lost", "drop-retransmission-twice"]
)
def test_time_after_timeouts_begins_and_ends_with_the_kernels_timer(case, tmp_path):
    """The kernel's tracepoint shows which retransmissions its timer sent, all in one episode.

    What was outstanding is then acknowledged within some round-trip times.
    """
    rows = [row for row in CorpusCase(case).truth if row["tap"] == "snd"]
    capture = CorpusCase(case).unpack("snd", tmp_path)
    frames = [int(row["frame"]) for row in rows if row["cause"] == "timer"]
    packets = pl.concat(tfrctrace.open(capture).packets())
    times_ns = packets.filter(pl.col("packet").is_in(frames))["time_ns"]
    assert len(times_ns) == len(frames)
    share, flow = whole_flow(capture, "timeout_share")
    after_timeouts_ms = 1000 * share.value * flow["duration_s"]
    until_last_ms = (times_ns.max() - times_ns.min()) / 1e6
    assert until_last_ms < after_timeouts_ms < until_last_ms + 3 * flow["rtt_max_ms"]
    assert share.n == 1


def test_without_a_timeout_the_share_is_0_and_not_unknown():
    # TcpExtTCPTimeouts of this run's sender is 0
    share, _ = whole_flow(DATA / "captures" / "linux-seq-wrap-snd.pcap.gz", "timeout_share")
    assert (share.value, share.n) == (0, 0)


def test_a_receiver_s_capture_does_not_show_the_share(tmp_path):
    share, _ = whole_flow(CorpusCase("outage").unpack("rcv", tmp_path), "timeout_share")
    assert share.value is None
    assert share.reason.startswith("not TCP, or captured where")


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_share_is_between_0_and_1_and_does_not_change_with_the_unit_of_time(after_ms, rest_ms):
    durations_s = [(after_ms + rest_ms) / 1000, 60 * (after_ms + rest_ms) / 1000, 0]
    times = pl.DataFrame({"rto_ms": [after_ms, 60 * after_ms, after_ms], "duration_s": durations_s})
    share, of_minutes, of_nothing = times.select(
        timeout_share(pl.col("rto_ms"), pl.col("duration_s"))
    ).to_series()
    assert 0 <= share <= 1
    assert of_minutes == pytest.approx(share)
    assert of_nothing is None


def received_each_second(flow_id, start_s, seconds):
    """Add up, as a script with awk would, the bytes of a flow of ns-2 that arrive at its sink."""
    sizes = [0] * seconds
    for line in lzma.decompress(WIRED_MIX.read_bytes()).decode().splitlines():
        event, time, _, node, kind, size, _, fid, _, dst, *_ = line.split()
        second = math.floor(float(time) - start_s)
        if kind in {"ack", "tcpFriendCtl"} or fid != str(flow_id):
            continue
        if event == "r" and node == dst.split(".")[0] and 0 <= second < seconds:
            sizes[second] += int(size)
    return sizes


@pytest.mark.parametrize(("flow_id", "start_s", "seconds"), [(1, 0.2, 12), (4, 1.2, 11)])
def test_flows_respond_to_the_cbr_flow_that_a_simulation_starts_at_4_s(flow_id, start_s, seconds):
    names = ("responsiveness_s", "aggressiveness_bps")
    measured = tfrctrace.open(WIRED_MIX).measure(*names, basis="received", step="4s")
    (flow,) = measured.looked_at.filter(pl.col("flow_id") == flow_id)["flow"]
    found = {metric.name: metric for metric in measured.metrics if metric.flows == (flow,)}
    sizes = received_each_second(flow_id, start_s, seconds)
    # the first whole second after 4 s, and the definition in words
    first = next(place for place in range(seconds) if start_s + place >= 4)
    after = sizes[first:]
    level = statistics.mean(after[len(after) // 2 :])
    good = [abs(size - level) <= 0.2 * level for size in after]
    settled = next(place for place in range(len(good)) if all(good[place:]))
    assert found["responsiveness_s"].value == pytest.approx(start_s + first + settled - 4)
    increase = max(later - earlier for earlier, later in pairwise(sizes[first - 1 :]))
    assert found["aggressiveness_bps"].value == pytest.approx(8 * increase)
    assert found["aggressiveness_bps"].n == found["responsiveness_s"].n == len(after)


def test_a_flow_that_the_step_finds_not_there_does_not_respond():
    # the CBR flow itself: nothing of it before 4 s
    measured = tfrctrace.open(WIRED_MIX).measure("responsiveness_s", basis="received", step="4s")
    (probe,) = [metric for metric in measured.metrics if metric.group == "udp"]
    assert (probe.value, probe.n) == (None, 0)
    assert "was not active before and after" in probe.reason
    late = tfrctrace.open(WIRED_MIX).measure("aggressiveness_bps", basis="received", step="1h")
    assert {(metric.value, metric.n) for metric in late.metrics} == {(None, 0)}
