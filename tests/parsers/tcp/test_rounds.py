"""Flight and rounds of captures at a sender are what the sender itself says of its window.

The kernel's word is `ss -ti`, five times a second, and its counters; ns-3's are its trace sources of the
congestion window and state.
"""

import gzip
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

DATA = Path(__file__).resolve().parent.parent.parent / "data"
CAPTURES = DATA / "captures"

# from the kernel's counters of these runs: TcpExtTCPSackRecovery and TcpExtTCPTimeouts of the sender
KERNEL_EPISODES = {
    "linux-one-cubic-snd": (13, 0),
    "linux-relay-loss-snd": (21, 0),
    "linux-udp-vs-tcp-snd": (13, 0),
    "linux-seq-wrap-snd": (6, 0),
    "linux-relay-reorder-noloss-snd": (1, 0),
    "linux-one-reno-offload-on-snd": (2, 0),
}

Row = dict[str, Any]


def read(*names: Path) -> tfrctrace.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrctraceWarning)
        trace = tfrctrace.open(list(names))
        trace.read("flows", "rounds", "variables", "rtt")
    return trace


def words_of(log: str) -> list[list[str]]:
    with gzip.open(log, "rt") as lines:
        return [line.split() for line in lines]


def largest(trace: tfrctrace.Trace) -> Row:
    return trace.flows.filter(transport="tcp").sort("unique_bytes", descending=True).row(0, named=True)


def rounds_of(trace: tfrctrace.Trace, flow: Row) -> list[Row]:
    return trace.rounds.filter(flow=flow["flow"], direction=flow["direction"]).to_dicts()


def free(rounds: list[Row]) -> list[Row]:
    """Return the rounds that show the window, outside of recoveries."""
    return [row for row in rounds if row["cwnd_bytes"] is not None and row["repair"] is None]


def kernels_windows(trace: tfrctrace.Trace, flow: Row) -> tuple[float, list[tuple[int, float]]]:
    """Return the segment's size and the congestion windows, in segments, that `ss` showed."""
    kernel = trace.variables.filter(src_port=flow["src_port"], dst_port=flow["dst_port"])
    windows = kernel.filter(name="cwnd").select("time_ns", "value").rows()
    return max(kernel.filter(name="mss")["value"]), windows


def end_ns(row: Row) -> float:
    return row["time_ns"] + row["duration_ms"] * 1e6


@pytest.mark.parametrize("run", ["one-cubic", "relay-loss", "udp-vs-tcp"])
def test_the_flight_of_a_round_is_the_kernels_window_to_a_segment(run: str) -> None:
    trace = read(CAPTURES / f"linux-{run}-snd.pcap.gz", DATA / "logs" / f"linux-{run}-ss.txt.gz")
    flow = largest(trace)
    rounds = free(rounds_of(trace, flow))
    segment_bytes, windows = kernels_windows(trace, flow)
    apart = []
    for time_ns, cwnd in windows:
        for row in rounds:
            if row["time_ns"] <= time_ns <= end_ns(row):
                apart.append(row["cwnd_bytes"] / segment_bytes - cwnd)
    assert len(apart) >= 10
    assert max(map(abs, apart)) <= 2
    assert sum(abs(difference) <= 1 for difference in apart) >= 0.9 * len(apart)


def test_the_flight_at_the_end_of_a_recovery_is_the_kernels_window() -> None:
    apart = []
    for run in ("one-cubic", "relay-loss", "udp-vs-tcp"):
        trace = read(CAPTURES / f"linux-{run}-snd.pcap.gz", DATA / "logs" / f"linux-{run}-ss.txt.gz")
        flow = largest(trace)
        segment_bytes, windows = kernels_windows(trace, flow)
        rounds = rounds_of(trace, flow)
        for row, following in pairwise(rounds):
            if row["repair"] == "recovery" and free([following]):
                # the first round behind it has the same window, or one more
                seen = [cwnd for time_ns, cwnd in windows if end_ns(row) <= time_ns <= end_ns(following)]
                apart += [row["cwnd_bytes"] / segment_bytes - cwnd for cwnd in seen]
    assert len(apart) >= 10
    assert sum(abs(difference) <= 1 for difference in apart) >= 0.9 * len(apart)


@pytest.mark.parametrize("capture", KERNEL_EPISODES)
def test_recoveries_are_those_that_the_kernel_counted(capture: str) -> None:
    flow = largest(read(CAPTURES / f"{capture}.pcap.gz"))
    assert (flow["recovery_episodes"], flow["rto_episodes"]) == KERNEL_EPISODES[capture]


