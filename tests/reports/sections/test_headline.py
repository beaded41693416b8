"""The headline is over all flows: its numbers equal those of all samples and packets."""

import json
import math
import random
import re
import struct
import sys
from pathlib import Path

import polars as pl
import pytest
from ip_packets import ethernet, udp

import tfrctrace
from tfrctrace.reports.build_report import build_report

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "sample_traces"
WITHIN = 0.008
"""Width of a bucket."""


def summary_of(trace):
    return build_report(trace.results(), title="t").sections[0]


def facts_of(trace):
    return {fact.label: fact for fact in summary_of(trace).facts}


def milliseconds(text):
    return [float(value) for value in re.findall(r"([0-9.]+) ms", text)]


def nearest_rank(samples, share):
    ordered = sorted(samples)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A link of a day with 30 hosts, longer delays, losses of one host, and an outage."""
    sys.path.insert(0, str(ROOT / "evaluation/links"))
    try:
        from link import draw_link
        from link_files import write_link
    finally:
        sys.path.remove(str(ROOT / "evaluation/links"))
    folder = tmp_path_factory.mktemp("link")
    link = draw_link(11, ["bufferbloat", "outage"], days=1.0, connections_per_s=0.02)
    write_link(link, folder)
    return tfrctrace.open(sorted(map(str, folder.glob("*.pcap")))), link


@pytest.mark.parametrize("name", ["two-flows.pcapng.gz", "mixed.pcap.zst"])
def test_percentiles_of_the_rtt_are_those_of_all_samples_behind_the_capture(name):
    trace = tfrctrace.open(str(SAMPLES / name))
    hosts = trace.flows.select("flow", "direction", group="dst")
    sides = trace.results().link.hosts.select("group", "side")
    samples = trace.rtt.join(hosts, on=["flow", "direction"])
    facts = {label: fact for label, fact in facts_of(trace).items() if label.startswith("RTT")}
    assert facts
    for label, fact in facts.items():
        side = re.fullmatch(r"RTT(?: to (.*))?, p50", label)[1]
        named = samples.join(sides.filter((pl.col("side") == side) | (side is None)), on="group")
        own = (named["rtt_ns"] / 1e6).to_list()
        shown = [*milliseconds(fact.value), *milliseconds(fact.detail)][:3]
        wanted = [nearest_rank(own, share) for share in (0.5, 0.95, 0.99)]
        # three digits are shown
        assert shown == pytest.approx(wanted, rel=WITHIN + 0.005)
        assert f"n {len(own):,}" in fact.detail


@pytest.mark.slow
def test_each_side_of_a_link_has_the_samples_of_its_hosts(drawn):
    trace, link = drawn
    clients = {host.address for host in link.hosts}
    hosts = trace.flows.select("flow", "direction", "dst")
    samples = trace.rtt.join(hosts, on=["flow", "direction"])
    facts = facts_of(trace)
    for label, is_client in (("RTT to clients, p50", True), ("RTT to servers, p50", False)):
        own = (samples.filter(pl.col("dst").is_in(clients) == is_client)["rtt_ns"] / 1e6).to_list()
        shown = [*milliseconds(facts[label].value), *milliseconds(facts[label].detail)][:3]
        wanted = [nearest_rank(own, share) for share in (0.5, 0.95, 0.99)]
        assert shown == pytest.approx(wanted, rel=WITHIN + 0.005)


@pytest.mark.slow
def test_ratios_are_sums_over_all_flows(drawn):
    trace, _ = drawn
    flows, facts = trace.flows, facts_of(trace)
    tcp = flows.filter(pl.col("transport") == "tcp")
    states = tcp.unique("flow")["state"]
    failed = states.is_in(["attempted", "refused"]).sum()
    assert facts["Failed connections"].detail.startswith(f"{failed:,} of ")
    data = tcp["data_segments"].sum()
    resent = tcp["retransmitted_segments"].sum()
    of_all = f"{resent:,} of {data:,}"
    if "TCP retransmissions" in facts:
        assert facts["TCP retransmissions"].detail.startswith(f"{of_all} TCP data segments")
    else:  # one tile where as many were lost
        as_many = "as many" if resent else "none"
        assert facts["Lost segments"].detail == f"{of_all} TCP segments; {as_many} retransmitted"


@pytest.mark.slow
def test_the_headline_names_the_planted_stretches(drawn):
    trace, link = drawn
    words = ["".join(map(str, part)) for part in summary_of(trace).headline]
    of_kind = {fault.kind: fault for fault in link.faults}
    for kind, opening in (
        ("bufferbloat", "RTT to clients was bad"),
        ("outage", "Up to 100 % of connections"),
    ):
        (said,) = (sentence for sentence in words if sentence.startswith(opening))
        (begin, end) = re.findall(r"(\d\d):(\d\d)", said)[:2]
        fault = of_kind[kind]
        # intervals are at most 10 minutes wide
        for (hours, minutes), at_s in ((begin, fault.since_s), (end, fault.until_s)):
            away_min = (int(hours) * 60 + int(minutes) - at_s / 60) % (24 * 60)
            assert min(away_min, 24 * 60 - away_min) <= 20, said


def test_values_near_the_receiver_are_not_those_of_the_path():
    facts = facts_of(tfrctrace.open(str(SAMPLES / "two-flows.pcapng.gz")))
    # data to 192.0.2.1 are acknowledged by it at once, where the capture was taken
    assert [label for label in facts if label.startswith("RTT")] == ["RTT to 192.0.2.2, p50"]


@pytest.mark.slow
def test_the_picture_counts_every_packet_once(drawn):
    trace, _ = drawn
    overview = summary_of(trace).overview
    (throughput,) = (lane for lane in overview.lanes if lane.unit == "bit/s")
    (curve,) = throughput.curves
    shown_bytes = sum(value for value in curve.values if value is not None) * overview.width_s / 8
    assert shown_bytes == pytest.approx(trace.flows["wire_bytes"].sum())
    assert len(overview.starts_s) <= 300


def test_inputs_without_a_common_time_have_a_headline_over_all_samples():
    trace = tfrctrace.open([str(SAMPLES / "two-flows.pcapng.gz"), str(SAMPLES / "dumbbell.tr.xz")])
    assert trace.name == "2 traces"
    hosts = trace.flows.select("flow", "direction", group="dst")
    servers = trace.results().link.hosts.filter(side="servers").select("group")
    samples = trace.rtt.join(hosts, on=["flow", "direction"])
    to_servers = samples.join(servers, on="group")["rtt_ns"] / 1e6
    fact = facts_of(trace)["RTT to servers, p50"]
    assert milliseconds(fact.value) == [pytest.approx(nearest_rank(to_servers, 0.5), rel=2 * WITHIN)]
    assert f"n {len(to_servers):,}" in fact.detail
    assert not any(fact.label.startswith("RTT of TFRC") for fact in summary_of(trace).facts)


def test_one_number_has_one_tile():
    # at the sender each retransmission repairs a loss
    facts = facts_of(tfrctrace.open(str(SAMPLES / "two-flows.pcapng.gz")))
    assert "TCP retransmissions" not in facts
    assert facts["Lost segments"].detail.endswith("; as many retransmitted")
    # the relay's log: nothing dropped; the sender's kernel: one retransmission, undone by D-SACK
    capture = SAMPLES.parent / "tests/data/captures/linux-relay-reorder-noloss-snd.pcap.gz"
    both = facts_of(tfrctrace.open(str(capture)))
    assert both["Lost segments"].value == "0 %"
    assert both["TCP retransmissions"].detail.startswith("1 of ")


def test_losses_of_a_few_numbered_datagrams_do_not_hide_those_of_tcp():
    facts = facts_of(tfrctrace.open(str(SAMPLES / "mixed.pcap.zst")))
    assert "Lost segments" in facts
    assert "Lost on the way" not in facts
    assert "Lost on the way" in facts_of(tfrctrace.open(str(SAMPLES / "dumbbell.tr.xz")))


def test_two_samples_do_not_stand_before_hundreds_of_reports():
    labels = [fact.label for fact in summary_of(tfrctrace.open(str(SAMPLES / "dccp-ccid3.pcap.gz"))).facts]
    assert labels[0] == "RTT of TFRC senders (R), p50"
    assert not any(label.startswith("RTT to") for label in labels)


def said(trace):
    return ["".join(map(str, words)) for words in summary_of(trace).headline]


def numbered(lost):
    """Datagrams of ns-3 at 100 a second, behind a router, of which `lost` are missing."""
    sent = [struct.pack(">IQ", number, number * 10_000_000) for number in range(4_000)]
    return [
        ethernet(udp(("10.1.0.1", 49_153), ("10.2.0.1", 9), payload.ljust(100, b"\0"), ttl=63))
        for number, payload in enumerate(sent)
        if number not in lost
    ]


@pytest.mark.parametrize("seed", range(3))
def test_losses_at_random_have_no_worst_stretch(write_capture, seed):
    """2 % of independent datagrams: of 200 intervals of 20 some have three times that by chance."""
    lost = {number for number in range(1, 3_999) if random.Random(seed * 10_000 + number).random() < 0.02}
    trace = tfrctrace.open(write_capture("c.pcap", numbered(lost)), dissect=["udp:9=ns3"])
    assert said(trace)[:1] == [
        "No stretch of time stands out by round-trip times, losses or failed connections."
    ]
    assert f"{len(lost)} of 4,000 packets sent" in facts_of(trace)["Lost before the capture"].detail
    burst = lost | set(range(2_000, 2_020))
    trace = tfrctrace.open(write_capture("c.pcap", numbered(burst)), dissect=["udp:9=ns3"])
    assert re.match(r"Up to [0-9.]+ % of packets were lost", said(trace)[0])


def test_segments_whose_losses_nothing_shows_are_not_counted(write_capture):
    """Datagrams captured at their sender, and a connection beside them: what was lost behind is not known."""
    path = SAMPLES.parent / "tests/data/captures/linux-udp-vs-tcp-snd.pcap.gz"
    fact = facts_of(tfrctrace.open(str(path)))["Lost segments"]
    counts = tfrctrace.open(str(path)).flows.filter(transport="tcp")["data_segments"].sum()
    assert re.match(rf"[0-9,]+ of {counts:,} TCP segments", fact.detail)


def test_packets_of_two_interfaces_were_on_the_wire_once():
    folder = SAMPLES.parent / "tests/data/interfaces"
    ends = json.loads((folder / "truth.json").read_text()).values()
    sent = sum(end["sent"] + end["answered"] for end in ends)
    fact = facts_of(tfrctrace.open(str(folder / "router-udp.pcap.gz")))["On the wire"]
    assert f"{sent} packets in 2 flows, without 341 captured again" in fact.detail


@pytest.mark.filterwarnings("ignore:.*the capture dropped 250 packets")
def test_what_a_capture_says_that_it_dropped_may_be_what_is_missing(tmp_path):
    """Interface statistics of pcapng (isb_ifdrop), as of a dumpcap whose ring was full."""

    def block(kind, body):
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    packets = []
    for place, frame in enumerate(numbered(range(2_000, 2_300))):
        high, low = divmod(1_700_000_000_000_000 + place * 10_000, 1 << 32)
        padded = frame + bytes(-len(frame) % 4)
        packets.append(block(6, struct.pack("<5I", 0, high, low, len(frame), len(frame)) + padded))
    header = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(
        1, struct.pack("<HHI", 1, 0, 0)
    )
    for dropped, words in ((250, "; the capture itself may have dropped 250 of them"), (0, "")):
        counts = struct.pack("<III", 0, 0, 0) + struct.pack("<HHQ", 5, 8, dropped) + bytes(4)
        path = tmp_path / f"{dropped}.pcapng"
        path.write_bytes(header + b"".join(packets) + block(5, counts))
        fact = facts_of(tfrctrace.open(str(path), dissect=["udp:9=ns3"]))["Lost before the capture"]
        assert fact.detail.startswith("300 of 4,000 packets sent")
        assert fact.detail.endswith(words or "at the receiver")


def test_a_link_that_is_dead_for_some_seconds_is_bad_with_the_few_connections_that_were_tried(
    write_capture, conversation
):
    """Six SYNs of 3 s each without an answer, between 80 connections of a second each."""
    filler = ethernet(udp(("10.0.0.9", 4000), ("10.0.0.8", 5000), bytes(100)))
    before = [frame for port in range(40) for frame in conversation(40_000 + port)]
    dead = [frame for port in range(6) for frame in (conversation(41_000 + port)[0], *[filler] * 29)]
    after = [frame for port in range(40) for frame in conversation(42_000 + port)]
    path = write_capture("c.pcap", [*before, *dead, *after], step_ms=100)
    (words,) = [one for one in said(tfrctrace.open(str(path))) if "connections failed" in one]
    assert re.match(r"Up to 100 % of connections failed", words)
    begin, end = (
        int(minutes) * 60 + float(seconds) for minutes, seconds in re.findall(r":(\d\d):(\d\d[.\d]*)", words)
    )
    assert 12 <= end - begin <= 24
    whole = [*before, *after]
    assert not any(
        "failed," in one for one in said(tfrctrace.open(str(write_capture("d.pcap", whole, step_ms=100))))
    )
