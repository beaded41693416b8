"""Whole connections of the corpus, against kernels, simulators, and what was taken out of captures."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import polars
import pytest
from corpus_case import CorpusCase, all_cases
from frames import packets

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SERVER_PORT = 42424
TAPS = ("snd", "mid", "rcv")
CLOSED = (
    "zero-window",
    "zero-window-often",
    "zero-window-update-lost",
    "slow-reader",
    "window-full-and-drop",
)
CASES = all_cases()
NS2 = [case.name for case in CASES if case.name.startswith("ns2-")]

Row = dict[str, Any]


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a capture of the corpus as every program can read it."""

    def unpack(case: str, tap: str) -> Path:
        return CorpusCase(case).unpack(tap, tmp_path)

    return unpack


def counted(case: str) -> Row:
    return CorpusCase(case).counters


def flows_of(capture: Path, *, from_server: bool) -> list[Row]:
    rows = tfrctrace.open(capture).flows.to_dicts()
    return [row for row in rows if (row["src_port"] == SERVER_PORT) == from_server]


@pytest.mark.parametrize("tap", TAPS)
def test_a_simultaneous_open_is_one_connection_that_repeats_no_syn(
    tap: str, unpack: Callable[[str, str], Path]
) -> None:
    rows = tfrctrace.open(unpack("simultaneous-open", tap)).flows.to_dicts()
    assert [row["syn_retransmissions"] for row in rows] == [0, 0]
    assert {row["state"] for row in rows} == {"closed"}
    # each SYN crossed the other, so that none was answered within a handshake
    assert {row["handshake_rtt_ms"] for row in rows} == {None}
    kernels = [counted("simultaneous-open")[host]["TcpRetransSegs"] for host in ("snd", "rcv")]
    assert kernels == [1, 1] == [row["lost_before_capture"] or row["lost_behind_capture"] for row in rows]


@pytest.mark.parametrize("tap", TAPS)
def test_ports_that_are_used_again_are_another_connection(
    tap: str, unpack: Callable[[str, str], Path]
) -> None:
    first, second = flows_of(unpack("port-reuse", tap), from_server=False)
    assert (first["src_port"], first["dst_port"]) == (second["src_port"], second["dst_port"])
    assert [row["unique_bytes"] for row in (first, second)] == [30 * 1448, 30 * 1448]
    lost = [row["lost_before_capture"] or row["lost_behind_capture"] for row in (first, second)]
    assert lost == [1, 2]
    assert sum(lost) == counted("port-reuse")["relay"]["drop"]


@pytest.mark.parametrize("tap", TAPS)
def test_a_side_that_has_ended_still_reads(tap: str, unpack: Callable[[str, str], Path]) -> None:
    capture, kernels = unpack("half-close", tap), counted("half-close")
    for host, from_server in (("snd", False), ("rcv", True)):
        (row,) = flows_of(capture, from_server=from_server)
        other = "rcv" if host == "snd" else "snd"
        assert (row["state"], row["unique_bytes"]) == ("closed", kernels[other]["received"])
        assert kernels[host]["TcpRetransSegs"] == (row["lost_before_capture"] or row["lost_behind_capture"])


@pytest.mark.parametrize("tap", TAPS)
def test_what_a_capture_missed_was_not_lost(tap: str, unpack: Callable[[str, str], Path]) -> None:
    whole, rest = (
        {header.key: header for _, _, header in packets(unpack("gaps", name)) if header.payload}
        for name in (tap, f"{tap}-gaps")
    )
    with pytest.warns(tfrctrace.TfrctraceWarning, match="acknowledged but not captured"):
        (row,) = flows_of(unpack("gaps", f"{tap}-gaps"), from_server=False)
    # what would have come behind the last packet is not known to be missing
    last = max(header.seq for header in rest.values())
    missed = sum(h.payload for key, h in whole.items() if key not in rest and h.seq < last)
    assert row["capture_gap_bytes"] == row["missing_bytes"] == missed > 0
    assert (row["lost_before_capture"] or 0, row["lost_behind_capture"] or 0, row["loss_events"]) == (0, 0, 0)


