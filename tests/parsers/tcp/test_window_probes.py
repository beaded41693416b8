"""The byte of a window probe inside the next segment is no retransmission (RFC 9293 section 3.8.6.1).

tshark calls the probes so, and says nothing of the segments behind them.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


LINK = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def probed(*, is_accepted: bool) -> Iterator[bytes]:
    """Fill the window of 3,000 bytes, probe it with the next byte, and go on from SND.UNA when it opens."""
    numbers = {4000: 10, 80: 20}

    def segment(sport: int, flags: str, at: tuple[int, int], window: int, payload: int = 0) -> bytes:
        numbers[sport] += 1
        src, dst = ("192.0.2.1", "198.51.100.1") if sport == 4000 else ("198.51.100.1", "192.0.2.1")
        tcp = TCP(sport=sport, dport=4080 - sport, flags=flags, seq=at[0], ack=at[1], window=window)
        return bytes(LINK / IP(src=src, dst=dst, id=numbers[sport]) / tcp / bytes(payload))

    yield segment(4000, "S", (0, 0), 60_000)
    yield segment(80, "SA", (0, 1), 3_000)
    yield segment(4000, "A", (1, 1), 60_000)
    start = 1
    for _ in range(3):
        for number in range(3):
            yield segment(4000, "A", (start + 1000 * number, 1), 60_000, 1000)
        start += 3000
        yield segment(80, "A", (1, start), 0)
        yield segment(4000, "A", (start, 1), 60_000, 1)
        yield segment(80, "A", (1, start), 0)
        yield segment(80, "A", (1, start + is_accepted), 3_000)
    yield segment(4000, "A", (start, 1), 60_000, 1000)
    yield segment(80, "A", (1, start + 1000), 3_000)


def tshark(capture: Path, field: str) -> int:
    """Return how many packets tshark's analysis gives this flag."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", f"tcp.analysis.{field}"]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize("is_accepted", [False, True])
def test_the_byte_of_a_probe_is_no_retransmission(
    write_capture: Callable[..., Path], *, is_accepted: bool
) -> None:
    capture = write_capture("probes.pcap", probed(is_accepted=is_accepted))
    trace = tfrctrace.open(capture)
    forward = trace.flows.to_dicts()[0]
    assert tshark(capture, "retransmission") == forward["retransmitted_packets"] == 0
    assert tshark(capture, "zero_window_probe") == forward["zero_window_probes"] == 3
    assert trace.losses.is_empty()
    assert forward["unique_bytes"] == 10_000
