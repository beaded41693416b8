"""Parts of a link of namespaces, each a process: `real_ends.py relay|servers|clients PLAN.json ...`.

A relay carries frames between two interfaces, later, more slowly, or not at all; servers answer requests;
clients open connections to them, and download without end while a queue has to be full. All follow the plan
of one link: its hosts and servers, and its faults with their times.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import select
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

from faults import Fault

OUTGOING: Final = 4
"""Packet type of our own frames (PACKET_OUTGOING)."""
PORT: Final = 8080
FULL_RATE_BPS: Final = 4_000_000
"""Of the link while its queue has to be full."""
LONGEST_S: Final = 8.0
"""How long a client waits for anything."""
PIECE: Final = bytes(1 << 16)


class Plan:
    """Hosts, servers and faults of a link, which begins at a time of the clock."""

    def __init__(self, path: str) -> None:
        facts: dict[str, Any] = json.loads(Path(path).read_text())
        self.begin: float = facts["begin"]
        self.until: float = self.begin + facts["length_s"]
        self.seed: int = facts["seed"]
        self.hosts: dict[str, dict[str, float]] = facts["hosts"]
        self.servers: dict[str, dict[str, float]] = facts["servers"]
        self.faults = [Fault.of_facts(one) for one in facts["faults"]]

    def at(self, now: float) -> list[Fault]:
        """Return the faults of now."""
        return [one for one in self.faults if one.since_s <= now - self.begin < one.until_s]


class Relay:
    """Carries frames between the capture and the hosts of one side."""

    def __init__(self, plan: Plan, side: str, ends: list[socket.socket]) -> None:
        self.plan, self.side, self.ends = plan, side, ends
        self.is_near = side == "near"
        self.rtts = {
            address: one["rtt_s"] for address, one in (plan.hosts if self.is_near else plan.servers).items()
        }
        self.random = Random(f"{plan.seed} {side}")
        self.waiting: list[tuple[float, int, int, bytes]] = []
        self.pushed = 0
        self.last_due: dict[tuple[int, str], float] = {}
        self.free_at = 0.0
        self.log: Counter[str] = Counter()

    def run(self) -> None:
        """Carry frames until terminated."""
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
        while not stopped:
            now = time.time()
            while self.waiting and self.waiting[0][0] <= now:
                _, _, to, data = heapq.heappop(self.waiting)
                self.ends[to].send(data)
            wait_s = min(0.1, max(0.0, self.waiting[0][0] - time.time())) if self.waiting else 0.1
            for end in select.select(self.ends, [], [], wait_s)[0]:
                data, address = end.recvfrom(2048)
                if address[2] != OUTGOING:
                    self.take_in(data, 1 - self.ends.index(end))

    def take_in(self, data: bytes, to: int) -> None:
        """Decide when a frame leaves by the end `to`: 0 is that of the capture."""
        now, host, other = time.time(), "", ""
        delay_s = loss = jitter = limit_s = 0.0
        if data[12:14] == b"\x08\x00":
            source, target = (socket.inet_ntoa(data[at : at + 4]) for at in (26, 30))
            host, other = (source, target) if to == 0 else (target, source)
        delay_s = self.rtts.get(host, 0.0) / 2
        client, server = (host, other) if self.is_near else (other, host)
        for fault in self.plan.faults if host else ():
            if not fault.concerns(client, server, now - self.plan.begin):
                continue
            size = fault.size
            if size.get("outage") and not self.is_near:
                self.log[f"{fault.kind}: dropped"] += 1
                return
            # losses are of data, which servers send: behind the capture here, before it there
            if to == (1 if self.is_near else 0):
                loss += size.get("loss_behind" if self.is_near else "loss_before", 0.0)
                if size.get("load"):
                    limit_s += size.get(f"{self.side}_rtt_s", 0.0)
            if not size.get("load"):
                delay_s += size.get(f"{self.side}_rtt_s", 0.0) / 2
            jitter += size.get("jitter", 0.0)
            if loss and self.random.random() < loss:
                self.log[f"{fault.kind}: dropped"] += 1
                return
        due = now + delay_s * max(1 + jitter * self.random.gauss(0, 1), 0.1)
        if limit_s:
            if self.free_at - now > limit_s:
                self.log["bufferbloat: dropped, queue full"] += 1
                return
            self.free_at = max(self.free_at, now) + 8 * len(data) / FULL_RATE_BPS
            due += self.free_at - now
        due = max(due, self.last_due.get((to, host), 0.0))
        self.last_due[to, host] = due
        self.pushed += 1
        heapq.heappush(self.waiting, (due, self.pushed, to, data))


def relay(plan: Plan, side: str, inner: str, outer: str, log: str) -> None:
    """Carry frames between the interface of the capture and that of the hosts."""
    ends = []
    for name in (inner, outer):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        end.bind((name, 0))
        ends.append(end)
    carrying = Relay(plan, side, ends)
    carrying.run()
    Path(log).write_text(json.dumps(carrying.log) + "\n")


async def serve(plan: Plan) -> None:
    """Answer requests of `NUMBER` bytes, after the time that the server needs."""
    random = Random(f"{plan.seed} servers")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = writer.get_extra_info("sockname")[0]
        try:
            while line := await reader.readline():
                think_s = plan.servers[own]["response_s"] * random.uniform(0.8, 1.2)
                think_s += sum(
                    one.size.get("response_s", 0.0) for one in plan.at(time.time()) if own in one.servers
                )
                await asyncio.sleep(think_s)
                left = int(line)
                while left > 0:
                    writer.write(PIECE[: min(left, len(PIECE))])
                    left -= len(PIECE)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    for address in plan.servers:
        await asyncio.start_server(answer, address, PORT)
    await asyncio.sleep(plan.until - time.time())


async def request(host: str, server: str, sizes: list[int]) -> None:
    """Ask a server for some bytes several times over one connection."""
    opened = asyncio.open_connection(server, PORT, local_addr=(host, 0))
    reader, writer = await asyncio.wait_for(opened, LONGEST_S)
    try:
        for size in sizes:
            writer.write(f"{size}\n".encode())
            await writer.drain()
            await asyncio.wait_for(reader.readexactly(size), max(LONGEST_S, size / 1e5))
    finally:
        writer.close()


async def ask(plan: Plan) -> None:
    """Let each host open connections at random, and fill queues."""
    pending: set[asyncio.Task[None]] = set()
    random = Random(f"{plan.seed} clients")

    def forget(done: asyncio.Task[None]) -> None:
        pending.discard(done)
        if not done.cancelled():
            done.exception()  # what failed is what the capture is about

    def begin(host: str, server: str, sizes: list[int]) -> None:
        task = asyncio.create_task(request(host, server, sizes))
        pending.add(task)
        task.add_done_callback(forget)

    async def browse(host: str) -> None:
        while time.time() < plan.until - LONGEST_S:
            await asyncio.sleep(random.expovariate(plan.hosts[host]["connections_per_s"]))
            packets = [
                max(1, min(int(random.lognormvariate(2.2, 1.2)), 150)) for _ in range(random.randint(1, 3))
            ]
            begin(host, random.choice(list(plan.servers)), [1400 * one for one in packets])

    async def fill() -> None:
        for fault in plan.faults:
            if not fault.size.get("load"):
                continue
            host, server = random.choice(list(plan.hosts)), random.choice(list(plan.servers))
            await asyncio.sleep(plan.begin + fault.since_s - time.time())
            while time.time() < plan.begin + fault.until_s:
                begin(host, server, [2_000_000])
                await asyncio.sleep(2_000_000 * 8 / FULL_RATE_BPS)

    await asyncio.gather(fill(), *map(browse, plan.hosts))


def main() -> None:
    """Be the part that the arguments name."""
    part, plan = sys.argv[1], Plan(sys.argv[2])
    time.sleep(max(plan.begin - time.time(), 0) if part == "clients" else 0)
    if part == "relay":
        relay(plan, *sys.argv[3:])
    else:
        asyncio.run(serve(plan) if part == "servers" else ask(plan))


if __name__ == "__main__":
    main()
