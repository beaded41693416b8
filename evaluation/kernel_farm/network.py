r"""The network of a scenario, as namespaces of the guest.

    a --- r --- q ===bottleneck=== t --- b          c --- q   (competitors)
           \-- s --/                                 (the way after a change of path)

Each interface delays or holds back what leaves it towards the next: `r` the delay before the bottleneck, `q`
the rate and the queue, `t` the delay after it and random loss, and `t` and `r` those of the way back. The
queue stands in a router of its own: a full queue of the sender's own interface is told to TCP at once, and
nothing is lost.
"""

from __future__ import annotations

import ctypes
import fcntl
import ipaddress
import socket
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario import Scenario

LINKS: Final = (("a", "r"), ("r", "q"), ("q", "t"), ("t", "b"), ("c", "q"), ("r", "s"), ("s", "q"))
NAMESPACES: Final = ("a", "r", "q", "t", "b", "c", "s")
ROUTERS: Final = ("r", "q", "t", "s")

SIOCETHTOOL: Final = 0x8946
ETHTOOL_STSO: Final = 0x1F
ETHTOOL_SGSO: Final = 0x24
ETHTOOL_SGRO: Final = 0x2C

LONG_QUEUE: Final = 200_000
"""Packets that netem may hold: its own queue must never be the one that is full."""


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a network namespace, with the commands that are run meanwhile."""
    with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{namespace}", "rb") as other:
        _set_namespace(other.fileno())
        try:
            yield
        finally:
            _set_namespace(own.fileno())


def _set_namespace(file: int) -> None:
    # `os.setns` is there from Python 3.12 on
    if ctypes.CDLL(None, use_errno=True).setns(file, 0):
        raise OSError(ctypes.get_errno(), "cannot enter a namespace")


def run(*words: object, given: str = "") -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(
        [str(word) for word in words], input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}\n{given}")
    return done.stdout


class Commands:
    """Commands of `ip` and `tc`, run by one process in each namespace: starting one takes a guest 50 ms."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], list[str]] = {}

    def add(self, namespace: str, command: str) -> None:
        """Add a command; those of one program in one namespace keep their order."""
        program, line = command.split(maxsplit=1)
        self._lines.setdefault((namespace, program), []).append(line)

    def run(self) -> None:
        """Run all that were added."""
        for (namespace, program), lines in self._lines.items():
            with inside(namespace):
                run(program, "-batch", "-", given="\n".join(lines))


def build(scenario: Scenario) -> dict[str, str]:
    """Build the network and return the addresses of its ends."""
    links = [f"netns add {namespace}" for namespace in NAMESPACES]
    links += [
        f"link add {one}-{other} netns {one} type veth peer name {other}-{one} netns {other}"
        for one, other in LINKS
    ]
    run("ip", "-batch", "-", given="\n".join(links))
    commands = Commands()
    addresses: dict[tuple[str, str], str] = {}
    for network, (one, other) in zip(scenario.networks, LINKS, strict=True):
        first = ipaddress.IPv4Address(network)
        for place, (here, there) in enumerate(((one, other), (other, one)), 1):
            addresses[here, there] = str(first + place)
            commands.add(here, f"ip address add {first + place}/30 dev {here}-{there}")
            commands.add(here, f"ip link set {here}-{there} up")
    for namespace in NAMESPACES:
        commands.add(namespace, "ip link set lo up")
        with inside(namespace):
            _settings(scenario, namespace)
            for name in (f"{namespace}-{other}" for here, other in addresses if here == namespace):
                set_offload(name, on=scenario.offload and namespace in "abc")
    _route(commands, addresses)
    if scenario.tunnel:
        _tunnel(commands, addresses)
    _shape(commands, scenario)
    commands.run()
    return {"a": addresses["a", "r"], "b": addresses["b", "t"], "c": addresses["c", "q"]}


def change_path(scenario: Scenario, addresses: dict[str, str]) -> None:
    """Send what goes to `b` by way of `s`, which is one more hop."""
    assert scenario.change is not None
    gateway = ipaddress.IPv4Address(scenario.networks[LINKS.index(("r", "s"))]) + 2
    with inside("r"):
        run("ip", "route", "replace", f"{addresses['b']}/32", "via", gateway)


