"""Lillis et al.: NewReno, Vegas and Veno with congestion, with random loss, and over a distance."""

from __future__ import annotations

from itertools import product
from typing import Any

from simulation import Run, flow, spread_starts

FULL_VALUES = {
    "warmup": "1ms",
    "length": "100 s",
    "fast": "100 s",
    "unclear": "even at the paper's scale",
}

CONGESTED = {"bandwidth": "580kb", "delay": "147ms", "queue": 45}
"""The way back took 151 ms in tables 1 and 2, without a queue. Rate, queue and bursts were chosen by the
packets and delays of table 1."""
WIRELESS = {"bandwidth": "5Mb", "delay": "20ms", "queue": 30}
"""Table 3: "5meg", and 25 ms back."""
WINDOW = {"congestion": 30, "loss5": 30, "loss1": 100, "loss1_pareto": 100}

PATHS: dict[str, tuple[dict[str, Any], float, bool, tuple[str, ...]]] = {
    # the path, the share of packets that TCP loses on the last link, whether bursts of UDP fill the path
    "congestion": (CONGESTED, 0.0, True, ("newreno", "vegas")),
    "loss5": (CONGESTED, 0.05, True, ("newreno", "vegas")),
    "loss1": (WIRELESS, 0.01, False, ("newreno", "vegas", "veno")),
    # the paper leaves open whether the bursts are there too
    "loss1_pareto": (WIRELESS, 0.01, True, ("newreno", "vegas", "veno")),
}
BURST_KBPS = {"congestion": 250, "loss5": 250, "loss1_pareto": 1000}
"""Of each of two sources, which half of the time are silent."""
DISTANCES_M = (25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 400)
MODELS = {"tworayground": "TwoRayGround", "shadowing": "Shadowing"}


def runs(*, small: bool) -> list[Run]:
    """List transfers of about 100 s, then the test of signal loss."""
    repetitions = range(1, 3 if small else 11)
    transfers = [
        _transfer(f"{path}-{variant}-0-{run}", path, variant, run, small=small)
        for path, (_, _, _, variants) in PATHS.items()
        for variant, run in product(variants, repetitions)
    ]
    return transfers + _signals(small=small)


def _transfer(name: str, path: str, variant: str, run: int, *, small: bool) -> Run:
    options, loss, has_bursts, _ = PATHS[path]
    is_fast = options is WIRELESS
    length_s = (8.0 if is_fast else 20.0) if small else 100.0
    more: dict[str, Any] = {"loss": loss} if loss else {}
    if is_fast:
        more["sink"] = "Sack1"
    tcp = flow(variant, 1, 0, "right", window=WINDOW[path], variables=1, stop=length_s, **more)
    flows = spread_starts([tcp], 0.0, run)
    if has_bursts:
        flows += [
            flow("pareto", i, i, "right", size=500, rate=f"{BURST_KBPS[path]}kb", start=0.1, stop=length_s)
            for i in (2, 3)
        ]
    return Run(name, "wired", flows, options | {"seed": run, "duration": length_s + 3})


def _signals(*, small: bool) -> list[Run]:
    """Send at a constant rate over so many metres, with two models of the signal."""
    length_s = 4.0 if small else 30.0
    sizes = DISTANCES_M[1::3] if small else DISTANCES_M
    return [
        Run(
            f"signal-{model}-{distance}-{run}",
            "signal",
            [
                flow("cbr", 1, 0, 1, size=1000, rate="2Mb", start=0.5, stop=length_s),
                # where nothing arrives, these show that receivers, and this one, leave lines
                flow("cbr", 2, 1, 0, port=22, size=100, rate="1kb", start=0.1, stop=length_s),
                flow("cbr", 3, 0, 2, port=23, size=100, rate="1kb", start=0.2, stop=length_s),
            ],
            {"propagation": propagation, "distance": distance, "seed": run, "duration": length_s + 0.5},
        )
        for (model, propagation), distance, run in product(
            MODELS.items(), sizes, range(1, 3 if small else 11)
        )
    ]
