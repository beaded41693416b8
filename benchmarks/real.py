"""Capture real connections between two network namespaces: `real.py FILE PACKETS` (root, Linux).

iperf3 sends over 128 connections through a token bucket whose queue overflows now and then; tcpdump captures
at the sender, segments as long as on a wire. Every run captures other packets: keep the file to compare runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import Final

CONNECTIONS: Final = 128
SNAP_LENGTH: Final = 96
SENDER: Final = f"tfrctrace-a-{os.getpid()}"
RECEIVER: Final = f"tfrctrace-b-{os.getpid()}"
ADDRESSES: Final = {SENDER: "10.99.0.1", RECEIVER: "10.99.0.2"}
DEVICE: Final = "veth0"
BOTTLENECK: Final = ("rate", "2gbit", "burst", "128kb", "limit", "1mb")
NEEDED: Final = ("ip", "tc", "ethtool", "iperf3", "tcpdump")
LONGEST_S: Final = 3600


def missing() -> str:
    """Return why this machine cannot make the capture; empty if it can."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} missing"
    return "" if os.geteuid() == 0 else "network namespaces need root"


def run(*command: str) -> None:
    """Run a command that has to succeed."""
    subprocess.run(command, check=True)


def inside(namespace: str, *command: str) -> list[str]:
    """Return the command that runs another one in a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def connect() -> None:
    """Make both namespaces and the link between them."""
    for namespace in ADDRESSES:
        run("ip", "netns", "add", namespace)
    run("ip", "link", "add", DEVICE, "netns", SENDER, "type", "veth", "peer", DEVICE, "netns", RECEIVER)
    for namespace, address in ADDRESSES.items():
        run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", DEVICE)
        run("ip", "-n", namespace, "link", "set", DEVICE, "up")
        # a wire carries no segments of 64 kB
        run(*inside(namespace, "ethtool", "-K", DEVICE, "tso", "off", "gso", "off", "gro", "off"))
    run("tc", "-n", SENDER, "qdisc", "add", "dev", DEVICE, "root", "tbf", *BOTTLENECK)


def capture(path: str, packets: int) -> None:
    """Capture so many packets of iperf3."""
    started: list[subprocess.Popen[bytes]] = []

    def start(namespace: str, *command: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        started.append(subprocess.Popen(inside(namespace, *command), stdout=quiet, stderr=quiet))
        return started[-1]

    try:
        options = ("-w", path, "-s", str(SNAP_LENGTH), "-c", str(packets), "-B", "65536", "-Z", "root")
        dump = start(SENDER, "tcpdump", "-n", "-i", DEVICE, *options, "tcp")
        start(RECEIVER, "iperf3", "--server")
        time.sleep(1)
        start(SENDER, "iperf3", "-c", ADDRESSES[RECEIVER], "-P", str(CONNECTIONS), "-t", str(LONGEST_S))
        dump.wait(timeout=LONGEST_S)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main(path: str, packets: str) -> None:
    """Write the capture; it has its name only when it is whole."""
    if reason := missing():
        sys.exit(reason)
    try:
        connect()
        capture(f"{path}.part", int(packets))
    finally:
        for namespace in ADDRESSES:
            subprocess.run(["ip", "netns", "delete", namespace], check=False)
    os.replace(f"{path}.part", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
