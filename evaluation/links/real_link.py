"""Capture on a link of network namespaces whose faults are known: `real_link.py --seed N -o FOLDER`.

Root and Linux, tcpdump, ip and ethtool. Clients and servers are processes with sockets of the kernel; relays
on both sides of the router that captures delay, drop and queue frames by the plan. Each kind of fault comes
once, in random order, at a random size and place, with a quiet time between; `truth.json` is the plan, and
what relays dropped. Time runs 60 times as fast as in an audit: `audit.toml` has its usual objectives so.
`real_link.py --audit FOLDER ...` audits such captures, and prints what was found of each fault.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from faults import MORE_KINDS, Fault, Host, Server, draw_fault
from measured_tables import table_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENDS: Final = Path(__file__).with_name("real_ends.py")
USUAL: Final = Path(__file__).resolve().parents[2] / "tfrctrace" / "audit" / "usual.toml"
FASTER: Final = 60
FIRST_S: Final = 150
"""Without a fault, from the beginning."""
LASTS_S: Final = (60, 120)
QUIET_S: Final = (75, 130)
HOSTS: Final = 6
SERVERS: Final = 4
FILE_S: Final = 60
SNAP_BYTES: Final = 96
CONNECTIONS_PER_S: Final = 0.9
"""Of each client."""


def sh(command: str) -> None:
    """Run a command."""
    subprocess.run(command.split(), check=True, capture_output=True)


def plan_of(seed: int, kinds: Sequence[str], begin: float) -> tuple[dict[str, Any], list[Fault]]:
    """Draw hosts, servers and faults, one after the other."""
    random = Random(seed)
    hosts = [Host(f"10.77.1.{10 + n}", random.uniform(0.003, 0.02), CONNECTIONS_PER_S) for n in range(HOSTS)]
    servers = [
        Server(f"10.77.2.{10 + n}", random.uniform(0.01, 0.05), random.uniform(0.01, 0.06))
        for n in range(SERVERS)
    ]
    faults, at_s = [], float(FIRST_S)
    for kind in random.sample(kinds, len(kinds)):
        lasts_s = random.uniform(*LASTS_S)
        drawn = draw_fault(kind, random, hosts, servers, 86_400)
        faults.append(replace(drawn, since_s=at_s, until_s=at_s + lasts_s))
        at_s += lasts_s + random.uniform(*QUIET_S)
    facts = {
        "seed": seed,
        "begin": begin,
        "length_s": at_s,
        "hosts": {one.address: {"rtt_s": one.rtt_s, "connections_per_s": one.activity} for one in hosts},
        "servers": {one.address: {"rtt_s": one.rtt_s, "response_s": one.response_s} for one in servers},
        "faults": [one.facts() for one in faults],
    }
    return facts, faults


@contextlib.contextmanager
def namespaces(prefix: str, hosts: Sequence[str], servers: Sequence[str]) -> Iterator[None]:
    """Make clients `a`, relays `n` and `f`, the router `m` between them, and servers `b`."""
    names = [f"{prefix}{part}" for part in "anmfb"]
    near, relay_near, router, relay_far, far = names
    try:
        for name in names:
            sh(f"ip netns add {name}")
            sh(f"ip -n {name} link set lo up")
        pairs = ((near, relay_near), (relay_near, router), (router, relay_far), (relay_far, far))
        for number, (one, other) in enumerate(pairs):
            sh(f"ip link add l{number} netns {one} type veth peer name r{number} netns {other}")
            for name, device in ((one, f"l{number}"), (other, f"r{number}")):
                sh(f"ip -n {name} link set {device} up")
                sh(f"ip netns exec {name} ethtool -K {device} tso off gso off gro off tx off")
        for name, device, addresses in ((near, "l0", hosts), (far, "r3", servers)):
            for address in addresses:
                sh(f"ip -n {name} addr add {address}/24 dev {device}")
        for number, device in ((1, "r1"), (2, "l2")):
            sh(f"ip -n {router} addr add 10.77.{number}.1/24 dev {device}")
        for number, name in ((1, near), (2, far)):
            sh(f"ip -n {name} route add default via 10.77.{number}.1")
        sh(f"ip netns exec {router} sysctl -q net.ipv4.ip_forward=1")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def capture_link(folder: Path, seed: int, kinds: Sequence[str]) -> None:
    """Write captures, the plan as `truth.json`, and `audit.toml`."""
    folder.mkdir(parents=True, exist_ok=True)
    facts, faults = plan_of(seed, kinds, time.time() + 8)
    prefix, truth = f"tfr{seed}", folder / "truth.json"
    truth.write_text(json.dumps(facts, indent=1) + "\n")
    running: list[subprocess.Popen[bytes]] = []
    begin, length_s = facts["begin"], facts["length_s"]

    def start(part: str, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["ip", "netns", "exec", f"{prefix}{part}", *command], stderr=subprocess.DEVNULL
        )
        running.append(process)
        return process

    def capture() -> subprocess.Popen[bytes]:
        into = ("-G", str(FILE_S), "-w", str(folder / "link-%Y%m%d%H%M%S.pcap"))
        return start("m", "tcpdump", "-Z", "root", "-i", "r1", "-s", str(SNAP_BYTES), *into, "tcp")

    def sleep_until(at_s: float) -> None:
        time.sleep(max(begin + at_s - time.time(), 0))

    python = ("nice", "-n", "-10", sys.executable, str(ENDS))
    with namespaces(prefix, list(facts["hosts"]), list(facts["servers"])):
        try:
            for side, part, ends in (("near", "n", ("l1", "r0")), ("far", "f", ("r2", "l3"))):
                start(part, *python, "relay", str(truth), side, *ends, str(folder / f"{side}.json"))
            start("b", *python, "servers", str(truth))
            start("a", *python, "clients", str(truth))
            seeing = capture()
            for fault in faults:
                if fault.unseen:
                    sleep_until(fault.since_s)
                    seeing.terminate()
                    seeing.wait()
                    sleep_until(fault.until_s)
                    seeing = capture()
            sleep_until(length_s)
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
    facts["dropped"] = {side: json.loads((folder / f"{side}.json").read_text()) for side in ("near", "far")}
    truth.write_text(json.dumps(facts, indent=1) + "\n")


def faster_objectives(text: str) -> str:
    """Return objectives with intervals that are shorter by as much as time runs faster."""
    return re.sub(r'every = "(\d+)min"', lambda found: f'every = "{int(found[1]) * 60 // FASTER}s"', text)


def audited(folder: Path, heads: bool) -> str:
    """Audit captures, and return what was found of each fault, in rows of a table."""
    from evaluate_audit import SLACK_S, found_of, overlap_s

    from tfrctrace import cli

    truth = json.loads((folder / "truth.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        limits = ("--limits", str(folder / "audit.toml"))
        status = cli.run(["audit", str(folder), "-o", name, "--quiet", "--jobs", "1", *limits])
        assert status == 0, status
        incidents = json.loads((Path(name) / "audit.json").read_text())["incidents"]
    rows, begin_s = [], truth["begin"]
    faults = [Fault.of_facts(one) for one in truth["faults"]]
    for fault in faults:
        found = found_of(fault, incidents, begin_s)
        size = ", ".join(f"{key} {value:.2g}" for key, value in fault.size.items())
        said, off_s = found.get("said", ["not found"]), found.get("off_s", [])
        off = ", ".join(f"{one:+.0f} s" for one in off_s)
        right = [("no", "yes")[found[key]] for key in ("place", "hosts")]
        rows.append((f"{truth['seed']}: {fault.kind}", size, off, said[0], *right))
    slack_s = SLACK_S / FASTER
    false = sum(not any(overlap_s(one, fault, slack_s, begin_s) for fault in faults) for one in incidents)
    rows.append((f"{truth['seed']}: false incidents", "", "", false, "", ""))
    text = table_text(("fault", "size", "begin, end off by", "place named", "right", "hosts right"), rows)
    return text if heads else text.split("\n", 2)[2]


def main() -> None:
    """Capture on the link of a seed, or audit captures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--fault", action="append", choices=MORE_KINDS)
    parser.add_argument("--audit", type=Path, nargs="+", metavar="FOLDER")
    given = parser.parse_args()
    for number, folder in enumerate(given.audit or ()):
        sys.stdout.write(audited(folder, heads=not number))
    if given.output is None:
        return
    capture_link(given.output, given.seed, given.fault or MORE_KINDS)
    (given.output / "audit.toml").write_text(faster_objectives(USUAL.read_text()))


if __name__ == "__main__":
    main()
