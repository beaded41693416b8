"""Compare what closed loops predict of another congestion control with kernels that ran it on the same path.

    python evaluation/kernel_farm/judge_swaps.py RUNS [RUNS ...]

Two runs of one path that differ in the congestion control of one sender, such as those of
`evaluation/bcp133/run.py`, make two swaps: B is predicted from the capture at the sender of A, where flows
beside it react. The truth is of B: what its kernel says was acknowledged, and `tcpi_rtt` every 20 ms; of a
competitor, which has no log, what the capture at its sender shows. The table has how far the model is off on
each path, the worst rate first, and how many swaps it answers; below it is why it does not answer others.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

import tfrctrace
from tfrctrace.replay.closed_loop.closed_loop_results import closed_loop_replays

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth
from judge_loops import AS_LINUX
from judge_models import ALGORITHMS
from scenario import scenario_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scenario import Scenario, Sender

    from tfrctrace.metrics.results.closed_loop import ClosedLoopRun

ALGORITHM_OF: Final = {**ALGORITHMS, "bbr": "bbr"}


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one flow of a run."""

    folder: Path
    scenario: Scenario
    sender: Sender
    received_bps: float
    rtt_p95_ms: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is predicted from a run."""

    seen: Sent
    told: Sent
    reason: str


@dataclass(frozen=True, slots=True)
class Swap:
    """A prediction beside what became of the flow."""

    seen: Sent
    told: Sent
    predicted: ClosedLoopRun

    @property
    def rate(self) -> float:
        """The model's rate over the kernel's."""
        return (self.predicted.received_mean_bps or 0.0) / self.told.received_bps

    @property
    def delay(self) -> float:
        """The model's 95th percentile of round-trip times over the kernel's."""
        return (self.predicted.rtt_p95_ms or 0.0) / self.told.rtt_p95_ms

    @property
    def covers_rate(self) -> bool:
        """Whether the kernel's rate is within the predicted interval."""
        return _covers(
            self.predicted.received_low_bps, self.told.received_bps, self.predicted.received_high_bps
        )

    @property
    def covers_delay(self) -> bool:
        """Whether the kernel's 95th percentile is within the predicted interval."""
        return _covers(self.predicted.rtt_p95_low_ms, self.told.rtt_p95_ms, self.predicted.rtt_p95_high_ms)


def _covers(low: float | None, value: float, high: float | None) -> bool:
    return low is not None and high is not None and low <= value <= high


def senders(scenario: Scenario) -> tuple[Sender, ...]:
    """Return the senders of a run, the main one first."""
    return (scenario.sender, *scenario.competitors)


def sent(folder: Path, scenario: Scenario, sender: Sender) -> Sent:
    """Return what a run's kernel, or else the capture at its sender, says of a flow."""
    if sender == scenario.sender:
        samples = truth.rows(folder / "flow.tcp_info.csv.gz")
        seconds = (samples[-1]["time_ns"] - samples[0]["time_ns"]) / 1e9
        received_bps = 8 * samples[-1]["bytes_acked"] / seconds
        rtts_ms = [sample["rtt_us"] / 1e3 for sample in samples]
    else:
        trace = tfrctrace.open(folder / "sender.pcap.gz")
        [flow] = trace.flows.filter(src_port=sender.port).rows(named=True)
        received_bps = 8e9 * flow["unique_bytes"] / (flow["end_ns"] - flow["start_ns"])
        own = trace.rtt.filter(flow=flow["flow"], direction=flow["direction"])
        rtts_ms = (own["rtt_ns"] / 1e6).to_list()
    return Sent(folder, scenario, sender, received_bps, quantiles(rtts_ms, n=20)[-1])


def pairs(runs: Sequence[tuple[Path, Scenario]]) -> Iterator[tuple[Sent, Sent]]:
    """Give what became of the one sender whose congestion control differs between two runs of a path."""
    for (seen_in, seen), (told_in, told) in permutations(runs, 2):
        both = zip(senders(seen), senders(told), strict=True)
        differing = [those for those in both if those[0] != those[1]]
        if len(differing) == 1 and differing[0][1].controller in ALGORITHM_OF:
            [(before, after)] = differing
            yield sent(seen_in, seen, before), sent(told_in, told, after)


def swap(seen: Sent, told: Sent) -> Swap | Refusal:
    """Predict what became of the other congestion control from the run with the one."""
    trace = tfrctrace.open(seen.folder / "sender.pcap.gz")
    [flow] = trace.flows.filter(src_port=seen.sender.port)["flow"]
    controller = told.sender.controller
    name = ALGORITHM_OF[controller]
    settings = {"initial_window": 10.0, **AS_LINUX.get(controller, {})}
    if controller != "bbr":
        settings["min_rto_s"] = 0.2
    loops = trace.closed_loops(
        name,
        flows=[flow],
        settings={f"{name}.{key}": value for key, value in settings.items()},
        bottleneck=["others=react"] if seen.scenario.competitors else [],
    )
    found = closed_loop_replays(loops)
    runs = [run for run in found.replays if run.src_port == seen.sender.port]
    if runs:
        return Swap(seen, told, runs[0])
    [reason] = [one.what for one in found.lacking if one.src_port == seen.sender.port]
    return Refusal(seen, told, reason)


