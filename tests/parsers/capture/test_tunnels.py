"""Flows in tunnels, against tshark's count of the innermost packets and captures built by scapy."""

import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from tfrctrace.base.errors import UsageError
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings, read_settings

TUNNELS = Path(__file__).resolve().parents[2] / "data" / "tunnels"
sys.path.insert(0, str(TUNNELS))
import make  # noqa: E402

EXPECTED = json.loads((TUNNELS / "expected.json").read_text())
UNREAD_BY_TSHARK = {"l2tp-3", "l2tp-3-cookie", "l2tp-3-ipv6", "dsa", "edsa"}
CLIENT, SERVER = make.CLIENT, make.SERVER
COUNTS = ("packets", "wire_bytes", "payload_bytes")


def flows(path: Path, settings: ReadSettings | None = None) -> list[dict[str, Any]]:
    analysis = _native.analyse([str(path)], settings or ReadSettings())
    assert [problem for problem in analysis.problems if problem["severity"] == "error"] == []
    return list(analysis.table("flows").rows())


def ends(row: dict[str, Any]) -> str:
    return " ".join(str(row[name]) for name in ("transport", "src", "src_port", "dst", "dst_port"))


def number(text: str) -> int:
    return int(text, 0)


@pytest.mark.parametrize("name", sorted(make.CAPTURES))
def test_the_inner_conversation_is_the_flow(name: str) -> None:
    rows = {ends(row): row for row in flows(TUNNELS / f"{name}.pcap")}
    assert len(rows) == 4
    tcp = [row for row in rows.values() if row["transport"] == "tcp"]
    assert [(row["packets"], row["unique_bytes"], row["state"]) for row in tcp] == [
        (3, 100, "established"),
        (2, 0, "established"),
    ]
    expected = EXPECTED[name]
    assert bool(expected) == (name not in UNREAD_BY_TSHARK)
    for direction, counts in expected.items():
        row = rows[direction]
        assert {column: row[column] for column in COUNTS} == {column: counts[column] for column in COUNTS}
        for column in {"vni", "teid"} & counts.keys():
            assert row[column] == number(counts[column])
        for column in {"mpls_labels", "vlans"} & counts.keys():
            assert row[column] == counts[column]
    frames = (TUNNELS / f"{name}.pcap").stat().st_size - 24 - 16 * len(make.INNER_4)
    assert sum(row["wire_bytes"] for row in rows.values()) == frames


@pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark")
@pytest.mark.parametrize("name", ["vxlan", "gtp-u", "mpls", "erspan-3"])
def test_tshark_counts_as_it_did(name: str) -> None:
    assert make.ask_tshark(TUNNELS / f"{name}.pcap") == EXPECTED[name]


def test_the_outer_ends_are_an_attribute() -> None:
    there, back, *_ = flows(TUNNELS / "gtp-u.pcap")
    assert (there["tunnel"], there["teid"], there["outer_src"], there["outer_dst"]) == (
        "gtp-u",
        0x1001,
        make.LEFT,
        make.RIGHT,
    )
    assert (back["teid"], back["outer_src"]) == (0x2002, make.RIGHT)


def test_layers_are_named_from_the_outside() -> None:
    row = flows(TUNNELS / "nested.pcap")[0]
    assert (row["tunnel"], row["vni"], row["teid"], row["vlans"]) == ("gtp-u/vxlan", 88, 1, "7")
    assert (row["outer_src"], row["outer_dst"]) == ("10.1.0.1", "10.1.0.2")
    assert flows(TUNNELS / "e-tag.pcap")[0]["tunnel"] is None


def written(path: Path, packets: list[Packet]) -> Path:
    make.write(path, packets)
    return path


def in_vxlan(vni: int, back: bool, packet: Packet, port: int = 4789) -> Packet:
    return make.udp(back, port) / VXLAN(vni=vni, flags=8) / make.frame(back) / packet


