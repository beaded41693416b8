"""Links and flows of 802.11 captures are those of tshark and of the simulator that wrote them.

`tests/data/wifi` holds what tshark printed when the captures were taken in (`witness.py` there), and what
ns-3's FlowMonitor counted at the IP layer. A frame that the link repeated although the capture had shown it
is one packet to us, as it is to the receiving station.
"""

import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scapy.layers.dot11 import Dot11, Dot11QoS
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

from tfrctrace.parsers import _native
from tfrctrace.parsers.filters.capture_filters import CompiledFilter
from tfrctrace.parsers.reading_settings import ReadSettings

WIFI = Path(__file__).resolve().parent.parent.parent / "data" / "wifi"
TSHARK = json.loads((WIFI / "tshark.json").read_text())
TRUTH = json.loads((WIFI / "truth.json").read_text())
PLAIN = "ns3-wifi-plain-newreno-1-1.pcap.gz"
RADIOTAP = "ns3-wifi-radiotap-veno-udp-2-1.pcap.gz"
COLUMNS = ("transport", "src", "src_port", "dst", "dst_port")
has_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

Row = dict[str, Any]


def analyse(path: Path, *collect: str, **options: Any) -> Any:
    analysis = _native.analyse([str(path)], ReadSettings(**options), collect=set(collect))
    assert [problem for problem in analysis.problems if problem["severity"] == "error"] == []
    return analysis


def flows(path: Path) -> dict[tuple[Any, ...], Row]:
    return {
        tuple(row[name] for name in COLUMNS): row
        for row in analyse(path).table("flows").rows()
        if row["packets"]
    }


@pytest.mark.parametrize("capture", [PLAIN, RADIOTAP])
@pytest.mark.parametrize("column", ["packets", "wire_bytes", "payload_bytes"])
def test_flows_are_tsharks_with_repeated_frames_counted_once(capture: str, column: str) -> None:
    theirs = {tuple(row[name] for name in COLUMNS): row[column] for row in TSHARK[capture]["flows"]}
    assert {ends: row[column] for ends, row in flows(WIFI / capture).items()} == theirs


@pytest.mark.parametrize("capture", [PLAIN, RADIOTAP])
def test_repeated_packets_are_counted_and_are_no_retransmissions(capture: str) -> None:
    analysis = analyse(WIFI / capture)
    (source,) = analysis.sources
    assert source["repeated_packets"] == sum(row["repeated"] for row in TSHARK[capture]["flows"]) > 0
    assert source["undecoded_packets"] == 0
    # captured at the receiver: what TCP sent again had been lost before
    assert [
        row["retransmitted_packets"] for row in analysis.table("flows").rows() if row["transport"] == "tcp"
    ] == [
        0,
        0,
    ]


@pytest.mark.parametrize("capture", [PLAIN, RADIOTAP])
def test_packets_are_those_that_the_simulators_ip_layer_received(capture: str) -> None:
    ours = flows(WIFI / capture)
    for counted in TRUTH[capture]:
        transport = {6: "tcp", 17: "udp"}[counted["proto"]]
        ends = (transport, counted["src"], counted["sport"], counted["dst"], counted["dport"])
        # the station captured sends the acknowledgements, and receives the rest
        is_sent_here = counted["sport"] == 5001
        assert ours[ends]["packets"] == counted["txPackets" if is_sent_here else "rxPackets"]


@pytest.mark.parametrize("capture", [PLAIN, RADIOTAP])
def test_links_are_tsharks(capture: str) -> None:
    ours = {
        (row["transmitter"], row["receiver"]): row for row in analyse(WIFI / capture).table("links").rows()
    }
    theirs = {(row["transmitter"], row["receiver"]): row for row in TSHARK[capture]["links"]}
    assert ours.keys() == theirs.keys()
    for ends, expected in theirs.items():
        assert {name: ours[ends][name] for name in expected} == pytest.approx(expected), ends


