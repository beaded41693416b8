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
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
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


def run(*words: object) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def inside(namespace: str, *words: object) -> str:
    """Run a command in a namespace."""
    return run("ip", "netns", "exec", namespace, *words)


def build(scenario: Scenario) -> dict[str, str]:
    """Build the network and return the addresses of its ends."""
    for namespace in NAMESPACES:
        run("ip", "netns", "add", namespace)
        inside(namespace, "ip", "link", "set", "lo", "up")
    addresses: dict[tuple[str, str], str] = {}
    for network, (one, other) in zip(scenario.networks, LINKS, strict=True):
        run("ip", "link", "add", f"{one}-{other}", "netns", one, "type", "veth",
            "peer", "name", f"{other}-{one}", "netns", other)  # fmt: skip
        first = ipaddress.IPv4Address(network)
        for place, (here, there) in enumerate(((one, other), (other, one)), 1):
            addresses[here, there] = str(first + place)
            inside(here, "ip", "address", "add", f"{first + place}/30", "dev", f"{here}-{there}")
            inside(here, "ip", "link", "set", f"{here}-{there}", "up")
    for namespace in NAMESPACES:
        names = [f"{namespace}-{other}" for here, other in addresses if here == namespace]
        # an ioctl, so by this file inside the namespace
        inside(namespace, sys.executable, __file__, int(scenario.offload and namespace in "abc"), *names)
    _route(addresses)
    if scenario.tunnel:
        _tunnel(addresses)
    _settings(scenario)
    _shape(scenario)
    return {"a": addresses["a", "r"], "b": addresses["b", "t"], "c": addresses["c", "q"]}


def change_path(scenario: Scenario, addresses: dict[str, str]) -> None:
    """Send what goes to `b` by way of `s`, which is one more hop."""
    assert scenario.change is not None
    gateway = ipaddress.IPv4Address(scenario.networks[LINKS.index(("r", "s"))]) + 2
    inside("r", "ip", "route", "replace", f"{addresses['b']}/32", "via", gateway)


def lose(scenario: Scenario, share: float) -> None:
    """Lose so many of the packets that have passed the bottleneck from now on."""
    _delay_to_receivers(scenario, scenario.delays_s[1], *_lost(share), verb="change")


def statistics() -> dict[str, str]:
    """Return what queues and ends counted."""
    return {
        "queues": inside("q", "tc", "-s", "qdisc", "show", "dev", "q-t"),
        "queues_back": inside("q", "tc", "-s", "qdisc", "show", "dev", "q-r"),
        "policer": inside("q", "tc", "-s", "filter", "show", "dev", "q-r", "parent", "ffff:"),
        "delays": inside("t", "tc", "-s", "qdisc", "show", "dev", "t-b"),
        "sender": inside("a", "nstat", "-asz"),
        "receiver": inside("b", "nstat", "-asz"),
    }


def _route(addresses: dict[tuple[str, str], str]) -> None:
    def default(namespace: str, by: str) -> None:
        inside(namespace, "ip", "route", "add", "default", "via", addresses[by, namespace])

    for namespace, by in (("a", "r"), ("b", "t"), ("c", "q"), ("t", "q"), ("r", "q"), ("s", "q")):
        default(namespace, by)
    inside("q", "ip", "route", "add", f"{addresses['a', 'r']}/32", "via", addresses["r", "q"])
    inside("q", "ip", "route", "add", f"{addresses['b', 't']}/32", "via", addresses["t", "q"])


def _tunnel(addresses: dict[tuple[str, str], str]) -> None:
    """Let what goes from `r` to `b`, and from `t` to `a`, pass the bottleneck as IP in IP."""
    for here, there, end in (("r", "t", addresses["b", "t"]), ("t", "r", addresses["a", "r"])):
        inside(here, "ip", "link", "add", "tunnel", "type", "ipip",
               "local", addresses[here, "q"], "remote", addresses[there, "q"])  # fmt: skip
        inside(here, "ip", "link", "set", "tunnel", "up")
        inside(here, "ip", "route", "add", f"{end}/32", "dev", "tunnel")


