"""Make the traces of the five studies with ns-2 (`ns`, 2.35), a compressed one for each run, and their truth.

    python3 sample_traces/studies/make.py [STUDY ...]

A run with the same options makes the same bytes.
"""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from os import cpu_count
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Run:
    """One run: its trace's name, its topology (a Tcl file beside this one) with options, and its flows."""

    name: str
    topology: str
    flows: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)


def flow(kind: str, number: int, source: object, target: object, **more: object) -> dict[str, Any]:
    """Return flow `number` of a run. Starts are apart, so that no two flows are in step."""
    return {
        "kind": kind,
        "id": number,
        "from": source,
        "to": target,
        "start": round(0.5 + 0.23 * number, 2),
    } | more


def bounded(flows: list[dict[str, Any]], bounds_kbps: dict[int, str]) -> list[dict[str, Any]]:
    """Return flows of TFRC that send no more than these bounds, each from its time (s) on: those of MTFRC."""
    words = " ".join(f"{from_s} {bound}kb" for from_s, bound in bounds_kbps.items())
    return [one | {"bounds": f"{{{words}}}"} for one in flows]


def casoni_merani() -> list[Run]:
    """Put TCP and TFRC on stations of 802.11b whose way leads over slow wired hops."""
    shared = {"duration": 35, "bandwidth": "1Mb", "queue": 50}
    runs = []

    def sharing(scenario: str, variant: str, tcp: int, tfrc: int) -> None:
        kinds = [variant] * tcp + ["tfrc"] * tfrc
        flows = [flow(kind, i + 1, i, "up", stop=34) for i, kind in enumerate(kinds)]
        name = f"{scenario}-{variant}-{tcp + tfrc}-{tcp}"
        runs.append(Run(name, "stations", flows, shared | _stations(tcp + tfrc, hops=2)))

    for variant in ("reno", "sack"):
        for count in (1, 2, 3, 4):
            sharing("fairness", variant, count, count)
        sharing("unequal", variant, 3, 1)
        sharing("unequal", variant, 1, 3)
    kinds = ["newreno", "westwood", "sack", "tfrc", "tfrc"]
    for topology, ends in (("far", [3, 3, 3, 3, 3]), ("near", [1, 2, 3, 3, 3])):
        flows = [
            flow(kind, i + 1, i, end, stop=34) for i, (kind, end) in enumerate(zip(kinds, ends, strict=True))
        ]
        # One more TFRC flow, which comes late; its port distinguishes it.
        flows[-1] |= {"start": 15.0, "port": 19}
        runs.append(Run(f"multihop-{topology}-5-3", "stations", flows, shared | _stations(5, hops=3)))
    return runs


def rao_janani_reddy() -> list[Run]:
    """Send TFRC, TCP and UDP through an ad hoc network whose nodes move."""
    kinds = {"tfrc": "tfrc", "tcp": "newreno", "udp": "cbr"}

    def network(name: str, protocol: str, place: int, options: dict[str, Any], **more: object) -> Run:
        flows = [flow(kinds[protocol], i + 1, i, i + 5, size=512, stop=21, **more) for i in range(2)]
        return Run(name, "adhoc", flows, {"duration": 22, "nodes": 16, "place": place} | options)

    runs = []
    places = (1, 2, 3)
    for protocol, place in product(kinds, places):
        load = {"rate": "100kb"} if protocol == "udp" else {}
        for speed in (2, 10, 20):
            runs.append(
                network(f"speed-{protocol}-{speed}-{place}", protocol, place, {"speed": speed}, **load)
            )
        for pause in (0, 10, 20):
            runs.append(
                network(f"pause-{protocol}-{pause}-{place}", protocol, place, {"pause": pause}, **load)
            )
    for place in places:
        for window in (2, 8, 16):
            runs.append(network(f"window-tcp-{window}-{place}", "tcp", place, {}, window=window))
        for protocol, rate in product(("udp", "tfrc"), (50, 100, 200)):
            runs.append(network(f"rate-{protocol}-{rate}-{place}", protocol, place, {}, rate=f"{rate}kb"))
    return runs