def test_samples_add_up_to_their_links() -> None:
    analysis = analyse(WIFI / RADIOTAP, "link_samples")
    samples = analysis.table("link_samples").rows()
    assert len(samples) == sum(row["frames"] for row in analysis.table("links").rows())
    assert sum(row["bytes"] for row in samples) == sum(row["bytes"] for row in analysis.table("links").rows())
    assert sum(row["retry"] for row in samples) == sum(
        row["retry_frames"] for row in analysis.table("links").rows()
    )
    assert {row["kind"] for row in samples} == {"data", "management", "control"}
    assert len(analyse(WIFI / RADIOTAP).table("link_samples")) == 0


@pytest.mark.parametrize("capture", [PLAIN, RADIOTAP])
@pytest.mark.parametrize("expression", ["tcp", "port 5001", "wlan type ctl", "wlan addr2 00:00:00:00:00:04"])
@has_tshark
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_filters_let_through_what_tcpdump_does(tmp_path: Path, capture: str, expression: str) -> None:
    plain = tmp_path / "plain.pcap"
    subprocess.run(f"gzip -dc '{WIFI / capture}' > '{plain}'", shell=True, check=True)
    theirs = subprocess.run(
        ["tcpdump", "-nr", str(plain), "--count", expression], capture_output=True, text=True, check=True
    )
    (source,) = analyse(plain, filter=CompiledFilter(expression)).sources
    assert source["packets"] == int(theirs.stdout.split()[0]) > 0


HEADER = bytes([8, 1, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x70, 0])
SNAP = bytes([0xAA, 0xAA, 3, 0, 0, 0, 8, 0])


def radiotap_headers() -> list[bytes]:
    """Headers of every modulation and coding of HT, VHT and HE."""
    fields = [(19, bytes([7, flags, number])) for number in range(32) for flags in range(6)]
    fields += [
        (21, struct.pack("<HBB4sBBH", 0x44, flags, width, bytes([scheme << 4 | streams, 0, 0, 0]), 0, 0, 0))
        for width in (0, 1, 4, 11)
        for flags in (0, 4)
        for scheme in range(10)
        for streams in (1, 2, 3, 8)
    ]
    fields += [
        (23, struct.pack("<6H", 0x4020, 2, scheme << 8, 0, width | guard << 4, streams))
        for width in range(7)
        for guard in range(3)
        for scheme in range(12)
        for streams in (1, 4)
    ]
    return [struct.pack("<BBHI", 0, 0, 8 + len(field), 1 << bit) + field for bit, field in fields]


def write(path: Path, link_type: int, frames: list[bytes]) -> Path:
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link_type)]
    records += [struct.pack("<IIII", n, 0, len(frame), len(frame)) + frame for n, frame in enumerate(frames)]
    path.write_bytes(b"".join(records))
    return path


@has_tshark
def test_rates_are_tsharks_where_it_gives_one(tmp_path: Path) -> None:
    """It gives none for a few VHT schemes that the standard rules out."""
    frames = [header + HEADER + SNAP + bytes(28) for header in radiotap_headers()]
    path = write(tmp_path / "c.pcap", 127, frames)
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "wlan_radio.data_rate"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    ours = analyse(path, "link_samples").table("link_samples").rows()
    compared = [(row["rate_mbps"], float(rate)) for row, rate in zip(ours, theirs, strict=False) if rate]
    assert len(compared) > 900
    for rate, expected in compared:
        assert rate == pytest.approx(expected, abs=0.06)


def test_frames_that_cannot_be_read_are_reported_by_reason(tmp_path: Path) -> None:
    encrypted = bytes([8, 0x41]) + HEADER[2:] + bytes(range(60))
    null = bytes([0x48, 1]) + HEADER[2:]
    frames = [encrypted, null, HEADER + SNAP[:6] + bytes([8, 6]) + bytes(28), HEADER[:20]]
    (source,) = analyse(write(tmp_path / "c.pcap", 105, frames)).sources
    reasons = {stop["reason"]: stop["packets"] for stop in source["decode_stops"]}
    assert reasons == {"encrypted": 1, "802.11 null data frame": 1, "ARP": 1, "malformed": 1}
    assert (source["non_ip_packets"], source["undecoded_packets"]) == (2, 2)
    assert source["link_types"] == ["802.11"]


STATIONS = [f"02:00:00:00:00:0{number}" for number in range(1, 7)]
MESH_CONTROL_PRESENT = 1
TO_AND_FROM_NETWORK, FROM_NETWORK = 3, 2


