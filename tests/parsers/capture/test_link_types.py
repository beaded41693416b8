"""Every link type, IP header and cut that is read, on packets that scapy built.

Each capture holds the same handful of packets behind other headers, so that one table is right for all.
"""

import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR, fragment
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.packet import Packet, Raw

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

CLIENT, SERVER = "192.0.2.1", "198.51.100.7"
CLIENT_6, SERVER_6 = "2001:db8::1", "2001:db8:1::7"
PAYLOAD = b"x" * 100


def capture(
    path: Path,
    link_type: int,
    frames: list[bytes],
    *,
    snap_length: int = 65_535,
    lengths: list[int] | None = None,
) -> Path:
    """Write a pcap file byte by byte; `lengths` says how long the frames were on the wire."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap_length, link_type)]
    for number, frame in enumerate(frames):
        wire = lengths[number] if lengths else len(frame)
        kept = frame[:snap_length]
        records.append(struct.pack("<IIII", 1_700_000_000, number * 1000, len(kept), wire) + kept)
    path.write_bytes(b"".join(records))
    return path


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    analysis = _native.analyse([str(path)], ReadSettings())
    assert [p for p in analysis.problems if p["severity"] == "error"] == []
    (source,) = analysis.sources
    return analysis.table("flows").rows(), dict(source)


def conversation(ip: Callable[[str, str], Packet], client: str, server: str) -> list[Packet]:
    """Handshake, one request of 100 bytes, its acknowledgement."""

    def out(flags: str, seq: int, ack: int) -> Packet:
        return ip(client, server) / TCP(sport=40_000, dport=80, flags=flags, seq=seq, ack=ack)

    def back(flags: str, seq: int, ack: int) -> Packet:
        return ip(server, client) / TCP(sport=80, dport=40_000, flags=flags, seq=seq, ack=ack)

    return [
        out("S", 1000, 0),
        back("SA", 5000, 1001),
        out("A", 1001, 5001),
        out("PA", 1001, 5001) / Raw(PAYLOAD),
        back("A", 5001, 1101),
    ]


def ethernet(protocol: int) -> Packet:
    # with addresses given, scapy asks nobody
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=protocol)


def version_4(src: str, dst: str) -> Packet:
    return IP(src=src, dst=dst)


def version_6(src: str, dst: str) -> Packet:
    return IPv6(src=src, dst=dst)


PACKETS_4 = conversation(version_4, CLIENT, SERVER)
PACKETS_6 = conversation(version_6, CLIENT_6, SERVER_6)


def framed(header: Callable[[Packet], bytes], packets: list[Packet]) -> list[bytes]:
    return [header(packet) + bytes(packet) for packet in packets]


def ether_type(packet: Packet) -> int:
    return 0x86DD if packet.haslayer(IPv6) else 0x0800


def ppp_protocol(packet: Packet) -> bytes:
    return b"\x00\x57" if packet.haslayer(IPv6) else b"\x00\x21"


def afnum(packet: Packet) -> int:
    return 30 if packet.haslayer(IPv6) else 2


def wireless(packet: Packet, control: int = 0x08, behind: bytes = b"") -> bytes:
    # no retry bit: with the same sequence number these are still new frames
    addresses = b"\2\0\0\0\0\1\2\0\0\0\0\2\2\0\0\0\0\3"
    snap = b"\xaa\xaa\3\0\0\0" + struct.pack(">H", ether_type(packet))
    return struct.pack("<BBH", control, 1, 0) + addresses + bytes(2) + behind + snap


def cisco_hdlc(packet: Packet) -> bytes:
    return struct.pack(">BBH", 0x0F, 0, ether_type(packet))


MACS = b"\2\0\0\0\0\2\2\0\0\0\0\1"


def snap(packet: Packet) -> bytes:
    return b"\xaa\xaa\3\0\0\0" + struct.pack(">H", ether_type(packet))


def afnum_bsd(packet: Packet) -> int:
    return 24 if packet.haslayer(IPv6) else 2


def pktap(link_type: int) -> bytes:
    """Return Apple's header of a packet that was sent, from an interface of this type."""
    return struct.pack("<III24sI", 108, 1, link_type, b"en0", 2).ljust(108, b"\0")


