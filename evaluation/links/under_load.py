"""Measure delay under load passively, and by echo requests beside iperf3 over a slow link of namespaces.

`python evaluation/links/under_load.py [-o FOLDER]` (root, Linux, iperf3, tcpdump, ethtool) prints both. The
link is a token bucket of 10 Mbit/s with a queue of up to 200 ms in a router; the capture is taken at the
sender. Two idle phases with requests of a few bytes surround a phase in which iperf3 fills the queue.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE: Final = "10mbit"
IDLE_S: Final = 8
LOADED_S: Final = 16
SETTLING_S: Final = 3
"""Of the loaded phase: the queue fills, and `ping` is not compared."""

_SERVER: Final = """
import socket
listening = socket.create_server(("10.77.2.2", 5300))
while True:
    connection, _ = listening.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := connection.recv(64):
        connection.sendall(data)
"""
_CLIENT: Final = """
import socket, time
connection = socket.create_connection(("10.77.2.2", 5300))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    connection.sendall(b"x" * 32)
    connection.recv(64)
    time.sleep(0.1)
"""
_PING: Final = """
import select, socket, struct, sys, time
link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for sequence in range(1 << 16):
    message = struct.pack("!BBHHH", 8, 0, 0, 77, sequence) + bytes(56)
    words = sum(struct.unpack(f"!{len(message) // 2}H", message))
    words = (words & 0xffff) + (words >> 16)
    sent = time.time()
    link.sendto(message[:2] + struct.pack("!H", ~words & 0xffff) + message[4:], ("10.77.2.2", 0))
    while select.select([link], [], [], max(sent + 1 - time.time(), 0))[0]:
        reply = link.recv(128)[20:]
        if struct.unpack("!BBHHH", reply[:8])[::3] == (0, 77) and reply[6:8] == message[6:8]:
            print(sent, (time.time() - sent) * 1e3, flush=True)
            break
    time.sleep(max(sent + 0.1 - time.time(), 0))
"""
"""Echo requests, ten each second, timed by the sender: what ping does, which is not everywhere."""


def sh(command: str) -> str:
    """Run a command and return its output."""
    return subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout


@contextlib.contextmanager
def namespaces(prefix: str) -> Iterator[tuple[str, str]]:
    """Give the names of two namespaces with a slow router between them."""
    near, router, far = f"{prefix}a", f"{prefix}r", f"{prefix}b"
    try:
        for name in (near, router, far):
            sh(f"ip netns add {name}")
        for number, host in ((1, near), (2, far)):
            sh(f"ip link add {host}0 netns {host} type veth peer name {router}{number} netns {router}")
            for name, device, address in ((host, f"{host}0", 2), (router, f"{router}{number}", 1)):
                sh(f"ip -n {name} addr add 10.77.{number}.{address}/24 dev {device}")
                sh(f"ip -n {name} link set {device} up")
                sh(f"ip netns exec {name} ethtool -K {device} tso off gso off gro off")
            sh(f"ip -n {host} route add default via 10.77.{number}.1")
        sh(f"ip netns exec {router} sysctl -q net.ipv4.ip_forward=1")
        sh(f"ip netns exec {router} tc qdisc add dev {router}2 root tbf rate {RATE} burst 3000 latency 200ms")
        yield near, far
    finally:
        for name in (near, router, far):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def measure(folder: Path) -> tuple[dict[str, float], Path]:
    """Return the medians (ms) of `ping` while idle and loaded, and the capture."""
    capture = folder / "link.pcap"
    running: list[subprocess.Popen[str]] = []

    def start(name: str, *command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        running.append(process)
        return process

    with namespaces("tfrcul") as (near, far):
        try:
            start(near, "tcpdump", "-i", f"{near}0", "-s", "96", "-U", "-w", str(capture))
            start(far, "iperf3", "-s")
            start(far, sys.executable, "-c", _SERVER)
            time.sleep(1)
            start(near, sys.executable, "-c", _CLIENT)
            pings = start(near, sys.executable, "-c", _PING)
            time.sleep(IDLE_S)
            begin = time.time()
            sh(f"ip netns exec {near} iperf3 -c 10.77.2.2 -t {LOADED_S} -C cubic")
            end = time.time()
            time.sleep(IDLE_S)
            pings.terminate()
            text = pings.communicate()[0]
        finally:
            for process in running:
                process.terminate()
                process.wait()
    samples = [(float(at), float(rtt)) for at, rtt in map(str.split, text.splitlines())]
    idle = [rtt for at, rtt in samples if not begin - 1 <= at <= end + 1]
    loaded = [rtt for at, rtt in samples if begin + SETTLING_S <= at <= end - 1]
    return {"idle": statistics.median(idle), "loaded": statistics.median(loaded)}, capture


def main() -> None:
    """Print what `ping` measured, and what the capture shows."""
    import tfrctrace

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="folder for the capture")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        pinged, capture = measure(folder)
        rows = tfrctrace.open(capture).delays_under_load()
    print(f"ping: idle {pinged['idle']:.2f} ms, loaded {pinged['loaded']:.1f} ms")
    for row in rows:
        if row.increase_ms is not None:
            print(
                f"{row.measure} {row.direction}: idle {row.idle_p50_ms:.2f} ms, "
                f"loaded {row.loaded_p50_ms:.1f} ms, increase {row.increase_ms:.1f} ms"
            )


if __name__ == "__main__":
    main()