def in_mpls(labels: tuple[int, int], back: bool, packet: Packet) -> Packet:
    return make.ethernet(back, type=0x8847) / MPLS(label=labels[back], s=1) / packet


def in_provider_vlan(vlan: int, back: bool, packet: Packet) -> Packet:
    return make.ethernet(back) / Dot1AD(vlan=vlan) / Dot1Q(vlan=5) / packet


SEPARATE = {
    "VNI": (lambda back, packet: in_vxlan(1, back, packet), lambda back, packet: in_vxlan(2, back, packet)),
    "label": (
        lambda back, packet: in_mpls((100, 200), back, packet),
        lambda back, packet: in_mpls((300, 400), back, packet),
    ),
    "provider VLAN": (
        lambda back, packet: in_provider_vlan(1, back, packet),
        lambda back, packet: in_provider_vlan(2, back, packet),
    ),
}


@pytest.mark.parametrize("network", SEPARATE)
def test_one_five_tuple_in_two_networks_is_two_flows(tmp_path: Path, network: str) -> None:
    """Even with the same packets, which here pass one right after the other."""
    packets = [around(back, packet) for back, packet in make.INNER_4 for around in SEPARATE[network]]
    rows = flows(written(tmp_path / "c.pcap", packets))
    assert len({row["flow"] for row in rows}) == 4
    for row in rows:
        assert row["packets"] == {("tcp", "fwd"): 3, ("tcp", "rev"): 2}.get(
            (row["transport"], row["direction"]), 1
        )
        assert not row["retransmitted_packets"]


def test_a_customers_vlan_separates_nothing(tmp_path: Path) -> None:
    """A mirror port often shows the two directions with different tags."""
    packets = [make.ethernet(back) / Dot1Q(vlan=10 + back) / packet for back, packet in make.INNER_4]
    rows = flows(written(tmp_path / "c.pcap", packets))
    assert [row["vlans"] for row in rows] == ["10", "11", "10", "11"]


def test_a_connection_goes_on_when_its_tunnel_changes(tmp_path: Path) -> None:
    """After a handover the other base station has its own TEID and address."""

    def around(station: int, back: bool, packet: Packet) -> Packet:
        station_ends = (f"10.0.0.{station}", "10.0.1.1")
        src, dst = reversed(station_ends) if back else station_ends
        teid = 2 * station + back
        return make.ethernet(back) / IP(src=src, dst=dst) / UDP(dport=2152) / GTP_U_Header(teid=teid) / packet

    packets = [around(1 if at < 3 else 2, *sent) for at, sent in enumerate(make.INNER_4[:5])]
    there, back = flows(written(tmp_path / "c.pcap", packets))
    assert (there["packets"], back["packets"], there["state"]) == (3, 2, "established")
    assert (there["teid"], there["outer_src"]) == (2, "10.0.0.1")


@pytest.mark.parametrize("is_inside_first", [True, False])
def test_a_packet_inside_and_outside_of_a_tunnel_counts_once(tmp_path: Path, is_inside_first: bool) -> None:
    """Two interfaces of a tunnel's end: the packets are captured with the outer headers, and without."""
    pairs = [
        (
            (in_vxlan(7, back, packet.copy()), 0),
            (make.frame(back) / packet.copy(), 1),
        )
        for back, packet in make.INNER_4
    ]
    order = 1 if is_inside_first else -1
    path = tmp_path / "c.pcapng"
    write_pcapng(path, [packet for pair in pairs for packet in pair[::order]])
    rows = flows(path)
    assert len(rows) == 4
    for row in rows:
        of_connection = row["transport"] == "tcp"
        assert row["packets"] == ((3, 2)[row["direction"] == "rev"] if of_connection else 1)
        assert f"{row['packets']} packet" in row["notes"]
        assert "counted once" in row["notes"]
        assert not row["retransmitted_packets"]