def test_windows_and_recoveries_are_those_of_the_simulator() -> None:
    trace = read(CAPTURES / "ns3-p2p-newreno-cubic-udp-0-1.pcap.gz")
    flow = largest(trace)
    source = DATA / "ns3" / "p2p-newreno-cubic-udp"
    states = words_of(f"{source}.congstate.txt.gz")
    entered = [float(time) for socket, time, _, state in states if socket == "0" and state == "RECOVERY"]
    assert flow["recovery_episodes"] == len(entered)
    assert flow["rto_episodes"] == sum(socket == "0" and state == "LOSS" for socket, _, _, state in states)

    windows = words_of(f"{source}.cwnd.txt.gz")
    changes = [(float(time), float(cwnd)) for socket, time, cwnd in windows if socket == "0"]
    rounds = free(rounds_of(trace, flow))
    near = 0
    for row in rounds:
        begin_s = row["time_ns"] / 1e9
        end_s = begin_s + row["duration_ms"] / 1e3
        before = [cwnd for time_s, cwnd in changes if time_s <= begin_s]
        during = [cwnd for time_s, cwnd in changes if begin_s < time_s <= end_s]
        # a segment is 1000 bytes
        near += abs(max(during + before[-1:]) - row["cwnd_bytes"]) <= 1000
    assert len(rounds) > 30
    assert near >= 0.95 * len(rounds)
    assert flow["cwnd_max_bytes"] == max(cwnd for _, cwnd in changes)


def test_a_receiver_that_does_not_read_is_what_holds_its_sender_back() -> None:
    """The kernel says `rwnd_limited:1760ms(97.3%)` of this connection, and 1.4 s are silence in ours."""
    trace = read(CAPTURES / "linux-small-flows-snd.pcap.gz")
    (sender,) = trace.flows.filter(pl.col("dst_port") == 5202, pl.col("unique_bytes") == 150_000).to_dicts()
    (receiver,) = trace.flows.filter(flow=sender["flow"], direction="rev").to_dicts()
    held = trace.causes.filter(flow=sender["flow"], direction="fwd", cause="receiver")
    assert (held["end_ns"] - held["start_ns"]).sum() / 1e6 == pytest.approx(1_760, rel=0.06)
    assert receiver["receive_window_min_bytes"] == 0
    assert 1_000 < receiver["zero_window_ms"] < 1_760


def test_the_handshake_has_two_parts_and_each_end_sees_the_one_beyond_it() -> None:
    parts_ms = {}
    for end in ("snd", "rcv"):
        trace = read(CAPTURES / f"linux-relay-reorder-noloss-{end}.pcap.gz")
        both = trace.flows.filter(flow=largest(trace)["flow"])
        assert both["syn_rtt_ms"].sum() == pytest.approx(both["handshake_rtt_ms"][0])
        parts_ms[end] = both["syn_rtt_ms"].to_list()
    assert parts_ms["snd"][0] > 10 * parts_ms["snd"][1]
    assert parts_ms["rcv"][1] > 10 * parts_ms["rcv"][0]
    assert sum(parts_ms["snd"]) == pytest.approx(sum(parts_ms["rcv"]), rel=0.05)


@pytest.mark.parametrize("capture", ["linux-one-cubic-snd", "ns3-p2p-newreno-cubic-udp-0-1"])
def test_flows_sum_up_their_rounds(capture: str) -> None:
    trace = read(CAPTURES / f"{capture}.pcap.gz")
    flow = largest(trace)
    rounds = rounds_of(trace, flow)
    assert flow["rounds"] == len(rounds)
    assert flow["cwnd_max_bytes"] >= max(row["cwnd_bytes"] for row in free(rounds))
    assert flow["cwnd_max_bytes"] == flow["max_flight_bytes"] >= max(row["flight_bytes"] for row in rounds)
    assert flow["mean_flight_bytes"] <= flow["max_flight_bytes"]
    # every acknowledged byte is of one round, and every one is acknowledged but the last flight
    delivered = sum(row["delivered_bytes"] for row in rounds)
    assert 0 <= flow["unique_bytes"] - delivered <= flow["max_flight_bytes"]


def test_at_the_receiver_nobody_knows_the_congestion_window() -> None:
    trace = read(CAPTURES / "linux-one-cubic-rcv.pcap.gz")
    flow = largest(trace)
    unknown = ["cwnd_max_bytes", "slow_start_exit_ms", "recovery_episodes", "rto_ms"]
    assert [flow[column] for column in unknown] == [None] * 4
    assert flow["max_flight_bytes"] > 0
    assert "its congestion window cannot be seen" in flow["notes"]
    # the rounds are those that the sender saw, behind whose queue the capture is: so are the repairs
    found = {(row["cwnd_bytes"], row["repair"]) for row in rounds_of(trace, flow)}
    assert found == {(None, None), (None, "recovery")}
    sender = read(CAPTURES / "linux-one-cubic-snd.pcap.gz")
    repairs = [
        [row["repair"] for row in rounds_of(of, largest(of))].count("recovery") for of in (trace, sender)
    ]
    assert repairs == [12, 14]


def test_mean_flight_over_the_round_trip_is_the_rate() -> None:
    """Little's law, for a sender that was never idle."""
    flow = largest(read(CAPTURES / "linux-one-cubic-snd.pcap.gz"))
    rate = flow["mean_flight_bytes"] / (flow["rtt_mean_ms"] / 1e3)
    # samples leave out what was lost and waited longest (Karn's rule)
    assert 8 * rate == pytest.approx(flow["goodput_bps"], rel=0.3)