def lose(scenario: Scenario, share: float) -> None:
    """Lose so many of the packets that have passed the bottleneck from now on."""
    commands = Commands()
    _delay_to_receivers(commands, scenario, scenario.delays_s[1], _lost(share), verb="change")
    commands.run()


def set_rate(rate_bps: float) -> None:
    """Give the bottleneck another rate."""
    with inside("q"):
        run("tc", *_rate("q-t", rate_bps, "change").split())


def statistics() -> dict[str, str]:
    """Return what queues and ends counted."""
    told: dict[str, str] = {}
    with inside("q"):
        told["queues"] = run("tc", "-s", "qdisc", "show", "dev", "q-t")
        told["queues_back"] = run("tc", "-s", "qdisc", "show", "dev", "q-r")
        told["policer"] = run("tc", "-s", "filter", "show", "dev", "q-r", "parent", "ffff:")
    with inside("t"):
        told["delays"] = run("tc", "-s", "qdisc", "show", "dev", "t-b")
    for end, namespace in (("sender", "a"), ("receiver", "b")):
        with inside(namespace):
            told[end] = run("nstat", "-asz")
    return told


def _route(commands: Commands, addresses: dict[tuple[str, str], str]) -> None:
    for namespace, by in (("a", "r"), ("b", "t"), ("c", "q"), ("t", "q"), ("r", "q"), ("s", "q")):
        commands.add(namespace, f"ip route add default via {addresses[by, namespace]}")
    commands.add("q", f"ip route add {addresses['a', 'r']}/32 via {addresses['r', 'q']}")
    commands.add("q", f"ip route add {addresses['b', 't']}/32 via {addresses['t', 'q']}")


def _tunnel(commands: Commands, addresses: dict[tuple[str, str], str]) -> None:
    """Let what goes from `r` to `b`, and from `t` to `a`, pass the bottleneck as IP in IP."""
    for here, there, end in (("r", "t", addresses["b", "t"]), ("t", "r", addresses["a", "r"])):
        ends = f"local {addresses[here, 'q']} remote {addresses[there, 'q']}"
        commands.add(here, f"ip link add tunnel type ipip {ends}")
        commands.add(here, "ip link set tunnel up")
        commands.add(here, f"ip route add {end}/32 dev tunnel")


def _settings(scenario: Scenario, namespace: str) -> None:
    values = {}
    if namespace in ROUTERS:
        values = {"ip_forward": "1", "conf/all/rp_filter": "0"}
    if namespace in "abc":
        values = {
            "tcp_no_metrics_save": "1", "tcp_ecn": str(int(scenario.ecn)),
            "tcp_rmem": "4096 131072 33554432", "tcp_wmem": "4096 16384 33554432",
        }  # fmt: skip
    for name, value in values.items():
        (Path("/proc/sys/net/ipv4") / name).write_text(value)


def _shape(commands: Commands, scenario: Scenario) -> None:
    before_s, behind_s, back_behind_s, back_before_s = scenario.delays_s
    # netem lets packets that are not late pass without its delay, which is then of the link before
    _delay(commands, "r", "r-q", before_s + (behind_s if scenario.reordering else 0))
    if scenario.change is not None:
        _delay(commands, "r", "r-s", scenario.change[1])
    more = _lost(scenario.loss) if scenario.loss else ""
    if scenario.reordering:
        more += f" reorder {100 - scenario.reordering * 100:.4f}% 25%"
    if scenario.far_ports:
        _bands(commands, scenario)
    _delay_to_receivers(commands, scenario, behind_s, more)
    if scenario.clears_marks:
        clear = "pedit ex munge ip dsfield set 0 retain 0x3 pipe action csum ip4h"
        commands.add("t", "tc qdisc add dev t-b clsact")
        commands.add("t", f"tc filter add dev t-b egress protocol ip matchall action {clear}")
    _delay(commands, "t", "t-q", back_behind_s)
    _delay(commands, "r", "r-a", back_before_s)
    _delay(commands, "q", "q-c", scenario.competitors_delay_s)
    _bottleneck(commands, scenario)
    if scenario.reverse_rate_bps is not None:
        _htb(commands, "q-r", scenario.reverse_rate_bps)
        limit = round(scenario.reverse_rate_bps * 0.1 / 8) + 10_000
        commands.add("q", f"tc qdisc add dev q-r parent 1:1 bfifo limit {limit}")
    if scenario.policer is not None:
        rate_bps, bucket = scenario.policer
        police = f"police rate {rate_bps:.0f}bit burst {bucket} conform-exceed drop"
        commands.add("q", "tc qdisc add dev q-r handle ffff: ingress")
        commands.add("q", f"tc filter add dev q-r parent ffff: matchall action {police}")