def write_pcapng(path: Path, packets: list[tuple[Packet, int]]) -> None:
    def block(kind: int, body: bytes) -> bytes:
        padded = body + b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, len(padded) + 12) + padded + struct.pack("<I", len(padded) + 12)

    blocks = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [block(1, struct.pack("<HHI", 1, 0, 0))] * 2
    for number, (packet, interface) in enumerate(packets):
        raw = bytes(packet)
        blocks.append(block(6, struct.pack("<IIIII", interface, 0, 1000 * number, len(raw), len(raw)) + raw))
    path.write_bytes(b"".join(blocks))


def test_fragments_of_the_outer_packet_belong_to_the_inner_flow(tmp_path: Path) -> None:
    segment = IP(src=CLIENT, dst=SERVER) / TCP(sport=40_000, dport=80, flags="A", seq=1) / Raw(b"z" * 1400)
    outer = IP(src=make.LEFT, dst=make.RIGHT, id=7) / UDP(sport=9, dport=4789)
    whole = outer / VXLAN(vni=1, flags=8) / make.frame(False) / segment
    pieces = fragment(IP(bytes(whole)), fragsize=800)  # type: ignore[no-untyped-call]
    there, _ = flows(written(tmp_path / "c.pcap", [make.ethernet(False) / piece for piece in pieces]))
    assert len(pieces) == 2
    assert (there["packets"], there["ip_fragments"], there["payload_bytes"]) == (2, 2, 1400)
    assert (there["unique_bytes"], there["retransmitted_bytes"], there["missing_bytes"]) == (1400, 0, 0)


def conversation_in(pieces_of: int, *, shows_inside: bool = False) -> list[tuple[Packet, int]]:
    """Return five segments and five datagrams in VXLAN, in pieces, and perhaps whole before them."""
    transports = [TCP(sport=40_000, dport=80, flags="A", seq=1 + 1400 * at, ack=1) for at in range(5)]
    transports += [UDP(sport=5000, dport=6000) for _ in range(5)]
    packets = []
    for at, transport in enumerate(transports):
        inner = IP(src=CLIENT, dst=SERVER, id=900 + at) / transport / Raw(b"z" * 1400)
        around = IP(src=make.LEFT, dst=make.RIGHT, id=100 + at) / UDP(sport=9, dport=4789)
        whole = around / VXLAN(vni=1, flags=8) / make.frame(False) / inner
        packets += [(make.frame(False) / inner, 0)] * shows_inside
        pieces = fragment(IP(bytes(whole)), fragsize=pieces_of)  # type: ignore[no-untyped-call]
        packets += [(make.ethernet(False) / piece, int(shows_inside)) for piece in pieces]
    return packets


@pytest.mark.parametrize("pieces_of", [400, 500, 1000])
def test_outer_fragments_count_each_byte_once(tmp_path: Path, pieces_of: int) -> None:
    """Their outer headers are those of another packet than the inner one of the first."""
    packets = [packet for packet, _ in conversation_in(pieces_of)]
    rows = [row for row in flows(written(tmp_path / "c.pcap", packets)) if row["packets"]]
    assert [(row["packets"], row["ip_fragments"], row["payload_bytes"]) for row in rows] == [
        (len(packets) / 2, len(packets) / 2, 7000)
    ] * 2
    assert [row["unique_bytes"] for row in rows] == [7000, None]
    assert not any("counted once" in row["notes"] for row in rows if row["notes"])
    if shutil.which("tshark"):
        command = [
            "tshark",
            "-r",
            str(tmp_path / "c.pcap"),
            "-T",
            "fields",
            "-e",
            "tcp.len",
            "-e",
            "data.len",
        ]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert sum(int(line.split("\t")[0]) for line in lines if line.split("\t")[0]) == 7000