def erf(wire: int, kind: int = 2) -> bytes:
    """Return the header of an ERF record, and of its Ethernet frame."""
    return struct.pack("<QBBHHH", 1_700_000_000 << 32, kind, 4, *map(swapped, (18 + wire, 0, wire))) + bytes(
        2
    )


def swapped(number: int) -> int:
    """Return a number that is written in the other byte order."""
    return int.from_bytes(number.to_bytes(2, "big"), "little")


def netfilter_log(packet: Packet) -> bytes:
    prefix = struct.pack("<HH", 4 + 5, 10) + b"drop\0" + bytes(3)
    return struct.pack(">BBH", afnum(packet), 0, 7) + prefix + struct.pack("<HH", 4 + len(packet), 9)


# (name, link type, bytes before the IP header)
LINK_TYPES: list[tuple[str, int, Callable[[Packet], bytes]]] = [
    ("ethernet", 1, lambda p: bytes(ethernet(ether_type(p)))),
    ("vlan", 1, lambda p: bytes(ethernet(0x8100) / Dot1Q(vlan=42, type=ether_type(p)))),
    ("qinq", 1, lambda p: bytes(ethernet(0x88A8) / Dot1AD(vlan=7) / Dot1Q(vlan=42, type=ether_type(p)))),
    (
        "two 802.1Q tags",
        1,
        lambda p: bytes(ethernet(0x8100) / Dot1Q(vlan=7) / Dot1Q(vlan=42, type=ether_type(p))),
    ),
    ("raw 101", 101, lambda _: b""),
    ("raw 12", 12, lambda _: b""),
    ("raw 14", 14, lambda _: b""),
    ("null, little-endian", 0, lambda p: struct.pack("<I", afnum(p))),
    ("null, big-endian", 0, lambda p: struct.pack(">I", afnum(p))),
    ("null, by scapy", 0, lambda p: bytes(Loopback(type=afnum(p)))),
    ("loop", 108, lambda p: struct.pack(">I", afnum(p))),
    ("cooked v1", 113, lambda p: bytes(CookedLinux(proto=ether_type(p)))),
    ("cooked v2", 276, lambda p: bytes(CookedLinuxV2(proto=ether_type(p)))),
    ("cooked v1 with a tag", 113, lambda p: bytes(CookedLinux(proto=0x8100)) + tag(p)),
    ("ppp", 9, lambda p: b"\xff\x03" + ppp_protocol(p)),
    ("ppp without address", 9, ppp_protocol),
    ("ppp, short protocol", 9, lambda p: b"\xff\x03" + ppp_protocol(p)[1:]),
    ("hdlc-like ppp", 50, lambda p: b"\xff\x03" + ppp_protocol(p)),
    ("cisco hdlc", 104, cisco_hdlc),
    ("cisco hdlc as hdlc-like ppp", 50, cisco_hdlc),
    # tshark reads these so, too
    ("cisco hdlc as ppp", 9, cisco_hdlc),
    ("cisco hdlc multicast as ppp", 9, lambda p: b"\x8f" + cisco_hdlc(p)[1:]),
    ("cisco hdlc as ppp sent", 204, lambda p: b"\x01" + cisco_hdlc(p)),
    ("cisco hdlc as loopback", 0, cisco_hdlc),
    ("ppp as loopback", 0, lambda p: b"\xff\x03" + ppp_protocol(p)),
    ("ppp sent", 204, lambda p: b"\x01\xff\x03" + ppp_protocol(p)),
    ("ppp received", 204, lambda p: b"\x00" + ppp_protocol(p)),
    ("802.11", 105, wireless),
    ("802.11 with quality of service", 105, lambda p: wireless(p, control=0x88, behind=bytes(2))),
    ("802.11 with radiotap", 127, lambda p: struct.pack("<BBHI", 0, 0, 8, 0) + wireless(p)),
    ("802.11 with Prism header", 119, lambda p: struct.pack("<II136x", 0x44, 144) + wireless(p)),
    ("token ring", 6, lambda p: b"\x10\x40" + MACS + snap(p)),
    (
        "token ring with routing",
        6,
        lambda p: b"\x10\x40" + MACS[:6] + b"\x82" + MACS[7:] + b"\x06\x30\0\1\0\2" + snap(p),
    ),
    ("slip", 8, lambda _: bytes(16)),
    ("fddi", 10, lambda p: b"\x50" + MACS + snap(p)),
    ("pppoe", 51, lambda p: struct.pack(">BBHH", 0x11, 0, 7, 2 + len(p)) + ppp_protocol(p)),
    ("llc over atm", 100, snap),
    ("sunatm", 123, lambda p: b"\x02\0\0\x20" + snap(p)),
    ("frame relay", 107, lambda p: b"\x18\x41\x03" + (b"\x8e" if p.haslayer(IPv6) else b"\xcc")),
    ("frame relay with snap", 107, lambda p: b"\x18\x41\x03\0\x80\0\0\0" + struct.pack(">H", ether_type(p))),
    ("frame relay of cisco", 107, lambda p: b"\x18\x41" + struct.pack(">H", ether_type(p))),
    (
        "frame relay, long address",
        107,
        lambda p: b"\x18\x40\0\x01\x03" + (b"\x8e" if p.haslayer(IPv6) else b"\xcc"),
    ),
    ("frame relay sent", 206, lambda p: b"\x01\x18\x41\x03" + (b"\x8e" if p.haslayer(IPv6) else b"\xcc")),
    ("cisco hdlc sent", 205, lambda p: b"\x01" + cisco_hdlc(p)),
    ("ppp of pppd", 166, lambda p: b"\x01\x03" + ppp_protocol(p)),
    ("packet filter log", 117, lambda p: struct.pack(">BB", 61, afnum_bsd(p)) + bytes(62)),
    ("openbsd ipsec", 109, lambda p: struct.pack("<I", afnum_bsd(p)) + bytes(8)),
    ("mpls", 219, lambda _: struct.pack(">I", 1000 << 12 | 0x100 | 64)),
    ("ppi", 192, lambda p: struct.pack("<BBHI", 0, 0, 8, 1) + bytes(ethernet(ether_type(p)))),
    ("ppi with 802.11", 192, lambda p: struct.pack("<BBHI", 0, 0, 8, 105) + wireless(p)),
    ("pktap", 258, lambda p: pktap(1) + bytes(ethernet(ether_type(p)))),
    ("pktap as user 2", 149, lambda p: pktap(12)),
    ("erf", 197, lambda p: erf(len(p) + 14) + bytes(ethernet(ether_type(p)))),
    ("netfilter log", 239, netfilter_log),
    ("netanalyzer", 240, lambda p: bytes(4) + bytes(ethernet(ether_type(p)))),
    ("ip over infiniband", 242, lambda p: bytes(40) + struct.pack(">HH", ether_type(p), 0)),
    ("broadcom tag", 281, lambda p: MACS + b"\x20\0\0\x01" + struct.pack(">H", ether_type(p))),
    ("broadcom tag before", 282, lambda p: b"\x20\0\0\x01" + bytes(ethernet(ether_type(p)))),
    ("dsa tag", 284, lambda p: MACS + b"\xc0\0\0\0" + struct.pack(">H", ether_type(p))),
    ("ethertype dsa tag", 285, lambda p: MACS + b"\xda\xda\0\0\xc0\0\0\0" + struct.pack(">H", ether_type(p))),
    ("juniper ethernet", 178, lambda p: b"MGC\x81\0\x03\1\1\7" + bytes(ethernet(ether_type(p)))),
    ("juniper ppp", 179, lambda p: b"MGC\x01\xff\x03" + ppp_protocol(p)),
    ("juniper frame relay", 180, lambda p: b"MGC\0\x18\x41\x03" + (b"\x8e" if p.haslayer(IPv6) else b"\xcc")),
    ("juniper hdlc", 181, lambda p: b"MGC\0" + cisco_hdlc(p)),
    ("juniper services without link header", 136, lambda _: b"MGC\x02\x02\0\0\0"),
    ("802.11 with AVS header", 163, lambda p: struct.pack(">II56x", 0x80211001, 64) + wireless(p)),
]


