"""Two captures of one path give the losses and delays that the simulator, relay and kernel counted.

`tests/data/pair/truth.json` has FlowMonitor's exact integers; `linux-relay-loss-relay.txt.gz` is the log of
the relay that delayed and dropped each packet. The clocks of these captures are one; some tests change the
times of the second capture.
"""

import gzip
import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from corpus_case import CorpusCase, all_cases

import tfrctrace
from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

DATA = Path(__file__).resolve().parent.parent.parent / "data"
PAIR = DATA / "pair"
CAPTURES = DATA / "captures"
TRUTH = json.loads((PAIR / "truth.json").read_text())

HOUR_NS = 3_600 * 10**9
MSS = 1_448
PCAP_UNITS_NS = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}

NS3_PAIRS = {
    "p2p-newreno-cubic-udp": (CAPTURES / "ns3-p2p-newreno-cubic-udp-0-1.pcap.gz", "3-1"),
    "csma-red-veno": (CAPTURES / "ns3-csma-red-veno-0-1.pcap.gz", "2-1"),
    "p2p-randloss-nosack": (PAIR / "ns3-p2p-randloss-nosack-0-1.pcap.gz", "1-1"),
    "p2p-reno-reverse": (PAIR / "ns3-p2p-reno-reverse-0-1.pcap.gz", "2-1"),
}
RELAY = (CAPTURES / "linux-relay-loss-snd.pcap.gz", PAIR / "linux-relay-loss-rcv.pcap.gz")
REORDERED = tuple(CAPTURES / f"linux-relay-reorder-noloss-{end}.pcap.gz" for end in ("snd", "rcv"))
IPERF_UDP = tuple(CAPTURES / f"linux-udp-vs-tcp-{end}.pcap.gz" for end in ("snd", "rcv"))
OFFLOADED = (
    CAPTURES / "linux-one-reno-offload-on-snd.pcap.gz",
    PAIR / "linux-one-reno-offload-on-rcv.pcap.gz",
)

Record = tuple[int, int, bytes]
"""Time in ns, bytes on the wire, and the bytes captured."""


