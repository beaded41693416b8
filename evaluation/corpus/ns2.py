"""Make the ns-2 part of the corpus: `python evaluation/corpus/ns2.py` (needs ns).

FullTcp's trace has all of its headers but the SACK blocks, of which it gives only the number. They follow
from what the receiver got (RFC 2018 section 4), and are held against that number. What both agents know by
configuration is written as the options of a SYN; ns-2 counts no hops, so the time to live is always 64.
"""

from __future__ import annotations

import json
import struct
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from corpus_case import write_case
from frames import ETHERNET_IPV4, SYN, pcap_record, pcap_start
from truth import Namer, Sending, name_timeouts, write_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truth import Key

SCRIPT = Path(__file__).resolve().parent / "simulations" / "fulltcp.tcl"
SENDER, RECEIVER = "0.0", "3.0"
PORTS = {SENDER: 49153, RECEIVER: 5001}
ADDRESSES = {SENDER: bytes((10, 77, 1, 1)), RECEIVER: bytes((10, 77, 3, 2))}
SEGMENT_BYTES, WINDOW_SEGMENTS = 1000, 60
HEADER_BYTES = 40
SNAP_BYTES = 110
VARIABLES_ROUND_SECONDS = 1e-5
"""The trace of variables has five digits behind the point, that of packets six."""

TAPS = {
    "snd": {("+", "0", "1"), ("r", "1", "0")},
    "mid": {("r", "1", "2"), ("+", "2", "1")},
    "rcv": {("r", "2", "3"), ("+", "3", "2")},
}
"""What a capture sees: event, from, to. The one in the middle is behind the slow link."""

CASES = {
    "ns2-reno": "",
    "ns2-newreno": "kind /Newreno",
    "ns2-sack": "kind /Sack",
    "ns2-reno-random": "loss 0.03 queue 100 seed 2",
    "ns2-newreno-random": "kind /Newreno loss 0.03 queue 100 seed 3",
    "ns2-sack-random": "kind /Sack loss 0.04 queue 100 seed 4",
    "ns2-sack-ack-loss": "kind /Sack loss 0.02 ackLoss 0.15 queue 100 seed 5",
}
"""Name of the case, and the arguments of the simulation."""


class Packet(NamedTuple):
    """A line of the trace."""

    event: tuple[str, str, str]
    time: float
    source: str
    payload: int
    seq: int
    number: int
    ack: int
    flags: int
    blocks: int


def read_trace(path: Path) -> Iterator[Packet]:
    """Give each line."""
    for line in path.read_text().splitlines():
        event, time, *ends, _, size, _, _, source, _, seq, number, ack, flags, header, blocks = line.split()
        here, there = ends
        payload = int(size) - int(header)
        numbers = (int(seq), int(number), max(0, int(ack)), int(flags, 16), int(blocks))
        yield Packet((event, here, there), float(time), source, payload, *numbers)


class Receiver:
    """Which SACK blocks the receiver's next acknowledgement has."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int]] = []
        """The one that grew last is the first."""

    def take(self, packet: Packet) -> None:
        """Take in data."""
        start, end = packet.seq, packet.seq + packet.payload
        touching = [block for block in self.blocks if block[0] <= end and start <= block[1]]
        self.blocks = [block for block in self.blocks if block not in touching]
        self.blocks.insert(
            0, (min([start, *(b[0] for b in touching)]), max([end, *(b[1] for b in touching)]))
        )

    def sack_blocks(self, ack: Packet) -> list[tuple[int, int]]:
        """Return the blocks of an acknowledgement, as many as it has."""
        self.blocks = [block for block in self.blocks if block[0] > ack.ack]
        if not ack.blocks:
            return []
        if ack.blocks != min(3, len(self.blocks)):
            raise ValueError(f"{ack} does not acknowledge {self.blocks}")
        return self.blocks[: ack.blocks]


def blocks_of(packets: list[Packet], *, with_sack: bool) -> dict[int, list[tuple[int, int]]]:
    """Return the SACK blocks of each packet that the receiver sent, by the packet's number."""
    receiver = Receiver()
    sacked: dict[int, list[tuple[int, int]]] = {}
    for packet in packets if with_sack else []:
        if packet.event == ("r", "2", "3") and packet.payload:
            receiver.take(packet)
        elif packet.event == ("+", "3", "2"):
            sacked[packet.number] = receiver.sack_blocks(packet)
    return sacked


