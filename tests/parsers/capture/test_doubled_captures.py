"""A capture that holds everything twice, of a mirror port or appended to itself, has no retransmissions.

The witness is the same capture without the second copies.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rtp_packets import frame, media
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from scapy.packet import Packet

START_US = 1_700_000_000_000_000
LINK = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
NEAR, FAR = "192.0.2.1", "198.51.100.1"
MIRROR_US = 9
"""The second copy of a mirror port follows the first so soon."""

Captured = tuple[int, bytes]
"""Microseconds after the start, and a frame."""

CHAOTIC = (4_000, 61_000, 900, 33_000, 7, 48_000, 3, 52_345)
HOSTS: dict[str, tuple[Callable[[int], int] | None, bool]] = {
    "identifications that count": (lambda number: 65_530 + 3 * number, False),
    "identifications that count for many": (lambda number: 700 * number, False),
    "random identifications": (lambda number: CHAOTIC[number % 8] + 11 * number, False),
    "no identifications, timestamps": (lambda _: 0, True),
    "no identifications, no timestamps": (lambda _: 0, False),
    "IPv6, timestamps": (None, True),
    "IPv6, no timestamps": (None, False),
}
"""How a host numbers its packets (None: IPv6), and whether it has timestamps."""


class Connection:
    """Packets of one connection at its sender, 20 ms away from the other end."""

    def __init__(self, host: str) -> None:
        self.identification, self.has_timestamps = HOSTS[host]
        self.captured: list[Captured] = []
        self.sent = {"near": 0, "far": 0}

    def add(self, ms: float, by: str, flags: str, numbers: tuple[int, int], payload: int = 0) -> None:
        """Add a segment."""
        number = self.sent[by]
        self.sent[by] += 1
        src, dst, sport, dport = (NEAR, FAR, 4000, 80) if by == "near" else (FAR, NEAR, 80, 4000)
        if self.identification is None:
            network: Packet = IPv6(src=f"2001:db8::{sport}", dst=f"2001:db8::{dport}")
        else:
            network = IP(src=src, dst=dst, flags="DF", id=self.identification(number) % 65_536)
        options = [("SAckOK", b""), ("MSS", 1460)] if "S" in flags else []
        if self.has_timestamps:
            options.append(("Timestamp", (1000 + int(ms), 500)))
        tcp = TCP(
            sport=sport,
            dport=dport,
            flags=flags,
            seq=numbers[0],
            ack=numbers[1],
            options=options,
            window=60_000,
        )
        self.captured.append((round(ms * 1000), bytes(LINK / network / tcp / bytes(payload))))

    def play(self) -> list[Captured]:
        """Send 30 segments, each acknowledged alone; the last but one is lost, and a timer repeats it."""
        self.add(0, "near", "S", (0, 0))
        self.add(20, "far", "SA", (0, 1))
        self.add(20.1, "near", "A", (1, 1))
        for number in range(30):
            self.add(30 + number, "near", "PA", (1 + 1000 * number, 1), 1000)
        for number in range(28):
            self.add(50.5 + number, "far", "A", (1, 1001 + 1000 * number))
        self.add(1100, "near", "A", (28_001, 1), 1000)
        self.add(1120, "far", "A", (1, 30_001))
        self.add(1130, "near", "FA", (30_001, 1))
        self.add(1150, "far", "FA", (1, 30_002))
        self.add(1150.1, "near", "A", (30_002, 2))
        return sorted(self.captured, key=lambda packet: packet[0])


def mirrored(once: Iterable[Captured]) -> Iterator[Captured]:
    """Follow each packet by its copy."""
    for time_us, data in once:
        yield time_us, data
        yield time_us + MIRROR_US, data


def appended(once: Sequence[Captured]) -> list[Captured]:
    """Repeat the capture behind itself."""
    return [*once, *once]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Iterable[Captured]], Path]:
    """Return a function that writes a pcap file."""

    def written(packets: Iterable[Captured]) -> Path:
        content = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for time_us, data in packets:
            seconds, rest = divmod(START_US + time_us, 1_000_000)
            content += struct.pack("<IIII", seconds, rest, len(data), len(data)) + data
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pcap"
        path.write_bytes(content)
        return path

    return written


def counts(path: Path) -> dict[str, int]:
    """Return how often each class is there, without duplicates."""
    found = tfrctrace.open(path).losses.filter(~pl.col("class").str.ends_with("_duplicate"))
    return dict(found.group_by("class").len().rows())


@pytest.mark.parametrize("host", HOSTS)
def test_copies_of_a_mirror_port_are_no_retransmissions(
    host: str, write: Callable[[Iterable[Captured]], Path]
) -> None:
    once = Connection(host).play()
    plain = write(once)
    doubled = write(mirrored(once))
    assert counts(doubled) == counts(plain) == {"rto_retransmission": 1}
    forward, alone = (tfrctrace.open(path).flows.to_dicts()[0] for path in (doubled, plain))
    assert forward["network_duplicates"] == 30 + 1 + 2  # data, its retransmission, SYN and FIN
    same = ("retransmitted_packets", "retransmitted_bytes", "timeouts", "unique_bytes", "loss_events")
    assert [forward[name] for name in same] == [alone[name] for name in same]


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
@pytest.mark.parametrize("host", HOSTS)
def test_a_capture_appended_to_itself_counts_once(
    host: str, write: Callable[[Iterable[Captured]], Path]
) -> None:
    once = Connection(host).play()
    path = write(appended(once))
    trace, plain = tfrctrace.open(path, bin_width="1s"), tfrctrace.open(write(once), bin_width="1s")
    message = f"the capture was appended to itself: {len(once)} packets came again with the same times"
    with pytest.warns(tfrctrace.TfrctraceWarning, match=message):
        losses = trace.losses
    classes = dict(losses["class"].value_counts().rows())
    assert classes == {"rto_retransmission": 1, "capture_duplicate": len(once)}
    same = [name for name in plain.flows.columns if name not in {"capture_duplicates", "notes", "source"}]
    assert trace.flows.select(same).rows() == plain.flows.select(same).rows()
    assert trace.bins.rows() == plain.bins.rows()
    assert trace.flows["capture_duplicates"].sum() == len(once)


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_only_what_the_first_part_shows_counts_as_duplicate(
    write: Callable[[Iterable[Captured]], Path],
) -> None:
    once = Connection("identifications that count").play()
    other = [(5_000 * number, frame(media(number, 160 * number))) for number in range(50)]
    datagrams = [(time_us + 1, bytes(LINK / IP(src=FAR, dst=NEAR) / UDP(dport=9))) for time_us, _ in once]
    path = write([*once, *sorted([*once, *other, *datagrams])])
    flows = tfrctrace.open(path).flows
    kept = flows.group_by("transport").agg(pl.col("packets", "capture_duplicates").sum()).sort("transport")
    assert kept.rows() == [("rtp", 50, 0), ("tcp", len(once), len(once)), ("udp", len(once), 0)]


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_bins_of_appended_datagrams_hold_what_flows_hold(
    write: Callable[[Iterable[Captured]], Path],
) -> None:
    once = [
        (5_000 * number, bytes(LINK / IP(id=number) / UDP(dport=9) / bytes(number))) for number in range(50)
    ]
    trace, plain = (tfrctrace.open(write(each), bin_width="100ms") for each in (appended(once), once))
    for table in ("flows", "bins"):
        columns = ["packets", "wire_bytes"]
        assert getattr(trace, table).select(columns).rows() == getattr(plain, table).select(columns).rows()


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_a_clock_that_steps_back_repeats_nothing(write: Callable[[Iterable[Captured]], Path]) -> None:
    once = Connection("identifications that count").play()
    back = [(time_us - 200_000 if time_us > 300_000 else time_us, data) for time_us, data in once]
    flows = tfrctrace.open(write(back)).flows
    assert (flows["packets"].sum(), flows["capture_duplicates"].sum()) == (len(once), 0)


def test_rtp_of_a_mirror_port_is_found_and_counted_once(
    write: Callable[[Iterable[Captured]], Path],
) -> None:
    once = [(20_000 * number, frame(media(1_000 + number, 160 * number))) for number in range(200)]
    kept = [packet for number, packet in enumerate(once) if number % 50 != 49]
    forward = tfrctrace.open(write(mirrored(kept))).flows.to_dicts()[0]
    assert forward["transport"] == "rtp"
    assert (forward["received_packets"], forward["duplicate_packets"]) == (196, 196)
    assert forward["lost_packets"] == 3


def test_datagrams_that_repeat_one_rtp_header_are_no_rtp(
    write: Callable[[Iterable[Captured]], Path],
) -> None:
    same = [(20_000 * number, frame(media(7, 160))) for number in range(500)]
    assert tfrctrace.open(write(same)).flows["transport"].unique().to_list() == ["udp"]