@pytest.mark.parametrize("pieces_of", [500, 1000])
def test_a_packet_whole_inside_and_in_pieces_outside_counts_once(tmp_path: Path, pieces_of: int) -> None:
    """The interface of the tunnel shows the packet, the one below it the fragments."""
    packets = conversation_in(pieces_of, shows_inside=True)
    write_pcapng(tmp_path / "c.pcapng", packets)
    rows = [row for row in flows(tmp_path / "c.pcapng") if row["packets"]]
    assert [(row["packets"], row["payload_bytes"]) for row in rows] == [(5, 7000)] * 2
    assert all(f"{len(packets) // 2 - 5} packets" in row["notes"] for row in rows)


def test_l2tp_over_ip_is_read_in_fragments(tmp_path: Path) -> None:
    segment = IP(src=CLIENT, dst=SERVER) / TCP(sport=40_000, dport=80, flags="A", seq=1) / Raw(b"z" * 1400)
    outer = IP(src=make.LEFT, dst=make.RIGHT, id=7, proto=115) / Raw(struct.pack(">IQ", 77, 5))
    whole = IP(bytes(outer / make.frame(False) / segment))
    pieces = fragment(whole, fragsize=800)  # type: ignore[no-untyped-call]
    there, _ = flows(written(tmp_path / "c.pcap", [make.ethernet(False) / piece for piece in pieces]))
    assert (there["tunnel"], there["packets"], there["unique_bytes"]) == ("l2tp", 2, 1400)


def test_encrypted_esp_over_udp_stays_udp(tmp_path: Path) -> None:
    """Also keepalives and IKE, which share the port (RFC 3948 section 2)."""
    payloads = [b"\xff", bytes(4) + b"\x21" * 60, struct.pack(">II", 0x1000, 7) + bytes(range(7, 127))]
    packets = [make.udp(False, 4500, sport=4500) / Raw(payload) for payload in payloads]
    there, _ = flows(written(tmp_path / "c.pcap", packets))
    assert (there["transport"], there["dst_port"], there["packets"], there["tunnel"]) == (
        "udp",
        4500,
        3,
        None,
    )


def test_fragments_inside_of_a_tunnel_find_their_first(tmp_path: Path) -> None:
    datagram = IP(src=CLIENT, dst=SERVER, id=77) / UDP(sport=5000, dport=6000) / Raw(b"y" * 3000)
    pieces = fragment(datagram, fragsize=1000)  # type: ignore[no-untyped-call]
    packets = [in_vxlan(vni, False, piece) for piece in pieces for vni in (1, 2)]
    rows = flows(written(tmp_path / "c.pcap", packets))
    assert [row["payload_bytes"] for row in rows] == [3000, 0, 3000, 0]


def test_what_carries_no_packet_is_a_packet_of_the_outer_flow(tmp_path: Path) -> None:
    arp = make.udp(False, 4789) / VXLAN(vni=1, flags=8) / make.ethernet(False, type=0x0806) / ARP()
    echo = make.udp(False, 2152, sport=2152) / Raw(bytes((0x32, 1, 0, 4)) + bytes(8))
    path = written(tmp_path / "c.pcap", [arp, echo])
    rows = [row for row in flows(path) if row["packets"]]
    assert [(row["dst_port"], row["tunnel"]) for row in rows] == [(4789, None), (2152, None)]
    (source,) = _native.analyse([str(path)], ReadSettings()).sources
    (stop,) = dict(source)["decode_stops"]
    assert (stop["layer"], stop["reason"], stop["packets"]) == ("tunnel", "ARP", 1)


def test_another_application_at_the_port_stays_what_it_is(tmp_path: Path) -> None:
    packets = [
        make.udp(False, port) / Raw(payload)
        for port in (4789, 4790, 6081, 2152, 1701, 3544, 6635, 4754)
        for payload in (b"\xff" * 200, b"GET / HTTP/1.1", b"")
    ]
    rows = [row for row in flows(written(tmp_path / "c.pcap", packets)) if row["packets"]]
    assert [row["packets"] for row in rows] == [3] * 8
    assert {row["tunnel"] for row in rows} == {None}


