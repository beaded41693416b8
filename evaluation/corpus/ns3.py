"""Make the ns-3 part of the corpus: `python evaluation/corpus/ns3.py` (needs g++ and libns3-dev).

The simulator logs the congestion state of the socket at each sending. Its PPP captures are written as
Ethernet, because tcptrace reads no PPP of this kind.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from corpus_case import CORPUS, write_case
from frames import ETHERNET_IPV4, LINK_BYTES, PCAP_HEADER, SYN, pcap_start, records
from truth import Namer, Sending, name_timeouts, write_truth

if TYPE_CHECKING:
    from truth import Key

SOURCE = Path(__file__).resolve().parent / "simulations" / "dumbbell.cc"
MODULES = (
    "applications", "core", "internet", "network", "point-to-point", "traffic-control", "bridge", "stats",
    "mobility",
)  # fmt: skip
SERVER_PORT, CLIENT_PORT = 5001, 49153
SNAP_BYTES = 110
CAUSES = {"CA_RECOVERY": "recovery", "CA_LOSS": "loss"}
"""What ns-3's congestion states mean for a retransmission; it has no tail loss probes."""

PLACES = {"snd": "0-1", "mid": "2-1", "rcv": "3-1"}
"""Node and device of each capture; the one in the middle is behind the slow link."""

CASES = {
    "ns3-queue": "--control=NewReno",
    "ns3-queue-cubic": "--control=Cubic --queue=12 --bytes=500000",
    "ns3-queue-no-sack": "--control=NewReno --sack=0 --queue=15",
    "ns3-queue-bare": "--control=NewReno --sack=0 --timestamps=0 --queue=10",
    "ns3-random": "--control=NewReno --loss=0.03 --queue=100 --seed=2",
    "ns3-random-no-sack": "--control=NewReno --loss=0.03 --queue=100 --sack=0 --seed=3",
    "ns3-random-heavy": "--control=Cubic --loss=0.1 --ackLoss=0.1 --queue=100 --bytes=200000 --seed=4",
    "ns3-ack-loss": "--control=NewReno --ackLoss=0.2 --queue=100 --seed=5",
    "ns3-bbr-timeouts": "--control=Bbr --rate=1Mbps --delay=100ms --queue=30 --bytes=300000 --loss=0.01 "
    "--seed=120",
    "ns3-ecn": "--control=NewReno --ecn=1 --queue=200 --bytes=300000",
}
"""Name of the case, and the arguments of the simulation."""


def build(folder: Path) -> Path:
    """Compile the simulation."""
    program = folder / "dumbbell"
    libraries = [f"-lns3-{module}" for module in MODULES]
    command = ["g++", "-std=c++17", "-O1", str(SOURCE), "-o", str(program), "-Wl,--allow-shlib-undefined"]
    subprocess.run([*command, *libraries], check=True)
    return program


def as_ethernet(ppp: Path, ethernet: Path) -> None:
    """Write a capture again with another link header."""
    link_bytes = LINK_BYTES[PCAP_HEADER.unpack(ppp.read_bytes()[: PCAP_HEADER.size])[-1]]
    with ethernet.open("wb") as file:
        file.write(pcap_start(SNAP_BYTES))
        for _, record, data in records(ppp):
            frame = ETHERNET_IPV4 + data[link_bytes:]
            added = len(frame) - len(data)
            lengths = (int.from_bytes(record[at : at + 4], "little") + added for at in (8, 12))
            file.write(record[:8] + b"".join(length.to_bytes(4, "little") for length in lengths) + frame)


def name_by_state(sent: list[list[str]], sendings: list[Sending], _times: dict[Key, float]) -> None:
    """Give each repetition the state in which the socket sent it; both lists are in order."""
    top, before, repaired = sendings[0].stop, "", False
    for sending, (_, space, state) in zip(sendings[1:], sent, strict=True):
        if sending.header.space != int(space):
            raise ValueError(f"{sending} is not what the socket sent")
        repaired = repaired and state == before
        before = state
        if sending.header.flags & SYN:
            sending.cause = "timer"
        elif sending.start < top and state not in CAUSES:
            raise ValueError(f"{sending} repeats in {state}")
        elif sending.start < top:
            sending.cause, sending.begins_recovery, repaired = CAUSES[state], not repaired, True
        top = max(top, sending.stop)


def make_case(program: Path, name: str, arguments: str, corpus: Path = CORPUS) -> None:
    """Run the simulation once, and write what it shows as a case."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([program, f"--prefix={folder / 'sim'}", *arguments.split()], check=True)
        for tap, place in PLACES.items():
            as_ethernet(folder / f"sim-{place}.pcap", folder / f"{tap}.pcap")
        for raw in folder.glob("sim-*.pcap"):
            raw.unlink()
        sent = [line.split() for line in (folder / "sim.sent").read_text().splitlines()]
        counted = json.loads((folder / "sim.json").read_text())
        namers: dict[int, Namer] = {CLIENT_PORT: partial(name_by_state, sent), SERVER_PORT: name_timeouts}
        lost = write_truth(folder, namers, SERVER_PORT, "network_duplicate")
        about = {"source": "ns-3.37", "what": arguments, "server_port": SERVER_PORT}
        write_case(name, folder, {**about, "counters": {"simulator": counted, "lost": lost}}, corpus)


def main() -> None:
    """Make all cases."""
    with tempfile.TemporaryDirectory() as scratch:
        program = build(Path(scratch))
        for name, arguments in CASES.items():
            make_case(program, name, arguments)
            print(name)


if __name__ == "__main__":
    main()
