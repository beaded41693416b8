"""`tfrctrace convert -o flow.pcapng`: captures that tshark and editcap read, and flows that stay the same."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import shutil
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfrctrace.parsers.anonymity import Anonymizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = Path(__file__).resolve().parents[2] / "data"
CAPTURES = DATA / "captures"
SAMPLES = DATA.parents[1] / "sample_traces"
TWO_FLOWS = SAMPLES / "two-flows.pcapng.gz"
KEY = b"sixteen bytes or more"

of_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is the witness")


def shown(capture: Path, *options: str) -> list[str]:
    command = ["tshark", "-n", "-r", str(capture), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


@cache
def digests_of_data(capture: Path, *options: str) -> list[str]:
    """Return the digests of a capture that no test changes."""
    return digests(capture, *options)


def digests(capture: Path, *options: str) -> list[str]:
    """Return time, length and MD5 of each packet as tshark reads it."""
    fields = ("frame.time_epoch", "frame.len", "frame.cap_len", "frame.md5_hash")
    chosen = [option for field in fields for option in ("-e", field)]
    return shown(capture, "-o", "frame.generate_md5_hash:TRUE", "-T", "fields", *chosen, *options)


def flows(run: Callable[..., Any], capture: Path) -> list[dict[str, Any]]:
    rows = json.loads(run("flows", capture, "-q", "--format", "json").out)["flows"]
    return [{**row, "source": None} for row in rows]


@pytest.mark.parametrize(("suffix", "module"), [("", None), (".gz", gzip), (".xz", lzma), (".bz2", bz2)])
def test_a_pcapng_file_is_copied_to_the_byte(
    suffix: str, module: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    copy = tmp_path / f"copy.pcapng{suffix}"
    assert run("convert", TWO_FLOWS, "-q", "-o", copy).status == 0
    written = copy.read_bytes()
    assert (module.decompress(written) if module else written) == gzip.decompress(TWO_FLOWS.read_bytes())


@of_tshark
@pytest.mark.parametrize("form", ["pcapng.zst", "pcap.gz", "pcap.lz4"])
@pytest.mark.parametrize(
    "name",
    [
        "linux-cooked-any-rtr-sll2.pcap.gz",
        "variant-bigendian.pcap.gz",
        "variant-nano-bigendian.pcap.gz",
        "variant-same.pcapng.gz",
        "variant-snap54.pcap.gz",
        "variant-clock-step-back.pcap.gz",
    ],
)
def test_tshark_sees_the_same_packets(name: str, form: str, run: Callable[..., Any], tmp_path: Path) -> None:
    capture, copy = CAPTURES / name, tmp_path / f"copy.{form}"
    assert run("convert", capture, "-q", "-o", copy).status == 0
    expected = digests_of_data(capture)
    assert expected
    assert digests(copy) == expected


@pytest.mark.parametrize("path", sorted(CAPTURES.iterdir()), ids=lambda path: path.name)
def test_a_copy_has_the_same_flows(path: Path, run: Callable[..., Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    done = run("convert", path, "-q", "-o", copy)
    if done.status == 0 or copy.exists():
        assert flows(run, copy) == flows(run, path)
    else:
        assert "error: " in done.err


@of_tshark
def test_packets_of_a_flow_a_class_and_a_cause_are_chosen(run: Callable[..., Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap"
    everything = digests_of_data(TWO_FLOWS)
    assert run("convert", TWO_FLOWS, "-q", "--flow", "2", "--flow", "3", "-o", copy).status == 0
    by_ports = "tcp.port in {35250, 43250}"
    assert digests(copy) == digests_of_data(TWO_FLOWS, "-Y", by_ports)

    assert (
        run("convert", TWO_FLOWS, "-q", "--class", "fast_retransmission", "-o", copy, "--force").status == 0
    )
    table = run(
        "convert",
        TWO_FLOWS,
        "-q",
        "--what",
        "losses",
        "--columns",
        "packet,class",
        "-o",
        "-",
        "--format",
        "csv",
    )
    of_class = [
        int(row.split(",")[0]) for row in table.out.splitlines() if row.endswith("fast_retransmission")
    ]
    assert of_class
    assert digests(copy) == [everything[number - 1] for number in of_class]

    assert (
        run("convert", TWO_FLOWS, "-q", "--cause", "recovery", "--flow", "2", "-o", copy, "--force").status
        == 0
    )
    times = [float(line.split("\t")[0]) for line in digests(copy)]
    table = run("convert", TWO_FLOWS, "-q", "--what", "causes", "-o", "-", "--format", "csv").out.splitlines()
    columns = table[0].split(",")
    rows = [dict(zip(columns, row.split(","), strict=True)) for row in table[1:]]
    spans = [
        (int(row["start_ns"]) / 1e9, int(row["end_ns"]) / 1e9)
        for row in rows
        if row["flow"] == "2" and row["cause"] == "recovery"
    ]
    assert times
    assert all(any(start - 1e-5 <= time <= end + 1e-5 for start, end in spans) for time in times)


@of_tshark
def test_comments_say_what_is_known_and_nothing_else_changes(run: Callable[..., Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcapng"
    assert run("convert", TWO_FLOWS, "-q", "--comments", "-o", copy).status == 0
    assert digests(copy) == digests_of_data(TWO_FLOWS)
    lines = shown(copy, "-T", "fields", "-e", "frame.number", "-e", "frame.comment", "-Y", "frame.comment")
    said = {int(number): comment for number, comment in (line.split("\t") for line in lines)}
    assert said[265] == "flow 2 fwd; fast_retransmission (evidence: sack); held back by recovery"
    # RTTs of tshark are those of acknowledgements, too
    fields = ["-T", "fields", "-e", "frame.number", "-e", "tcp.analysis.ack_rtt"]
    measured = dict(
        line.split("\t")
        for line in shown(TWO_FLOWS, *fields, "-Y", "tcp.analysis.ack_rtt && tcp.stream == 2")
    )
    ours = {
        number: found[1]
        for number, text in said.items()
        if (found := re.search(r"RTT ([\d.]+) ms \(ack\)", text))
    }
    both = [
        (float(ours[int(number)]), float(rtt) * 1e3)
        for number, rtt in measured.items()
        if int(number) in ours
    ]
    assert len(both) > 10
    assert all(abs(one - other) < 0.01 for one, other in both)
    rules = (tmp_path / "copy.pcapng.colorfilters").read_text().splitlines()
    conditions = [rule.split("@", 3)[2] for rule in rules[1:]]
    assert conditions
    # of several filters in brackets each has to be one
    any_of_them = " || ".join(f"({condition})" for condition in conditions)
    assert not subprocess.run(
        ["tshark", "-n", "-r", copy, "-c", "1", "-Y", any_of_them], check=False
    ).returncode


def test_what_is_chosen_by_two_readings_is_refused_from_standard_input(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    done = run("convert", "-", "--flow", "1", "-o", "/dev/null", "--format", "pcapng", stdin=b"")
    assert done.status == 2
    assert "by two readings" in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--class", "rto", "-o", "x.pcapng"), "there is no class `rto`"),
        (("--cause", "polcier", "-o", "x.pcapng"), "did you mean `policer`?"),
        (("--comments", "-o", "x.pcap"), "a pcap file has no place for comments"),
        (("--flow", "1", "-o", "x.csv"), "apply to captures only"),
        (("--columns", "flow", "-o", "x.pcapng"), "`--columns` does not apply to a capture"),
        (("--what", "rtt", "-o", "x.pcapng"), "`--what rtt` is a table"),
        (("--format", "pcap", "-o", "x.pcapng.gz"), "named as pcapng"),
        (("--flow", "99", "-o", "x.pcapng"), "no packet is of the chosen flow"),
    ],
)
def test_what_a_capture_cannot_be_is_said(
    options: tuple[str, ...],
    words: str,
    run: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("convert", TWO_FLOWS, "-q", *options)
    assert done.status == 2
    assert words in done.err
    assert not list(tmp_path.iterdir())


def block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def section(*interfaces: int) -> bytes:
    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    return head + b"".join(block(1, struct.pack("<HHI", kind, 0, 0)) for kind in interfaces)


def enhanced(interface: int, data: bytes, options: bytes = b"") -> bytes:
    head = struct.pack("<IIIII", interface, 0, 5, len(data), len(data))
    return block(6, head + data + bytes(-len(data) % 4) + options)


IPV4_PACKET = bytes.fromhex("45000014000000004001b6e5 0a000001 0a000002")


def test_unknown_blocks_options_and_sections_are_kept(run: Callable[..., Any], tmp_path: Path) -> None:
    option = struct.pack("<HH", 0x8001, 3) + b"abc\0" + bytes(4)
    parts = [
        section(101, 1),
        block(0x0BAD, b"unknown"),
        enhanced(0, IPV4_PACKET, option),
        block(4, struct.pack("<HH", 1, 8) + b"\x0a\0\0\1a.b\0" + bytes(4)),
        section(228),
        block(3, struct.pack("<I", len(IPV4_PACKET)) + IPV4_PACKET),
    ]
    capture, copy = tmp_path / "all.pcapng", tmp_path / "copy.pcapng"
    capture.write_bytes(b"".join(parts))
    assert run("convert", capture, "-q", "-o", copy).status == 0
    assert copy.read_bytes() == capture.read_bytes()
    pcap = tmp_path / "copy.pcap"
    done = run("convert", capture, "-q", "-o", pcap)
    assert done.status == 2
    assert "packets are of raw IP and of raw IPv4" in done.err
    assert not pcap.exists()


def test_several_captures_follow_each_other_and_joined_ones_are_one(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    whole = gzip.decompress(TWO_FLOWS.read_bytes())
    parts = [tmp_path / "link_1.pcapng", tmp_path / "link_2.pcapng"]
    records_at, at = [], 0
    while at < len(whole):
        kind, length = struct.unpack_from("<II", whole, at)
        records_at += [at] if kind == 6 else []
        at += length
    first, middle = records_at[0], records_at[7000]
    parts[0].write_bytes(whole[:middle])
    parts[1].write_bytes(whole[:first] + whole[middle:])
    copy, joined = tmp_path / "copy.pcapng", tmp_path / "joined.pcapng"
    assert run("convert", *parts, "-q", "-o", copy).status == 0
    assert copy.read_bytes() == parts[0].read_bytes() + parts[1].read_bytes()
    assert run("convert", "--join", *parts, "-q", "--flow", "2", "-o", joined).status == 0
    if shutil.which("tshark"):
        assert digests(joined) == digests_of_data(TWO_FLOWS, "-Y", "tcp.port == 35250")
    done = run("convert", "--join", TWO_FLOWS, *parts, "-q", "-o", tmp_path / "overlap.pcapng")
    assert done.status == 2
    assert "the joined captures overlap" in done.err


def test_what_comes_before_damage_is_copied(run: Callable[..., Any], tmp_path: Path) -> None:
    capture, copy = tmp_path / "cut.pcapng", tmp_path / "copy.pcapng"
    whole = section(101) + enhanced(0, IPV4_PACKET)
    capture.write_bytes(whole + enhanced(0, IPV4_PACKET)[:-9])
    done = run("convert", capture, "-o", copy)
    assert "the file ends inside a" in done.err
    assert copy.read_bytes() == whole


def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfrctrace", "convert", str(TWO_FLOWS), "-q", "-o", "copy.pcapng"]
    limited = ["bash", "-c", 'ulimit -f 100; exec "$@"', "bash", *command]
    done = subprocess.run(limited, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert "cannot write `copy.pcapng`: file too large" in done.stderr
    assert not list(tmp_path.iterdir())


# ---- without addresses


def hostile_packets() -> list[tuple[bytes, bytes]]:
    """Return frames of Ethernet with what names hosts, each with its payload."""
    scapy = pytest.importorskip("scapy.all", reason="scapy makes the packets")
    secret = bytes(range(65, 65 + 40))
    ether = scapy.Ether(src="02:11:22:33:44:55", dst="02:66:77:88:99:aa")
    four = scapy.IP(src="192.0.2.7", dst="198.51.100.9")
    six = scapy.IPv6(src="2001:db8::1:7", dst="2001:db8::2:9")
    tcp = scapy.TCP(sport=443, dport=5000, seq=7, options=[("MSS", 1460), ("Timestamp", (5, 6))])
    udp = scapy.UDP(sport=53, dport=5353)
    inner = ether / six / tcp / secret
    quoted = scapy.IP(bytes(four / scapy.UDP(sport=1, dport=2) / secret))
    frames = [
        ether / four / tcp / secret,
        ether / scapy.Dot1Q(vlan=7) / six / udp / secret,
        ether / scapy.ARP(psrc="192.0.2.7", pdst="192.0.2.8", hwsrc="02:11:22:33:44:55"),
        ether / four / scapy.UDP(dport=4789, sport=9999) / scapy.VXLAN(vni=3) / inner,
        ether / four / scapy.GRE(chksum_present=1) / four / tcp / secret,
        ether / four / six / udp / secret,
        ether / four / scapy.ICMP(type=3, code=1) / quoted,
        ether / four / scapy.ICMP(type=5, gw="192.0.2.99") / quoted,
        ether
        / six
        / scapy.ICMPv6ND_NS(tgt="2001:db8::77")
        / scapy.ICMPv6NDOptSrcLLAddr(lladdr="02:11:22:33:44:55"),
        ether
        / scapy.IP(src="192.0.2.7", dst="198.51.100.9", options=scapy.IPOption_RR(routers=["192.0.2.50"]))
        / tcp,
        ether / six / scapy.IPv6ExtHdrDestOpt() / udp / secret,
        ether / scapy.Raw(secret),
    ]
    return [(bytes(frame), secret) for frame in frames]


def pcap(link_type: int, packets: list[bytes]) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link_type)
    return head + b"".join(
        struct.pack("<IIII", number, 0, len(data), len(data)) + data for number, data in enumerate(packets, 1)
    )


def records(file: bytes) -> Iterator[bytes]:
    at = 24
    while at < len(file):
        length = struct.unpack_from("<I", file, at + 8)[0]
        yield file[at + 16 : at + 16 + length]
        at += 16 + length


def anonymised(run: Callable[..., Any], capture: Path, copy: Path) -> Any:
    key = copy.with_name("key")
    key.write_bytes(KEY)
    done = run("convert", capture, "--anonymize-key", key, "-o", copy)
    key.unlink()
    return done


NAMED = [
    *("021122334455", "0266778899aa", "c0000207", "c6336409", "c0000208", "c0000263", "c0000232"),
    *(
        "20010db8000000000000000000010007",
        "20010db8000000000000000000020009",
        "20010db8000000000000000000000077",
    ),
]


def test_no_address_and_no_content_is_left(run: Callable[..., Any], tmp_path: Path) -> None:
    capture, copy = tmp_path / "all.pcap", tmp_path / "copy.pcap"
    given = hostile_packets()
    capture.write_bytes(pcap(1, [data for data, _ in given]))
    assert anonymised(run, capture, copy).status == 0
    rewritten = list(records(copy.read_bytes()))
    assert [len(data) for data in rewritten] == [len(data) for data, _ in given]
    for name in NAMED:
        assert any(bytes.fromhex(name) in data for data, _ in given)
        assert bytes.fromhex(name) not in copy.read_bytes(), name
    secret = given[0][1]
    assert not any(secret[at : at + 8] in copy.read_bytes() for at in range(len(secret) - 7))


ADDRESSES = (
    *("eth.addr", "wlan.addr", "sll.src.eth", "ip.addr", "ipv6.addr", "arp.src.proto_ipv4"),
    "icmpv6.nd.ns.target_address",
)
CHECKSUMS = ("ip", "tcp", "udp", "icmp", "icmpv6")

GUESSED = {"mpls-control-word.pcap", "mpls-ethernet.pcap"}
"""Frames in MPLS, which tshark tells from IP by their first bits, and these are of an address."""


def merged(captures: list[Path], place: Path) -> Path:
    subprocess.run(["mergecap", "-a", "-F", "pcap", "-w", place, *captures], check=True)
    return place


@of_tshark
@pytest.mark.parametrize(
    "made_of",
    [
        "frames",
        "tunnels",
        "wifi/ns3-wifi-radiotap-veno-udp-2-1.pcap.gz",
        "captures/linux-cooked-any-rtr-sll2.pcap.gz",
    ],
)
def test_addresses_are_those_of_tables_and_checksums_are_right(
    made_of: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    capture, copy = tmp_path / "all.pcap", tmp_path / "copy.pcap"
    if made_of == "frames":
        capture.write_bytes(pcap(1, [data for data, _ in hostile_packets()]))
    elif made_of == "tunnels":
        merged([one for one in sorted((DATA / made_of).glob("*.pcap")) if one.name not in GUESSED], capture)
    else:
        capture = DATA / made_of
    assert anonymised(run, capture, copy).status == 0
    chosen = ["-T", "fields", *(option for field in ADDRESSES for option in ("-e", field))]
    host = Anonymizer(KEY).host
    expected = [
        "\t".join(",".join(host(name) for name in cell.split(",") if name) for cell in line.split("\t"))
        for line in shown(capture, *chosen)
    ]
    assert any("," in line for line in expected)
    assert shown(copy, *chosen) == expected
    checked = [option for kind in ("ip", "tcp", "udp") for option in ("-o", f"{kind}.check_checksum:TRUE")]
    bad = " || ".join(f'{kind}.checksum.status == "Bad"' for kind in CHECKSUMS)
    assert shown(copy, *checked, "-Y", bad) == []


def test_an_anonymised_capture_has_the_same_flows_but_for_names(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.pcapng"
    anonymised(run, TWO_FLOWS, copy)
    names = {"src", "dst", "interface"}

    def facts(capture: Path) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in row.items() if name not in names} for row in flows(run, capture)
        ]

    assert facts(copy) == facts(TWO_FLOWS)


def test_what_cannot_be_rewritten_is_left_out_and_counted(run: Callable[..., Any], tmp_path: Path) -> None:
    capture, copy = tmp_path / "all.pcap", tmp_path / "copy.pcapng"
    capture.write_bytes(pcap(117, [bytes(60), bytes(60)]))
    done = anonymised(run, capture, copy)
    assert "2 packets left out: link type packet filter log cannot be rewritten without addresses" in done.err
    assert "0 packets written" in done.err
