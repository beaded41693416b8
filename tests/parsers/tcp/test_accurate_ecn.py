"""Accurate ECN (RFC 9768): a receiver as the RFC has it counts, and its counters are read from the packets.

tshark reads the same bits and options from these packets.
"""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import tfrctrace

CLIENT, SERVER = ("192.0.2.1", 40_000), ("198.51.100.7", 443)
NOT_ECT, ECT_1, ECT_0, CE = range(4)
MSS = 1460
HANDSHAKE_ACE = {NOT_ECT: 0b010, ECT_1: 0b011, ECT_0: 0b100, CE: 0b110}


def ace(value: int) -> str:
    """Return AE (N to scapy), CWR and ECE as the letters of their flags."""
    return "".join(letter for bit, letter in ((4, "N"), (2, "C"), (1, "E")) if value & bit)


def option(kind: int, *counters: int) -> tuple[int, bytes]:
    return kind, b"".join((counter % 2**24).to_bytes(3, "big") for counter in counters)


@dataclass
class Upload:
    """A connection on which the client sends data and the server counts their marks."""

    packets: list[Packet] = field(default_factory=list)
    sent: int = 1
    size: int = MSS
    client_cep: int = 5
    cep: int = 5
    """The counters of the server, r.cep and the bytes by codepoint (RFC 9768 section 3.2.1)."""
    bytes_of: dict[int, int] = field(default_factory=lambda: {NOT_ECT: 0, ECT_1: 1, ECT_0: 1, CE: 0})

    def add(self, src: tuple[str, int], flags: str, ecn: int = NOT_ECT, **header: Any) -> None:
        dst = SERVER if src == CLIENT else CLIENT
        payload = header.pop("payload", 0)
        tcp = TCP(sport=src[1], dport=dst[1], flags=flags, **header)
        packet = (
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / IP(src=src[0], dst=dst[0], tos=ecn)
            / tcp
        )
        self.packets.append(packet / Raw(bytes(payload)) if payload else packet)

    def open(
        self, *, syn_ack_ecn: int = NOT_ECT, syn: int = 0b111, answer: int = 0b010, third: int | None = None
    ) -> "Upload":
        options = [("MSS", MSS)]
        self.add(CLIENT, "S" + ace(syn), seq=1000, options=options)
        self.add(SERVER, "SA" + ace(answer), syn_ack_ecn, seq=5000, ack=1001, options=options)
        self.client_cep += syn_ack_ecn == CE
        third = HANDSHAKE_ACE[syn_ack_ecn] if third is None else third
        self.add(CLIENT, "A" + ace(third), seq=1001, ack=5001)
        return self

    def data(self, *marks: int, size: int | None = None) -> "Upload":
        size = size or self.size
        for ecn in marks:
            self.add(CLIENT, "A" + ace(self.client_cep), ecn, seq=1000 + self.sent, ack=5001, payload=size)
            self.sent += size
            self.cep += ecn == CE
            self.bytes_of[ecn] += size
        return self

    def ack(self, *options: tuple[int, bytes]) -> "Upload":
        self.add(SERVER, "A" + ace(self.cep % 8), seq=5001, ack=1000 + self.sent, options=list(options))
        return self

    def acks_with_bytes(self) -> "Upload":
        counts = self.bytes_of
        return self.ack(option(172, counts[ECT_0], counts[CE], counts[ECT_1]))

    def write(self, path: Path) -> Path:
        for number, packet in enumerate(self.packets):
            packet.time = 1000 + number / 100
        wrpcap(str(path), self.packets)
        return path

    def flows(self, folder: Path) -> list[dict[str, Any]]:
        return tfrctrace.open(self.write(folder / "accurate.pcap")).flows.to_dicts()


def in_turn(upload: Upload, marks: Iterable[int]) -> Upload:
    """Send packets two by two, each pair acknowledged."""
    pairs = list(marks)
    for first in range(0, len(pairs), 2):
        upload.data(*pairs[first : first + 2]).ack()
    return upload


