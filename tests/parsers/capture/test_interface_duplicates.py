"""A datagram that a capture of all interfaces shows at each of them counts once."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsBytes

import polars as pl
import pytest
from dccp_packets import Kind, Packet, handshake
from scapy.layers.inet import ICMP, IP, UDP

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

INTERFACES = Path(__file__).resolve().parent.parent.parent / "data" / "interfaces"
COOKED = 113
"""Linux cooked capture, version 1."""
RECEIVED, SENT = 0, 4


def cooked(what: SupportsBytes, kind: int) -> bytes:
    return struct.pack("!HHH8xH", kind, 1, 6, 0x0800) + bytes(what)


def shown_twice(packets: Iterable[SupportsBytes]) -> list[bytes]:
    """Return each packet as it comes to a router, and as it leaves a little later."""
    return [cooked(one, kind) for one in packets for kind in (RECEIVED, SENT)]


@pytest.mark.parametrize(
    ("name", "flow"),
    json.loads((INTERFACES / "truth.json").read_text()).items(),
    ids=lambda value: str(value)[:6],
)
def test_a_router_counts_what_the_ends_sent(name: str, flow: dict[str, int]) -> None:
    # what leaves a router may be lost later: asked for is what had been lost before
    trace = tfrctrace.open(INTERFACES / "router-udp.pcap.gz", bin_width="1s", vantage="receiver")
    both = trace.flows.filter(pl.col("transport") == "udp")
    forward = both.filter(pl.col("src_port") == flow["src_port"]).to_dicts()[0]
    back = both.filter(pl.col("dst_port") == flow["src_port"]).to_dicts()[0]
    assert (forward["packets"], back["packets"]) == (flow["sent"], flow["answered"])
    # what the queue drops does not leave
    assert forward["capture_duplicates"] == flow["sent"] - flow["dropped"]
    assert back["capture_duplicates"] == flow["answered"]
    if name == "iperf3":
        assert (forward["sent_packets"], forward["lost_packets"], forward["duplicate_packets"]) == (250, 0, 0)
        bins = trace.bins.filter(pl.col("flow") == forward["flow"], pl.col("direction") == "fwd")
        assert bins["packets"].sum() == flow["sent"]


def test_dccp_counts_once_and_nothing_is_a_duplicate(write_capture: Callable[..., Path]) -> None:
    packets = [*handshake(), *(Packet(Kind.Data, seq=2 + n, payload=bytes(100)) for n in range(20))]
    trace = tfrctrace.open(write_capture("router.pcap", shown_twice(packets), link_type=COOKED))
    forward, back = trace.flows.to_dicts()
    assert (forward["packets"], forward["capture_duplicates"]) == (22, 22)
    assert (back["packets"], back["capture_duplicates"]) == (1, 1)
    assert forward["duplicate_packets"] == 0
    assert "22 packets that the capture shows again, counted once" in forward["notes"]


def test_an_icmp_error_counts_once_for_the_flow_that_it_quotes(write_capture: Callable[..., Path]) -> None:
    datagram = IP(src="192.0.2.1", dst="198.51.100.1", id=7, ttl=62) / UDP(sport=5, dport=6) / b"abc"
    rejections = [IP(src="198.51.100.1", dst="192.0.2.1", id=number) / ICMP(type=3, code=3) / datagram
                  for number in (40, 41)]  # fmt: skip
    dropped = Packet(Kind.Data, seq=9, payload=bytes(40))
    rejections.append(IP(src="198.51.100.1", dst="192.0.2.1", id=42) / ICMP(type=3, code=2) / bytes(dropped))
    frames = shown_twice([datagram, dropped, *rejections])
    flows = tfrctrace.open(write_capture("router.pcap", frames, link_type=COOKED)).flows
    errors = flows.filter(pl.col("direction") == "fwd").sort("transport")
    assert errors.select("transport", "packets", "icmp_errors").rows() == [("dccp", 1, 1), ("udp", 1, 2)]


def test_among_many_flows_each_datagram_counts_once(write_capture: Callable[..., Path]) -> None:
    header = bytes(IP(src="192.0.2.1", dst="198.51.100.1", id=7, len=31) / UDP(dport=9, len=11))
    # more flows than are looked at one by one, each with two datagrams that are alike
    datagrams = [header[:20] + struct.pack("!H", port) + header[22:] + b"abc" for port in range(1000, 3000)]
    frames = [
        struct.pack("!HHH8xH", kind, 1, 6, 0x0800) + datagram
        for _ in range(2)
        for datagram in datagrams
        for kind in (RECEIVED, SENT)
    ]
    flows = tfrctrace.open(write_capture("many.pcap", frames, link_type=COOKED)).flows
    counts = flows.filter(pl.col("direction") == "fwd").select("packets", "capture_duplicates").unique()
    assert counts.rows() == [(2, 2)]


def test_at_one_interface_nothing_is_taken_for_a_copy(write_capture: Callable[..., Path]) -> None:
    alike: list[Any] = [IP(src="192.0.2.1", dst="198.51.100.1", id=7) / UDP(sport=5, dport=6) / b"abc"] * 10
    frames = [cooked(one, RECEIVED) for one in alike]
    (forward, _) = tfrctrace.open(write_capture("one.pcap", frames, link_type=COOKED)).flows.to_dicts()
    assert (forward["packets"], forward["capture_duplicates"]) == (10, 0)
