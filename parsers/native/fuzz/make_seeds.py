"""Make the seeds and dictionaries of the fuzz targets from the project's own traces.

Run `.venv/bin/python parsers/native/fuzz/make_seeds.py`. Past crashes (`crash-*`) stay.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.parsers.filters.capture_filters import CompiledFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FUZZ: Final = Path(__file__).parent
ROOT: Final = FUZZ.parents[2]
DATA: Final = ROOT / "tests" / "data"
PIECE_BYTES: Final = 4000
"""Of a text, from its beginning and from its middle."""
PACKETS: Final = 24
"""Of a capture."""
WORDS: Final = 80
"""Of a dictionary that is made from texts."""

TEXTS: Final = {
    "flowmon": ["ns3/ipv6-unrouted.flowmon.xml.gz", "ns3/p2p-newreno.flowmon.xml.gz"],
    "iperf": ["logs/linux-udp-vs-tcp-iperf-client.txt.gz", "logs/linux-udp-vs-tcp-iperf-server.txt.gz"],
    "iperf3": [
        "logs/linux-reverse-iperf3-client.json.gz",
        "logs/loopback-bidir-iperf3-client.json.gz",
        "logs/loopback-udp-iperf3-server.json.gz",
        "logs/loopback-iperf3-client.txt.gz",
    ],
    "kernel_events": ["logs/kernel-events/probe.txt.gz"],
    "qlog": ["quic/app-client.qlog.gz", "quic/app-server.qlog.gz"],
    "ns2": [
        "ns2/dumbbell-newreno.tr.xz",
        "ns2/mixed-new.tr.gz",
        "ns2/probes-wired.tr.gz",
        "ns2/probes-wireless.tr.gz",
        "ns2/tfrc/late.tr.xz",
        "ns2/timeouts.tr.xz",
    ],
    "ns3": [
        "ns3/ipv6-unrouted.tr.gz",
        "ns3/p2p-newreno.tr.xz",
        "ns3/p2p-newreno-3.10-style.tr.xz",
        "ns3/wifi-newreno.tr.xz",
    ],
    "ss": ["logs/linux-one-cubic-ss.txt.gz", "logs/linux-ipv6-ss.txt.gz", "logs/loopback-ss-tinmoep.txt.gz"],
    "tcp_info": ["logs/tcp-info/records.jsonl.gz"],
    "tcpdump": [
        "texts/tcpdump/linux-one-cubic-snd.nn-tt-S-v.txt.gz",
        "texts/tcpdump/linux-one-cubic-snd.nn-tt-e.txt.gz",
        "texts/tcpdump/linux-one-cubic-snd.nn-tt-x.txt.gz",
        "texts/tcpdump/linux-ipv6-snd.default.txt.gz",
        "texts/tcpdump/linux-udp-vs-tcp-rcv.nn-tt-q.txt.gz",
    ],
    "tcpvars": ["logs/ns2-rao4-err-samples-tcp.csv.gz", "logs/ns3-p2p-late-start-cwnd.txt.gz"],
}
"""Of targets that read a text, the texts that they begin with."""

CAPTURES: Final = (
    "linux-one-cubic-snd.pcap.gz",
    "linux-small-flows-rcv.pcap.gz",
    "linux-cooked-any-rtr-sll2.pcap.gz",
    "linux-ipv6-snd.pcap.gz",
    "variant-nano-bigendian.pcap.gz",
    "variant-qinq.pcap.gz",
)
FILTERS: Final = (
    "tcp port 80",
    "ip6 or (udp and greater 100)",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "vlan",
)

TOKENS: Final = {
    "capture": [
        b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00",  # pcap: µs, ns, the other byte order
        b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00",
        b"\xa1\xb2\xc3\xd4\x00\x02\x00\x04",
        b"\x0a\x0d\x0d\x0a",  # pcapng: blocks
        b"\x4d\x3c\x2b\x1a\x01\x00\x00\x00",
        b"\x01\x00\x00\x00",
        b"\x02\x00\x00\x00",
        b"\x03\x00\x00\x00",
        b"\x06\x00\x00\x00",
        b"\x1f\x8b\x08\x00",  # gzip, zstd, xz, lz4
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\x00",
        b"\x04\x22\x4d\x18",
        b"BZh91AY&SY",  # bzip2
        b"snoop\0\0\0\0\0\0\x02",
    ],
    "packet": [
        b"\x08\x00",  # EtherTypes: IPv4, IPv6, VLAN tags, PPPoE, MPLS
        b"\x86\xdd",
        b"\x81\x00",
        b"\x88\xa8",
        b"\x88\x64",
        b"\x88\x47",
        b"\x45\x00",
        b"\x60\x00\x00\x00",
        b"\x02\x04\x05\xb4",  # options of TCP
        b"\x04\x02",
        b"\x01\x03\x03\x07",
        b"\x01\x01\x08\x0a",
        b"\x01\x01\x05\x0a",
        b"\x01\x01\x05\x12",
        b"\x40\x06",  # TTL and protocol: TCP, UDP, ICMP, DCCP, ICMPv6
        b"\x40\x11",
        b"\x40\x01",
        b"\x40\x21",
        b"\x40\x3a",
        b"\x20\x00",  # fragments
        b"\x00\xb9",
    ],
    "frame": [
        b"\x08\x01",  # frame control of data, QoS data, ACK, beacon
        b"\x08\x02",
        b"\x88\x01",
        b"\x88\x02",
        b"\xd4\x00",
        b"\x80\x00",
        b"\xaa\xaa\x03\x00\x00\x00\x08\x00",  # LLC and SNAP
        b"\x00\x00\x44\x00",  # Prism
        b"\x80\x21\x10\x01",  # AVS
    ],
    "dccp": [
        *(bytes([kind << 1 | 1]) for kind in range(10)),  # packet types with long numbers
        b"\x21\x04",  # options: NDP count, timestamp, echo, elapsed time, those of CCID 3
        b"\x29\x06",
        b"\x2a\x06",
        b"\x2b\x06",
        b"\xc0\x06",
        b"\xc1\x0a",
        b"\xc2\x06",
        b"\x26\x04",
        b"\x20\x05\x01\x03",  # feature negotiation: CCID 3
    ],
    "opening": [
        b"\x16\x03\x01",  # records
        b"\x01\x00\x00",
        b"\x00\x00\x00\x0b\x00\x09\x00\x00\x06",  # extensions of names, protocols, Encrypted Client Hello
        b"\x00\x10\x00\x05\x00\x03\x02h3",
        b"\xfe\x0d",
        b"GET ",
        b"CONNECT ",
        b"http://",
        b" HTTP/1.1\r\n",
        b"Host: ",
    ],
    "rtp": [
        *(b"\x80" + bytes([kind]) for kind in range(200, 208)),  # RTCP packets
        b"\x8f\xcd",
        b"\x8b\xcd",
        b"\xbe\xde",  # header extension (RFC 8285)
        b"\x10\x00",
        b"\x01\x02\x03\x04",
        b"REMB",
    ],
    "quic": [
        *(
            bytes([first]) + b"\x00\x00\x00\x01" for first in (0xC0, 0xD0, 0xE0, 0xF0)
        ),  # long headers of version 1
        b"\xd0\x6b\x33\x43\xcf",
        b"\x80\x00\x00\x00\x00",  # version negotiation
        b"\x04AAAA\x04BBBB",
        b"\x04BBBB\x04CCCC",
        b"\x40CCCC",  # short headers with both values of the spin bit
        b"\x60CCCC",
        b"\x40BBBB",
        b"\x60BBBB",
        b"\x06\x00\x40",  # frames: CRYPTO, ACK
        b"\x02\x00\x00\x00\x00",
        b"\x01\x00\x00\xed\x03\x03",  # a client hello, extensions of names and protocols
        b"\x00\x00\x00\x0e\x00\x0c\x00",
        b"\x00\x10\x00\x05\x00\x03\x02h3",
    ],
    "tunnel": [
        b"\x08\x00",  # EtherTypes: IPv4, IPv6, VLAN tags, MPLS, bridged Ethernet, ERSPAN II and III, NSH, PBB
        b"\x86\xdd",
        b"\x81\x00",
        b"\x88\xa8",
        b"\x88\x47",
        b"\x65\x58",
        b"\x88\xbe",
        b"\x22\xeb",
        b"\x89\x4f",
        b"\x88\xe7",
        b"\x88\x0b",
        b"\xff\x03\x00\x21",  # PPP
        b"\x30\xff",  # GTP-U, with flags
        b"\x36\xff",
        b"\x08\x00\x00\x00",  # VXLAN
        b"\x00\x00\x01\x40",  # the last label
        b"\x20\x00",  # a key of GRE
        b"\x12\xb5",  # ports: VXLAN, Geneve, GTP-U
        b"\x17\xc1",
        b"\x08\x68",
        b"\x45\x00",
        b"\x60\x00\x00\x00",
    ],
    "filter": [
        struct.pack("<H", code) for code in (0x00, 0x06, 0x15, 0x16, 0x20, 0x28, 0x30, 0x48, 0x50, 0x80, 0xB1)
    ],
    "layout": [b"\x00\x00\x00\x01", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x0f\x42\x40"],
    "replay": [b"\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"],
}
"""Of targets that read bytes, those with a meaning."""

ALIKE: Final = {"datagram": "layout", "joined": "capture", "pair": "capture"}
"""Targets with the tokens of another one."""


def plain(path: Path) -> bytes:
    """Return the uncompressed content."""
    content = path.read_bytes()
    match path.suffix:
        case ".gz":
            return gzip.decompress(content)
        case ".xz":
            return lzma.decompress(content)
    return content


def pieces(text: bytes) -> Iterator[bytes]:
    """Yield whole lines from the beginning and from the middle, or a short text whole."""
    if len(text) <= 2 * PIECE_BYTES:
        yield text
        return
    for start in (0, len(text) // 2):
        begin = text.find(b"\n", start) + 1 if start else 0
        end = text.rfind(b"\n", begin, begin + PIECE_BYTES) + 1
        yield text[begin : end or begin + PIECE_BYTES]


class Capture:
    """The first packets of a pcap file."""

    def __init__(self, content: bytes, most: int = PACKETS) -> None:
        order = ">" if content[:1] == b"\xa1" else "<"
        (self.link_type,) = struct.unpack_from(f"{order}I", content, 20)
        self.packets: list[bytes] = []
        at = 24
        while at + 16 <= len(content) and len(self.packets) < most:
            (captured,) = struct.unpack_from(f"{order}8xI", content, at)
            self.packets.append(content[at + 16 : at + 16 + captured])
            at += 16 + captured
        self.content = content[:at]


def capture(name: str, most: int = PACKETS) -> Capture:
    """Read the first packets of a capture of the test data."""
    return Capture(plain(DATA / name), most)


def with_lengths(packets: Iterable[bytes], most: int = 255) -> bytes:
    """Join packets as the targets split them: each behind a byte with its length."""
    return b"".join(bytes([len(packet[:most])]) + packet[:most] for packet in packets)


def behind_length(piece: bytes) -> bytes:
    """Return a piece behind the two bytes with its length."""
    return struct.pack("<H", len(piece)) + piece


def tfrc_layout() -> bytes:
    """Choose fields of data (a mark 1, a number, a time, no RTT) and of reports (mark 2) on port 5201."""
    number, time, nothing = bytes([1, 3]), bytes([5, 3]), bytes([0, 7, 0, 3])
    data = bytes([4, 0xFF, 1, 0, 0]) + number + time + struct.pack("<I", 1000) + nothing
    reports = bytes([1, 4, 0xFF, 2, 0, 0]) + time
    quantities = bytes([9, 3, 0, 1, 13, 3, 0, 3, 17, 3, 2, 3])
    return b"\x05" + data + reports + quantities + number + b"\x00"


def tfrc_datagrams() -> Iterator[bytes]:
    """Yield data and reports of that layout, each behind the byte with the end that sends it."""
    for number in range(60):
        time = 10_000 * number
        if number % 7 != 5:
            yield struct.pack(">BBII20x", 0, 1, number, time)
        if number % 10 == 9:
            yield struct.pack(">BBIIIII", 1, 2, number, time, 500, 100_000, 50)


def recordings() -> Iterator[bytes]:
    """Yield recordings for each way of replaying and each profile: as `fuzz_targets/replay.rs` reads them."""
    step = struct.pack("<BH", 0, 20)
    report = step + struct.pack("<BHII", 1, 200, 1 << 25, 125_000)
    sends = step + struct.pack("<BH", 0, 1000)
    packet = struct.pack("<B", 0) + step + struct.pack("<BH", 0, 60) + struct.pack("<H", 1000)
    lost = struct.pack("<B", 2) + step + struct.pack("<H", 1000)
    rounds = step + b"\x00" + struct.pack("<H", 100) + (step + b"\x02" + struct.pack("<H", 1000)) * 9
    loss = step + b"\x01" + struct.pack("<H", 30)
    for profile in range(4):
        head = struct.pack("<H", 999) + bytes([profile, 0, 0, 0])
        yield b"\x00" + head + (sends * 5 + report) * 12
        yield b"\x01" + head + struct.pack("<HB", 40, 0) + (packet * 12 + lost) * 4
        yield b"\x02" + head + b"\x00" + (rounds * 2 + loss) * 4


def program(expression: str) -> bytes:
    """Compile a filter for Ethernet."""
    return b"".join(struct.pack("<HBBI", *one) for one in CompiledFilter(expression)(1, 262_144))


def table_of_packets() -> bytes:
    """Return the table of packets of a capture, as the program writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "link.pcap"
        path.write_bytes(capture("captures/linux-one-cubic-snd.pcap.gz").content)
        table = path.with_suffix(".csv")
        command = ["convert", "--what", "packets", str(path), "-o", str(table)]
        subprocess.run([sys.executable, "-m", "tfrctrace", *command], check=True)
        return table.read_bytes()


