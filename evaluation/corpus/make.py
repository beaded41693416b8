"""Make the Linux part of the corpus: `python evaluation/corpus/make.py [NAME...]` (root on Linux).

Each case becomes an archive in `tests/data/corpus` (`corpus_case.py`) with captures at the sender, in the
middle and at the receiver, and `truth.tsv`: why the kernel sent each packet, and what became of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cases import CASES, SERVER_PORT, Case
from corpus_case import write_case
from frames import Header, packets, pcap_start, records
from kernel import Retransmission, Tracing, counters, name_repetitions
from network import Network
from truth import Namer, write_truth

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
SNAP_BYTES = 128
"""Headers with all options, of IPv6 too."""


def capture(network: Network, case: Case, folder: Path) -> list[subprocess.Popen[bytes]]:
    """Start tcpdump where the case wants it."""
    places: dict[str, tuple[str, ...]] = {"snd": ("snd", "-i", "s0"), "rcv": ("rcv", "-i", "d0")}
    if case.capture_any:
        places["snd"] = ("snd", "-i", "any", "-y", "LINUX_SLL")
        places["mid"] = ("mid", "-i", "any", "-y", "LINUX_SLL2")
    elif case.routed:
        places["mid"] = ("mid", "-i", "r1")
    return [
        network.start(host, "tcpdump", "-Z", "root", "-n", "-U", "-B", "8192", "-s", str(SNAP_BYTES), *how,
                      "-w", str(folder / f"{name}.pcap"), "tcp")
        for name, (host, *how) in places.items()
    ]  # fmt: skip


def play(network: Network, case: Case, folder: Path) -> dict[str, dict[str, int]]:
    """Let both ends follow their scripts; return what they and their kernels counted."""
    endpoint = (sys.executable, str(HERE / "endpoint.py"))
    both_ready = str(time.time() + 2.0)
    ends = {}
    for host, kind, steps in (("rcv", "listen", case.listen), ("snd", "connect", case.connect)):
        output = folder / f"{host}.json"
        command = (*endpoint, kind, network.far, str(SERVER_PORT), json.dumps(steps), both_ready)
        ends[host] = (network.start(host, *command, output=output), output)
        time.sleep(0.4)
    try:
        for process, _ in ends.values():
            if process.wait(60):
                raise RuntimeError(f"{case.name}: a script failed")
    finally:
        for process, _ in ends.values():
            process.kill()
    time.sleep(0.8)
    results = {host: json.loads(output.read_text()) for host, (_, output) in ends.items()}
    return {host: counted | counters(network.inside(host)) for host, counted in results.items()}


def cut(whole: Path, rest: Path, lost: Callable[[int, Header], bool]) -> None:
    """Write a capture without the packets that it is to have lost."""
    header_of = {number: header for number, _, header in packets(whole)}
    with rest.open("wb") as file:
        file.write(pcap_start(SNAP_BYTES))
        for number, (_, record, data) in enumerate(records(whole), 1):
            if number not in header_of or not lost(number, header_of[number]):
                file.write(record + data)


def run(case: Case, folder: Path) -> tuple[dict[str, dict[str, int]], list[Retransmission]]:
    """Run one case; its captures are in `folder` afterwards."""
    settings = {name: getattr(case, name) for name in ("rtt", "rate", "queue", "seed", "harm")}
    (folder / "case.json").write_text(json.dumps(settings))
    with Tracing(SERVER_PORT) as tracing, Network(case, HERE, folder) as network:
        tcpdumps = capture(network, case, folder)
        time.sleep(0.8)
        results = play(network, case, folder)
        time.sleep(1.2)  # the ring of a capture is handed over once a second at the latest
        for process in tcpdumps:
            process.send_signal(signal.SIGINT)
        for process in tcpdumps:
            process.wait(10)
    for name, tap, lost in case.cuts:
        cut(folder / f"{tap}.pcap", folder / f"{tap}-{name}.pcap", lost)
    if not case.routed:
        results["relay"] = json.loads((folder / "harmed.json").read_text())
    return results, tracing.retransmissions()


def main() -> None:
    """Make the cases named, or all."""
    wanted = sys.argv[1:]
    for case in CASES:
        if wanted and case.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            results, traced = run(case, folder)
            sports = {header.sport for _, _, header in packets(folder / "snd.pcap")}
            copies_by = "capture_duplicate" if case.capture_any else "network_duplicate"
            namers: dict[int, Namer] = {
                sport: partial(name_repetitions, [event for event in traced if event.sport == sport])
                for sport in sorted(sports)
            }
            results["lost"] = write_truth(folder, namers, SERVER_PORT, copies_by)
            source = f"Linux {os.uname().release}"
            about = {"source": source, "what": case.what, "server_port": SERVER_PORT, "counters": results}
            write_case(case.name, folder, about)
        print(case.name, flush=True)


if __name__ == "__main__":
    main()