# What MTFRC's bounds are in these cells, payload in kbit/s, as `tfrctrace capacity --basic-rate 1` has it:
# X_fair (--station Nx11 --downloads N) of so many uploads beside as many downloads, ...
X_FAIR_KBPS = {1: "2785.0", 2: "1376.6", 3: "900.7"}
# ... and X_t from its time (s) on (--station 2x11 --station 2x5.5, then --station 4x11).
NEARER_AT_S = 12
X_T_KBPS = {0: "989.4", NEARER_AT_S: "1288.8"}


def zhang() -> list[Run]:
    """Crowd a cell of 802.11b: with TFRC, with more and more load, and with flows both ways."""
    shared = {"duration": 21, "ifqueue": 50}
    slow = {"rates": "11Mb 11Mb 11Mb 5.5Mb 5.5Mb", "stations": 4}
    flows = [flow("tfrc", i + 1, i, "up", size=1024, stop=20) for i in range(4)]
    runs = [Run("up-4", "stations", flows, shared | slow)]
    for rate in (950, 1050, 1200, 1500):
        flows = [flow("cbr", i + 1, i, "up", size=1024, stop=10, rate=f"{rate}kb") for i in range(4)]
        runs.append(Run(f"load-{rate}", "stations", flows, shared | slow | {"duration": 11}))
    for count in (1, 2, 3):
        flows = [flow("tfrc", i + 1, i, "up", size=1024, stop=20) for i in range(count)]
        # Downloads have a port of their own, which distinguishes them from uploads.
        flows += [
            flow("tfrc", i + 1, i, "down", size=1024, stop=20, port=40) for i in range(count, 2 * count)
        ]
        cell = shared | _stations(2 * count, hops=1)
        runs.append(Run(f"updown-{count}", "stations", flows, cell))
        # The same with uploads of MTFRC, which its bounds by the cell hold within the loop.
        uploads = bounded(flows[:count], {0: X_FAIR_KBPS[count]})
        runs.append(Run(f"mtfrc_updown-{count}", "stations", uploads + flows[count:], cell))
    # Two of four stations at 5.5 Mbit/s come nearer, and have 11 Mbit/s from then on.
    flows = [flow("tfrc", i + 1, i, "up", size=1024, stop=24) for i in range(4)]
    change = {"change_at": NEARER_AT_S, "changed_rates": " ".join(["11Mb"] * 5)}
    cell = shared | slow | {"duration": 25} | change
    runs.append(Run("nearer-4", "stations", flows, cell))
    runs.append(Run("mtfrc_nearer-4", "stations", bounded(flows, X_T_KBPS), cell))
    # More than a cell of so many stations carries, as `tfrctrace capacity` predicts.
    for count in (1, 2, 4, 8):
        flows = [
            flow("cbr", i + 1, i, "up", size=1024, start=0.5, stop=5, rate=f"{8000 // count}kb")
            for i in range(count)
        ]
        runs.append(
            Run(f"stations-{count}", "stations", flows, shared | _stations(count, hops=1) | {"duration": 5.5})
        )
    # The paper's figure 3: two uploads of TFRC at 5.5 Mbit/s.
    flows = [flow("tfrc", i + 1, i, "up", size=1024, stop=20) for i in range(2)]
    runs.append(Run("slow-2", "stations", flows, shared | {"rates": "11Mb 5.5Mb 5.5Mb", "stations": 2}))
    return runs


def lillis() -> list[Run]:
    """Run NewReno, Vegas and Veno beside bursty UDP, and on a link that loses packets by itself."""
    runs = []
    for variant in ("newreno", "vegas", "veno"):
        tcp = flow(variant, 1, 0, "right", stop=30, window=50, variables=1)
        bursts = [flow("pareto", i, i, "right", size=500, rate="250kb", stop=30) for i in (2, 3)]
        path = {"duration": 33, "bandwidth": "800kb", "delay": "60ms", "queue": 30}
        runs.append(Run(f"congested-{variant}", "wired", [tcp, *bursts], path))
        runs.append(Run(f"lossy-{variant}", "wired", [tcp], path | {"bandwidth": "3Mb", "loss": 0.01}))
    return runs