def test_the_counter_begins_at_5_and_is_no_echo(tmp_path: Path) -> None:
    forward, reverse = in_turn(Upload().open(), [ECT_0] * 40).flows(tmp_path)
    assert forward["ecn_mode"] == reverse["ecn_mode"] == "accurate"
    for row in (forward, reverse):
        assert row["ece_packets"] is None
        assert row["cwr_packets"] is None
    assert (forward["reported_ce_packets"], forward["reported_ce_packets_min"]) == (0, 0)
    # 40 of 42 packets: SYN and the handshake's acknowledgement are not ECN-capable
    assert (forward["ect0_packets"], forward["ect1_packets"], forward["ce_packets"]) == (40, 0, 0)
    shares = [forward[f"{name}_share"] for name in ("not_ect", "ect0", "ect1", "ce")]
    assert shares == pytest.approx([2 / 42, 40 / 42, 0, 0])
    assert forward["reported_ce_bytes"] is None


def test_the_counter_is_unwrapped_to_what_the_receiver_counted(tmp_path: Path) -> None:
    marks = [CE if number % 3 == 0 else ECT_1 for number in range(100)]
    upload = in_turn(Upload().open(), marks)
    forward, reverse = upload.flows(tmp_path)
    assert upload.cep - 5 == 34
    assert forward["reported_ce_packets"] == forward["ce_packets"] == 34
    assert forward["reported_ce_packets_min"] == 34
    assert reverse["reported_ce_packets"] in (None, 0)


# the numbers of RFC 9768 section A.2.1: 9 packets acknowledged at once, or 10, and the counter 2 further
@pytest.mark.parametrize(("packets", "expected"), [(9, 2), (10, 10)])
def test_an_ambiguous_step_counts_as_the_safest(packets: int, expected: int, tmp_path: Path) -> None:
    upload = in_turn(Upload().open(), [ECT_0] * 20)
    upload.data(*[ECT_0] * (packets - 2), CE, CE).ack()
    forward, _ = upload.flows(tmp_path)
    assert (forward["reported_ce_packets"], forward["reported_ce_packets_min"]) == (expected, 2)


def test_byte_counters_settle_an_ambiguous_step(tmp_path: Path) -> None:
    upload = Upload().open()
    for _ in range(10):
        upload.data(ECT_0, ECT_0).acks_with_bytes()
    upload.data(*[ECT_0] * 8, CE, CE).acks_with_bytes()
    forward, _ = upload.flows(tmp_path)
    assert forward["reported_ce_packets"] == forward["ce_packets"] == 2
    assert forward["reported_ce_bytes"] == 2 * MSS
    assert (forward["reported_ect0_bytes"], forward["reported_ect1_bytes"]) == (28 * MSS, 0)


# each acknowledgement covers so many packets, every one of them marked, or all but one of 16
@pytest.mark.parametrize(("packets", "marked"), [(8, 8), (16, 16), (16, 15), (24, 24)])
def test_a_counter_that_cycles_between_acknowledgements_is_not_known(
    packets: int, marked: int, tmp_path: Path
) -> None:
    upload = Upload().open()
    for _ in range(240 // packets):
        upload.data(*[CE] * marked, *[ECT_0] * (packets - marked)).ack()
    assert upload.cep - 5 == 240 // packets * marked
    forward, _ = upload.flows(tmp_path)
    assert forward["ce_packets"] == upload.cep - 5
    assert forward["reported_ce_packets"] is None
    assert forward["reported_ce_packets_min"] < upload.cep - 5


@pytest.mark.parametrize("size", [MSS, 500])
def test_a_counter_that_cannot_cycle_between_acknowledgements_is_exact(size: int, tmp_path: Path) -> None:
    upload = Upload(size=size).open()
    for _ in range(60):
        upload.data(*[CE] * 4).ack()
    forward, _ = upload.flows(tmp_path)
    assert forward["reported_ce_packets"] == forward["ce_packets"] == 240


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("packets", "marked"), [(8, 8), (20, 14), (23, 23), (40, 10)])
def test_byte_counters_settle_how_often_it_cycled(
    packets: int, marked: int, every: int, tmp_path: Path
) -> None:
    """Also if not every acknowledgement has the option."""
    upload = Upload().open()
    for number in range(1, 13):
        upload.data(*[CE] * marked, *[ECT_0] * (packets - marked))
        if number % every:
            upload.ack()
        else:
            upload.acks_with_bytes()
    trace = tfrctrace.open(upload.write(tmp_path / "marked.pcap"))
    forward, _ = trace.flows.to_dicts()
    assert forward["reported_ce_packets"] == forward["ce_packets"] == 12 * marked
    assert forward["reported_ce_bytes"] == 12 * marked * MSS
    assert trace.rounds.filter(direction="fwd")["reported_ce_packets"].sum() == 12 * marked


