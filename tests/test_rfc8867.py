"""The study of RFC 8867's test cases, with media written out on both sides of thresholds."""

from __future__ import annotations

import csv
import struct

import pytest
from ip_packets import ethernet, udp
from rtp_packets import SSRC, block, media, receiver_report, sender_report

from tfrctrace.study.file.study_file import find_study, read_study

JUDGING = read_study(find_study("rfc8867")).judging
EPOCH_S = 1_700_000_000
SENDER, RECEIVER = ("192.0.2.1", 40_004), ("198.51.100.7", 5_004)
PAYLOAD_BYTES = 1_200
KEPT_BYTES = 64
PATH_S = 0.1
REPORT_EVERY_S = 1


def written(packets: list[tuple[float, bytes, int]]) -> bytes:
    """Return a capture of packets (when, what is kept of them, their size)."""
    records = [
        struct.pack("<IIII", EPOCH_S + int(at_s), int(at_s % 1 * 1e6), len(kept), size) + kept
        for at_s, kept, size in sorted(packets, key=lambda packet: packet[0])
    ]
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"".join(records)


def frame(payload: bytes, *, back: bool = False) -> bytes:
    return ethernet(udp(RECEIVER, SENDER, payload) if back else udp(SENDER, RECEIVER, payload))


def media_run(*, rate_bps: float, lost: float, queue_s: float, lasts_s: float = 99.0) -> bytes:
    """Return what a sender sees of a constant rate, of whose packets the receiver reports a part as lost."""
    example = frame(media(0, 0, size=PAYLOAD_BYTES))
    start = example[:KEPT_BYTES]
    rtp_at = len(example) - PAYLOAD_BYTES - 12
    every_s = 8 * (PAYLOAD_BYTES + 12) / rate_bps
    packets = []
    for number in range(int(lasts_s / every_s)):
        kept = bytearray(start)
        struct.pack_into("!H", kept, rtp_at + 2, number)
        struct.pack_into("!I", kept, rtp_at + 4, int(number * every_s * 90_000))
        packets.append((number * every_s, bytes(kept), len(example)))
    for second in range(1, int(lasts_s), REPORT_EVERY_S):
        ntp, sent = EPOCH_S + second, int(second / every_s)
        out = frame(sender_report(ntp, second * 90_000, packets=sent))
        # the middle half of the report's NTP timestamp, and how long it was held (RFC 3550 section 6.4.1)
        echo = block(
            ssrc=SSRC, lost=int(lost * sent), highest=sent, lsr=ntp % 65_536 << 16, dlsr=int(0.5 * 65_536)
        )
        back = frame(receiver_report(echo), back=True)
        packets.append((float(second), out, len(out)))
        # the queue is empty at the start
        packets.append((second + PATH_S + (queue_s if second > 1 else 0.0) + 0.5, back, len(back)))
    return written(packets)


@pytest.fixture
def judged(run_in, tmp_path):
    """Return a function that gives the rows of algorithms with three runs of a scenario."""

    def rows(scenario: str, runs: dict[str, bytes]) -> dict[tuple[str, str], dict[str, str]]:
        for algorithm, capture in runs.items():
            for number in (1, 2, 3):
                folder = tmp_path / "runs" / algorithm / scenario / str(number)
                folder.mkdir(parents=True)
                # no two runs are the same bytes
                later = written([(99.0 + number, frame(media(0, 0, ssrc=number)), 214)])[24:]
                (folder / "sender.pcap").write_bytes(capture + later)
        done = run_in(
            tmp_path, "experiment", "rfc8867", "--runs", tmp_path / "runs", "-o", tmp_path / "results"
        )
        assert done.status == 0, done.err
        with (tmp_path / "results" / "criteria.csv").open() as file:
            found = list(csv.DictReader(file))
        return {
            (one["algorithm"], one["criterion"].rpartition(": ")[2]): one for one in found if one["value"]
        }

    return rows


def test_each_test_case_of_the_rfc_is_a_row():
    sections = {one.section for one in JUDGING.criteria}
    assert {f"5.{case}" for case in range(1, 9)} | {"6.1", "6.2", "6.3"} <= sections


def test_media_are_judged_by_what_they_send_and_their_receivers_report(judged):
    rows = judged(
        "one-flow",
        {
            "adapts": media_run(rate_bps=9e5, lost=0.0, queue_s=0.05),
            "ignores": media_run(rate_bps=1.5e6, lost=0.2, queue_s=0.3),
            "starves": media_run(rate_bps=2e5, lost=0.0, queue_s=0.0),
        },
    )
    verdicts = {key: one["verdict"] for key, one in rows.items()}
    assert verdicts == {
        ("adapts", "throughput"): "no worse",
        ("adapts", "delay"): "no worse",
        ("adapts", "losses"): "no worse",
        ("ignores", "throughput"): "no worse",
        ("ignores", "delay"): "worse",
        ("ignores", "losses"): "worse",
        ("starves", "throughput"): "worse",
        ("starves", "delay"): "no worse",
        ("starves", "losses"): "no worse",
    }
    assert float(rows["ignores", "delay"]["value"]) == pytest.approx(400, rel=0.01)
    assert float(rows["ignores", "losses"]["value"]) == pytest.approx(0.2, abs=0.005)
    assert float(rows["adapts", "throughput"]["value"]) == pytest.approx(9e5, rel=0.02)


def test_a_run_without_reports_has_no_losses_and_is_not_judged_by_them(judged, tmp_path):
    capture = media_run(rate_bps=9e5, lost=0.0, queue_s=0.05)
    silent = written(
        [(float(second) / 50, frame(media(second, second * 1800)), 214) for second in range(5_000)]
    )
    judged("one-flow", {"adapts": capture, "silent": silent})
    with (tmp_path / "results" / "criteria.csv").open() as file:
        (row,) = [
            one
            for one in csv.DictReader(file)
            if (one["algorithm"], one["criterion"]) == ("silent", "Variable capacity, one flow: losses")
        ]
    assert (row["verdict"], row["value"]) == ("not judged", "")
    assert "silent has no `lost` in `one-flow`" in row["reason"]