@pytest.mark.parametrize("case", CLOSED)
def test_windows_close_as_often_as_the_kernel_says(case: str, unpack: Callable[[str, str], Path]) -> None:
    packets = polars.concat(tfrctrace.open(unpack(case, "rcv")).packets()).to_dicts()
    windows = [row["window_bytes"] for row in packets if row["src_port"] == SERVER_PORT]
    closed = sum(before > 0 == now for before, now in pairwise(windows))
    assert closed == counted(case)["rcv"].get("TcpExtTCPToZeroWindowAdv", 0)


@pytest.mark.parametrize("case", ["window-full-and-drop", "zero-window-often"])
def test_the_receiver_holds_back_as_long_as_the_kernel_says(
    case: str, unpack: Callable[[str, str], Path]
) -> None:
    """By `tcpi_busy_time` and `tcpi_rwnd_limited`, which the kernel counts in ticks of its own."""
    (flow,) = tfrctrace.open(unpack(case, "snd")).why()
    kernel = counted(case)["snd"]
    held_s = flow.receiver_share * flow.duration_s
    assert held_s == pytest.approx(kernel["rwnd_limited_us"] / 1e6, abs=0.15 * kernel["busy_us"] / 1e6)


@pytest.mark.parametrize(
    ("case", "half_ms"), [("clean", 20), ("random-cubic", 20), ("gaps", 20), ("long-path", 150)]
)
def test_in_the_middle_both_halves_of_the_path_are_as_long_as_they_were_made(
    case: str, half_ms: float, unpack: Callable[[str, str], Path]
) -> None:
    (row,) = flows_of(unpack(case, "mid"), from_server=False)
    assert row["sender_rtt_p50_ms"] == pytest.approx(half_ms, rel=0.06)
    assert row["rtt_p50_ms"] == pytest.approx(half_ms, rel=0.08)


@pytest.mark.parametrize("case", ["tail-three", "drop-retransmission-twice", "outage"])
def test_what_the_sender_waits_for_its_timer_is_no_round_trip(
    case: str, unpack: Callable[[str, str], Path]
) -> None:
    """Timers of 200 ms and more are most of the time of these connections, whose half path is 20 ms."""
    (row,) = flows_of(unpack(case, "mid"), from_server=False)
    assert row["timeouts"] > 0
    assert row["sender_rtt_p50_ms"] == pytest.approx(20, rel=0.3)


TIMED_OUT = [
    case.name
    for case in CASES
    if case.counters.get("snd", {}).get("TcpExtTCPTimeouts")
    # those are of a SYN
    and not case.name.startswith("syn-")
    # without probes its first timeout looks like one
    and case.name != "thin-stream-no-tlp"
]


@pytest.mark.parametrize("tap", ["snd", "mid"])
@pytest.mark.parametrize("case", TIMED_OUT)
def test_timeouts_are_as_many_as_the_kernel_counts(
    case: str, tap: str, unpack: Callable[[str, str], Path]
) -> None:
    (row,) = flows_of(unpack(case, tap), from_server=False)
    assert row["timeouts"] == counted(case)["snd"]["TcpExtTCPTimeouts"]


def test_a_timeout_counts_where_its_segment_was_lost_before(unpack: Callable[[str, str], Path]) -> None:
    """ns-2's Reno says that it had one; what it sent again first was lost on both its ways to the capture."""
    found = tfrctrace.open(unpack("ns2-reno", "mid"), vantage="middle").flows.to_dicts()
    row = next(row for row in found if row["dst_port"] == 5001)
    assert row["timeouts"] == counted("ns2-reno")["simulator"]["timeouts"]


def median_at_both(middle: Path, sender: Path) -> float:
    """Median of what each packet took from the middle to the sender, and of the way back, in ms."""
    at_sender = {header.key: time for _, time, header in packets(sender)}
    times: dict[bool, list[float]] = {True: [], False: []}
    for _, time, header in packets(middle):
        if header.key in at_sender:
            times[header.sport == SERVER_PORT].append(abs(at_sender[header.key] - time))
    return 1e3 * sum(map(median, times.values()))


