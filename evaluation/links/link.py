"""A link with clients, servers and faults, drawn by a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from connection import Connection, Ping, Resolution, simulate
from faults import DAY_S, Fault, Host, Path, Server, draw_fault, draw_trait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packets import Packet

LOAD_EVERY_S = 15.0
"""Between two large downloads while a queue is full."""
CROWD, CROWD_S = 2_000, 1_800.0
"""Connections of a crowd that comes at once, and how long it stays."""
WORK_S = (7.5 * 3_600, 18.5 * 3_600)


@dataclass(slots=True)
class Link:
    """What a capture between clients and servers has seen."""

    seed: int
    length_s: float
    hosts: list[Host]
    servers: list[Server]
    faults: list[Fault]
    connections_per_s: float
    """On average over a day."""
    traits: list[Fault]
    """What is always so."""
    taken: set[tuple[str, str, int]] = field(default_factory=set)
    """Ends of connections so far."""

    def path(self, host: Host, server: Server, at_s: float) -> Path:
        """Return what a path is like at a time."""
        found = Path(host.rtt_s, server.rtt_s, server.response_s)
        for fault in (*self.traits, *self.faults):
            if fault.concerns(host.address, server.address, at_s):
                fault.worsen(found, at_s)
        return found

    def packets(self) -> Iterator[list[Packet]]:
        """Give the packets of each connection, look-up and ping, by the time of its beginning."""
        random = Random(self.seed)
        weights = [host.activity for host in self.hosts]
        for at_s in self._starts(random):
            host, server = random.choices(self.hosts, weights)[0], random.choice(self.servers)
            requests = 1 + min(int(random.expovariate(0.7)), 4)
            sizes = [max(1, min(int(random.lognormvariate(2.2, 1.2)), 400)) for _ in range(requests)]
            yield self._connection(random, host, server, at_s, sizes)
            if random.random() < 0.2:
                path = self.path(host, server, at_s)
                yield self._shown(simulate(Resolution(host.address, path, at_s - 0.2), random), random)
        yield from self._load(random)
        yield from self._pings(random)

    def _connection(
        self, random: Random, host: Host, server: Server, at_s: float, sizes: list[int]
    ) -> list[Packet]:
        def path(when_s: float) -> Path:
            return self.path(host, server, when_s)

        port = random.randrange(32_768, 61_000)
        while (host.address, server.address, port) in self.taken:  # by a connection that may still be there
            port += 1
        self.taken.add((host.address, server.address, port))
        connection = Connection(host.address, server.address, port, path, at_s, sizes)
        return self._shown(simulate(connection, random), random)

    def _starts(self, random: Random) -> Iterator[float]:
        """Draw the beginnings of connections: few at night, most in the afternoon."""
        at_s = 0.0
        while True:
            at_s += random.expovariate(1.6 * self.connections_per_s)
            if at_s >= self.length_s - 30:
                break
            activity = 0.55 - 0.45 * math.cos(2 * math.pi * (at_s / DAY_S - 0.1))
            if random.random() < activity and self._is_awake(at_s):
                yield at_s
        if self._has("flash crowd"):
            since_s = random.uniform(0.4, 0.6) * self.length_s
            yield from (since_s + random.uniform(0, CROWD_S) for _ in range(CROWD))

    def _has(self, trait: str) -> bool:
        return any(one.kind == trait for one in self.traits)

    def _is_awake(self, at_s: float) -> bool:
        """Whether anybody is there: not at night, nor at the weekend, where people go home."""
        day, of_day_s = divmod(at_s, DAY_S)
        is_work = WORK_S[0] <= of_day_s < WORK_S[1] and day % 7 < 5
        return is_work or not self._has("nights")

    def _load(self, random: Random) -> Iterator[list[Packet]]:
        """Fill the queue by large downloads of one host, as long as delays are longer."""
        for fault in self.faults:
            if not fault.size.get("load"):
                continue
            host, server = random.choice(self.hosts), random.choice(self.servers)
            at_s = fault.since_s
            while at_s < fault.until_s:
                yield self._connection(random, host, server, at_s, [random.randrange(150, 400)])
                at_s += random.expovariate(1 / LOAD_EVERY_S)

    def _pings(self, random: Random) -> Iterator[list[Packet]]:
        """Ping the first server from the first host every ten seconds."""
        host, server = self.hosts[0], self.servers[0]
        for number in range(int(self.length_s / 10)):
            at_s = 10.0 * number + 5
            if not self._is_awake(at_s):
                continue
            ping = Ping(host.address, server.address, self.path(host, server, at_s), at_s, number)
            yield self._shown(simulate(ping, random), random)

    def _shown(self, packets: list[Packet], random: Random) -> list[Packet]:
        hiding = [fault for fault in self.faults if fault.unseen]
        return [
            packet
            for packet in packets
            if 0 <= packet.time_s < self.length_s
            and not any(
                fault.since_s <= packet.time_s < fault.until_s
                and (fault.unseen == 1 or random.random() < fault.unseen)
                for fault in hiding
            )
        ]

    def truth(self) -> dict[str, Any]:
        """Return the link and its faults as names and values."""
        return {
            "seed": self.seed,
            "length_s": self.length_s,
            "hosts": {host.address: {"rtt_s": host.rtt_s} for host in self.hosts},
            "servers": {
                one.address: {"rtt_s": one.rtt_s, "response_s": one.response_s} for one in self.servers
            },
            "faults": [fault.facts() for fault in self.faults],
        }


def draw_link(
    seed: int,
    kinds: list[str],
    *,
    days: float = 2.0,
    hosts: int = 24,
    connections_per_s: float = 0.05,
    traits: tuple[str, ...] = (),
) -> Link:
    """Draw a link with a fault of each of `kinds`."""
    random = Random(seed)
    length_s = days * DAY_S
    clients = [
        Host(f"10.20.{i // 200}.{10 + i % 200}", random.uniform(0.001, 0.01), random.lognormvariate(0, 0.7))
        for i in range(hosts)
    ]
    servers = [
        Server(f"198.51.100.{10 + i}", random.uniform(0.01, 0.05), random.uniform(0.01, 0.06))
        for i in range(6)
    ]
    faults = [draw_fault(kind, random, clients, servers, length_s) for kind in kinds]
    always = [draw_trait(trait, random, clients, servers) for trait in traits]
    return Link(seed, length_s, clients, servers, faults, connections_per_s, always)
