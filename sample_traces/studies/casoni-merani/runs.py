"""M. Casoni, M. L. Merani: TFRC beside TCP in a cell of 802.11b, and over wired hops behind one."""

from __future__ import annotations

from itertools import product
from typing import Any

from simulation import Run, flow, spread_starts

FULL_VALUES = {"warmup": "60s", "length": "180 s", "late": "35s", "unclear": "even at the paper's scale"}

MIXES = ((1, 1), (2, 2), (4, 4), (10, 10), (3, 1), (10, 1))
"""Flows of TCP and of TFRC. The paper names 3/1, 10/1 and 10/10; the others lead up to 10/10."""
ALONE = (2, 4, 10, 20)

SEGMENT_BYTES = 1460
WINDOW = 44
"""64 kB, which Linux gave a receiver then; the paper has no packet size and no window."""

PORTS = {"tfrc": 1001, "reno": 1201, "sack": 1301}

CELL = {
    "stations": 2,
    "rates": "11 11 11",
    "radius": 150,
    "station_buffer": 75000,
    "access_buffer": 75000,
    "update_period": 3,
}
"""Two hosts in one cell: one has all senders, the other all receivers. They hear the access point only, which
sends each packet again: that fits the paper's 2 of 11 Mbit/s. Buffers of 50 packets."""
ROUTES_FOUND_S = 100.0
"""When DSDV has told the stations of each other; nothing is sent before."""

OUTAGES = {"outages": f"{ROUTES_FOUND_S} 3 0.2"}
CHOICES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # the channel that "causes many time out events": each 3 s or so it is gone for about 0.2 s
    "outages": (OUTAGES, {}),
    # without them
    "steady": ({}, {}),
    # the receiver on a wire behind the access point
    "wired": (OUTAGES, {"to": "up"}),
    # "in particular when large TCP buffers are set"
    "window100": (OUTAGES, {"window": 100}),
}
"""What the paper leaves open: options of the cell, and of each flow."""

HOPS = {"first": "1Mb 1Mb 1Mb", "second": "4Mb 1Mb 1Mb"}
"""The bandwidths of the hops behind the base station: the second scenario has H0 as its bottleneck."""
LATE_S = 35.0


def runs(*, small: bool) -> list[Run]:
    """List the tests of the laboratory, then the simulations."""
    length_s = 12.0 if small else 180.0
    repetitions = range(1, 3 if small else 9)
    choices = ["outages"] if small else list(CHOICES)
    mixes = [mix for mix in MIXES if mix != (2, 2)] if small else MIXES
    tests = [
        *((f"mix-{variant}", variant, *mix) for variant in ("reno", "sack") for mix in mixes),
        *(("alone-reno", "reno", count, 0) for count in ALONE),
        *(("alone-tfrc", "tfrc", 0, count) for count in ALONE),
    ]
    cells = [
        _cell(f"{name}-{tcp}-{tfrc}-{choice}-{run}", [variant] * tcp + ["tfrc"] * tfrc, choice, run, length_s)
        for choice, (name, variant, tcp, tfrc), run in product(choices, tests, repetitions)
    ]
    return cells + _simulations(small=small)


def _cell(name: str, kinds: list[str], choice: str, run: int, length_s: float) -> Run:
    cell, more = CHOICES[choice]
    stop = ROUTES_FOUND_S + length_s
    more = {"to": "air", "size": SEGMENT_BYTES, "window": WINDOW, "stop": stop} | more
    # all flows leave one host, so each has a port of its own
    flows = [flow(kind, i + 1, 0, more["to"], port=PORTS[kind] + i) | more for i, kind in enumerate(kinds)]
    return Run(
        name,
        "stations",
        spread_starts(flows, ROUTES_FOUND_S, run),
        CELL | cell | {"seed": run, "duration": stop + 1},
    )


def _simulations(*, small: bool) -> list[Run]:
    """List runs of five sources over three hops: NewReno, Westwood, SACK, TFRC, and TFRC that comes late."""
    late_s, stop = (8.0, 16.0) if small else (LATE_S, 150.0)
    choices = ("links",) if small else ("links", "spread", "shared")
    listed = []
    for (scenario, bandwidths), choice, run in product(HOPS.items(), choices, range(1, 3 if small else 11)):
        ends = (1, 2, 3, 3, 3) if choice == "spread" else (3, 3, 3, 3, 3)
        kinds = ("newreno", "westwood", "sack", "tfrc", "tfrc")
        # each source offers as much as its link carries
        more = {"size": 500, "rate": "1Mb", "window": 100, "stop": stop}
        flows = [
            flow(kind, i + 1, i, end, **more) for i, (kind, end) in enumerate(zip(kinds, ends, strict=True))
        ]
        flows = spread_starts(flows, 0.0, run)
        flows[-1] |= {"start": late_s, "port": 19}
        wires = {"bandwidths": bandwidths, "queue": 20, "seed": run, "duration": stop + 1}
        name = f"hops-{scenario}-3-2-{choice}-{run}"
        if choice == "shared":
            cell = {"stations": 5, "rates": "1 1 1 1 1 1", "station_buffer": 10000, "access_buffer": 10000}
            host = {"host_bandwidth": "1Mb", "host_delay": "10ms"}
            listed.append(Run(name, "stations", flows, cell | host | wires))
        else:
            listed.append(Run(name, "hops", flows, wires))
    return listed