def records(path: Path) -> tuple[bytes, list[Record]]:
    """Return the header of a pcap file without its magic, and its records."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    unit_ns = PCAP_UNITS_NS[struct.unpack_from("<I", content)[0]]
    found: list[Record] = []
    at = 24
    while at < len(content):
        seconds, fraction, captured, wire = struct.unpack_from("<IIII", content, at)
        found.append((seconds * 10**9 + fraction * unit_ns, wire, content[at + 16 : at + 16 + captured]))
        at += 16 + captured
    return content[4:24], found


def rewritten(path: Path, out: Path, change: Callable[[Record], list[Record]]) -> Path:
    """Write the capture `path` to `out` in ns with the records that `change` makes of each."""
    header, found = records(path)
    content = bytearray(struct.pack("<I", 0xA1B23C4D) + header)
    made = [record for whole in found for record in change(whole)]
    for time_ns, wire, frame in sorted(made, key=lambda record: record[0]):
        content += struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(frame), wire) + frame
    out.write_bytes(content)
    return out


def with_clock(path: Path, out: Path, offset_ns: int, drift_ppm: float) -> Path:
    """Write `path` as a clock would have stamped it that is ahead and drifts from the first packet on."""
    start_ns = records(path)[1][0][0]

    def changed(record: Record) -> list[Record]:
        gained_ns = round((record[0] - start_ns) * drift_ppm * 1e-6)
        return [(record[0] + offset_ns + gained_ns, *record[1:])]

    return rewritten(path, out, changed)


def open_pair(first: Path, second: Path, **options: Any) -> tfrctrace.Trace:
    return tfrctrace.open([first, second], pair=True, **options)


def matched(trace: tfrctrace.Trace) -> list[dict[str, Any]]:
    return trace.flows.filter(pl.col("sent_packets") > 0).to_dicts()


@pytest.mark.parametrize(("offset_ns", "drift_ppm"), [(0, 0.0), (HOUR_NS, 50.0), (1_234_567_891, -50.0)])
@pytest.mark.parametrize("case", NS3_PAIRS)
def test_delay_and_loss_are_the_simulators_whatever_the_second_clock_shows(
    case: str, offset_ns: int, drift_ppm: float, tmp_path: Path
) -> None:
    first, place = NS3_PAIRS[case]
    second = with_clock(PAIR / f"ns3-{case}-{place}.pcap.gz", tmp_path / "b.pcap", offset_ns, drift_ppm)
    trace = open_pair(first, second)
    clock = trace.clock
    assert clock is not None
    assert clock["offset_ns"] == pytest.approx(offset_ns, abs=1e5)
    assert clock["drift_ppm"] == pytest.approx(drift_ppm, abs=0.01)
    assert clock["offset_low_ns"] <= offset_ns <= clock["offset_high_ns"]
    assert clock["drift_low_ppm"] <= drift_ppm <= clock["drift_high_ppm"]
    rows = matched(trace)
    assert len(rows) == 2
    for row in rows:
        (truth,) = [flow for flow in TRUTH[case] if (flow["src"], flow["dst"]) == (row["src"], row["dst"])]
        assert (row["sent_packets"], row["received_packets"]) == (truth["txPackets"], truth["rxPackets"])
        assert row["lost_packets"] + row["in_flight_packets"] == truth["txPackets"] - truth["rxPackets"]
        # FlowMonitor counts from the IP layer, above the sender's own queue
        assert row["delay_mean_ms"] == pytest.approx(truth["delaySum"] / truth["rxPackets"] / 1e6, abs=1)
        assert row["vantage"] == "both"


def test_every_packet_that_the_error_model_dropped_is_lost_and_no_other() -> None:
    # drops.txt of the run: 19 packets at the receiver's link, one of them 0.25 s before the end
    trace = open_pair(NS3_PAIRS["p2p-randloss-nosack"][0], PAIR / "ns3-p2p-randloss-nosack-1-1.pcap.gz")
    fates = dict(
        trace.transits.group_by("direction", "fate")
        .len()
        .select(pl.concat_str("direction", "fate", separator=" "), "len")
        .iter_rows()
    )
    assert fates == {
        "fwd arrived": 1104,
        "fwd lost": 19,
        "fwd unknown": 3,
        "rev arrived": 833,
        "rev unknown": 1,
    }


def relay_log() -> list[list[str]]:
    return [line.split() for line in gzip.open(PAIR / "linux-relay-loss-relay.txt.gz", "rt")]


def test_the_packets_that_the_relay_dropped_are_those_that_are_lost() -> None:
    trace = open_pair(*RELAY)
    lost = trace.transits.filter(pl.col("fate") == "lost")
    assert set(lost["direction"]) == {"fwd"}
    sent = pl.concat(tfrctrace.open(RELAY[0]).packets()).select(
        pl.col("packet").alias("sent_packet"), "seq", "ip_id"
    )
    found = sorted(lost.join(sent, on="sent_packet").select("seq", "ip_id").iter_rows())
    assert found == sorted((int(line[5]), int(line[7])) for line in relay_log() if line[2] == "DROP")


def test_the_delay_of_every_packet_is_that_of_the_relay() -> None:
    trace = open_pair(*RELAY, clock_offset="0s")
    logged: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for line in relay_log():
        if line[2] != "DROP":
            in_s, out_s = float(line[1]), float(line[2])
            logged.setdefault((int(line[3]), int(line[4])), []).append((in_s, out_s - in_s))
    ends = trace.flows.select("flow", "direction", "src_port", "dst_port")
    arrived = trace.transits.filter(pl.col("fate") == "arrived").join(ends, on=["flow", "direction"])
    assert len(arrived) == sum(map(len, logged.values()))
    for (src_port, dst_port), passed in logged.items():
        own = arrived.filter(pl.col("src_port") == src_port, pl.col("dst_port") == dst_port)
        pairs = zip(own["delay_ns"], sorted(passed), strict=True)
        apart_s = sorted(abs(delay_ns / 1e9 - delay_s) for delay_ns, (_, delay_s) in pairs)
        # the captures are on both sides of the relay's process, which the kernel lets wait at times
        assert apart_s[len(apart_s) // 2] < 2e-4
        assert apart_s[int(0.98 * len(apart_s))] < 1e-3


def test_pure_reordering_is_no_loss_and_doubled_packets_are_reported() -> None:
    trace = open_pair(*REORDERED)
    totals = trace.flows.select(
        pl.col("sent_packets", "received_packets", "duplicate_packets", "lost_packets").sum()
    )
    assert totals.row(0) == (1182, 1182, 4, 0)
    assert trace.flows["lost_before_packets"].sum() + trace.flows["lost_behind_packets"].sum() == 0


def test_udp_delay_and_loss_are_those_of_iperf() -> None:
    # iperf's server: 32/628 lost, mean delay 39.766 ms, smallest 0.006, largest 53.693, jitter 0.150; the
    # 628th is the datagram that ends the test, which is no data (udp.json)
    (row,) = [row for row in matched(open_pair(*IPERF_UDP, clock_offset="0s")) if row["dst_port"] == 5202]
    assert (row["sent_packets"], row["received_packets"], row["lost_packets"]) == (627, 595, 32)
    assert row["delay_mean_ms"] == pytest.approx(39.766, abs=0.06)
    assert (row["delay_min_ms"], row["delay_max_ms"]) == pytest.approx((0.006, 53.693), abs=0.03)
    assert row["jitter_ms"] == pytest.approx(0.150, abs=0.01)


def test_of_segments_before_offload_the_packets_on_the_wire_are_counted() -> None:
    # 86 segments were sent again, says the kernel: 85 lost ones and a tail loss probe
    (row,) = [row for row in matched(open_pair(*OFFLOADED)) if row["sent_packets"] > 1000]
    assert row["packets"] < 500 < row["sent_packets"]
    assert (row["lost_packets"], row["sent_packets"] - row["received_packets"]) == (85, 85)


def cut_by_offload(record: Record) -> list[Record]:
    """Cut an Ethernet frame with a long IPv4 TCP segment as a network card would."""
    time_ns, wire, frame = record
    if frame[23] != socket.IPPROTO_TCP:
        return [record]
    header = 14 + 20 + (frame[46] >> 4) * 4
    payload = struct.unpack_from(">H", frame, 16)[0] - (header - 14)
    ip_id, seq = struct.unpack_from(">H", frame, 18)[0], struct.unpack_from(">I", frame, 38)[0]
    made: list[Record] = []
    for number, offset in enumerate(range(0, max(payload, 1), MSS)):
        part = bytearray(frame[:header])
        length = min(MSS, payload - offset)
        struct.pack_into(">H", part, 16, header - 14 + length)
        struct.pack_into(">H", part, 18, (ip_id + number) % 2**16 if ip_id else 0)
        struct.pack_into(">I", part, 38, (seq + offset) % 2**32)
        made.append((time_ns + number, wire - payload + length, bytes(part)))
    return made


def test_segments_that_only_one_capture_shows_uncut_are_found(tmp_path: Path) -> None:
    cut = rewritten(OFFLOADED[1], tmp_path / "cut.pcap", cut_by_offload)
    counts = ("sent_packets", "received_packets", "lost_packets")
    at_one, at_none = (open_pair(OFFLOADED[0], second).flows.select(counts) for second in (cut, OFFLOADED[1]))
    assert at_one.rows() == at_none.rows()


def test_what_was_lost_before_the_router_is_reported_there() -> None:
    # the simulator's own count: 23 segments sent again, all because of drops in the queue before this place
    router = CAPTURES / "ns3-p2p-newreno-cubic-udp-6-1.pcap.gz"
    rows = matched(open_pair(router, PAIR / "ns3-p2p-newreno-cubic-udp-3-1.pcap.gz"))
    data = max(rows, key=lambda row: row["payload_bytes"])
    assert (data["lost_before_packets"], data["lost_packets"], data["lost_behind_packets"]) == (23, 0, 0)


def test_what_is_lost_behind_the_second_capture_is_reported_there(tmp_path: Path) -> None:
    first = NS3_PAIRS["p2p-newreno-cubic-udp"][0]
    sender = bytes([10, 1, 1, 1])

    def one_hop_further(record: Record) -> list[Record]:
        time_ns, wire, frame = record
        is_there = frame[2 + 12 : 2 + 16] == sender
        hop_ns = 1_000_000 if is_there else -1_000_000
        ttl = frame[10] + (-1 if is_there else 1)
        return [(time_ns + hop_ns, wire, frame[:10] + bytes([ttl]) + frame[11:])]

    rows = matched(open_pair(first, rewritten(first, tmp_path / "b.pcap", one_hop_further)))
    data = max(rows, key=lambda row: row["payload_bytes"])
    # as above: 23 segments were sent again
    assert (data["lost_before_packets"], data["lost_packets"], data["lost_behind_packets"]) == (0, 0, 23)
    assert data["delay_mean_ms"] == pytest.approx(1)


@pytest.mark.parametrize("flip", [False, True])
def test_the_order_of_the_captures_does_not_matter(flip: bool) -> None:
    found = matched(open_pair(*(RELAY[::-1] if flip else RELAY)))
    data = max(found, key=lambda row: row["payload_bytes"])
    assert (data["sent_packets"], data["lost_packets"]) == (996, 26)
    assert data["delay_mean_ms"] == pytest.approx(20.42, abs=0.3)
    assert f"seen first in {RELAY[0]} and then in {RELAY[1]}" in data["notes"]


def test_a_capture_that_began_late_does_not_lose_what_came_before(tmp_path: Path) -> None:
    start_ns = records(RELAY[1])[1][0][0] + 10**9
    late = rewritten(
        RELAY[1], tmp_path / "late.pcap", lambda record: [record] if record[0] > start_ns else []
    )
    data = max(matched(open_pair(RELAY[0], late)), key=lambda row: row["payload_bytes"])
    dropped_later = [line for line in relay_log() if line[2] == "DROP" and float(line[1]) * 1e9 > start_ns]
    assert data["lost_packets"] == len(dropped_later)
    assert data["sent_packets"] == data["received_packets"] + data["lost_packets"] + data["in_flight_packets"]


def test_packets_of_one_direction_alone_give_jitter_and_no_delay(tmp_path: Path) -> None:
    first, second = (
        rewritten(path, tmp_path / f"{number}.pcap", lambda record: [record] if is_udp(record) else [])
        for number, path in enumerate(IPERF_UDP)
    )
    (row,) = matched(open_pair(first, second))
    assert (row["delay_mean_ms"], row["delay_p50_ms"], row["lost_packets"]) == (None, None, 32)
    assert row["jitter_ms"] == pytest.approx(0.150, abs=0.01)
    assert "no delay" in row["notes"]
    (row,) = matched(open_pair(first, second, clock_offset="0s"))
    assert row["delay_mean_ms"] == pytest.approx(39.766, abs=0.06)


def is_udp(record: Record) -> bool:
    """Whether a record has UDP to iperf's server, of which nothing comes back but a report."""
    frame = record[2]
    return frame[23] == 17 and struct.unpack_from(">H", frame, 36)[0] == 5202