def by_path(folders: Sequence[Path]) -> list[list[tuple[Path, Scenario]]]:
    """Return the runs of each path with their scenarios, which differ in congestion controls only."""
    paths: dict[str, list[tuple[Path, Scenario]]] = defaultdict(list)
    for folder in folders:
        scenario = scenario_of(json.loads((folder / "scenario.json").read_text()))
        facts = scenario.as_dict()
        for sender in (facts["sender"], *facts["competitors"]):
            del sender["controller"]
        paths[repr(facts)].append((folder, scenario))
    return list(paths.values())


def path_words(seen: Sent) -> str:
    """Return the path of a run, alike for seeds that vary its round-trip time a little."""
    scenario = seen.scenario
    rtt_s = float(f"{scenario.base_rtt_s:.1g}")
    paths = 8 * scenario.buffer_bytes / (scenario.rate_bps * rtt_s)
    beside = [one.controller for one in senders(scenario) if one != seen.sender]
    return (
        f"{scenario.rate_bps / 1e6:g} Mbit/s, {1e3 * rtt_s:g} ms, {scenario.queue} of {paths:.2g} paths, "
        + (f"beside {', '.join(beside)}" if beside else "alone")
    )


def table(judged: Sequence[Swap | Refusal]) -> list[str]:
    """Return lines of swaps to one congestion control on one path, the worst received rate first."""
    groups: dict[tuple[str, str], list[Swap | Refusal]] = defaultdict(list)
    for one in judged:
        groups[path_words(one.seen), one.told.sender.controller].append(one)
    lines = [
        "| path | predicted | swaps | answered | rate: off in the median | worst | "
        "p95 RTT: off in the median | worst |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for (path, predicted), swaps in sorted(groups.items(), key=lambda group: -_worst(group[1])):
        cells = " | ".join(f"{_off(swaps, name)} | {_extreme(swaps, name)}" for name in ("rate", "delay"))
        lines.append(f"| {path} | {predicted} | {len(swaps)} | {len(_answered(swaps))} | {cells} |")
    return lines


def _worst(judged: Sequence[Swap | Refusal]) -> float:
    return max((abs(one.rate - 1) for one in _answered(judged)), default=0.0)


def _off(judged: Sequence[Swap | Refusal], name: str) -> str:
    off = [abs(getattr(one, name) - 1) for one in _answered(judged)]
    return f"{median(off):.0%}" if off else ""


def _extreme(judged: Sequence[Swap | Refusal], name: str) -> str:
    """Return the worst ratio of the model to the kernel, and what it is predicted from."""
    worst = max(_answered(judged), key=lambda one: abs(getattr(one, name) - 1), default=None)
    return "" if worst is None else f"{getattr(worst, name):.2f} from {worst.seen.sender.controller}"


def summary(title: str, judged: Sequence[Swap | Refusal]) -> list[str]:
    """Return lines with how far predictions are off, and why others are none."""
    answered = _answered(judged)
    lines = [f"{title}: {len(judged)} swaps, {len(answered)} answered"]
    for name in ("rate", "delay"):
        off = sorted(abs(getattr(one, name) - 1) for one in answered)
        if off:
            middle, most = off[len(off) // 2], off[min(int(0.95 * len(off)), len(off) - 1)]
            lines.append(f"  {name}: off by {middle:.0%} in the median, {most:.0%} at the 95th percentile")
    if answered:
        within = [sum(getattr(one, name) for one in answered) for name in ("covers_rate", "covers_delay")]
        lines.append(f"  intervals: {within[0]} of {len(answered)} have the rate, {within[1]} the delay")
    reasons = Counter(one.reason.partition(":")[0] for one in judged if isinstance(one, Refusal))
    return [*lines, *(f"  {count} without an answer: {reason}" for reason, count in reasons.most_common())]


def _answered(judged: Sequence[Swap | Refusal]) -> list[Swap]:
    return [one for one in judged if isinstance(one, Swap)]


def main() -> None:
    """Print how near predictions are to the runs below some folders."""
    folders = sorted(
        done.parent for runs in truth.parser_of_runs(__doc__).parse_args().runs for done in runs.rglob("done")
    )
    paths = by_path([folder for folder in folders if (folder / "sender.pcap.gz").exists()])
    judged = [swap(*pair) for runs in paths for pair in pairs(runs)]
    alone = [one for one in judged if not one.seen.scenario.competitors]
    beside = [one for one in judged if one.seen.scenario.competitors]
    print(*table(judged), "", *summary("alone", alone), *summary("beside others", beside), sep="\n")


if __name__ == "__main__":
    main()