def seeds() -> Iterator[tuple[str, bytes]]:
    """Yield targets and seeds."""
    for target, names in TEXTS.items():
        for name in names:
            yield from ((target, piece) for piece in pieces(plain(DATA / name)))
    yield "packets", table_of_packets()
    captures = [capture(f"captures/{name}") for name in CAPTURES]
    for one in captures:
        yield "capture", one.content
        # 255 stands for cooked captures v2, which have 276
        yield "packet", bytes([min(one.link_type, 255)]) + with_lengths(one.packets)
    yield "capture", gzip.compress(captures[0].content, mtime=0)
    yield "capture", plain(DATA / "captures" / "variant-same.pcapng.gz")[:PIECE_BYTES]
    for name, choice in (("ns3-wifi-plain-newreno-1-1", 0), ("ns3-wifi-radiotap-veno-udp-2-1", 2)):
        yield "frame", bytes([choice]) + with_lengths(capture(f"wifi/{name}.pcap.gz").packets)
    yield "tunnel", with_lengths(map(behind_choice, tunnelled()))
    dccp = Capture(plain(ROOT / "sample_traces" / "dccp-ccid3.pcap.gz"), 4 * PACKETS)
    packets = [packet[-(len(packet) - packet.index(b"\x45")) :] for packet in dccp.packets]
    client = packets[0][12:16]
    yield "dccp", with_lengths(bytes([packet[12:16] != client]) + packet[24:] for packet in packets)
    yield "rtp", with_lengths(packet[42:] for packet in capture("rtp/gstreamer-sender.pcap.gz", 60).packets)
    encrypted = capture("rtp/webrtc.pcap.gz", 120).packets
    yield "rtp", with_lengths(packet[42:] for packet in encrypted if packet[42] >> 6 == 2)
    vectors = json.loads((DATA / "vectors" / "quic_initial.json").read_text())
    hello = bytes.fromhex(vectors[0]["expect"]["frames"])[:245]
    # a client that moves after a while, and bits that spin
    spins = [
        bytes([side | number // 30 << 6, 0x40 | (number // 5 % 2) << 5]) + ids
        for number in range(60)
        for side, ids in ((0, b"CCCC"), (1, b"BBBB"))
    ]
    yield "quic", with_lengths([hello, *spins])
    hello = bytes.fromhex(json.loads((DATA / "vectors" / "tls_client_hello.json").read_text())[0]["message"])
    records = b"".join(behind_record(hello[at : at + 90]) for at in (0, 90, 180))
    requests = (
        b"GET /a HTTP/1.1\r\nAccept: */*\r\nHost: a.example:80\r\n\r\n",
        b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n",
    )
    for stream in (records, *requests):
        places = range(0, len(stream), 30)
        yield (
            "opening",
            with_lengths(place.to_bytes(2, "big") + stream[place : place + 40] for place in places),
        )
    mixed = capture("captures/linux-udp-vs-tcp-snd.pcap.gz", 400).packets
    yield "datagram", with_lengths(packet[42:] for packet in mixed[:400] if packet[23:24] == b"\x11")
    yield "datagram", with_lengths(packet[1:] for packet in tfrc_datagrams() if packet[:1] == b"\x00")
    yield "layout", tfrc_layout() + with_lengths(tfrc_datagrams())
    yield "layout", bytes([0, 1, 3, 5, 3]) + struct.pack("<IB", 1000, 0) + with_lengths(tfrc_datagrams())
    for expression in FILTERS:
        yield "filter", behind_length(program(expression)) + with_lengths(captures[0].packets[:8])
    ends = [
        capture(f"{name}.pcap.gz").content
        for name in ("captures/linux-relay-loss-snd", "pair/linux-relay-loss-rcv")
    ]
    yield "pair", behind_length(ends[0]) + ends[1]
    whole, first = (capture("captures/linux-one-cubic-snd.pcap.gz", most).content for most in (40, 20))
    second = whole[:24] + whole[len(first) :]
    yield "joined", behind_length(first) + behind_length(second)
    yield "joined", behind_length(second) + behind_length(whole)
    yield "joined", b"".join(map(behind_length, ends))
    yield from (("replay", recording) for recording in recordings())


def tunnelled() -> Iterator[bytes]:
    """Yield the first packets of each encapsulation over IPv4, from the IP header on."""
    for path in sorted((DATA / "tunnels").glob("*.pcap")):
        packets = Capture(path.read_bytes()).packets
        yield from (packet[14:] for packet in packets[:4] if packet[12:14] == b"\x08\x00")


def behind_record(fragment: bytes) -> bytes:
    """Return a record of TLS with a part of the handshake."""
    return b"\x16\x03\x01" + len(fragment).to_bytes(2, "big") + fragment


def behind_choice(packet: bytes) -> bytes:
    """Replace IP and UDP headers by the byte that stands for them: as `fuzz_targets/packets.rs` reads it."""
    protocols = (4, 41, 47, 50, 51, 94, 97, 115, 137)
    ports = (4789, 4790, 6081, 2152, 1701, 3544, 6635, 4754, 4500)
    if packet[9] in protocols:
        return bytes([protocols.index(packet[9])]) + packet[20:]
    return bytes([len(protocols) + ports.index(int.from_bytes(packet[22:24], "big"))]) + packet[28:]


def words(texts: Iterable[bytes]) -> list[bytes]:
    """Return the words that come first in texts, which are those of their format, not numbers."""
    found: dict[bytes, None] = {}
    for text in texts:
        found |= dict.fromkeys(re.findall(rb"[A-Za-z_:<\"\[-][A-Za-z0-9_.:\"=<>/-]{1,23}", text)[:400])
    return list(found)[:WORDS]


def main() -> None:
    """Write all seeds and dictionaries."""
    made: dict[str, list[bytes]] = {}
    for target, seed in seeds():
        made.setdefault(target, []).append(seed)
    for target, contents in made.items():
        folder = FUZZ / "corpora" / target
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("seed-*"):
            path.unlink()
        for number, content in enumerate(contents, 1):
            (folder / f"seed-{number}").write_bytes(content)
        tokens = TOKENS.get(ALIKE.get(target, target)) or words(contents)
        lines = ('"' + "".join(f"\\x{byte:02x}" for byte in token) + '"' for token in tokens)
        if target in TEXTS or target == "packets":
            lines = ('"' + token.decode().replace("\\", "\\\\").replace('"', '\\"') + '"' for token in tokens)
        (FUZZ / "dictionaries").mkdir(exist_ok=True)
        (FUZZ / "dictionaries" / f"{target}.dict").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