def test_an_offset_that_cannot_be_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="some packets arrive before they are sent"):
        flows = open_pair(*RELAY, clock_offset="-5s").flows
    assert flows["lost_packets"].sum() == 26


def test_a_clock_that_was_set_is_warned_of(tmp_path: Path) -> None:
    start_ns = records(RELAY[1])[1][0][0]

    def stepped(record: Record) -> list[Record]:
        return [(record[0] + (300_000_000 if record[0] > start_ns + 2 * 10**9 else 0), *record[1:])]

    second = rewritten(RELAY[1], tmp_path / "stepped.pcap", stepped)
    trace = open_pair(RELAY[0], second)
    with pytest.warns(UserWarning, match="drifted unevenly"):
        flows = trace.flows
    assert flows["lost_packets"].sum() == 26
    assert trace.clock is not None
    assert trace.clock["drift_low_ppm"] is None


def test_delays_in_bins_add_up_to_those_of_the_flows() -> None:
    trace = open_pair(*RELAY)
    sums = trace.bins.group_by("flow", "direction").agg(
        pl.col("delay_samples", "lost_packets").sum(),
        ((pl.col("delay_mean_ms") * pl.col("delay_samples")).sum() / pl.col("delay_samples").sum()).alias(
            "mean"
        ),
        pl.col("delay_max_ms").max().alias("max"),
    )
    for row in sums.join(trace.flows, on=["flow", "direction"], suffix="_of_flow").to_dicts():
        assert row["delay_samples"] == row["received_packets"]
        assert row["lost_packets"] == row["lost_packets_of_flow"]
        assert (row["mean"], row["max"]) == pytest.approx((row["delay_mean_ms"], row["delay_max_ms"]))


