"""Closed loops against ns-2.

`python evaluation/dumbbells/measure.py [--write] [--references FOLDER]`

It runs ns-2 on the dumbbells of `runs.py`, which takes minutes, and prints tables of `docs/validation.md`;
`--write` puts them there, and what the agents received into `tests/data/ns2/dumbbells.json`. `--references`
names a folder of other runs, each with `trace.tr.gz` and `summary.json`; without it their table stays.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from model import received_share
from runs import (
    HEADER_BYTES,
    SECONDS,
    SEGMENT_BYTES,
    START_S,
    Dumbbell,
    Run,
    dumbbell_named,
    simulate,
)

import tfrctrace
from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tfrctrace.replay.closed_loop.closed_loops import ClosedLoops

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "validation.md"
RECEIVED: Final = ROOT / "tests" / "data" / "ns2" / "dumbbells.json"
SWEPT: Final = ROOT / "tests" / "data" / "ns2" / "other-paths.json"

ALGORITHMS: Final = tuple(HEADER_BYTES)
AS_NS2: Final = {"vegas.agent": "ns2"}
"""Settings with which a model is that of ns-2's agent."""
ALONE: Final = ("small", "shallow", "both", "random", "cbr", "long")
INFERRED: Final = (*ALONE, "pareto")
INFERRED_FROM: Final = ("newreno", "vegas", "veno", "tfrc")
SWEPT_IN: Final = ("small", "shallow", "both", "cbr", "long")
SWEEPS: Final = {"buffer": ("buffer_packets", (0.5, 2.0, 4.0)), "capacity": ("bottleneck_bps", (0.5, 2.0))}
"""What is swept, its name in a dumbbell, and by how much ns-2 runs again with more or less of it."""
OTHERS: Final = ("newreno", "cubic", "vegas")
REPLACED: Final = ("newreno", "veno", "cubic", "vegas")
FIRST_HOST: Final = "2"
"""The node that sends the first flow; 0 and 1 are the routers."""

AGENTS_OF_KINDS: Final = {
    "TFRC": "tfrc",
    "TFRCAPP": "tfrc",
    "TFRCECN": "tfrc",
    "Newreno": "newreno",
    "Sack1": "sack",
    "Vegas": "vegas",
    "Linux/veno": "veno",
    "Linux/westwood": "westwood",
}
"""What agents of the references are called in their summaries."""
TRACES_PARAMETERS: Final = {"ca_": "ca", "df_": "df", "tcp_tick_": "tcp_tick"}


class Runs:
    """Runs of ns-2, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[str, ...], Run] = {}

    def of(self, dumbbell: str, *agents: str) -> Run:
        """Return the run of these agents together."""
        key = (dumbbell, *agents)
        if key not in self.made:
            self.made[key] = simulate(self.folder, dumbbell_named(dumbbell), *agents)
        return self.made[key]

    def changed(self, dumbbell: str, what: str, times: float, agent: str) -> Run:
        """Return the run of an agent alone with another buffer or bottleneck, which is not kept."""
        usual = dumbbell_named(dumbbell)
        values = {what: round(getattr(usual, what) * times)}
        return simulate(self.folder, replace(usual, name=f"{dumbbell}-{what}-{times:g}", **values), agent)


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def ratio(value: float) -> str:
    """Return a share of ns-2's, in bold where it is more than 15 % off."""
    return f"{value:.2f}" if abs(value - 1) <= 0.15 else f"**{value:.2f}**"


def described(dumbbell: Dumbbell) -> list[str]:
    """Return the cells that say which dumbbell it is."""
    bps = dumbbell.bottleneck_bps
    others = f"CBR {dumbbell.cbr_bps // 1000} kbit/s" if dumbbell.cbr_bps else ""
    return [
        f"{bps / 1e6:g} Mbit/s" if bps >= 1_000_000 else f"{bps // 1000} kbit/s",
        f"{dumbbell.delay_ms} ms",
        f"{dumbbell.buffer_packets}",
        f"{100 * dumbbell.random_loss:g} %" if dumbbell.random_loss else "",
        "two Pareto sources" if dumbbell.pareto_bps else others,
    ]


DESCRIBED: Final = ("bottleneck", "delay", "buffer", "random loss", "others")


def entries(runs: Runs) -> list[dict[str, Any]]:
    """Return what ns-2's agents alone received, as `dumbbells.json` has it."""
    return [entry_of(runs, name, algorithm) for name in ALONE for algorithm in ALGORITHMS]