def tag(packet: Packet) -> bytes:
    return struct.pack(">HH", 42, ether_type(packet))


@pytest.mark.parametrize("packets", [PACKETS_4, PACKETS_6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize(("name", "link_type", "header"), LINK_TYPES, ids=[name for name, _, _ in LINK_TYPES])
def test_a_conversation_is_the_same_behind_every_link_header(
    tmp_path: Path, name: str, link_type: int, header: Callable[[Packet], bytes], packets: list[Packet]
) -> None:
    frames = framed(header, packets)
    rows, source = read(capture(tmp_path / "c.pcap", link_type, frames))
    check_conversation(rows, packets)
    assert source["undecoded_packets"] == 0, name
    assert sum(row["wire_bytes"] for row in rows) == sum(map(len, frames))


NOT_OF_TCPDUMP = {
    "raw 14",
    "cisco hdlc as ppp",
    "cisco hdlc multicast as ppp",
    "cisco hdlc as loopback",
    "ppp as loopback",
    "cisco hdlc as ppp sent",
    "ppp sent",
    "ppp received",
    "erf",
}
"""What tcpdump 4.99 does not read and tshark does."""

OF_NEITHER = {"cisco hdlc sent", "frame relay sent", "mpls"}


@pytest.mark.skipif(not shutil.which("tcpdump"), reason="needs tcpdump")
@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        pytest.param(number, header, id=name)
        for name, number, header in LINK_TYPES
        if name not in NOT_OF_TCPDUMP | OF_NEITHER
    ],
)
def test_tcpdump_reads_them_so(tmp_path: Path, link_type: int, header: Callable[[Packet], bytes]) -> None:
    path = capture(tmp_path / "c.pcap", link_type, framed(header, PACKETS_4))
    printed = subprocess.run(
        ["tcpdump", "-nnr", str(path)], capture_output=True, text=True, check=True
    ).stdout
    segments = re.findall(r"IP (\S+) > \S+: Flags .* length (\d+)", printed)
    there, back = f"{CLIENT}.40000", f"{SERVER}.80"
    assert segments == [(there, "0"), (back, "0"), (there, "0"), (there, "100"), (back, "0")]


@pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark")
@pytest.mark.parametrize(
    ("link_type", "header"),
    [pytest.param(number, header, id=name) for name, number, header in LINK_TYPES if name in NOT_OF_TCPDUMP],
)
def test_tshark_reads_them_so(tmp_path: Path, link_type: int, header: Callable[[Packet], bytes]) -> None:
    path = capture(tmp_path / "c.pcap", link_type, framed(header, PACKETS_4))
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "tcp.srcport", "-e", "tcp.len"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["40000\t0", "80\t0", "40000\t0", "40000\t100", "80\t0"]


@pytest.mark.parametrize(
    ("link_type", "header"), [pytest.param(number, header, id=name) for name, number, header in LINK_TYPES]
)
def test_a_frame_may_end_anywhere_in_its_link_header(
    tmp_path: Path, link_type: int, header: Callable[[Packet], bytes]
) -> None:
    (frame,) = framed(header, [PACKETS_4[3]])
    cut = [frame[:length] for length in range(len(header(PACKETS_4[3])) + 1)]
    rows, source = read(capture(tmp_path / "c.pcap", link_type, cut, lengths=[len(frame)] * len(cut)))
    assert (rows, source["packets"], source["undecoded_packets"]) == ([], len(cut), len(cut))


def check_conversation(rows: list[dict[str, Any]], packets: list[Packet]) -> None:
    there, back = rows
    first = packets[0]
    addresses = (first[IPv6].src, first[IPv6].dst) if first.haslayer(IPv6) else (first[IP].src, first[IP].dst)
    assert (there["src"], there["dst"]) == addresses
    assert (there["src_port"], there["dst_port"]) == (40_000, 80)
    assert (there["direction"], back["direction"]) == ("fwd", "rev")
    assert (there["packets"], back["packets"]) == (3, 2)
    assert (there["payload_bytes"], back["payload_bytes"]) == (len(PAYLOAD), 0)
    assert there["unique_bytes"] == len(PAYLOAD)
    assert there["state"] == "established"
    assert there["rtt_samples"] == 2
    # one packet a millisecond: SYN at 0, the ACK that completes the handshake at 2
    assert there["handshake_rtt_ms"] == pytest.approx(2)


@pytest.mark.parametrize(("link_type", "packets"), [(228, PACKETS_4), (229, PACKETS_6)])
def test_raw_ip_of_one_version(tmp_path: Path, link_type: int, packets: list[Packet]) -> None:
    rows, _ = read(capture(tmp_path / "c.pcap", link_type, framed(lambda _: b"", packets)))
    check_conversation(rows, packets)