# RFC 9768 section 3.1.3 has a client take 1, 0, 1 for accurate ECN; a server with the nonce of RFC 3540
# answers so and does not count
@pytest.mark.parametrize(("first", "mode"), [(0b000, None), (0b100, None), (0b101, "accurate")])
def test_a_server_that_answers_with_the_nonce_does_not_count(
    first: int, mode: str | None, tmp_path: Path
) -> None:
    upload = Upload().open(answer=0b101)
    for number in range(10):
        upload.data(ECT_0, CE)
        nonce = first if first != 0b101 else upload.cep % 8
        upload.add(
            SERVER,
            "A" + ace(nonce if number == 0 or mode else number % 2 << 2),
            seq=5001,
            ack=1000 + upload.sent,
        )
    forward, reverse = upload.flows(tmp_path)
    assert forward["ecn_mode"] == reverse["ecn_mode"] == mode
    assert forward["reported_ce_packets"] == (10 if mode else None)


def test_byte_counters_wrap_at_24_bits_and_come_in_two_orders(tmp_path: Path) -> None:
    upload = Upload().open()
    for number in range(300):
        # as large as segments are before an interface splits them
        upload.data(ECT_1, size=60_000)
        if number % 5 == 4:
            # changed fields only: those behind are left out
            upload.ack(option(174, upload.bytes_of[ECT_1]))
    forward, _ = upload.flows(tmp_path)
    assert forward["reported_ect1_bytes"] == 300 * 60_000 > 2**24
    assert (forward["reported_ce_bytes"], forward["reported_ect0_bytes"]) == (0, 0)


def test_a_marked_syn_ack_is_reported_by_the_handshake(tmp_path: Path) -> None:
    upload = Upload().open(syn_ack_ecn=CE)
    _, reverse = upload.data(ECT_0).ack().flows(tmp_path)
    assert reverse["reported_ce_packets"] == reverse["ce_packets"] == 1


def test_a_cleared_counter_is_no_count(tmp_path: Path) -> None:
    upload = Upload(cep=0).open(third=0)
    forward, _ = upload.data(ECT_0, ECT_0).ack().flows(tmp_path)
    assert forward["ecn_mode"] == "accurate"
    assert forward["reported_ce_packets"] is None


def test_a_connection_of_rfc_3168_is_as_ever(tmp_path: Path) -> None:
    upload = Upload().open(syn=0b011, answer=0b001, third=0)
    upload.add(CLIENT, "A", ECT_0, seq=1001, ack=5001, payload=MSS)
    upload.add(CLIENT, "A", CE, seq=1001 + MSS, ack=5001, payload=MSS)
    upload.add(SERVER, "AE", seq=5001, ack=1001 + 2 * MSS)
    upload.add(CLIENT, "AC", ECT_0, seq=1001 + 2 * MSS, ack=5001, payload=MSS)
    forward, reverse = upload.flows(tmp_path)
    assert forward["ecn_mode"] == "rfc3168"
    assert (forward["ect_packets"], forward["ce_packets"], forward["cwr_packets"]) == (3, 1, 1)
    assert (reverse["ece_packets"], reverse["cwr_packets"]) == (1, 0)
    assert forward["reported_ce_packets"] is None


