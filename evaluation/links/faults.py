"""What may go wrong on a link for some time, and what a path is like at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from random import Random

DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Host:
    """A client of the link."""

    address: str
    rtt_s: float
    """Between the capture and the host."""
    activity: float
    """How often it opens a connection, relative to others."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server behind the link."""

    address: str
    rtt_s: float
    """Between the capture and the server."""
    response_s: float
    """From the last byte of a request to the first of the response, on average."""


@dataclass(slots=True)
class Path:
    """One connection's path at one time."""

    near_rtt_s: float
    """Between the capture and the client."""
    far_rtt_s: float
    """Between the capture and the server."""
    response_s: float
    loss_before: float = 0.0
    """Of data that come from the server."""
    loss_behind: float = 0.0
    """Of data on their way to the client."""
    jitter: float = 0.05
    """Standard deviation of a delay, as a share of it."""
    is_answered: bool = True
    is_served: bool = True
    """Whether the server says anything to a request that it has acknowledged."""
    passes_large: bool = True
    """Whether full segments get to the client."""
    is_refused: bool = False
    burst_loss: float = 0.0
    """Of data behind the first ten segments of a window: a policer."""
    name_server: str = "answers"
    """`answers`, `fails` or `silent`."""
    dns_response_s: float = 0.001
    ping_loss: float = 0.0


_ADDED: Final = {
    *("near_rtt_s", "far_rtt_s", "response_s", "loss_before", "loss_behind", "jitter"),
    *("burst_loss", "dns_response_s", "ping_loss"),
}
"""Sizes of a fault that are added to what the path has."""
_STATES: Final[dict[str, tuple[str, bool | str]]] = {
    "outage": ("is_answered", False),
    "unserved": ("is_served", False),
    "black_hole": ("passes_large", False),
    "refused": ("is_refused", True),
    "dns_fails": ("name_server", "fails"),
    "dns_silent": ("name_server", "silent"),
}
"""What a path becomes by a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A stretch in which the paths of some hosts or servers are worse."""

    kind: str
    since_s: float
    """From the beginning of the link."""
    until_s: float
    hosts: tuple[str, ...] = ()
    """Addresses of the clients that suffer; empty for all."""
    servers: tuple[str, ...] = ()
    """Addresses of the servers that cause it; empty for all."""
    size: dict[str, float] = field(default_factory=dict)

    def concerns(self, host: str, server: str, at_s: float) -> bool:
        """Whether a connection suffers at a time."""
        if not self.since_s <= at_s < self.until_s:
            return False
        return (not self.hosts or host in self.hosts) and (not self.servers or server in self.servers)

    def worsen(self, path: Path, at_s: float) -> None:
        """Change a path as long as the fault lasts."""
        for name, value in self.size.items():
            if name in _ADDED:
                setattr(path, name, getattr(path, name) + value)
            elif name == "creeps_s":
                path.near_rtt_s += value * (at_s - self.since_s) / DAY_S
            elif name in _STATES and value:
                setattr(path, *_STATES[name])

    @property
    def unseen(self) -> float:
        """Share of the packets of this time that the capture does not have."""
        return 1.0 if self.kind in {"dead capture", "dead link"} else self.size.get("unseen", 0.0)

    @classmethod
    def of_facts(cls, facts: dict[str, Any]) -> Fault:
        """Return the fault that has these facts."""
        size = {name: value for name, value in facts.items() if name not in cls.__slots__}
        hosts, servers = (tuple(facts[name]) for name in ("hosts", "servers"))
        return cls(facts["kind"], facts["since_s"], facts["until_s"], hosts, servers, size)

    def facts(self) -> dict[str, Any]:
        """Return it as names and values."""
        return {
            "kind": self.kind,
            "since_s": self.since_s,
            "until_s": self.until_s,
            "hosts": list(self.hosts),
            "servers": list(self.servers),
            **self.size,
        }


_ONE: Final = (1.0, 1.0)
_FORMS: Final[dict[str, tuple[str, dict[str, tuple[float, float]]]]] = {
    "dead link": ("all", {}),
    "dead server": ("one server", {"outage": _ONE}),
    "refused": ("one server", {"refused": _ONE}),
    "policer": ("all", {"burst_loss": (0.2, 0.5)}),
    "names fail": ("all", {"dns_fails": _ONE}),
    "names silent": ("all", {"dns_silent": _ONE}),
    "slow names": ("all", {"dns_response_s": (1, 3)}),
    "lost pings": ("all", {"ping_loss": (0.5, 1)}),
    "slow side": ("some hosts", {"near_rtt_s": (0.3, 0.6)}),
    "far server": ("one server", {"far_rtt_s": (0.3, 0.6)}),
    "creeping delay": ("all", {"creeps_s": (0.4, 0.8)}),
    "new path": ("all", {"far_rtt_s": (0.15, 0.3)}),
}
"""Whom a fault of a kind that has one form hits, and the least and the largest of its sizes."""
LASTING: Final = ("creeping delay", "new path")
"""Kinds that are there until the captures end."""