@pytest.mark.parametrize("routers", [0, 1, 8])
def test_ipv4_options_are_passed_over(tmp_path: Path, routers: int) -> None:
    def with_options(src: str, dst: str) -> Packet:
        return IP(src=src, dst=dst, options=[IPOption_NOP(), IPOption_RR(routers=["192.0.2.99"] * routers)])

    packets = conversation(with_options, CLIENT, SERVER)
    assert IP(bytes(packets[0])).ihl == 6 + routers
    rows, _ = read(capture(tmp_path / "c.pcap", 101, framed(lambda _: b"", packets)))
    check_conversation(rows, packets)


def hop_by_hop(src: str, dst: str) -> Packet:
    return IPv6(src=src, dst=dst) / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 12)])


def chain(src: str, dst: str) -> Packet:
    destination = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
    routing = IPv6ExtHdrRouting(addresses=["2001:db8::99"], segleft=0)
    return IPv6(src=src, dst=dst) / IPv6ExtHdrHopByHop() / routing / destination


def atomic_fragment(src: str, dst: str) -> Packet:
    return IPv6(src=src, dst=dst) / IPv6ExtHdrFragment(id=7, m=0, offset=0)


@pytest.mark.parametrize("header", [hop_by_hop, chain, atomic_fragment])
def test_ipv6_extension_headers_are_passed_over(tmp_path: Path, header: Callable[[str, str], Packet]) -> None:
    packets = conversation(header, CLIENT_6, SERVER_6)
    rows, _ = read(capture(tmp_path / "c.pcap", 101, framed(lambda _: b"", packets)))
    check_conversation(rows, packets)


@pytest.mark.parametrize("first_place", [0, 1, 3])
def test_fragments_of_ipv4_belong_to_the_flow_of_their_datagram(first_place: int, tmp_path: Path) -> None:
    datagram = IP(src=CLIENT, dst=SERVER, id=77) / UDP(sport=5000, dport=6000) / Raw(b"y" * 3000)
    pieces = [bytes(piece) for piece in fragment(datagram, fragsize=1000)]  # type: ignore[no-untyped-call]
    assert len(pieces) > 2
    # Some systems send the first fragment last, and links reorder.
    pieces.insert(first_place, pieces.pop(0))
    rows, source = read(capture(tmp_path / "c.pcap", 101, pieces))
    assert source["portless_packets"] == 0
    assert rows[0]["start_ns"] == 1_700_000_000 * 10**9
    there = rows[0]
    assert there["src_port"] == 5000
    assert there["packets"] == len(pieces)
    assert there["ip_fragments"] == len(pieces)
    assert there["payload_bytes"] == 3000