def frame(packet: Packet, blocks: list[tuple[int, int]], *, with_sack: bool) -> bytes:
    """Return the packet as it would be on an Ethernet, without its payload."""
    options = b""
    if packet.flags & SYN:
        options = struct.pack("!BBH", 2, 4, SEGMENT_BYTES) + (b"\1\1\4\2" if with_sack else b"")
    elif blocks:
        edges = b"".join(struct.pack("!II", *block) for block in blocks)
        options = struct.pack("!BBBB", 1, 1, 5, 2 + len(edges)) + edges
    there = RECEIVER if packet.source == SENDER else SENDER
    window = WINDOW_SEGMENTS * SEGMENT_BYTES
    tcp = struct.pack("!HHIIBBHHH", PORTS[packet.source], PORTS[there], packet.seq, packet.ack,
                      (20 + len(options)) // 4 << 4, packet.flags, window, 0, 0)  # fmt: skip
    length = HEADER_BYTES + len(options) + packet.payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, packet.number % 2**16, 0, 64, 6, 0)
    return ETHERNET_IPV4 + ip + ADDRESSES[packet.source] + ADDRESSES[there] + tcp + options


def write_captures(packets: list[Packet], folder: Path, *, with_sack: bool) -> None:
    """Write what stands in the trace as captures at the three places."""
    blocks = blocks_of(packets, with_sack=with_sack)
    for tap, seen in TAPS.items():
        with (folder / f"{tap}.pcap").open("wb") as file:
            file.write(pcap_start(SNAP_BYTES))
            for packet in packets:
                if packet.event in seen:
                    data = frame(packet, blocks.get(packet.number, []), with_sack=with_sack)
                    file.write(pcap_record(round(packet.time * 1e9), data, len(data) + packet.payload))


def read_variables(path: Path) -> list[tuple[float, str, int]]:
    """Return when each variable of the sender became what."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [(float(row[0]), row[5], int(row[6])) for row in rows]


def name_by_variables(
    variables: list[tuple[float, str, int]], sendings: list[Sending], times: dict[Key, float]
) -> None:
    """Give each repetition its cause: a timeout counts `nrexmit_` up, each new recovery `ncwndcuts_`."""
    waiting = [row for row in variables if row[0] > 0.0]
    top = until = 0
    fired = repaired = False
    for sending in sendings:
        time = times[sending.header.key]
        while waiting and waiting[0][0] <= time + VARIABLES_ROUND_SECONDS:
            _, name, value = waiting.pop(0)
            if name == "nrexmit_":
                fired, until = True, top
            elif name == "ncwndcuts_":
                repaired = False
            elif value >= until:
                until = 0
        if sending.start < top:
            sending.cause = "timer" if fired else "loss" if until else "recovery"
            sending.begins_recovery = sending.cause == "recovery" and not repaired
            fired, repaired = False, True
        top = max(top, sending.stop)


def main() -> None:
    """Make all cases."""
    for name, arguments in CASES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            subprocess.run(["ns", SCRIPT, folder, *arguments.split()], check=True)
            packets = list(read_trace(folder / "trace.tr"))
            write_captures(packets, folder, with_sack="Sack" in arguments)
            variables = read_variables(folder / "variables")
            namers: dict[int, Namer] = {
                PORTS[SENDER]: partial(name_by_variables, variables),
                PORTS[RECEIVER]: name_timeouts,
            }
            lost = write_truth(folder, namers, PORTS[RECEIVER], "network_duplicate")
            counted = json.loads((folder / "sim.json").read_text())
            counted["dropped"] = sum(packet.event[0] == "d" for packet in packets)
            counters = {"simulator": counted, "lost": lost}
            about = {
                "source": "ns-2.35",
                "what": arguments,
                "server_port": PORTS[RECEIVER],
                "counters": counters,
            }
            write_case(name, folder, about)
            print(name)


if __name__ == "__main__":
    main()
