"""ns-2's dumbbells: who sends over which bottleneck, and what its agents say of themselves."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SCRIPT: Final = Path(__file__).resolve().parent / "dumbbell.tcl"
SEED: Final = 1
SECONDS: Final = 60
START_S: Final = 0.5
SEGMENT_BYTES: Final = 1000

HEADER_BYTES: Final = {
    "newreno": 40,
    "sack": 40,
    "vegas": 0,  # its agent counts none
    "veno": 50,  # with timestamps
    "westwood": 50,
    "cubic": 50,
    "tfrc": 32,
}
"""Algorithms, and bytes of header on each of their packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumbbell:
    """A bottleneck between hosts of their own for each flow, with access links of 10 Mbit/s and 5 ms."""

    name: str
    bottleneck_bps: int
    delay_ms: int
    buffer_packets: int
    random_loss: float = 0.0
    cbr_bps: int = 0
    pareto_bps: int = 0
    """Mean rate of each of two Pareto sources while they send, which is half of the time."""


DUMBBELLS: Final = (
    Dumbbell(name="small", bottleneck_bps=1_000_000, delay_ms=20, buffer_packets=20),
    Dumbbell(name="shallow", bottleneck_bps=2_000_000, delay_ms=40, buffer_packets=12),
    Dumbbell(name="both", bottleneck_bps=2_000_000, delay_ms=25, buffer_packets=25, random_loss=0.002),
    Dumbbell(name="random", bottleneck_bps=3_000_000, delay_ms=10, buffer_packets=50, random_loss=0.01),
    Dumbbell(name="cbr", bottleneck_bps=1_500_000, delay_ms=15, buffer_packets=30, cbr_bps=500_000),
    Dumbbell(name="long", bottleneck_bps=800_000, delay_ms=60, buffer_packets=15, random_loss=0.004),
    Dumbbell(name="pareto", bottleneck_bps=800_000, delay_ms=60, buffer_packets=30, pareto_bps=250_000),
    # without another, two senders that no chance touches fall into step at a queue that drops
    Dumbbell(name="pair", bottleneck_bps=1_200_000, delay_ms=22, buffer_packets=20, cbr_bps=20_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What became of the agents of one run."""

    dumbbell: Dumbbell
    trace: Path
    received_packets: tuple[int, ...]
    """Of each flow, without what was sent again in vain."""


def dumbbell_named(name: str) -> Dumbbell:
    """Return the dumbbell of this name."""
    return next(one for one in DUMBBELLS if one.name == name)


def simulate(folder: Path, dumbbell: Dumbbell, *agents: str) -> Run:
    """Run ns-2 for `SECONDS` with a flow of each of `agents`, whose names are those of `HEADER_BYTES`."""
    trace = folder / f"{dumbbell.name}-{'-'.join(agents)}.tr"
    arguments = (
        dumbbell.bottleneck_bps,
        dumbbell.delay_ms,
        dumbbell.buffer_packets,
        dumbbell.random_loss,
        dumbbell.cbr_bps,
        dumbbell.pareto_bps,
    )
    command = ["ns", SCRIPT, SECONDS, SEED, *arguments, trace, *agents]
    found = subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)
    # agents of Linux's algorithms say something of themselves, too
    lines = [line.split(",") for line in found.stdout.splitlines() if line.count(",") == 1]
    received = tuple(int(wire_bytes) // (SEGMENT_BYTES + HEADER_BYTES[agent]) for agent, wire_bytes in lines)
    return Run(dumbbell=dumbbell, trace=trace, received_packets=received)
