"""What numbers say of losses near the sender, of datagrams in fragments, and of overtaken ones."""

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ip_packets import UDP, ethernet, ipv4, udp

import tfrctrace

SENDER, RECEIVER = ("10.1.0.1", 40_000), ("10.2.0.1", 5201)

Writer = Callable[..., Path]


def iperf3(number: int, size: int = 200) -> bytes:
    sent_s, sent_us = divmod(number * 10_000, 1_000_000)
    return struct.pack(">III", 7_000 + sent_s, sent_us, number).ljust(size, b"x")


def answered(numbers: Iterable[int]) -> list[bytes]:
    """Give the datagrams of an iperf3, and one answer that crossed a router."""
    numbered = [ethernet(udp(SENDER, RECEIVER, iperf3(number))) for number in numbers]
    return [*numbered[:10], ethernet(udp(RECEIVER, SENDER, b"9876", ttl=63)), *numbered[10:]]


def row_of(trace: tfrctrace.Trace) -> dict[str, Any]:
    return dict(trace.flows.filter(dst_port=5201).row(0, named=True))


@pytest.mark.parametrize("missing", [(), (30, 31, 70)])
def test_what_is_missing_one_link_behind_the_sender_was_lost_before_the_capture(
    write_capture: Writer, missing: tuple[int, ...]
) -> None:
    """The TTL says that no router is between sender and capture; a lossy link may be."""
    trace = tfrctrace.open(
        write_capture("c.pcap", answered(number for number in range(1, 101) if number not in missing))
    )
    row = row_of(trace)
    rows = trace.groups("link").rows.filter(direction="fwd")
    shown = rows.select("arrivals_shown", "lost_before_capture").row(0)
    if missing:
        assert (row["vantage"], row["lost_before_capture"], row["lost_packets"]) == ("middle", 3, 3)
        assert "losses downstream of the capture are not counted" in row["notes"]
        assert shown == (100, 3)
    else:
        assert (row["vantage"], row["lost_before_capture"], row["lost_packets"]) == ("sender", None, None)
        assert shown == (0, None)


def test_of_datagrams_in_fragments_numbers_do_not_show_what_was_lost(write_capture: Writer) -> None:
    """Three of 100 lost their second fragment and one both: IP delivers 96."""
    frames = []
    for number in range(1, 101):
        payload = iperf3(number, 2_000)
        datagram = struct.pack(">HHHH", SENDER[1], RECEIVER[1], 8 + len(payload), 0) + payload
        for part, (begin, end) in enumerate([(0, 1_480), (1_480, None)]):
            if number == 50 or (part and number in {20, 21, 90}):
                continue
            packet = bytearray(ipv4(UDP, SENDER[0], RECEIVER[0], datagram[begin:end], ttl=63))
            packet[4:8] = struct.pack(">HH", number, begin // 8 | (0x2000 if end else 0))
            frames.append(ethernet(bytes(packet)))
    row = row_of(tfrctrace.open(write_capture("c.pcap", frames, step_ms=5)))
    assert row["sent_packets"] == 100
    assert {row[name] for name in ("lost_packets", "received_packets", "pdr", "lost_before_capture")} == {
        None
    }
    assert "how many were lost is not known" in row["notes"]


@pytest.mark.parametrize("later", [1, 2])
def test_overtaken_datagrams_are_not_lost_in_any_interval(write_capture: Writer, later: int) -> None:
    """One of ten comes after the next one or two, also where an interval ends between them."""
    order = sorted(range(1, 501), key=lambda number: number + (later + 0.5 if number % 10 == 9 else 0))
    frames = [ethernet(udp(SENDER, RECEIVER, iperf3(number), ttl=63)) for number in order]
    rows = (
        tfrctrace.open(write_capture("c.pcap", frames)).groups("link", "100ms").rows.filter(direction="fwd")
    )
    assert rows["lost_before_capture"].to_list() == [0] * len(rows)
    assert (rows["arrivals_shown"].sum(), rows["reordered_packets"].sum()) == (500, 50)
