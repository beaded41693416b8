"""Filters: compiled by libpcap, and run by the core to the same result as by tcpdump, packet for packet."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import tfrctrace
from tfrctrace.base.errors import FilterError
from tfrctrace.parsers.filters.capture_filters import CompiledFilter, _libpcap, bundled_libraries
from tfrctrace.parsers.filters.display_filters import as_capture_filter
from tfrctrace.parsers.reading_settings import ReadSettings

ETHERNET, RAW, COOKED, COOKED_2, NULL, PPP = 1, 101, 113, 276, 0, 9

RETURN_CODE = 0x06  # BPF_RET


def test_the_library_is_the_one_that_the_package_carries():
    if platform.system() != "Linux":
        pytest.skip("the package `libpcap` carries a library for Linux only")
    assert len(bundled_libraries()) == 1
    assert _libpcap().pcap_lib_version().startswith(b"libpcap version 1.")


def test_a_program_ends_in_a_return():
    assert CompiledFilter("tcp")(ETHERNET, 96)[-1][0] == RETURN_CODE


def test_the_snap_length_is_what_a_matching_packet_returns():
    accepted = {k for code, _, _, k in CompiledFilter("tcp")(ETHERNET, 96) if code == RETURN_CODE}
    assert accepted == {96, 0}


def test_programs_differ_between_link_types():
    compiled = CompiledFilter("tcp port 80")
    assert compiled(ETHERNET, 96) != compiled(RAW, 96)


def test_a_bad_expression_is_refused_at_once_in_the_words_of_libpcap():
    with pytest.raises(FilterError) as caught:
        CompiledFilter("tcp prt 80")
    assert caught.value.reason == "can't parse filter expression: syntax error"
    assert caught.value.expression == "tcp prt 80"


def test_an_expression_that_no_packet_can_match_is_refused_as_tcpdump_does():
    with pytest.raises(FilterError, match="expression rejects all packets"):
        CompiledFilter("tcp and udp and ip proto 1")


def test_an_expression_for_another_link_type_than_ethernet_is_accepted():
    compiled = CompiledFilter("inbound")
    assert compiled(COOKED, 96)
    with pytest.raises(
        FilterError, match="inbound/outbound not supported on Ethernet when reading savefiles"
    ):
        compiled(ETHERNET, 96)


def test_a_nul_character_does_not_hide_the_rest_of_an_expression():
    with pytest.raises(FilterError, match="NUL"):
        CompiledFilter("tcp\0 or nonsense")


def test_an_empty_expression_takes_every_packet():
    assert CompiledFilter("")(ETHERNET, 96) == [(RETURN_CODE, 0, 0, 96)]


def test_an_unknown_link_type_is_refused_with_the_words_of_libpcap():
    with pytest.raises(FilterError, match="link"):
        CompiledFilter("tcp")(147, 96)


def test_threads_may_compile_the_same_expression():
    compiled = CompiledFilter("tcp port 80 or udp portrange 5000-6000")
    with ThreadPoolExecutor(8) as pool:
        programs = list(pool.map(lambda snap: compiled(ETHERNET, 100 + snap % 4), range(200)))
    assert all(program == programs[index % 4] for index, program in enumerate(programs))


EXPRESSIONS = [
    "",
    "tcp",
    "udp",
    "ip",
    "ip6",
    "arp",
    "icmp",
    "icmp6",
    "host 192.0.2.1",
    "src host 198.51.100.7",
    "dst net 198.51.100.0/24",
    "tcp port 5201 and host 192.0.2.1",
    "port 53",
    "portrange 5000-6000",
    "not port 80",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[13] = 0x12",
    "(ip[2:2] - ((ip[0]&0xf)<<2)) > 60",
    "greater 100",
    "less 80",
    "ip6 and udp",
    "host 2001:db8::1",
    "ip6 host 2001:db8::2 and tcp port 443",
    "ip proto 17 or ip6 proto 6",
    "ip[6:2] & 0x1fff != 0",
    "ip[6:2] & 0x2000 != 0",
    "icmp[icmptype] = icmp-unreach",
    "tcp and not (src port 80 or dst port 80)",
    "ether proto 0x0806",
    "ether host 02:00:00:00:00:01",
    "ether multicast",
    "vlan",
    "vlan 7 and tcp",
    "vlan and dst port 53",
    "vlan and tcp[tcpflags] & tcp-syn != 0",
    "vlan and vlan and udp",
    "inbound",
    # libpcap 1.10.3 counts 255.255.255.255 as multicast, 1.10.6 does not
    "ip multicast and not host 255.255.255.255",
    "ip broadcast",
    "ip[8] < 64 and len > 60",
    "tcp[tcp[12] >> 2 & 0x3c : 4] = 0x78787878",
]


@pytest.fixture(scope="module")
def packets():
    """Network-layer packets of many kinds: protocols, options, fragments, flags, sizes."""
    from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, fragment
    from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop

    a, b = "192.0.2.1", "198.51.100.7"
    six = {"src": "2001:db8::1", "dst": "2001:db8::2"}
    dropped = IP(src=a, dst=b) / UDP(sport=1, dport=33434)
    return [
        *(IP(src=a, dst=b) / TCP(sport=40000, dport=5201, flags=flag) for flag in ("S", "A", "FA", "R")),
        IP(src=b, dst=a) / TCP(sport=5201, dport=40000, flags="SA"),
        IP(src=a, dst=b, options=[IPOption_NOP()] * 4) / TCP(sport=40001, dport=80, flags="A") / (b"x" * 200),
        IP(src=a, dst=b, ttl=3) / UDP(sport=5000, dport=53) / (b"q" * 30),
        IP(src=b, dst=a) / UDP(sport=53, dport=5000) / (b"a" * 300),
        IP(src=a, dst="224.0.0.5") / UDP(sport=1, dport=2),
        IP(src=a, dst="255.255.255.255") / UDP(sport=67, dport=68),
        IP(src=b, dst=a) / ICMP(type=3, code=3) / dropped,
        IP(src=a, dst=b) / ICMP() / b"ping",
        *fragment(IP(src=a, dst=b, id=9) / UDP(sport=5002, dport=5003) / (b"f" * 1000), fragsize=400),
        IPv6(**six) / TCP(sport=50000, dport=443, flags="S"),
        IPv6(**six) / UDP(sport=5004, dport=53) / b"six",
        IPv6(**six) / IPv6ExtHdrHopByHop() / TCP(sport=50001, dport=443),
        IPv6(**six) / IPv6ExtHdrFragment(offset=0, m=1, id=4) / UDP(sport=5005, dport=5006) / (b"y" * 64),
        IPv6(**six) / ICMPv6EchoRequest(),
        IP(src=a, dst=b, proto=132) / (b"\0" * 24),
    ]  # fmt: skip


def ethernet(packet):
    from scapy.layers.l2 import Ether

    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet


def tagged(packet):
    from scapy.layers.l2 import Dot1Q, Ether

    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / Dot1Q(vlan=7) / packet


def twice_tagged(packet):
    from scapy.layers.l2 import Dot1Q, Ether

    return (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x8100)
        / Dot1Q(vlan=7)
        / Dot1Q(vlan=8)
        / packet
    )


def raw(packet):
    return packet


def cooked(packet):
    from scapy.layers.l2 import CookedLinux

    return CookedLinux(pkttype=4 if packet.src.startswith("192") else 0, src=b"\2\0\0\0\0\1") / packet


def cooked_2(packet):
    from scapy.layers.l2 import CookedLinuxV2

    return CookedLinuxV2(pkttype=4 if packet.src.startswith("192") else 0, ifindex=2) / packet


def null(packet):
    return (2 if packet.version == 4 else 10).to_bytes(4, "little") + bytes(packet)


def ppp(packet):
    return b"\xff\x03" + (0x21 if packet.version == 4 else 0x57).to_bytes(2) + bytes(packet)


FRAMINGS = [
    (ethernet, ETHERNET),
    (tagged, ETHERNET),
    (twice_tagged, ETHERNET),
    (raw, RAW),
    (cooked, COOKED),
    (cooked_2, COOKED_2),
    (null, NULL),
    (ppp, PPP),
]


def numbers_by_tcpdump(path, expression):
    """Return the numbers of the packets tcpdump takes, or its error.

    tcpdump numbers what it shows, so each packet has a time of its own that identifies it.
    """
    command = ["tcpdump", "-n", "-tt", "-r", str(path), *([expression] if expression else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].removeprefix("tcpdump: ")
    times = re.findall(r"^ *(\d+)\.(\d{6}) ", done.stdout, re.MULTILINE)
    return [(int(seconds) - 1_700_000_000) * 100 + int(us) // 10_000 + 1 for seconds, us in times]


def numbers_by_the_core(path, expression):
    from tfrctrace.parsers._native import PacketReader

    try:
        reader = PacketReader([str(path)], ReadSettings(filter=CompiledFilter(expression)))
        numbers = []
        while (batch := reader.next_batch()) is not None:
            numbers += [row["packet"] for row in batch.rows()]
    except FilterError as error:
        return error.reason
    return numbers


@pytest.mark.skipif(not shutil.which("tcpdump"), reason="tcpdump is not installed")
@pytest.mark.parametrize(("framing", "link_type"), FRAMINGS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_same_packets_pass_as_with_tcpdump(packets, write_capture, framing, link_type):
    path = write_capture("all.pcap", [bytes(framing(packet)) for packet in packets], link_type=link_type)
    compared = matched = 0
    for expression in EXPRESSIONS:
        expected = numbers_by_tcpdump(path, expression)
        assert numbers_by_the_core(path, expression) == expected, expression
        compared += 1
        matched += isinstance(expected, list) and 0 < len(expected) < len(packets)
    assert compared == len(EXPRESSIONS)
    assert matched >= 3, "expressions should distinguish packets, those with `vlan` also tagged ones"


def test_a_filter_is_compiled_for_each_link_type_of_a_file(conversation, tmp_path):
    """A pcapng file with an Ethernet and a raw interface: the filter means the same on both."""
    import struct

    from tfrctrace.parsers._native import analyse

    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    def packet(interface, number, frame):
        return block(6, struct.pack("<IIIII", interface, 0, number, len(frame), len(frame)) + frame)

    content = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    content += block(1, struct.pack("<HHI", ETHERNET, 0, 96)) + block(1, struct.pack("<HHI", RAW, 0, 200))
    for number, frame in enumerate(conversation(40_001)):
        content += packet(0, number, frame)
    for number, frame in enumerate(conversation(40_002, link_layer=False)):
        content += packet(1, number, frame)
    path = tmp_path / "two.pcapng"
    path.write_bytes(content)

    asked = set()

    def compiled(link_type, snap_length):
        asked.add(link_type)
        return CompiledFilter("tcp dst port 80")(link_type, snap_length)

    analysis = analyse([str(path)], ReadSettings(filter=compiled))
    assert asked == {ETHERNET, RAW}
    counts = {(row["src_port"], row["packets"]) for row in analysis.table("flows").rows() if row["packets"]}
    one_way = len([frame for frame in conversation() if frame[26:30] == bytes([192, 0, 2, 1])])
    assert counts == {(40_001, one_way), (40_002, one_way)}


DISPLAY_FILTERS = {
    "tcp.port == 5201": "tcp port 5201",
    "ip.addr==192.0.2.2&&tcp.dstport eq 8080": "ip host 192.0.2.2 and tcp dst port 8080",
    "ip.src == 192.0.2.0/24 and !udp": "ip src net 192.0.2.0/24 and not udp",
    "tcp.port != 8080": "(tcp and not tcp port 8080)",
    "udp or tcp.port == 5201 and ip.dst == 192.0.2.1": "(udp) or (tcp port 5201 and ip dst host 192.0.2.1)",
    "(udp || tcp.srcport == 8080) && ip": "(((udp) or (tcp src port 8080)) and ip)",
    "ipv6.addr == 2001:db8::1 || icmp": "ip6 host 2001:db8::1 or icmp",
}


@pytest.mark.parametrize(("display_filter", "capture_filter"), DISPLAY_FILTERS.items())
def test_what_is_proposed_for_a_display_filter_takes_the_same_packets(
    display_filter, capture_filter, pytestconfig
):
    assert as_capture_filter(display_filter) == capture_filter
    if shutil.which("tshark") is None or shutil.which("zstd") is None:
        pytest.skip("tshark or zstd is not installed")
    path = pytestconfig.rootpath / "sample_traces" / "mixed.pcap.zst"
    # tshark also takes packets that an ICMP error quotes
    content = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    shown = subprocess.run(
        ["tshark", "-n", "-r", "-", "-Y", f"({display_filter}) && !icmp"],
        input=content,
        capture_output=True,
        check=True,
    )
    trace = tfrctrace.open(path, filter=f"({capture_filter}) and not icmp")
    assert sum(frame.height for frame in trace.packets()) == shown.stdout.count(b"\n")


@pytest.mark.parametrize(
    "expression", ["tcp prt 80", "tcp.flags.syn == 1", "tcp.port > 80", "tcp.port ==", "frame.len < 9"]
)
def test_nothing_is_proposed_for_what_tcpdump_cannot_say(expression):
    assert as_capture_filter(expression) is None


def test_a_display_filter_is_refused_with_a_proposal(run, pytestconfig):
    done = run(
        "flows", pytestconfig.rootpath / "sample_traces" / "two-flows.pcapng.gz", "-f", "tcp.port == 80"
    )
    assert done.status == 2
    assert "hint:  this is Wireshark's syntax; tcpdump's is `tcp port 80`\n" in done.err
