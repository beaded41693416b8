"""Whatever is wrong with a capture, every command says it, with the same facts."""

import gzip
import json
import struct
from itertools import pairwise
from pathlib import Path

import pytest

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"

MAC = bytes.fromhex("020000000001020000000002")

IPV4 = struct.Struct("!BBHHHBBH4s4s")

COMMANDS = {
    "flows": ["flows"],
    "metrics": ["metrics"],
    "report": ["report", "-o", "page.html"],
    "pages": ["report", "--pages", "pages"],
    "convert": ["convert", "--what", "packets", "-o", "packets.csv"],
    "check": ["check", "--require", "packets >= 0"],
    "replay": ["replay"],
    "plot": ["plot", "--kind", "throughput", "-o", "figure.svg"],
    "compare": ["compare"],
}
"""Every command that reads traces."""


@pytest.fixture
def stepped(tmp_path):
    """Return a Linux capture whose clock goes back in its middle."""
    path = tmp_path / "stepped.pcap"
    path.write_bytes(gzip.decompress((CAPTURES / "variant-clock-step-back.pcap.gz").read_bytes()))
    return path


def times_ns(path):
    """Return the times of a little-endian pcap of microseconds, as libpcap's file format has them."""
    content, at = path.read_bytes(), 24
    while at < len(content):
        seconds, microseconds, captured = struct.unpack_from("<III", content, at)
        yield seconds * 10**9 + microseconds * 1000
        at += 16 + captured


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_clock_that_stepped_back_is_reported(arguments, stepped, run):
    names = [stepped.name] * (2 if arguments == ["compare"] else 1)
    outcome = run(*arguments, *names)
    assert "packet has a time before its predecessor's, by up to" in outcome.err, outcome.err
    assert run(*arguments, *names, "--strict").status == 3


def test_the_step_is_that_of_the_file(stepped, run):
    times = list(times_ns(stepped))
    back = [place for place, (a, b) in enumerate(pairwise(times), start=2) if b < a]
    (problem,) = [
        one
        for one in json.loads(run("flows", stepped.name, "--format", "json").out)["warnings"]
        if one["kind"] == "clock_back"
    ]
    assert (problem["packet"], problem["severity"], problem["flows"]) == (back[0], "warning", [])
    step_s = (times[back[0] - 2] - times[back[0] - 1]) / 1e9
    assert f"{len(back)} packet has" in problem["message"]
    assert f"{step_s:.0f} s" in problem["message"]


def ethernet(ether_type, payload):
    return MAC + struct.pack("!H", ether_type) + payload


def ipv4(protocol, payload):
    addresses = (bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2)))
    return ethernet(
        0x0800, IPV4.pack(0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, *addresses) + payload
    )


def test_a_capture_without_a_flow_says_what_its_packets_were(write_capture, run):
    others = [
        *[ipv4(132, bytes(24))] * 5,
        *[ethernet(0x88CC, bytes(40))] * 4,
        *[ethernet(0x0806, bytes(28))] * 3,
        *[ipv4(89, bytes(24))] * 2,
        ethernet(0x0026, bytes(38)),
    ]
    path = write_capture("others.pcap", others)
    for arguments in map(COMMANDS.get, ("flows", "metrics", "convert", "replay", "check")):
        outcome = run(*arguments, path.name)
        assert "no packet belongs to a flow: 5 SCTP, 4 LLDP, 3 ARP, 2 OSPF, 1 802.2 LLC" in outcome.err, (
            arguments,
            outcome.err,
        )


@pytest.mark.parametrize("form", ["ns2", "ns3", "tcpdump"])
def test_a_text_of_which_every_line_is_left_out_was_not_read(form, tmp_path, run):
    (tmp_path / "other.txt").write_text("these are\nother words\n")
    outcome = run("flows", "other.txt", "--input-format", form)
    assert outcome.status == 3
    assert "line 1: 2 lines were left out, and no packet was found" in outcome.err


def test_no_packet_was_analysed_if_the_filter_left_out_all(conversation, write_capture, run):
    write_capture("a.pcap", conversation(40_000))
    outcome = run("flows", "a.pcap", "--filter", "udp")
    assert "the filter left out all " in outcome.err
    assert "analysed" not in outcome.err
    (problem,) = json.loads(run("flows", "a.pcap", "--filter", "udp", "--format", "json").out)["warnings"]
    assert problem["packets_before"] == 0


def test_a_gap_names_its_flows_numbered_through(conversation, write_capture, run):
    whole = write_capture("a.pcap", conversation(40_000))
    frames = conversation(40_001, data_packets=5)
    # the third segment is acknowledged and not there
    data = [place for place, frame in enumerate(frames) if len(frame) > 120]
    del frames[data[2]]
    gap = write_capture("b.pcap", frames)
    outcome = run("flows", whole.name, gap.name, "--format", "json")
    (problem,) = json.loads(outcome.out)["warnings"]
    assert (problem["kind"], problem["flows"]) == ("capture_gap", [2])
    assert problem["text"].startswith("`b.pcap`: 100 bytes ")
    assert problem["text"].endswith("captured (flow 2)")
    assert "of TCP data were acknowledged but not captured" in outcome.err
    assert problem["message"].startswith("100 bytes ")


def test_dropped_packets_are_reported(conversation, tmp_path, run):
    frames = conversation(40_000)

    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    blocks = [
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack("<HHI", 1, 0, 0)),
    ]
    blocks += [
        block(6, struct.pack("<IIIII", 0, 0, 1000 * number, len(frame), len(frame)) + frame)
        for number, frame in enumerate(frames)
    ]
    # an Interface Statistics Block with `isb_ifdrop`
    blocks.append(block(5, struct.pack("<III", 0, 0, 0) + struct.pack("<HHQHH", 5, 8, 7, 0, 0)))
    (tmp_path / "drops.pcapng").write_bytes(b"".join(blocks))
    outcome = run("flows", "drops.pcapng")
    assert "warning: `drops.pcapng`: the capture dropped 7 packets" in outcome.err