def test_captures_without_a_common_packet_are_refused_with_advice() -> None:
    with pytest.raises(InputError) as refusal:
        _ = open_pair(RELAY[0], IPERF_UDP[1]).flows
    (message,) = refusal.value.messages()
    assert "none of its" in message.text
    assert "NAT" in (message.hint or "")


def test_a_simulators_trace_is_refused_because_it_needs_no_pair() -> None:
    text = next((DATA / "ns3").glob("*.tr.gz"))
    with pytest.raises(InputError, match="a pair needs captures"):
        _ = open_pair(RELAY[0], text).flows


@pytest.mark.parametrize(
    ("paths", "options", "words"),
    [
        (RELAY[:1], {}, "a pair needs two captures, but 1 was given"),
        ((*RELAY, RELAY[0]), {}, "was given twice"),
        ((RELAY[0], RELAY[0]), {}, "was given twice"),
        (RELAY, {"join": True}, "`join` does not apply to a pair"),
        (RELAY, {"layer": "ip"}, "`layer` does not apply to a pair"),
        (RELAY, {"vantage": "sender"}, "`vantage` does not apply to a pair"),
        (RELAY, {"clock_offset": "soon"}, "is not a duration"),
    ],
)
def test_what_cannot_be_a_pair_is_refused(
    paths: tuple[Path, ...], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        tfrctrace.open(paths, pair=True, **options)


def test_what_takes_a_pair_is_refused_without_one() -> None:
    with pytest.raises(UsageError, match="a clock offset needs a pair of captures"):
        tfrctrace.open(RELAY, clock_offset="0s")
    with pytest.raises(UsageError, match="between two captures"):
        _ = tfrctrace.open(RELAY).transits
    with pytest.raises(UsageError, match="transits"):
        open_pair(*RELAY).packet_batches()


def test_rounds_of_a_pair_are_those_of_the_senders_capture() -> None:
    own = tfrctrace.open(RELAY[0]).table("rounds").frame()
    paired = open_pair(*RELAY).table("rounds").frame()
    assert len(paired) > 0
    assert paired.filter(pl.col("direction") == "fwd").equals(own.filter(pl.col("direction") == "fwd"))


def test_details_of_a_pair_are_those_of_the_senders_capture() -> None:
    own = tfrctrace.open(RELAY[0]).tcp
    assert len(own) > 0
    assert tfrctrace.open(RELAY, pair=True).tcp.equals(own)


def test_a_capture_of_all_interfaces_shows_each_packet_once(tmp_path: Path) -> None:
    case = CorpusCase("any-interface")
    sender, middle, receiver = (case.unpack(name, tmp_path) for name in ("snd", "mid", "rcv"))
    whole = tfrctrace.open([sender, receiver], pair=True).flows
    router = tfrctrace.open([middle, receiver], pair=True).flows
    # what the router's queue dropped, as the kernel's retransmissions show
    assert router["lost_packets"].to_list() == [case.counters["snd"]["TcpRetransSegs"], 0]
    columns = ["packets", "payload_bytes", "sent_packets", "lost_packets", "duplicate_packets", "pdr"]
    assert router.select(columns).equals(whole.select(columns))
    copies = sum(row["kind"] == "capture_duplicate" for row in case.truth)
    assert router["capture_duplicates"].sum() == copies


def test_a_pipe_cannot_be_one_of_a_pair(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="read twice"):
        open_pair(RELAY[0], pipe)


def test_the_columns_are_those_of_the_schema() -> None:
    from tfrctrace.parsers.schema import TABLES

    analysis = _native.analyse_pair(list(map(str, RELAY)), ReadSettings(), collect={"transits"})
    assert analysis.table("transits").columns == [column.name for column in TABLES["transits"]]
    assert _native.analyse([str(RELAY[0])], ReadSettings()).clock is None


def test_a_filter_holds_for_both_captures() -> None:
    rows = matched(open_pair(*RELAY, filter="tcp port 40240"))
    assert {row["src_port"] for row in rows} == {40240, 5201}
    assert sum(row["lost_packets"] for row in rows) == 26


def test_the_commands_take_a_pair(run: Callable[..., Any], tmp_path: Path) -> None:
    table = run("flows", "--pair", *RELAY)
    assert table.status == 0
    assert "97.4 %" in table.out
    assert run("convert", "--pair", "-w", "transits", *RELAY, "-o", "transits.csv").status == 0
    lines = (tmp_path / "transits.csv").read_text().splitlines()
    assert sum(",lost," in line for line in lines) == 26
    assert run("report", "--pair", *RELAY, "--clock-offset", "0s", "-o", "report.html").status == 0
    page = (tmp_path / "report.html").read_text()
    assert "Between the two captures" in page
    assert "One-way delay over time" in page


def test_the_commands_say_what_is_wrong_with_a_pair(run: Callable[..., Any]) -> None:
    refused = run("flows", "--pair", RELAY[0])
    assert refused.status == 2
    assert "a pair needs two captures" in refused.err
    refused = run("flows", "--pair", "--join", *RELAY)
    assert refused.status == 2
    assert "`--join` does not apply to a pair" in refused.err
    for command in (["flows"], ["report", "-o", "r.html"], ["convert", "-w", "flows", "-o", "f.csv"]):
        refused = run(*command, "--pair", "--vantage", "receiver", *RELAY)
        assert refused.status == 2
        assert "`--vantage` does not apply to a pair" in refused.err
        assert "leave it out" in refused.err
    assert run("flows", "--pair", "--vantage", "auto", *RELAY).status == 0
    failed = run("flows", "--pair", RELAY[0], IPERF_UDP[1])
    assert failed.status == 3
    assert "none of its" in failed.err
    assert run("convert", "--pair", *RELAY, "-o", "packets.csv").status == 2


def spurious_of_pair(case: CorpusCase, tmp_path: Path) -> list[tuple[bool, bool]]:
    """Return of each retransmission whether it was needless, and whether a pair of captures says so."""
    found = tfrctrace.open((case.unpack("snd", tmp_path), case.unpack("rcv", tmp_path)), pair=True).losses
    ours_spurious = {row["packet"]: row["spurious"] is not None for row in found.to_dicts()}
    kinds = ("fast_retransmission", "sack_retransmission", "rto_retransmission", "tail_loss_probe")
    rows = [row for row in case.truth if row["tap"] == "snd" and row["kind"] in kinds]
    of_sender = [row for row in rows if int(row["sport"]) != case.about["server_port"]]
    return [(row["spurious"] == "1", ours_spurious.get(int(row["frame"]), False)) for row in of_sender]


def test_a_pair_shows_which_retransmissions_were_needed(tmp_path: Path) -> None:
    cases = [case for case in all_cases() if {"snd", "rcv"} <= set(case.captures)]
    judged = [pair for case in cases for pair in spurious_of_pair(case, tmp_path)]
    assert not [pair for pair in judged if pair == (False, True)]
    found = [ours_spurious for is_needless, ours_spurious in judged if is_needless]
    # without SACK nothing shows for a few that the acknowledgements which got lost had been for them
    assert len(found) > 100
    assert sum(found) >= 0.98 * len(found)


@pytest.mark.parametrize("order", [("5-2", "3-1"), ("3-1", "5-2")])
def test_datagrams_of_one_direction_arrive_where_they_are_later(order: tuple[str, str]) -> None:
    """Access point and station have the same time to live, and nothing answers."""
    inputs = [PAIR / f"ns3-wifi-air-loss-{device}.pcap.gz" for device in order]
    rows = tfrctrace.open(inputs, pair=True, clock_offset="0s").flows.filter(pl.col("sent_packets") > 0)
    [truth], [row] = TRUTH["wifi-air-loss"], rows.to_dicts()
    assert (row["src"], row["received_packets"]) == (truth["src"], truth["rxPackets"])
    assert row["received_packets"] + row["lost_packets"] == row["sent_packets"] == 30
    assert row["missed_packets"] == 0