def entry_of(runs: Runs, name: str, algorithm: str) -> dict[str, Any]:
    """Return what one of them received."""
    facts = asdict(dumbbell_named(name))
    del facts["pareto_bps"]
    return {
        "dumbbell": facts.pop("name"),
        "algorithm": algorithm,
        **facts,
        "header_bytes": HEADER_BYTES[algorithm],
        "received_packets": runs.of(name, algorithm).received_packets[0],
        "duration_s": SECONDS - START_S,
    }


def alone(received: list[dict[str, Any]]) -> str:
    """Return the table of the model made of the script's numbers."""
    by_dumbbell = {name: [one for one in received if one["dumbbell"] == name] for name in ALONE}
    rows = [
        [
            *described(dumbbell_named(name)),
            *(ratio(received_share(one)) for one in own),
            ratio(received_share(own[-1], "ns2")),
        ]
        for name, own in by_dumbbell.items()
    ]
    return table([*DESCRIBED, *ALGORITHMS, "tfrc of ns2"], rows)


def loops(run: Run, *algorithms: str, **options: Any) -> ClosedLoops:
    """Return closed loops in the place of the first flow of a run."""
    return loops_in_place_of(tfrctrace.open(run.trace), FIRST_HOST, 0, *algorithms, **options)


def loops_in_place_of(
    trace: tfrctrace.Trace, host: str, port: int, *algorithms: str, **options: Any
) -> ClosedLoops:
    """Return closed loops in the place of the flow that a host sends from a port."""
    settings = {name: value for name, value in AS_NS2.items() if name.split(".")[0] in algorithms}
    flows = trace.flows.filter(
        (trace.flows["src"] == host) & (trace.flows["src_port"] == port) & (trace.flows["direction"] == "fwd")
    )
    return trace.closed_loops(*algorithms, settings=settings, flows=flows["flow"].to_list(), **options)


def received_bps(found: ClosedLoops, algorithm: str) -> float:
    """Return what an algorithm received in a model, over all of its time."""
    rounds = found.frame.filter(found.frame["algorithm"] == algorithm)
    return float((rounds["received_bps"] * rounds["duration_ms"]).sum()) / float(rounds["duration_ms"].sum())


def bps(run: Run, flow: int = 0) -> float:
    """Return what a flow of ns-2 received."""
    return 8 * SEGMENT_BYTES * run.received_packets[flow] / (SECONDS - START_S)


def inferred(runs: Runs) -> str:
    """Return the table of bottlenecks inferred from the trace of one algorithm."""
    rows = []
    for name in INFERRED:
        for source in INFERRED_FROM:
            found = loops(runs.of(name, source), *ALGORITHMS)
            if found.lacking:
                cells = [found.lacking[0].what.split(":")[0], *[""] * (len(ALGORITHMS) - 1)]
            else:
                cells = [ratio(received_bps(found, one) / bps(runs.of(name, one))) for one in ALGORITHMS]
            rows.append([*described(dumbbell_named(name)), source, *cells])
    return table([*DESCRIBED, "trace of", *ALGORITHMS], rows)


def replaced(runs: Runs) -> str:
    """Return the table of others in NewReno's place beside TFRC."""
    recorded = runs.of("pair", "newreno", "tfrc")
    alike = loops(recorded, *REPLACED)
    rows = []
    for name in REPLACED:
        run = runs.of("pair", name, "tfrc")
        both = loops(recorded, name, "tfrc", profile="ns2", bottleneck=("others=0", "loss=0"), together=True)
        own, model = bps(run), received_bps(alike, name)
        cells = [f"{model / 1e3:.0f}" if ratio(model / own)[0] != "*" else f"**{model / 1e3:.0f}**"]
        cells.append(", ".join(f"{received_bps(both, one) / 1e3:.0f}" for one in (name, "tfrc")))
        rows.append([name, f"{own / 1e3:.0f}, {bps(run, 1) / 1e3:.0f}", *cells])
    return table(
        ["in NewReno's place", "ns-2: it, TFRC", "others as recorded", "`--together` with TFRC"], rows
    )


def on_other_paths(runs: Runs) -> list[dict[str, Any]]:
    """Return what ns-2's agents received, and their p95 of round-trip times, with another buffer or rate."""
    return [
        {
            "dumbbell": name,
            "swept": swept,
            "times": times,
            "algorithm": algorithm,
            "received_bps": round(bps(run)),
            "rtt_p95_ms": _rtt_p95_ms(run),
        }
        for name in SWEPT_IN
        for swept, (what, multiples) in SWEEPS.items()
        for times in multiples
        for algorithm in OTHERS
        for run in [runs.changed(name, what, times, algorithm)]
    ]


