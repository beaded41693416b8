"""A clock that is set makes no incident, where the timestamps of senders prove it (RFC 7323)."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from ip_packets import ethernet, tcp

BEGIN_S = 1_767_600_000
EVERY_S = 5
HOURS = 6
CONNECTIONS = 3


def timestamps(value: int, echo: int) -> bytes:
    """Return the option, after two of no operation."""
    return struct.pack("!BBBBII", 1, 1, 8, 10, value & 0xFFFFFFFF, echo & 0xFFFFFFFF)


def capture(step_s: float, *, is_stamped: bool) -> bytes:
    """Return keepalives and their answers over hours, with a clock that is set in the middle."""
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
    for number in range(HOURS * 3_600 // EVERY_S):
        for one in range(CONNECTIONS):
            ends = (("10.0.0.1", 5_000 + one), ("10.0.0.9", 22))
            true_s = EVERY_S * number + 0.3 * one
            for later_s, (src, dst) in ((0.0, ends), (0.04, ends[::-1])):
                values = [
                    round(1_000 * (true_s + later_s)) + 7 * end[0][1] for end in ((src, dst), (dst, src))
                ]
                options = timestamps(*values) if is_stamped else b""
                frame = ethernet(tcp(src, dst, "A", seq=1, ack=1, options=options))
                time_s = BEGIN_S + true_s + later_s + (step_s if 2 * number * EVERY_S > HOURS * 3_600 else 0)
                micros = round(1e6 * time_s)
                content += (
                    struct.pack("<IIII", micros // 10**6, micros % 10**6, len(frame), len(frame)) + frame
                )
    return content


@pytest.mark.parametrize("is_stamped", [True, False])
def test_an_hour_that_the_clock_skipped_is_no_silence(is_stamped, run, tmp_path):
    Path(tmp_path / "link.pcap").write_bytes(capture(3_600, is_stamped=is_stamped))
    outcome = run("audit", "link.pcap", "-o", "audit")
    assert outcome.status == 0, outcome.err
    found = json.loads((tmp_path / "audit/audit.json").read_text())
    # without timestamps nothing tells it from a link of which nothing was captured
    assert len(found["incidents"]) == (0 if is_stamped else 1)
    assert ("by the TCP timestamps the clock was set ahead by 3600 s here" in outcome.err) == is_stamped