def _lost(share: float) -> str:
    return f"loss random {share * 100:.5f}%"


def _bands(commands: Commands, scenario: Scenario) -> None:
    """Give what `t` sends to ports that are farther away bands of their own."""
    # everything that no filter takes goes to the first band
    commands.add("t", f"tc qdisc add dev t-b root handle 1: prio bands 16 priomap {' '.join(16 * '0')}")
    for band, (port, _) in enumerate(scenario.far_ports, start=2):
        match = f"match ip dport {port} 0xffff flowid 1:{band:x}"
        commands.add("t", f"tc filter add dev t-b parent 1: protocol ip u32 {match}")


def _delay_to_receivers(
    commands: Commands, scenario: Scenario, seconds: float, more: str, verb: str = "add"
) -> None:
    """Delay what leaves `t` for `b`, and what goes to some ports for longer."""
    if not scenario.far_ports:
        _delay(commands, "t", "t-b", seconds, more, verb=verb)
        return
    for band, more_s in enumerate((0.0, *(more_s for _, more_s in scenario.far_ports)), start=1):
        _delay(commands, "t", "t-b", seconds + more_s, more, verb=verb, at=f"parent 1:{band:x}")


def _delay(
    commands: Commands, namespace: str, interface: str, seconds: float, more: str = "",
    *, verb: str = "add", at: str = "root",
) -> None:  # fmt: skip
    delay = f"netem limit {LONG_QUEUE} delay {seconds * 1e6:.0f}us {more}"
    commands.add(namespace, f"tc qdisc {verb} dev {interface} {at} {delay}")


def _htb(commands: Commands, interface: str, rate_bps: float) -> None:
    commands.add("q", f"tc qdisc add dev {interface} root handle 1: htb default 1")
    commands.add("q", f"tc {_rate(interface, rate_bps, 'add')}")


def _rate(interface: str, rate_bps: float, verb: str) -> str:
    htb = f"htb rate {rate_bps:.0f}bit burst 1600 cburst 1600"
    return f"class {verb} dev {interface} parent 1: classid 1:1 {htb}"


def _bottleneck(commands: Commands, scenario: Scenario) -> None:
    """Lay the queue below the rate; CAKE and the token bucket filter have rates of their own."""
    rate = f"{scenario.rate_bps:.0f}bit"
    limit = scenario.buffer_bytes
    packets = max(limit // 1514, 5)
    ecn = "ecn" if scenario.ecn else ""
    root = "tc qdisc add dev q-t root"
    match scenario.queue:
        case "tbf":
            commands.add("q", f"{root} tbf rate {rate} burst 3200 limit {limit}")
            return
        case "cake":
            commands.add("q", f"{root} cake bandwidth {rate} raw memlimit {max(limit, 100_000)}")
            return
        case "bfifo":
            queue = f"bfifo limit {limit}"
        case "codel" | "pie":
            queue = f"{scenario.queue} limit {packets} {ecn}"
        case "fq_codel":
            queue = f"fq_codel limit {packets} {ecn or 'noecn'}"
        case "fq":
            queue = f"fq limit {packets} flow_limit {packets}"
        case "red":
            low = max(limit // 6, 4 * 1514)
            queue = (
                f"red limit {max(limit, 4 * low)} min {low} max {3 * low} avpkt 1000"
                f" burst {(5 * low) // 3000 + 1} probability 0.1 bandwidth {rate} {ecn}"
            )
    _htb(commands, "q-t", scenario.rate_bps)
    commands.add("q", f"tc qdisc add dev q-t parent 1:1 handle 10: {queue}")


def set_offload(interface: str, *, on: bool) -> None:
    """Turn segmentation and receive offload on or off, as `ethtool -K` does, which few machines have."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO):
            value = ctypes.create_string_buffer(struct.pack("=II", command, int(on)))
            request = struct.pack("@16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request.ljust(40, b"\0"))