def _rtt_p95_ms(run: Run) -> float:
    flows = tfrctrace.open(run.trace).flows
    [found] = flows.filter((flows["src"] == FIRST_HOST) & (flows["direction"] == "fwd"))["rtt_p95_ms"]
    return float(found)


def swept(runs: Runs, known: list[dict[str, Any]]) -> str:
    """Return the table of sweeps over a bottleneck that is inferred from the trace of one algorithm."""
    rows = [
        [*described(dumbbell_named(name)), f"{times:g} x {what}", *cells]
        for name in SWEPT_IN
        for what, (_, multiples) in SWEEPS.items()
        for times, cells in _of_sweep(runs, name, what, multiples, known)
    ]
    heads = [f"{algorithm} {what}" for algorithm in OTHERS for what in ("rate", "RTT p95")]
    return table([*DESCRIBED, "with", *heads], rows)


def _of_sweep(
    runs: Runs, name: str, what: str, multiples: Sequence[float], known: list[dict[str, Any]]
) -> Iterator[tuple[float, list[str]]]:
    sweep = f"{what}={','.join(f'{times:g}x' for times in multiples)}"
    found = closed_loop_replays(loops(runs.of(name, "newreno"), *OTHERS, sweep=sweep)).replays
    values = sorted({one.swept for one in found if one.swept is not None})
    models = {(one.swept, one.algorithm): one for one in found}
    of_ns2 = {
        (one["times"], one["algorithm"]): one
        for one in known
        if (one["dumbbell"], one["swept"]) == (name, what)
    }
    for value, times in zip(values, multiples, strict=True):
        cells = []
        for algorithm in OTHERS:
            model, own = models[value, algorithm], of_ns2[times, algorithm]
            cells.append(ratio((model.received_mean_bps or 0) / own["received_bps"]))
            cells.append(ratio((model.rtt_p95_ms or 0) / own["rtt_p95_ms"]))
        yield times, cells


def references(folder: Path) -> str:
    """Return the table of the runs of `folder` in which flows compete, each modelled in its own place."""
    summaries = sorted(folder.glob("wired_*/summary.json")) + sorted(folder.glob("lillis_*/summary.json"))
    rows = [(summary.parent.name, ", ".join(of_reference(summary))) for summary in summaries]
    return table(["run", "model / ns-2"], [row for row in rows if row[1]])


def of_reference(summary: Path) -> Iterator[str]:
    """Give for each flow of a run its algorithm, and what it receives in the model over what it received."""
    facts = json.loads(summary.read_text())
    agents = {
        ours: float(facts["options"][f"tfrc.{theirs}"])
        for theirs, ours in TRACES_PARAMETERS.items()
        if f"tfrc.{theirs}" in facts["options"]
    }
    trace = tfrctrace.open(summary.parent / "trace.tr.gz", tfrc=agents)
    for flow in facts["flows"]:
        algorithm = AGENTS_OF_KINDS.get(flow["kind"])
        if algorithm is None:
            continue
        found = loops_in_place_of(trace, str(flow["src"]), flow["sport"], algorithm, profile="ns2")
        if found.lacking:
            yield f"{algorithm} refused"
            continue
        packets = flow["rx_bytes_sink"] // (flow["size"] + HEADER_BYTES[algorithm])
        own_bps = 8e3 * packets * flow["size"] / found.frame["duration_ms"].sum()
        yield f"{algorithm} {ratio(received_bps(found, algorithm) / own_bps)}"


def with_table(page: str, name: str, text: str) -> str:
    """Return the page with another table between the marks of this name."""
    begin, end = f"<!-- measured: {name} -->\n", f"<!-- end of {name} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    assert between.search(page), name
    return between.sub(lambda _: f"{begin}\n{text}\n{end}", page)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--references", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        received = entries(runs)
        tables = {
            "alone": alone(received),
            "inferred": inferred(runs),
            "replaced": replaced(runs),
        }
        other_paths = on_other_paths(runs)
        tables["swept"] = swept(runs, other_paths)
    if options.references:
        tables["references"] = references(options.references)
    if not options.write:
        sys.stdout.write("\n".join(tables.values()))
        return
    page = PAGE.read_text()
    for name, text in tables.items():
        page = with_table(page, name, text)
    PAGE.write_text(page)
    for path, found in ((RECEIVED, received), (SWEPT, other_paths)):
        lines = ",\n".join(f" {json.dumps(entry)}" for entry in found)
        path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
