"""Inputs without times: what is measured in time is unknown, not zero."""

import json
import struct

import pytest

TEXT = """\
IP 192.0.2.1.40000 > 198.51.100.7.80: Flags [S], seq 1000, win 64240, options [mss 1460], length 0
IP 198.51.100.7.80 > 192.0.2.1.40000: Flags [S.], seq 5000, ack 1001, win 64240, options [mss 1460], length 0
IP 192.0.2.1.40000 > 198.51.100.7.80: Flags [.], ack 1, win 502, length 0
IP 192.0.2.1.40000 > 198.51.100.7.80: Flags [P.], seq 1:101, ack 1, win 502, length 100
IP 198.51.100.7.80 > 192.0.2.1.40000: Flags [.], ack 101, win 501, length 0
"""
"""What `tcpdump -t -nn` prints."""

IN_TIME = (
    "duration_s",
    "throughput_bps",
    "goodput_bps",
    "rtt_min_ms",
    "rtt_p50_ms",
    "handshake_rtt_ms",
    "syn_rtt_ms",
)


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(frames, first_times_s=()):
    """Return a capture of which the last frames have these times, and the others none."""
    blocks = [
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack("<HHI", 1, 0, 0)),
    ]
    untimed = len(frames) - len(first_times_s)
    blocks += [block(3, struct.pack("<I", len(frame)) + frame) for frame in frames[:untimed]]
    for time_s, frame in zip(first_times_s, frames[untimed:], strict=True):
        ticks = time_s * 1_000_000
        header = struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        blocks.append(block(6, header + frame))
    return b"".join(blocks)


@pytest.mark.parametrize("kind", ["tcpdump -t", "simple packet blocks", "clock that stands still"])
def test_nothing_is_measured_in_time(kind, conversation, tmp_path, run):
    frames = conversation(40_000)
    inputs = {
        "tcpdump -t": TEXT.encode(),
        "simple packet blocks": pcapng(frames),
        "clock that stands still": pcapng(frames, [1_700_000_000] * len(frames)),
    }
    (tmp_path / "still").write_bytes(inputs[kind])
    outcome = run("flows", "still", "--format", "json")
    document = json.loads(outcome.out)
    assert len(document["flows"]) == 2
    for row in document["flows"]:
        assert row["packets"] > 0
        assert {name: row[name] for name in IN_TIME} == dict.fromkeys(IN_TIME)
    assert "clock_still" in [problem["kind"] for problem in document["warnings"]]
    assert "packets have the same time" in outcome.err
    assert run("convert", "--what", "rtt", "still", "-o", "rtt.csv").status == 0
    assert len((tmp_path / "rtt.csv").read_text().splitlines()) == 1


def test_packets_without_a_time_have_that_of_the_next_with_one(conversation, tmp_path, run):
    frames = conversation(40_000)
    start_s = 1_340_928_000
    (tmp_path / "late.pcapng").write_bytes(pcapng(frames, range(start_s, start_s + len(frames) - 4)))
    document = json.loads(run("flows", "late.pcapng", "--format", "json").out)
    assert document["sources"][0]["start_ns"] == start_s * 10**9
    assert max(row["duration_s"] for row in document["flows"]) == len(frames) - 5
    assert not document["warnings"]