def de_cicco_mascolo() -> list[Run]:
    """Repeat TCP and TFRC over a wired and a radio path, with and without reverse traffic."""
    paths = {
        "wired": {"bandwidth": "800kb", "delay": "25ms", "queue": 30},
        "umts": {"bandwidth": "384kb", "delay": "90ms", "queue": 40, "loss": 0.005},
    }
    runs = []
    mixes = {"tcp": ["newreno"], "tfrc": ["tfrc"], "both": ["newreno", "tfrc"]}
    threes = {"three_tcp": ["newreno"] * 3, "three_tfrc": ["tfrc"] * 3}
    tests = [
        *product(paths.items(), mixes.items(), ("quiet", "reverse"), (1, 2, 3)),
        *product(paths.items(), threes.items(), ("quiet",), (1, 2, 3)),
    ]
    for (path, options), (mix, kinds), back, seed in tests:
        flows = [flow(kind, i + 1, i, "right", stop=22) for i, kind in enumerate(kinds)]
        # Other people's traffic, which makes each repetition another.
        flows.append(flow("pareto", 8, 8, "right", size=500, rate="100kb", start=0.1, stop=22))
        if back == "reverse":
            flows.append(flow("newreno", 9, 9, "back", stop=22))
        runs.append(
            Run(
                f"{path}-{mix}-{back}-{seed}",
                "wired",
                flows,
                options | {"duration": 23, "seed": seed},
            )
        )
    return runs


STUDIES = {
    "casoni-merani": casoni_merani,
    "de-cicco-mascolo": de_cicco_mascolo,
    "lillis": lillis,
    "rao-janani-reddy": rao_janani_reddy,
    "zhang": zhang,
}


def _stations(count: int, *, hops: int) -> dict[str, Any]:
    return {"stations": count, "rates": " ".join(["11Mb"] * (count + 1)), "hops": hops}


def simulate(run: Run, folder: Path) -> dict[str, Any]:
    """Write the compressed trace of `run` to `folder`; return what the agents counted.

    A run that has files of TCP variables too gets a folder of its own.
    """
    options = dict(run.options, flows=" ".join(f"{{{_words(each)}}}" for each in run.flows))
    arguments = [str(word) for pair in options.items() for word in pair]
    with tempfile.TemporaryDirectory() as scratch:
        trace, truth = Path(scratch, f"{run.name}.tr"), Path(scratch, "truth.json")
        subprocess.run(
            ["ns", str(HERE / "simulate.tcl"), run.topology, str(trace), str(truth), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        variables = sorted(Path(scratch).glob("*.txt"))
        if variables:
            folder /= run.name
            folder.mkdir()
        for file in (trace, *variables):
            packed = lzma.compress(file.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
            (folder / f"{file.name}.xz").write_bytes(packed)
        return json.loads(truth.read_text())


def _words(options: dict[str, Any]) -> str:
    return " ".join(f"{name} {value}" for name, value in options.items())


def make(study: str) -> None:
    """Make all traces of `study`."""
    folder = HERE / study / "traces"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    runs = STUDIES[study]()
    with ThreadPoolExecutor(cpu_count()) as pool:
        counted = list(pool.map(lambda run: simulate(run, folder), runs))
    truth = {run.name: each for run, each in zip(runs, counted, strict=True)}
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(each)}" for name, each in truth.items())
    (HERE / study / "truth.json").write_text("{\n" + text + "\n}\n")
    size = sum(file.stat().st_size for file in folder.rglob("*.xz"))
    print(f"{study}: {len(runs)} runs, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    for name in sys.argv[1:] or STUDIES:
        make(name)