def test_fragments_of_ipv6_belong_to_the_flow_of_their_datagram(tmp_path: Path) -> None:
    whole = bytes(UDP(sport=5000, dport=6000, chksum=1) / Raw(b"y" * 2992))
    pieces = []
    for at in range(0, len(whole), 1200):
        part = whole[at : at + 1200]
        head = IPv6ExtHdrFragment(nh=17, id=99, offset=at // 8, m=int(at + 1200 < len(whole)))
        pieces.append(bytes(IPv6(src=CLIENT_6, dst=SERVER_6) / head / Raw(part)))
    rows, _ = read(capture(tmp_path / "c.pcap", 101, pieces))
    there = rows[0]
    assert there["src_port"] == 5000
    assert there["packets"] == there["ip_fragments"] == len(pieces)
    assert there["payload_bytes"] == 2992


def unreachable_4(quoted: Packet) -> Packet:
    return IP(src="203.0.113.1", dst=CLIENT) / ICMP(type=3, code=1) / Raw(bytes(quoted)[:28])


def exceeded_4(quoted: Packet) -> Packet:
    return IP(src="203.0.113.1", dst=CLIENT) / ICMP(type=11) / Raw(bytes(quoted)[:28])


def unreachable_6(quoted: Packet) -> Packet:
    return IPv6(src="2001:db8:2::1", dst=CLIENT_6) / ICMPv6DestUnreach(code=4) / Raw(bytes(quoted))


def too_big_6(quoted: Packet) -> Packet:
    return IPv6(src="2001:db8:2::1", dst=CLIENT_6) / ICMPv6PacketTooBig(mtu=1280) / Raw(bytes(quoted))


@pytest.mark.parametrize(
    ("packets", "error"),
    [(PACKETS_4, unreachable_4), (PACKETS_4, exceeded_4), (PACKETS_6, unreachable_6), (PACKETS_6, too_big_6)],
)
def test_an_icmp_error_counts_for_the_flow_it_quotes(
    tmp_path: Path, packets: list[Packet], error: Callable[[Packet], Packet]
) -> None:
    frames = framed(lambda _: b"", [*packets, error(packets[3])])
    rows, _ = read(capture(tmp_path / "c.pcap", 101, frames))
    assert len(rows) == 2
    assert (rows[0]["icmp_errors"], rows[1]["icmp_errors"]) == (1, 0)
    assert rows[0]["packets"] == 3


def test_an_echo_request_is_no_flow(tmp_path: Path) -> None:
    rows, source = read(capture(tmp_path / "c.pcap", 101, [bytes(IP(src=CLIENT, dst=SERVER) / ICMP())]))
    assert rows == []
    assert source["other_ip_packets"] == 1


def test_arp_is_counted_as_not_ip(tmp_path: Path) -> None:
    rows, source = read(
        capture(tmp_path / "c.pcap", 1, [bytes(ethernet(0x0806) / ARP(psrc=CLIENT, pdst=SERVER))])
    )
    assert rows == []
    assert source["non_ip_packets"] == 1


def test_ethernet_padding_is_no_payload(tmp_path: Path) -> None:
    padded = [bytes(ethernet(0x0800) / packet).ljust(60, b"\0") for packet in PACKETS_4]
    rows, _ = read(capture(tmp_path / "c.pcap", 1, padded))
    check_conversation(rows, PACKETS_4)


def test_an_ip_length_of_zero_means_the_rest_of_the_frame(tmp_path: Path) -> None:
    """Linux writes it for packets that the network card will cut into segments."""
    data = IP(src=CLIENT, dst=SERVER, len=0) / TCP(sport=40_000, dport=80, flags="A") / Raw(b"z" * 20_000)
    rows, _ = read(capture(tmp_path / "c.pcap", 101, [bytes(data)]))
    assert rows[0]["payload_bytes"] == 20_000


# Ethernet 14, IP 20, TCP 20: what can be known at each snap length
@pytest.mark.parametrize(
    ("snap_length", "has_flow", "has_payload"),
    [
        (13, False, False),
        (33, False, False),
        (34, False, False),
        (38, True, False),
        (53, True, False),
        (54, True, True),
        (96, True, True),
    ],
)
def test_cut_packets_are_analysed_from_the_headers_that_are_left(
    tmp_path: Path, snap_length: int, has_flow: bool, has_payload: bool
) -> None:
    frames = [bytes(ethernet(0x0800) / packet) for packet in PACKETS_4]
    rows, source = read(
        capture(tmp_path / "c.pcap", 1, frames, snap_length=snap_length, lengths=[*map(len, frames)])
    )
    assert source["packets"] == len(frames)
    assert bool(rows) == has_flow
    if has_flow:
        assert sum(row["wire_bytes"] for row in rows) == sum(map(len, frames))
        assert rows[0]["payload_bytes"] == (len(PAYLOAD) if has_payload else None)
    if has_payload:
        check_conversation(rows, PACKETS_4)


def test_the_packet_table_says_where_decoding_ended(tmp_path: Path) -> None:
    frames = [bytes(ethernet(0x0800) / packet) for packet in PACKETS_4]
    path = capture(tmp_path / "c.pcap", 1, frames, snap_length=40, lengths=[*map(len, frames)])
    batch = _native.PacketReader([str(path)], ReadSettings()).next_batch()
    assert batch is not None
    for row in batch.rows():
        assert row["decode_stop"]
        assert row["src_port"] in (80, 40_000)
        assert row["payload_bytes"] is None


def test_a_cooked_header_says_who_sent(tmp_path: Path) -> None:
    frames = [bytes(CookedLinux(pkttype=kind, proto=0x800) / PACKETS_4[0]) for kind in (0, 4)]
    batch = _native.PacketReader(
        [str(capture(tmp_path / "c.pcap", 113, frames))], ReadSettings()
    ).next_batch()
    assert batch is not None
    assert [row["event"] for row in batch.rows()] == ["received", "sent"]
