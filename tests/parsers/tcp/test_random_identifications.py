"""What hosts with random IP identifications (as macOS) retransmit is no duplicate of the network.

The witnesses are the labels of the corpus, made by kernels and a relay, and the kernel's counters of
namespaces. The identifications of these captures are drawn anew in each run, by a seed that a failure names.
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import polars as pl
import pytest
from corpus_case import CorpusCase
from labels import RETRANSMISSIONS, labelled
from patience import PATIENCE_S
from programs import ask_tfrctrace

import tfrctrace

SET_OFFLOAD = Path(__file__).resolve().parents[3] / "evaluation" / "kernel_farm" / "network.py"
LINK_BYTES = 14
IPV4 = b"\x08\x00"
REPEATED = (*RETRANSMISSIONS, "syn_retransmission", "fin_retransmission")
CASES = ("syn-lost", "syn-ack-lost", "drop-first-data", "drop-one", "delay-spike-no-timestamps", "tail-one")
"""Without `copies`: a copy keeps its identification, whatever the others are."""
DRAWS = 12
TOOLS = ("ip", "nft", "tcpdump", "nstat")
PORT = 5000
SNAP_BYTES = "2000"
BUFFER_KIB = "16384"
CONNECTIONS = 40
LOST_PERCENT = 25


def with_random_identifications(capture: Path, out: Path, seed: int) -> Path:
    """Write a capture of Ethernet whose IPv4 packets have identifications drawn at random."""
    content = bytearray(capture.read_bytes())
    dice = random.Random(seed)
    at = 24
    while at < len(content):
        (captured,) = struct.unpack_from("<I", content, at + 8)
        frame = at + 16
        if content[frame + 12 : frame + LINK_BYTES] == IPV4:
            struct.pack_into(">H", content, frame + LINK_BYTES + 4, dice.randrange(1, 1 << 16))
        at = frame + captured
    out.write_bytes(content)
    return out


@pytest.mark.parametrize("tap", ["snd", "mid", "rcv"])
@pytest.mark.parametrize("name", CASES)
def test_no_retransmission_is_a_duplicate_of_the_network(name: str, tap: str, tmp_path: Path) -> None:
    case = CorpusCase(name)
    original = case.unpack(tap, tmp_path)
    repeated = [packet for packet in labelled(case, tap, original) if packet.kind in REPEATED]
    for seed in random.sample(range(1 << 32), DRAWS):
        called = ask_tfrctrace(with_random_identifications(original, tmp_path / "random.pcap", seed))
        doubled = [
            packet.number
            for packet in repeated
            if packet.number in called and called[packet.number].name == "network_duplicate"
        ]
        assert doubled == [], f"seed {seed}"


def in_namespace(name: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", name, *command]


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def hosts_in_a_row(*subnets: str) -> Iterator[list[str]]:
    """Make namespaces with links of these subnets between them, without offload, and take them away."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root and {', '.join(TOOLS)}")
    hosts = [f"ids{os.getpid()}-{number}" for number in range(len(subnets) + 1)]
    made = [subprocess.run(["ip", "netns", "add", host], capture_output=True, check=False) for host in hosts]
    try:
        if any(done.returncode for done in made):
            pytest.skip("namespaces cannot be made here")
        for subnet, near, far in zip(subnets, hosts, hosts[1:], strict=False):
            run(
                "ip",
                "link",
                "add",
                "right",
                "netns",
                near,
                "type",
                "veth",
                "peer",
                "name",
                "left",
                "netns",
                far,
            )
            bits, is_ipv6 = ("64", True) if ":" in subnet else ("24", False)
            for host, device, number in ((near, "right", 1), (far, "left", 2)):
                no_detection = ["nodad"] if is_ipv6 else []
                run("ip", "-n", host, "addr", "add", f"{subnet}{number}/{bits}", "dev", device, *no_detection)
                run("ip", "-n", host, "link", "set", device, "up")
                run(*in_namespace(host, sys.executable, str(SET_OFFLOAD), "0", device))
        for router in hosts[1:-1]:
            run(*in_namespace(router, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"))
        for host, gateway in ((hosts[0], f"{subnets[0]}2"), (hosts[-1], f"{subnets[-1]}1")):
            run("ip", "-n", host, "route", "add", "default", "via", gateway)
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], capture_output=True, check=False)


def drop_what_arrives(host: str, which: str) -> None:
    """Lose packets at a host, behind a capture at the other."""
    for words in ("table inet lost", "chain inet lost in { type filter hook input priority 0 ; }"):
        run(*in_namespace(host, "nft", "add", *words.split()))
    run(*in_namespace(host, "nft", "add", "rule", "inet", "lost", "in", *which.split(), "drop"))


