"""Build a capture of one conversation in each encapsulation: `python tests/data/tunnels/make.py`.

Each `NAME.pcap` has the same TCP connection and UDP exchange, with other identifiers in each direction where
the protocol has those. `expected.json` is what tshark, which is needed, counts and names in each.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS
from scapy.contrib.nsh import NSH
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, GRE_PPTP, Dot1AD, Dot1Q, Ether
from scapy.layers.l2tp import L2TP
from scapy.layers.ppp import HDLC, PPP
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE: Final = Path(__file__).resolve().parent
CLIENT, SERVER = "192.0.2.1", "198.51.100.7"
CLIENT_6, SERVER_6 = "2001:db8::1", "2001:db8:1::7"
LEFT, RIGHT = "10.9.0.1", "10.9.0.2"
LEFT_6, RIGHT_6 = "2001:db8:9::1", "2001:db8:9::2"
MACS: Final = ("02:00:00:00:00:01", "02:00:00:00:00:02")
INNER_MACS: Final = ("02:00:00:00:00:11", "02:00:00:00:00:12")


def conversation(ip: Callable[[str, str], Packet], client: str, server: str) -> list[tuple[bool, Packet]]:
    """Return a handshake, 100 bytes and their acknowledgement, and two datagrams; and who sends each."""

    def tcp(back: bool, flags: str, seq: int, ack: int, payload: bytes = b"") -> tuple[bool, Packet]:
        ports = (80, 40_000) if back else (40_000, 80)
        ends = (server, client) if back else (client, server)
        return back, ip(*ends) / TCP(sport=ports[0], dport=ports[1], flags=flags, seq=seq, ack=ack) / Raw(
            payload
        )

    return [
        tcp(False, "S", 1000, 0),
        tcp(True, "SA", 5000, 1001),
        tcp(False, "A", 1001, 5001),
        tcp(False, "PA", 1001, 5001, b"x" * 100),
        tcp(True, "A", 5001, 1101),
        (False, ip(client, server) / UDP(sport=5000, dport=6000) / Raw(b"request")),
        (True, ip(server, client) / UDP(sport=6000, dport=5000) / Raw(b"answer of eleven"[:11])),
    ]


INNER_4: Final = conversation(lambda src, dst: IP(src=src, dst=dst), CLIENT, SERVER)
INNER_6: Final = conversation(lambda src, dst: IPv6(src=src, dst=dst), CLIENT_6, SERVER_6)


def ethernet(back: bool, macs: tuple[str, str] = MACS, **fields: Any) -> Packet:
    src, dst = reversed(macs) if back else macs
    return Ether(src=src, dst=dst, **fields)


def frame(back: bool) -> Packet:
    """Return the Ethernet header of an inner frame."""
    return ethernet(back, INNER_MACS)


def outer(back: bool, **fields: Any) -> Packet:
    ends = (RIGHT, LEFT) if back else (LEFT, RIGHT)
    return ethernet(back) / IP(src=ends[0], dst=ends[1], **fields)


def outer_6(back: bool, **fields: Any) -> Packet:
    ends = (RIGHT_6, LEFT_6) if back else (LEFT_6, RIGHT_6)
    return ethernet(back) / IPv6(src=ends[0], dst=ends[1], **fields)


def udp(back: bool, port: int, **fields: Any) -> Packet:
    return outer(back) / UDP(**({"sport": 50_000 + back, "dport": port} | fields))


def one_of(back: bool, forth: int, other: int) -> int:
    return other if back else forth


def inside(raw: bytes) -> Callable[[bool, Packet], Packet]:
    return lambda _, packet: Raw(raw) / packet


def labelled(back: bool) -> Packet:
    return MPLS(label=one_of(back, 16001, 16002), s=0) / MPLS(label=one_of(back, 300, 400), s=1, ttl=64)


def unencrypted(back: bool, inner: bytes, protocol: int = 4) -> Raw:
    """Return ESP without encryption, with a check value of 12 bytes; in tunnel mode unless told otherwise."""
    padding = -(len(inner) + 2) % 4
    trailer = bytes(range(1, padding + 1)) + bytes((padding, protocol))
    return Raw(struct.pack(">II", 0x1000 + back, 7) + inner + trailer + b"\xa5" * 12)


def esp_transport_in_udp(back: bool, packet: Packet) -> Packet:
    """Return the packet with UDP and ESP between its own IP header and transport (RFC 3948)."""
    inner = IP(bytes(packet))
    ip = IP(src=inner.src, dst=inner.dst)
    return (
        ethernet(back)
        / ip
        / UDP(sport=4500, dport=4500)
        / unencrypted(back, bytes(inner.payload), inner.proto)
    )


def authenticated(back: bool, packet: Packet) -> Packet:
    """Return the packet with an authentication header between its own IP header and transport."""
    inner = IP(bytes(packet))
    header = struct.pack(">BBHII", inner.proto, 4, 0, 9, 1) + b"\x5a" * 12
    return ethernet(back) / IP(src=inner.src, dst=inner.dst, proto=51) / Raw(header + bytes(inner.payload))


def l2tp_3(back: bool, packet: Packet) -> Packet:
    session = struct.pack(">I", one_of(back, 77, 78))
    return outer(back, proto=115) / Raw(session) / frame(back) / packet


def l2tp_3_with_cookie(back: bool, packet: Packet) -> Packet:
    """Return version 3 with a cookie and the default sublayer (RFC 3931 section 4.6)."""
    session = struct.pack(">IQI", one_of(back, 77, 78), 0x1122334455667788, 0x40000000)
    return outer(back, proto=115) / Raw(session) / frame(back) / packet


def mikrotik(back: bool, packet: Packet) -> Packet:
    """Return EoIP: the length of the frame, and the tunnel with its low byte first."""
    inner = frame(back) / packet
    header = struct.pack(">HHH", 0x2001, 0x6400, len(inner)) + struct.pack("<H", 11)
    return outer(back, proto=47) / Raw(header) / inner


def metadata(back: bool, packet: Packet) -> Packet:
    """Return Cisco MetaData with the option that carries a security group tag."""
    header = struct.pack(">BBHHH", 1, 1, 1, 42, 0x86DD)
    return ethernet(back) / Dot1Q(vlan=5, type=0x8909) / Raw(header) / packet


def switch_tagged(before: bytes) -> Callable[[bool, Packet], Packet]:
    """Return what puts a tag of Marvell's switches where an EtherType is: to the processor, or from it."""

    def tagged(back: bool, packet: Packet) -> Packet:
        whole = bytes(ethernet(back) / packet)
        tag = one_of(back, 0x00180000, 0x40080000).to_bytes(4, "big")
        return Raw(whole[:12] + before + tag + whole[12:])

    return tagged


