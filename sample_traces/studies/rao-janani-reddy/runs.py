"""P. Sreenivasa Rao, M. Janani, P. Chenna Reddy: TFRC, TCP and UDP among nodes that move."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from simulation import Run, flow, spread_starts
from waypoints import connected_placement, receiver_of, ways

FULL_VALUES = {"length": "100 s", "unclear": "even at the paper's scale"}

KINDS = {"tfrc": "tfrc", "tcp": "newreno", "udp": "cbr"}
PACKET_BYTES = 500
"""Inferred from the packets that table 1 counts, as is one flow for each protocol."""

RATES_BY_WINDOW = {10: 161, 20: 162, 30: 163, 40: 164, 50: 165, 60: 166, 70: 167}
"""Table 1: the windows of TCP (packets), and the rate (kbit/s) of both protocols."""
RATES_KBPS = (50, 100, 200, 400, 600, 800, 1000)
PAUSES_S = (0, 2, 5, 10, 20, 50, 100)
SPEEDS = (10, 20, 30, 40, 50, 60, 70, 80)
FAST_KBPS = 1000
"""The rates and pauses of figures 4 to 7 and 12 to 14 are not printed, but for 1 Mbit/s in figure 7."""

FIELD_M = 1000
"""Six nodes in a square kilometre seldom reach each other, and the paper's packets arrived: of all placements
those count in which at the beginning a path leads from each sender to its receiver."""
STANDING_M = 150
"""Side of a field where all nodes stand within reach: the other reading of table 1, which lost so little."""
SPEED, PAUSE_S = 10, 2
ROUTING = {
    "base": "AODV",
    # the paper names no routing
    "dsdv": "DSDV",
    # nor whether both protocols run at a time
    "together": "AODV",
}


def runs(*, small: bool) -> list[Run]:
    """List what each sweep changes, at all placements."""
    listed = []
    for run, choice in product(range(1, 4 if small else 11), ["base"] if small else list(ROUTING)):
        network = Network(choice, run, small=small)
        listed += network.by_window() + network.by_rate()
        if choice == "base":
            listed += network.by_pause() + network.by_speed()
    return listed


@dataclass(frozen=True)
class Network:
    """A choice of what the paper leaves open, and a placement."""

    choice: str
    run: int
    small: bool

    def by_window(self) -> list[Run]:
        """Change TCP's window and the rate together: figures 1 to 3 and 11, and table 1."""
        listed = []
        for window in (10, 40, 70) if self.small else RATES_BY_WINDOW:
            kbps = RATES_BY_WINDOW[window]
            for nodes, protocol in product((14, 6), self._protocols("tcp")):
                listed.append(self._run("window", nodes, protocol, window, kbps))
            if self.choice != "dsdv":
                listed += [
                    self._run("static", 6, protocol, window, kbps, side_m=STANDING_M, speed=0)
                    for protocol in self._protocols("tcp")
                ]
        return listed

    def by_rate(self) -> list[Run]:
        """Change the rate of TFRC and of UDP: figures 4 to 6 and 12 to 14."""
        rates = (100, 400) if self.small else RATES_KBPS
        return [
            self._run("rate", nodes, protocol, kbps, kbps)
            for nodes, protocol, kbps in product((14, 6), self._protocols("udp"), rates)
        ]

    def by_pause(self) -> list[Run]:
        """Change the pause: figure 7."""
        pauses = (0, 10) if self.small else PAUSES_S
        return [
            self._run("pause", 6, protocol, pause, FAST_KBPS, pause_s=pause)
            for protocol, pause in product(self._protocols("udp"), pauses)
        ]

    def by_speed(self) -> list[Run]:
        """Change the speed: figures 8 to 10."""
        speeds = (10, 80) if self.small else SPEEDS
        return [
            self._run("speed", 6, protocol, speed, FAST_KBPS, speed=speed, pause_s=10)
            for protocol, speed in product(self._protocols("udp"), speeds)
        ]

    def _protocols(self, other: str) -> tuple[str, ...]:
        return ("both",) if self.choice == "together" else ("tfrc", other)

    def _run(self, sweep: str, nodes: int, protocol: str, setting: int, kbps: int, **movement: float) -> Run:
        """Return the run of one flow, or of one of each protocol where both send at a time."""
        stop = 12.0 if self.small else 100.0
        has_windows = sweep in {"window", "static"}
        senders = ("tfrc", "tcp" if has_windows else "udp") if protocol == "both" else (protocol,)
        flows = []
        for i, sender in enumerate(senders):
            window = {"window": setting} if sender == "tcp" else {}
            data = {"size": PACKET_BYTES, "rate": f"{kbps}kb", "stop": stop} | window
            flows.append(flow(KINDS[sender], i + 1, i, receiver_of(i, nodes), **data))
        side_m = int(movement.get("side_m", FIELD_M))
        speed = movement.get("speed", SPEED)
        seed = connected_placement(nodes, side_m, self.run)
        options: dict[str, Any] = {
            "routing": ROUTING[self.choice],
            "side": side_m,
            "speed": speed,
            "ways": ways(seed, nodes, side_m, speed, movement.get("pause_s", PAUSE_S), stop),
            "seed": self.run,
            "duration": stop + 1,
        }
        name = f"{sweep}-{nodes}-{protocol}-{setting}-{self.choice}-{self.run}"
        return Run(name, "adhoc", spread_starts(flows, 0.0, self.run), options)