def test_a_ping_in_a_tunnel_is_no_flow(tmp_path: Path) -> None:
    path = written(tmp_path / "c.pcap", [in_vxlan(1, False, IP(src=CLIENT, dst=SERVER) / ICMP())])
    assert flows(path) == []
    (source,) = _native.analyse([str(path)], ReadSettings()).sources
    assert dict(source)["other_ip_packets"] == 1


def test_an_error_in_a_tunnel_counts_for_the_flow_that_it_quotes(tmp_path: Path) -> None:
    packets = [in_vxlan(1, back, packet) for back, packet in make.INNER_4[:4]]
    quoted = bytes(make.INNER_4[3][1])[:28]
    error = IP(src="203.0.113.1", dst=CLIENT) / ICMP(type=3, code=1) / Raw(quoted)
    rows = flows(written(tmp_path / "c.pcap", [*packets, in_vxlan(1, True, error)]))
    assert [row["icmp_errors"] for row in rows] == [1, 0]


def test_a_tunnel_at_another_port_is_read_on_request(tmp_path: Path) -> None:
    packets = [in_vxlan(7, back, packet, port=8472) for back, packet in make.INNER_4]
    path = written(tmp_path / "c.pcap", packets)
    assert {row["dst_port"] for row in flows(path) if row["packets"]} == {8472}
    rows = flows(path, read_settings({"tunnel_port": ["vxlan=8472"]}))
    assert [(row["vni"], row["transport"]) for row in rows] == [(7, "tcp")] * 2 + [(7, "udp")] * 2


@pytest.mark.parametrize("text", ["vxlan", "vxlan=", "vxlan=0", "vxlan=65536", "vxlan=-1", "carp=1", "=8472"])
def test_a_wrong_tunnel_port_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="is not an encapsulation with its port"):
        read_settings({"tunnel_port": [text]})


def test_a_nesting_bomb_ends(tmp_path: Path) -> None:
    ethernet, inner = bytes(make.MACS[0], "ascii")[:12], bytes(IP(src=CLIENT, dst=SERVER) / UDP() / Raw(b"x"))
    ip_in_ip = bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=4, len=65_535, chksum=0))
    gre = bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=47, len=65_535, chksum=0) / GRE(proto=0x800))
    frames = [
        ethernet + b"\x08\x00" + ip_in_ip * 200 + inner,
        ethernet + b"\x08\x00" + gre * 200 + inner,
        ethernet + b"\x81\x00\0\1" * 2000 + b"\x08\x00" + inner,
        ethernet + b"\x88\x47" + b"\0\1\0\x40" * 5000,
    ]
    path = written(tmp_path / "c.pcap", [Raw(frame) for frame in frames])
    (source,) = _native.analyse([str(path)], ReadSettings()).sources
    stops = {(stop["layer"], stop["reason"]): stop["packets"] for stop in dict(source)["decode_stops"]}
    assert stops == {
        ("tunnel", "more headers than are read"): 2,
        ("link", "more headers than are read"): 1,
        ("tunnel", "malformed"): 1,
    }


@pytest.mark.parametrize("name", sorted(make.CAPTURES))
def test_every_cut_and_every_length_is_survived(tmp_path: Path, name: str) -> None:
    """Each frame is cut at each byte, and each of its bytes is set to the extremes: no packet is lost."""
    (_, packets) = next(made for made in make.captures() if made[0] == name)
    frame = bytes(packets[3])
    headers = min(len(frame), 140)
    cut = [frame[:length] for length in range(headers)]
    changed = [
        frame[:at] + bytes((value,)) + frame[at + 1 :]
        for at in range(headers)
        for value in (0, 1, 0x7F, 0xFF)
    ]
    path = written(tmp_path / "c.pcap", [Raw(one) for one in [*cut, *changed]])
    (source,) = _native.analyse([str(path)], ReadSettings()).sources
    assert dict(source)["packets"] == len(cut) + len(changed)