def backbone(back: bool, packet: Packet) -> Packet:
    return ethernet(back, type=0x88E7) / Raw(struct.pack(">I", 0x5A5A5)) / frame(back) / packet


def port_extension(back: bool, packet: Packet) -> Packet:
    return ethernet(back, type=0x893F) / Raw(struct.pack(">HHHH", 0, 0x0123, 0, 0x0800)) / packet


def gpe(back: bool, packet: Packet) -> Packet:
    header = struct.pack(">BBBBI", 0x0C, 0, 0, 1, 4242 << 8)
    return udp(back, 4790) / Raw(header) / packet


def pseudowire(back: bool, packet: Packet) -> Packet:
    return ethernet(back, type=0x8847) / labelled(back) / Raw(bytes(4)) / frame(back) / packet


CAPTURES: Final[dict[str, tuple[Callable[[bool, Packet], Packet], list[tuple[bool, Packet]]]]] = {
    "mpls": (lambda back, packet: ethernet(back, type=0x8847) / labelled(back) / packet, INNER_4),
    "mpls-ipv6": (lambda back, packet: ethernet(back, type=0x8847) / labelled(back) / packet, INNER_6),
    "mpls-ethernet": (
        lambda back, packet: ethernet(back, type=0x8847) / labelled(back) / frame(back) / packet,
        INNER_4,
    ),
    "mpls-control-word": (pseudowire, INNER_4),
    "gre": (lambda back, packet: outer(back) / GRE(proto=0x0800) / packet, INNER_4),
    "gre-key": (
        lambda back, packet: (
            outer(back) / GRE(proto=0x86DD, chksum_present=1, key_present=1, key=7, seqnum_present=1) / packet
        ),
        INNER_6,
    ),
    "gre-mpls": (lambda back, packet: outer(back) / GRE(proto=0x8847) / labelled(back) / packet, INNER_4),
    "pptp": (
        lambda back, packet: (
            outer(back)
            / GRE_PPTP(call_id=one_of(back, 11, 12), seqnum_present=1, sequence_number=1)
            / HDLC()
            / PPP(proto=0x21)
            / packet
        ),
        INNER_4,
    ),
    "nvgre": (
        lambda back, packet: (
            outer(back) / GRE(proto=0x6558, key_present=1, key=5001 << 8 | back) / frame(back) / packet
        ),
        INNER_4,
    ),
    "erspan-1": (lambda back, packet: outer(back) / GRE(proto=0x88BE) / frame(back) / packet, INNER_4),
    "erspan-2": (
        lambda back, packet: (
            outer(False)
            / GRE(proto=0x88BE, seqnum_present=1)
            / ERSPAN_II(session_id=100)
            / frame(back)
            / packet
        ),
        INNER_4,
    ),
    "erspan-3": (
        lambda back, packet: (
            outer(False)
            / GRE(proto=0x22EB, seqnum_present=1)
            / ERSPAN_III(session_id=100)
            / frame(back)
            / packet
        ),
        INNER_4,
    ),
    "ipv4-in-ipv4": (lambda back, packet: outer(back) / packet, INNER_4),
    "ipv6-in-ipv4": (lambda back, packet: outer(back) / packet, INNER_6),
    "ipv4-in-ipv6": (lambda back, packet: outer_6(back) / packet, INNER_4),
    "ipv6-in-ipv6": (lambda back, packet: outer_6(back) / packet, INNER_6),
    "vxlan": (
        lambda back, packet: udp(back, 4789) / VXLAN(vni=5001, flags=8) / frame(back) / packet,
        INNER_4,
    ),
    "vxlan-vlan": (
        lambda back, packet: (
            ethernet(back)
            / Dot1AD(vlan=7)
            / Dot1Q(vlan=42)
            / udp(back, 4789)[IP]
            / VXLAN(vni=5001, flags=8)
            / frame(back)
            / Dot1Q(vlan=9)
            / packet
        ),
        INNER_6,
    ),
    "vxlan-gpe": (gpe, INNER_4),
    "geneve": (
        lambda back, packet: (
            udp(back, 6081)
            / GENEVE(vni=77, proto=0x6558, options=b"\x01\x02\x03\x01abcd")
            / frame(back)
            / packet
        ),
        INNER_4,
    ),
    "gtp-u": (
        lambda back, packet: (
            udp(back, 2152, sport=2152) / GTP_U_Header(teid=one_of(back, 0x1001, 0x2002)) / packet
        ),
        INNER_4,
    ),
    "gtp-u-extension": (
        lambda back, packet: (
            udp(back, 2152, sport=2152)
            / GTP_U_Header(teid=one_of(back, 0x1001, 0x2002), E=1, S=1, seq=9, next_ex=0x85)
            / GTPPDUSessionContainer(type=int(back), QFI=5)
            / packet
        ),
        INNER_6,
    ),
    "l2tp": (
        lambda back, packet: (
            udp(back, 1701, sport=1701)
            / L2TP(hdr="length", tunnel_id=one_of(back, 3, 4), session_id=one_of(back, 5, 6))
            / HDLC()
            / PPP(proto=0x21)
            / packet
        ),
        INNER_4,
    ),
    "l2tp-3": (l2tp_3, INNER_4),
    "l2tp-3-cookie": (l2tp_3_with_cookie, INNER_4),
    "l2tp-3-ipv6": (l2tp_3_with_cookie, INNER_6),
    "eoip": (mikrotik, INNER_4),
    "metadata": (metadata, INNER_6),
    "dsa": (switch_tagged(b""), INNER_4),
    "edsa": (switch_tagged(b"\xda\xda\x00\x00"), INNER_6),
    "teredo": (lambda back, packet: udp(back, 3544, sport=50_002) / packet, INNER_6),
    "ah": (authenticated, INNER_4),
    "esp": (lambda back, packet: outer(back, proto=50) / unencrypted(back, bytes(packet)), INNER_4),
    "esp-in-udp": (
        lambda back, packet: udp(back, 4500, sport=4500) / unencrypted(back, bytes(packet)),
        INNER_4,
    ),
    "esp-transport-in-udp": (esp_transport_in_udp, INNER_4),
    "nsh": (lambda back, packet: ethernet(back, type=0x894F) / NSH(spi=5, si=254) / packet, INNER_4),
    "e-tag": (port_extension, INNER_4),
    "pbb": (backbone, INNER_4),
    "mpls-in-udp": (lambda back, packet: udp(back, 6635) / labelled(back) / packet, INNER_4),
    "gre-in-udp": (lambda back, packet: udp(back, 4754) / GRE(proto=0x0800) / packet, INNER_4),
    "etherip": (
        lambda back, packet: outer(back, proto=97) / Raw(b"\x30\x00") / frame(back) / packet,
        INNER_4,
    ),
    "nested": (
        lambda back, packet: (
            ethernet(back)
            / Dot1AD(vlan=7)
            / udp(back, 2152, sport=2152)[IP]
            / GTP_U_Header(teid=one_of(back, 1, 2))
            / IP(src="10.1.0.1", dst="10.1.0.2")
            / UDP(sport=1, dport=4789)
            / VXLAN(vni=88, flags=8)
            / frame(back)
            / packet
        ),
        INNER_4,
    ),
}
"""What is around a packet sent forth or back, and the packets."""