@contextmanager
def captured(host: str, device: str, path: Path) -> Iterator[None]:
    """Capture at a host, from when the program says that it listens until all is written.

    Its buffer holds all packets of a test, also where the program does not run for seconds.
    """
    command = ["tcpdump", "-i", device, "-s", SNAP_BYTES, "-B", BUFFER_KIB, "-U", "--immediate-mode"]
    command += ["-Z", "root", "-w", str(path), "tcp"]
    with subprocess.Popen(in_namespace(host, *command), stderr=subprocess.PIPE) as program:
        assert program.stderr is not None
        while b"listening" not in program.stderr.readline():
            assert program.poll() is None
        yield
        time.sleep(0.3)
        program.terminate()
        said = program.stderr.read().decode()
    if re.search(r"^0 packets dropped by kernel", said, re.MULTILINE) is None:
        pytest.skip(f"tcpdump did not capture all packets: {said}")


SERVER = """
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listening = socket.create_server((sys.argv[1], 5000), family=family, backlog=200)
print("listens", flush=True)
def serve(one):
    with one:
        while one.recv(4096):
            one.sendall(b"answer" * 100)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
CLIENT = """
import socket, sys, threading
def ask():
    with socket.create_connection((sys.argv[1], 5000), timeout=120) as one:
        for _ in range(3):
            one.sendall(b"request" * 40)
            answered = 0
            while answered < 600:
                answered += len(one.recv(4096))
every = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for one in every: one.start()
for one in every: one.join()
"""


def ask(hosts: list[str], address: str, connections: int, capturing: AbstractContextManager[None]) -> None:
    """Ask the last host from the first, while it is captured."""
    command = in_namespace(hosts[-1], sys.executable, "-c", SERVER, address)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        with capturing:
            run(*in_namespace(hosts[0], sys.executable, "-c", CLIENT, address, str(connections)))
            wait_for_acknowledged_fins(hosts[0])
        server.kill()


def wait_for_acknowledged_fins(host: str) -> None:
    """Wait until the kernel has no FIN to send again, which it would count after the capture's end."""
    states = (word for state in ("fin-wait-1", "closing", "last-ack") for word in ("state", state))
    closing = in_namespace(host, "ss", "--no-header", "--numeric", "--tcp", *states)
    until = time.monotonic() + PATIENCE_S
    while run(*closing):
        assert time.monotonic() < until
        time.sleep(0.1)


def counters(host: str) -> dict[str, int]:
    lines = [line.split() for line in run(*in_namespace(host, "nstat", "-asz")).splitlines()]
    return {line[0]: int(line[1]) for line in lines if not line[0].startswith("#")}


@pytest.mark.slow
def test_what_is_sent_again_is_what_the_kernel_counted(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    capture = tmp_path / "as-sent.pcap"
    with hosts_in_a_row("10.9.0.") as hosts:
        drop_what_arrives(hosts[1], f"numgen random mod 100 < {LOST_PERCENT}")
        ask(hosts, "10.9.0.2", CONNECTIONS, captured(hosts[0], "right", capture))
        kernel = counters(hosts[0])
    flows = tfrctrace.open(with_random_identifications(capture, tmp_path / "random.pcap", seed)).flows
    sent = flows.filter(pl.col("dst_port") == PORT)
    assert sent["syn_retransmissions"].sum() == kernel["TcpExtTCPSynRetrans"] > 0, f"seed {seed}"
    again = sent.select(
        "syn_retransmissions", "fin_retransmissions", "retransmitted_packets"
    ).sum_horizontal()
    assert again.sum() == kernel["TcpRetransSegs"], f"seed {seed}"
    assert flows["network_duplicates"].sum() == 0, f"seed {seed}"


@pytest.mark.slow
def test_what_waited_for_neighbour_discovery_is_no_duplicate(tmp_path: Path) -> None:
    """A router holds two SYNs until the host answers its solicitation, and sends both at once."""
    capture = tmp_path / "held.pcap"
    with hosts_in_a_row("fd00:8::", "fd00:9::") as hosts:
        # the second solicitation is answered, when the second SYN, a second after the first, waits too
        run(*in_namespace(hosts[1], "sysctl", "-qw", "net.ipv6.neigh.right.retrans_time_ms=1700"))
        drop_what_arrives(hosts[2], "ip6 daddr ff02::1:ff00:2 numgen inc mod 100 < 1")
        ask(hosts, "fd00:9::2", 1, captured(hosts[2], "left", capture))
        asking, _, asked = (counters(host) for host in hosts)
    [there, back] = tfrctrace.open(capture).flows.sort(pl.col("dst_port") != PORT).to_dicts()
    assert there["syn_retransmissions"] == asking["TcpExtTCPSynRetrans"] > 0
    assert back["syn_retransmissions"] == asked["TcpRetransSegs"] > 0
    assert there["network_duplicates"] == back["network_duplicates"] == 0
    assert there["handshake_rtt_ms"] is None