def _settings(scenario: Scenario) -> None:
    for router in ROUTERS:
        inside(router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
    for end in "abc":
        inside(
            end, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1", f"net.ipv4.tcp_ecn={int(scenario.ecn)}",
            "net.ipv4.tcp_rmem=4096 131072 33554432", "net.ipv4.tcp_wmem=4096 16384 33554432",
        )  # fmt: skip


def _shape(scenario: Scenario) -> None:
    before_s, behind_s, back_behind_s, back_before_s = scenario.delays_s
    # netem lets packets that are not late pass without its delay, which is then of the link before
    _delay("r", "r-q", before_s + (behind_s if scenario.reordering else 0))
    if scenario.change is not None:
        _delay("r", "r-s", scenario.change[1])
    more = _lost(scenario.loss) if scenario.loss else []
    if scenario.reordering:
        more += ["reorder", f"{100 - scenario.reordering * 100:.4f}%", "25%"]
    if scenario.far_ports:
        _bands(scenario)
    _delay_to_receivers(scenario, behind_s, *more)
    if scenario.clears_marks:
        clear = ("pedit", "ex", "munge", "ip", "dsfield", "set", 0, "retain", "0x3")
        inside("t", "tc", "qdisc", "add", "dev", "t-b", "clsact")
        inside("t", "tc", "filter", "add", "dev", "t-b", "egress", "protocol", "ip", "matchall",
               "action", *clear, "pipe", "action", "csum", "ip4h")  # fmt: skip
    _delay("t", "t-q", back_behind_s)
    _delay("r", "r-a", back_before_s)
    _delay("q", "q-c", scenario.competitors_delay_s)
    _bottleneck(scenario)
    if scenario.reverse_rate_bps is not None:
        _htb("q-r", scenario.reverse_rate_bps)
        limit = round(scenario.reverse_rate_bps * 0.1 / 8) + 10_000
        inside("q", "tc", "qdisc", "add", "dev", "q-r", "parent", "1:1", "bfifo", "limit", limit)
    if scenario.policer is not None:
        rate_bps, bucket = scenario.policer
        inside("q", "tc", "qdisc", "add", "dev", "q-r", "handle", "ffff:", "ingress")
        inside("q", "tc", "filter", "add", "dev", "q-r", "parent", "ffff:", "matchall", "action", "police",
               "rate", f"{rate_bps:.0f}bit", "burst", bucket, "conform-exceed", "drop")  # fmt: skip


def _lost(share: float) -> list[object]:
    return ["loss", "random", f"{share * 100:.5f}%"]


def _bands(scenario: Scenario) -> None:
    """Give what `t` sends to ports that are farther away bands of their own."""
    on = ("dev", "t-b")
    # everything that no filter takes goes to the first band
    inside("t", "tc", "qdisc", "add", *on, "root", "handle", "1:", "prio", "bands", 16, "priomap", *[0] * 16)
    for band, (port, _) in enumerate(scenario.far_ports, start=2):
        inside("t", "tc", "filter", "add", *on, "parent", "1:", "protocol", "ip", "u32",
               "match", "ip", "dport", port, "0xffff", "flowid", f"1:{band:x}")  # fmt: skip


def _delay_to_receivers(scenario: Scenario, seconds: float, *more: object, verb: str = "add") -> None:
    """Delay what leaves `t` for `b`, and what goes to some ports for longer."""
    if not scenario.far_ports:
        _delay("t", "t-b", seconds, *more, verb=verb)
        return
    for band, more_s in enumerate((0.0, *(more_s for _, more_s in scenario.far_ports)), start=1):
        _delay("t", "t-b", seconds + more_s, *more, verb=verb, at=f"1:{band:x}")


def _delay(
    namespace: str, interface: str, seconds: float, *more: object, verb: str = "add", at: str = ""
) -> None:
    inside(namespace, "tc", "qdisc", verb, "dev", interface, *(("parent", at) if at else ("root",)), "netem",
           "limit", LONG_QUEUE, "delay", f"{seconds * 1e6:.0f}us", *more)  # fmt: skip


def _htb(interface: str, rate_bps: float) -> None:
    inside("q", "tc", "qdisc", "add", "dev", interface, "root", "handle", "1:", "htb", "default", 1)
    set_rate(rate_bps, interface, verb="add")


def set_rate(rate_bps: float, interface: str = "q-t", verb: str = "change") -> None:
    """Give an interface of `q` another rate."""
    inside("q", "tc", "class", verb, "dev", interface, "parent", "1:", "classid", "1:1",
           "htb", "rate", f"{rate_bps:.0f}bit", "burst", 1600, "cburst", 1600)  # fmt: skip


def _bottleneck(scenario: Scenario) -> None:
    """Lay the queue below the rate; CAKE and the token bucket filter have rates of their own."""
    rate = f"{scenario.rate_bps:.0f}bit"
    limit = scenario.buffer_bytes
    packets = max(limit // 1514, 5)
    ecn = ["ecn"] if scenario.ecn else []
    root = ["qdisc", "add", "dev", "q-t", "root"]
    match scenario.queue:
        case "tbf":
            inside("q", "tc", *root, "tbf", "rate", rate, "burst", 3200, "limit", limit)
            return
        case "cake":
            inside("q", "tc", *root, "cake", "bandwidth", rate, "raw", "memlimit", max(limit, 100_000))
            return
        case "bfifo":
            queue: list[object] = ["bfifo", "limit", limit]
        case "codel":
            queue = ["codel", "limit", packets, *ecn]
        case "fq_codel":
            queue = ["fq_codel", "limit", packets, *(ecn or ["noecn"])]
        case "pie":
            queue = ["pie", "limit", packets, *ecn]
        case "fq":
            queue = ["fq", "limit", packets, "flow_limit", packets]
        case "red":
            low = max(limit // 6, 4 * 1514)
            queue = ["red", "limit", max(limit, 4 * low), "min", low, "max", 3 * low, "avpkt", 1000,
                     "burst", (5 * low) // 3000 + 1, "probability", 0.1, "bandwidth", rate, *ecn]  # fmt: skip
    _htb("q-t", scenario.rate_bps)
    inside("q", "tc", "qdisc", "add", "dev", "q-t", "parent", "1:1", "handle", "10:", *queue)


def set_offload(interface: str, *, on: bool) -> None:
    """Turn segmentation and receive offload on or off, as `ethtool -K` does, which few machines have."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO):
            value = ctypes.create_string_buffer(struct.pack("=II", command, int(on)))
            request = struct.pack("@16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request.ljust(40, b"\0"))


if __name__ == "__main__":
    for name in sys.argv[2:]:
        set_offload(name, on=sys.argv[1] == "1")