IDENTIFIERS: Final = {
    "vni": ("vxlan.vni", "geneve.vni"),
    "teid": ("gtp.teid",),
    "mpls_labels": ("mpls.label",),
    "vlans": ("ieee8021ad.id", "vlan.id"),
}
"""Columns, and tshark's fields for them."""


PSEUDOWIRES: Final = {"mpls-ethernet": "pwethnocw", "mpls-control-word": "pwethcw"}
"""tshark has to be told what they carry; what L2TP of version 3 carries, and what follows switches' tags, it
does not read at all."""


def write(path: Path, packets: list[Packet]) -> None:
    """Write a capture without times of today, so that a second run writes the same."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)]
    for number, packet in enumerate(packets):
        raw = bytes(packet)
        records.append(struct.pack("<IIII", 1_700_000_000, 1000 * number, len(raw), len(raw)) + raw)
    path.write_bytes(b"".join(records))


def ask_tshark(path: Path) -> dict[str, Any]:
    """Return packets, bytes and identifiers of each direction between the innermost ends."""
    fields = ["frame.len", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst"]
    fields += ["tcp.srcport", "tcp.dstport", "tcp.len", "udp.srcport", "udp.dstport", "udp.length"]
    fields += [field for names in IDENTIFIERS.values() for field in names]
    command = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-T",
        "fields",
        "-o",
        "esp.enable_null_encryption_decode_heuristic:TRUE",
    ]
    command += [argument for field in fields for argument in ("-e", field)]
    if path.stem in PSEUDOWIRES:
        for label in (300, 400):
            command += ["-d", f"mpls.label=={label},{PSEUDOWIRES[path.stem]}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    counts: dict[str, Counter[str]] = {}
    identifiers: dict[str, dict[str, Any]] = {}
    for line in lines:
        packet = {name: text.split(",") for name, text in zip(fields, line.split("\t"), strict=True)}
        layers = packet["frame.protocols"][0].split(":")
        ip = max(
            ("ip", "ipv6"),
            key=lambda name: max((at for at, one in enumerate(layers) if one == name), default=-1),
        )
        transport = "tcp" if "tcp" in layers else "udp"
        if not packet[f"{transport}.srcport"][-1]:
            continue
        ends = (
            packet[f"{ip}.src"],
            packet[f"{transport}.srcport"],
            packet[f"{ip}.dst"],
            packet[f"{transport}.dstport"],
        )
        direction = " ".join([transport, *(values[-1] for values in ends)])
        payload = int(packet["tcp.len"][-1]) if transport == "tcp" else int(packet["udp.length"][-1]) - 8
        count = counts.setdefault(direction, Counter())
        count.update(packets=1, wire_bytes=int(packet["frame.len"][0]), payload_bytes=payload)
        found = {
            name: "/".join(value for field in of for value in packet[field] if value)
            for name, of in IDENTIFIERS.items()
        }
        identifiers.setdefault(direction, {name: text for name, text in found.items() if text})
    return {direction: dict(counts[direction]) | identifiers[direction] for direction in counts}


def captures() -> Iterator[tuple[str, list[Packet]]]:
    for name, (around, packets) in CAPTURES.items():
        yield name, [around(back, packet) for back, packet in packets]


def main() -> None:
    expected = {}
    for name, packets in captures():
        path = HERE / f"{name}.pcap"
        write(path, packets)
        expected[name] = ask_tshark(path)
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