@pytest.mark.parametrize("case", ["short-path", "queue-cubic", "random-heavy", "storm-cubic", "routed"])
def test_the_way_to_the_sender_is_as_long_as_both_captures_show(
    case: str, unpack: Callable[[str, str], Path]
) -> None:
    """What stood in the way for a moment (of `short-path` for up to 24 ms) is not the median."""
    middle = unpack(case, "mid")
    (row,) = flows_of(middle, from_server=False)
    truth_ms = median_at_both(middle, unpack(case, "snd"))
    assert row["sender_rtt_p50_ms"] == pytest.approx(truth_ms, rel=0.1)


def test_a_sender_that_waits_for_its_application_shows_nothing(unpack: Callable[[str, str], Path]) -> None:
    """Bursts every 600 ms: where an acknowledgement was lost, the next burst echoes the one before it."""
    (row,) = flows_of(unpack("bursts-ack-loss", "mid"), from_server=False)
    assert row["sender_rtt_p50_ms"] is None


@pytest.mark.parametrize("case", ["ns3-queue", "ns3-queue-cubic", "ns3-random"])
def test_behind_ns_3s_slow_link_both_halves_are_the_whole(
    case: str, unpack: Callable[[str, str], Path]
) -> None:
    """The links are 1, 15 and 1 ms long; before the capture there is a queue, too."""
    rows = {}
    for tap in TAPS:
        found = tfrctrace.open(unpack(case, tap)).flows.to_dicts()
        rows[tap] = next(row for row in found if row["dst_port"] == 5001)
    middle, sender = rows["mid"], rows["snd"]
    assert 2.0 < middle["rtt_p50_ms"] < 2.5
    assert middle["sender_rtt_p50_ms"] > 32.0
    # one median is of segments, the other of acknowledgements
    both_ms = middle["rtt_p50_ms"] + middle["sender_rtt_p50_ms"]
    assert both_ms == pytest.approx(sender["rtt_p50_ms"], rel=0.1)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("case", CLOSED)
def test_zero_and_full_windows_are_tsharks(case: str, unpack: Callable[[str, str], Path]) -> None:
    capture = unpack(case, "snd")
    rows = {row["src_port"] == SERVER_PORT: row for row in tfrctrace.open(capture).flows.to_dicts()}
    filters = ("tcp.analysis.zero_window", "tcp.analysis.window_full", "tcp.flags.fin == 1 && tcp.len > 0")
    closed, full, last = (
        subprocess.run(
            ["tshark", "-n", "-r", str(capture), "-Y", shown], capture_output=True, text=True, check=True
        ).stdout.count("\n")
        for shown in filters
    )
    assert rows[True]["zero_windows"] == closed
    # a segment with FIN may fill the window too, and tshark leaves it out
    assert full <= rows[False]["window_full"] <= full + last


@pytest.mark.parametrize("case", NS2)
def test_ns_2_sent_and_repeated_what_we_say(case: str, unpack: Callable[[str, str], Path]) -> None:
    simulated = counted(case)["simulator"]
    rows = tfrctrace.open(unpack(case, "snd")).flows.to_dicts()
    (row,) = [row for row in rows if row["dst_port"] == 5001]
    assert row["data_packets"] == simulated["data_packets"]
    assert row["retransmitted_packets"] == simulated["data_packets"] - 300
    # of a SYN as well
    assert row["timeouts"] + row["syn_retransmissions"] == simulated["timeouts"]


@pytest.mark.parametrize("case", NS2)
def test_the_labels_of_ns_2_are_its_own_counts(case: str) -> None:
    simulated = counted(case)["simulator"]
    rows = [row for row in CorpusCase(case).truth if row["tap"] == "snd"]
    again = [row for row in rows if row["sport"] == "49153"]
    assert sum(row["payload"] != "0" for row in again) == simulated["data_packets"] - 300
    assert sum(row["cause"] == "timer" for row in again) == simulated["timeouts"]