@pytest.mark.parametrize(("cep", "expected"), [(5, None), (2, 0)])
def test_without_syns_the_mode_is_unknown(cep: int, expected: int | None, tmp_path: Path) -> None:
    upload = Upload(cep=cep)
    for _ in range(10):
        upload.data(ECT_0).ack()
    for packet in upload.packets:
        if packet[TCP].sport == CLIENT[1]:
            packet[TCP].flags = "A"
    forward, reverse = upload.flows(tmp_path)
    assert forward["ecn_mode"] is None
    # AE belongs to a counter; ECE and CWR alone may be those of RFC 3168
    assert (reverse["ece_packets"], forward["reported_ce_packets"]) == (expected, None)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_flags_and_options_are_those_of_tshark(tmp_path: Path) -> None:
    marks = [ECT_1, CE, ECT_0, CE, CE, ECT_1, NOT_ECT, CE]
    upload = Upload().open(syn_ack_ecn=CE)
    for mark in marks * 5:
        upload.data(mark).acks_with_bytes()
    path = upload.write(tmp_path / "accurate.pcap")
    names = ("ae", "cwr", "ece", "ace")
    fields = [f"flags.{name}" for name in names] + ["options.acc_ecn.eceb", "options.acc_ecn.ee0b"]
    command = ["tshark", "-r", str(path), "-T", "fields", *(f"-etcp.{name}" for name in fields)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    theirs = [line.split("\t") for line in printed]
    packets = pl.concat(tfrctrace.open(path).packets())
    ours = [[int(letter in flags) for letter in "eCE"] for flags in packets["flags"]]
    # behind the SYNs of accurate ECN, tshark has a counter instead of the flags
    assert ours[:2] == [list(map(int, line[:3])) for line in theirs[:2]]
    assert [4 * ae + 2 * cwr + ece for ae, cwr, ece in ours[2:]] == [int(line[3]) for line in theirs[2:]]
    # the counter of the last acknowledgement, which tshark does not unwrap
    counts = theirs[-1]
    forward, _ = tfrctrace.open(path).flows.to_dicts()
    assert (forward["reported_ce_packets"] + 5) % 8 == int(counts[3])
    assert forward["reported_ce_packets"] == marks.count(CE) * 5
    assert forward["reported_ce_bytes"] == int(counts[4])
    assert forward["reported_ect0_bytes"] + 1 == int(counts[5])


def test_marks_are_counted_in_each_round_and_each_bin(tmp_path: Path) -> None:
    # a round is a pair here: ECT(1), one or both marked in every third
    pairs = [
        (CE, ECT_1) if number % 3 == 0 else (CE, CE) if number % 5 == 0 else (ECT_1, ECT_1)
        for number in range(50)
    ]
    upload = Upload().open()
    for pair in pairs:
        upload.data(*pair).ack()
    trace = tfrctrace.open(upload.write(tmp_path / "marked.pcap"))
    trace.read("flows", "rounds", "bins")
    rounds = trace.rounds.filter(direction="fwd").sort("time_ns")
    columns = ("ect_packets", "ect1_packets", "ce_packets", "reported_ce_packets")
    assert rounds.select(columns).rows()[-50:] == [
        (2, pair.count(ECT_1), pair.count(CE), pair.count(CE)) for pair in pairs
    ]
    forward = trace.flows.row(0, named=True)
    assert tuple(rounds[name].sum() for name in columns) == tuple(forward[name] for name in columns)
    # packets are further apart than the bins are wide
    marks = [packet[IP].tos & 3 for packet in upload.packets if packet[IP].src == CLIENT[0]]
    bins = trace.bins.filter(pl.col("packets") > 0, direction="fwd").sort("time_ns")
    assert bins.select("packets", "ect1_packets", "ce_packets").rows() == [
        (1, mark == ECT_1, mark == CE) for mark in marks
    ]


def test_a_connection_without_ecn_has_none_in_its_rounds(tmp_path: Path) -> None:
    upload = Upload().open(syn=0, answer=0, third=0)
    for seq in range(1001, 1001 + 8 * MSS, 2 * MSS):
        upload.add(CLIENT, "A", seq=seq, ack=5001, payload=MSS)
        upload.add(CLIENT, "A", seq=seq + MSS, ack=5001, payload=MSS)
        upload.add(SERVER, "A", seq=5001, ack=seq + 2 * MSS)
    rounds = tfrctrace.open(upload.write(tmp_path / "plain.pcap")).rounds
    assert rounds.select("ect_packets", "ce_packets").unique().rows() == [(0, 0)]
    assert rounds["reported_ce_packets"].null_count() == rounds.height
    assert set(rounds["ece_packets"]) == {0}