def mesh_control(mode: int) -> bytes:
    """Flags, time to live, sequence number and the addresses of an extension mode."""
    addresses = b"".join(bytes.fromhex(address.replace(":", "")) for address in STATIONS[4 : 4 + mode])
    return struct.pack("<BBI", mode, 31, 7) + addresses


def datagram(port: int) -> bytes:
    packet = IP(src="192.0.2.1", dst="192.0.2.9") / UDP(sport=port, dport=9) / Raw(b"x" * (port - 4900))
    return SNAP + bytes(packet)


def mesh_frame(direction: int, number: int, body: bytes, *, is_aggregate: bool = False) -> bytes:
    header = Dot11(
        type=2,
        subtype=8,
        FCfield=direction,
        addr1=STATIONS[0] if direction == TO_AND_FROM_NETWORK else "ff:ff:ff:ff:ff:ff",
        addr2=STATIONS[1],
        addr3=STATIONS[2],
        addr4=STATIONS[3] if direction == TO_AND_FROM_NETWORK else None,
        SC=number << 4,
    )
    return bytes(header / Dot11QoS(A_MSDU_Present=is_aggregate, TXOP=MESH_CONTROL_PRESENT)) + body


def datagrams_of(path: Path) -> dict[int, tuple[int, int]]:
    """Packets and payload bytes of each source port."""
    return {ends[2]: (row["packets"], row["payload_bytes"]) for ends, row in flows(path).items()}


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Frames between mesh stations, and to all of them, in each mode of more addresses."""
    cases = [(direction, mode) for direction in (TO_AND_FROM_NETWORK, FROM_NETWORK) for mode in range(3)]
    frames = [
        mesh_frame(direction, number, mesh_control(mode) + datagram(5000 + number))
        for number, (direction, mode) in enumerate(cases)
    ]
    return write(tmp_path / "mesh.pcap", 105, frames)


def test_packets_behind_a_mesh_control_field_are_read(mesh: Path) -> None:
    assert datagrams_of(mesh) == {5000 + number: (1, 100 + number) for number in range(6)}


@has_tshark
def test_packets_behind_a_mesh_control_field_are_tsharks(mesh: Path) -> None:
    command = ["tshark", "-n", "-r", str(mesh), "-T", "fields", "-e", "udp.srcport", "-e", "udp.length"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    pairs = [line.split("\t") for line in theirs if line]
    assert datagrams_of(mesh) == {int(port): (1, int(length) - 8) for port, length in pairs}


def test_the_mesh_bit_before_something_else_hides_no_packet(tmp_path: Path) -> None:
    """Access points use the bit, too; a mode of 3 is reserved."""
    plain = mesh_frame(FROM_NETWORK, 1, datagram(5000))
    reserved = mesh_frame(FROM_NETWORK, 2, b"\x03" + mesh_control(0)[1:] + datagram(5001))
    cut = mesh_frame(FROM_NETWORK, 3, mesh_control(2)[:9])
    path = write(tmp_path / "c.pcap", 105, [plain, reserved, cut])
    assert datagrams_of(path) == {5000: (1, 100)}
    assert sum(stop["packets"] for stop in analyse(path).sources[0]["decode_stops"]) == 2


def test_the_first_packet_of_a_mesh_aggregate_is_read(tmp_path: Path) -> None:
    """A subframe's length leaves out the mesh control field in front of its packet."""
    subframes = b""
    for mode, port in ((1, 5000), (0, 5001)):
        body = datagram(port)
        subframe = bytes(12) + struct.pack(">H", len(body)) + mesh_control(mode) + body
        subframes += subframe + bytes(-len(subframe) % 4)
    frame = mesh_frame(TO_AND_FROM_NETWORK, 1, subframes, is_aggregate=True)
    assert datagrams_of(write(tmp_path / "c.pcap", 105, [frame])) == {5000: (1, 100)}


@pytest.fixture(scope="module")
def witness(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(WIFI / "witness.py")


@has_tshark
def test_expectations_are_what_the_tshark_of_this_machine_says(witness: ModuleType) -> None:
    assert witness.ask_tshark(WIFI / PLAIN) == TSHARK[PLAIN]
