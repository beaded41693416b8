"""A place of the study as a run of ns-2: TFRC, and the TCP agents of Linux 2.6 that it has."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

STUDIES: Final = Path(__file__).resolve().parents[2] / "sample_traces" / "studies"
sys.path.insert(0, str(STUDIES))

from simulation import Run, SimulationError, flow, simulate  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.study.criteria import FlowOfPlace, Judging, Place

CONTROLLERS: Final = (
    "reno", "cubic", "vegas", "westwood", "veno", "illinois", "htcp", "yeah", "lp", "hybla", "bic",
    "scalable", "highspeed", "compound", "tfrc",
)  # fmt: skip
VARIATION: Final = 0.03
PAYLOAD_BYTES: Final = 1460
FRAME_BYTES: Final = 1500
ACCESS_DELAY_S: Final = 0.001
WINDOW: Final = 10_000
"""Packets: larger than any path."""


def make_runs(
    asked: Mapping[Path, tuple[Place, str, int]], judging: Judging, parameters: Sequence[str]
) -> int:
    """Simulate the run of each folder, of a place, a controller and a seed; return how many failed."""
    failed = 0
    not_simulated: dict[str, str] = {}
    for folder, (place, controller, seed) in asked.items():
        if (lacking := lacks(place, controller)) is not None:
            not_simulated[place.name] = lacking
            continue
        if (folder / "truth.json").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        run = run_of(place, controller, judging.ports, seed, parameters)
        try:
            counted = simulate(run, folder, "full", lambda _: None)
        except SimulationError as reason:
            (folder / "sender.tr.xz").unlink(missing_ok=True)
            (folder / "sender.tr.xz.failed").write_text(f"{reason}\n")
            failed += 1
        else:
            (folder / "truth.json").write_text(json.dumps(counted, indent=1))
    for name, lacking in not_simulated.items():
        print(f"{name}: not simulated: there is no {lacking}", file=sys.stderr)
    return failed


def lacks(place: Place, controller: str) -> str | None:
    """Return what the simulation of a place does not have; None if it has all."""
    wanted = {
        f"queue `{place.queue}`": place.queue != "bfifo",
        "mark": place.ecn,
        "reordering": place.reordering > 0,
        "tunnel": place.tunnel,
        "BBR": any(one.controller not in {None, *CONTROLLERS} for one in place.flows),
        "transfer of TFRC that ends": controller == "tfrc"
        and any(one.total is not None and one.controller is None for one in place.flows),
    }
    return next((what for what, is_wanted in wanted.items() if is_wanted), None)


def run_of(
    place: Place, controller: str, ports: Mapping[str, Sequence[int]], seed: int, parameters: Sequence[str]
) -> Run:
    """Return the run of a place, a bit different by seed."""
    dice = random.Random(f"{seed}/{place.name}")
    rtt_s = place.rtt_s * dice.uniform(1 - VARIATION, 1 + VARIATION)
    far = dict(place.far_ports(ports))
    flows = []
    for number, (one, port) in enumerate(zip(place.flows, place.ports_of_flows(ports), strict=True), start=1):
        own = parameters if one.controller is None else ()
        flows.append(
            flow(_kind(one, controller), number, 0, 0, port=port, size=PAYLOAD_BYTES,
                 start=round(one.start_s + dice.uniform(0, VARIATION), 4), stop=place.duration_s,
                 **_sent(one, controller, own), **({"loss": place.loss} if place.loss else {}),
                 **({"far": ACCESS_DELAY_S + far[port] / 2} if port in far else {}))
        )  # fmt: skip

    def delay(of_rtt_s: float) -> str:
        return f"{of_rtt_s / 2 - 2 * ACCESS_DELAY_S:.6f}s"

    return Run("sender", "wired", flows, {
        "seed": seed, "duration": place.duration_s, "bandwidth": f"{place.rate_bps:.0f}b",
        "delay": delay(rtt_s), "queue": max(round(place.buffer_bytes / FRAME_BYTES), 4),
        "access": "1000Mb", "access_delay": f"{ACCESS_DELAY_S}s",
        "rates": _pairs((at_s, f"{rate_bps:.0f}b") for at_s, rate_bps in place.rates),
        "delays": _pairs([(place.change[0], delay(place.change[1]))] if place.change else []),
        "outage": _pairs([(place.outage[0], sum(place.outage))] if place.outage else []),
    })  # fmt: skip


def _pairs(pairs: Iterable[tuple[object, object]]) -> str:
    """Return a list of times and what is from each on, as Tcl reads it."""
    return " ".join(f"{first} {second}" for first, second in pairs)


def _kind(one: FlowOfPlace, controller: str) -> str:
    if one.every_s is not None:
        return "cbr"
    return "tfrc" if (one.controller or controller) == "tfrc" else "linux"


def _sent(one: FlowOfPlace, controller: str, parameters: Sequence[str]) -> dict[str, Any]:
    """Return what a flow has by its kind."""
    if one.every_s is not None:
        return {"rate": f"{one.send * 8 / one.every_s:.0f}b"}
    if (one.controller or controller) == "tfrc":
        return {}
    options: dict[str, Any] = {"algorithm": one.controller or controller, "window": WINDOW}
    if parameters:
        options["parameters"] = "{" + " ".join(word.replace("=", " ") for word in parameters) + "}"
    if one.total is not None:
        options["packets"] = -(-one.total // PAYLOAD_BYTES)
    return options