def _time_of(kind: str, random: Random, length_s: float) -> tuple[float, float]:
    """Draw when a fault begins, and for how long it lasts."""
    lasts_s = random.uniform(1_200, min(4 * 3_600, length_s / 6))
    since_s = random.uniform(0.1 * length_s, 0.9 * length_s - lasts_s)
    if kind in LASTING:
        since_s = random.uniform(0.25, 0.4) * length_s
        lasts_s = length_s - since_s
    return since_s, lasts_s


def draw_fault(kind: str, random: Random, hosts: list[Host], servers: list[Server], length_s: float) -> Fault:
    """Draw a fault of a kind: its place, its time and its size."""
    since_s, lasts_s = _time_of(kind, random, length_s)

    def fault(size: dict[str, float], hosts: tuple[str, ...] = (), servers: tuple[str, ...] = ()) -> Fault:
        return Fault(kind, since_s, since_s + lasts_s, hosts, servers, size)

    one_server = (random.choice(servers).address,)
    match kind:
        case "bufferbloat":
            place = random.choice(("near", "far"))
            found = fault({f"{place}_rtt_s": random.uniform(0.1, 0.4), "load": 1})
        case "loss" if random.random() < 0.5:
            found = fault({"loss_before": random.uniform(0.03, 0.1)}, servers=one_server)
        case "loss":
            some = tuple(one.address for one in random.sample(hosts, max(2, len(hosts) // 4)))
            found = fault({"loss_behind": random.uniform(0.03, 0.1)}, hosts=some)
        case "outage":
            found = fault({"outage": 1})
        case "unserved":
            found = fault({"unserved": 1}, servers=one_server)
        case "black hole":
            some = tuple(one.address for one in random.sample(hosts, max(2, len(hosts) // 4)))
            found = fault({"black_hole": 1}, hosts=some)
        case "dead capture":
            found = fault({})
        case "slow server":
            found = fault({"response_s": random.uniform(0.5, 3)}, servers=one_server)
        case "capture drops":
            found = fault({"unseen": random.uniform(0.02, 0.1)})
        case "longer path":
            place = random.choice(("near", "far"))
            found = fault({f"{place}_rtt_s": random.uniform(0.12, 0.3)})
        case "bad station":
            size = {"loss_behind": random.uniform(0.04, 0.12), "near_rtt_s": 0.06, "jitter": 0.5}
            found = fault(size, hosts=(random.choice(hosts).address,))
        case _:
            whom, sizes = _FORMS[kind]
            size = {name: random.uniform(*bounds) for name, bounds in sizes.items()}
            some = tuple(one.address for one in random.sample(hosts, max(2, len(hosts) // 4)))
            found = fault(
                size,
                hosts=some if whom == "some hosts" else (),
                servers=one_server if whom == "one server" else (),
            )
    return found


KINDS: Final = ("bufferbloat", "loss", "outage", "dead capture", "slow server", "bad station")
MORE_KINDS: Final = (*KINDS, "longer path")
"""Those of links of namespaces."""
ALL_KINDS: Final = (*MORE_KINDS, "capture drops", "unserved", "black hole", *_FORMS)

TRAITS: Final = ("far client", "slow application", "long poll", "lossy thin host", "nights", "flash crowd")
"""What a link may be like all the time, or for a good reason: no fault."""


def draw_trait(trait: str, random: Random, hosts: list[Host], servers: list[Server]) -> Fault:
    """Draw what is always so of one host or server."""

    def always(size: dict[str, float], hosts: tuple[str, ...] = (), servers: tuple[str, ...] = ()) -> Fault:
        return Fault(trait, 0.0, float("inf"), hosts, servers, size)

    host, server = (random.choice(hosts).address,), (random.choice(servers).address,)
    match trait:
        case "far client":
            return always({"near_rtt_s": random.uniform(0.2, 0.35)}, hosts=host)
        case "slow application":
            return always({"response_s": random.uniform(0.6, 2)}, servers=server)
        case "long poll":
            return always({"response_s": random.uniform(15, 40)}, servers=server)
        case "lossy thin host":
            return always({"loss_behind": random.uniform(0.01, 0.03)}, hosts=host)
        case _:
            return always({})
