"""The frames that tests make byte by byte are those that scapy makes."""

from __future__ import annotations

import ip_packets
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

THERE, BACK = ("192.0.2.1", 40_000), ("198.51.100.7", 80)


@pytest.mark.parametrize("payload", [b"", b"odd", bytes(1000), b"\xff" * 1460])
def test_a_segment_is_that_of_scapy(payload: bytes) -> None:
    ours = ip_packets.tcp(
        THERE,
        BACK,
        "SA",
        seq=0xFFFF_FFFF,
        ack=7,
        options=ip_packets.maximum_segment_size(1460),
        payload=payload,
    )
    header = TCP(sport=40_000, dport=80, flags="SA", seq=0xFFFF_FFFF, ack=7, options=[("MSS", 1460)])
    theirs = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src=THERE[0], dst=BACK[0]) / header
    assert ip_packets.ethernet(ours) == bytes(theirs / payload)


# the checksum of the last is 0, which is sent as its complement
@pytest.mark.parametrize("payload", [b"", b"odd", bytes(1000), bytes.fromhex("770d")])
def test_a_datagram_is_that_of_scapy(payload: bytes) -> None:
    ours = ip_packets.udp(THERE, BACK, payload, ttl=3, tos=2)
    theirs = IP(src=THERE[0], dst=BACK[0], ttl=3, tos=2) / UDP(sport=40_000, dport=80) / payload
    assert ours == bytes(theirs)
    if payload == bytes.fromhex("770d"):
        assert ours[26:28] == b"\xff\xff"
