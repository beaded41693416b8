"""Compare the table of causes with what the kernels of the farm knew.

    python evaluation/kernel_farm/judge.py RUNS [--vantage sender] [--wrong]

Of each run and vantage: the time in which the receiver, the send buffer and the application held the flow
back, against the kernel's sums, and the cause with the largest share, against what the run was set up for. A
time is right within 2 % of the flow's life, or within 20 ms and 10 ms for each change that the logs show.
What is unknown counts as wrong.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

import tfrctrace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scenario import Scenario

VANTAGES: Final = ("sender", "middle", "receiver")

KERNEL_HAS: Final[Mapping[str, tuple[str, ...]]] = {
    "application": ("application", "server"),
    "receiver": ("receiver",),
    "send_buffer": ("send_buffer",),
}
"""Causes of which the kernel has sums, and ours of the same meaning: it knows no servers."""

ALONE: Final = 0.75
"""Share of the bottleneck's rate below which a flow does not wait for its own data to pass it."""

REPAIRS: Final = ("recovery", "timeout")


@dataclass(frozen=True, slots=True)
class Judged:
    """One run as one vantage shows it."""

    name: str
    limit: str
    controller: str
    vantage: str
    true_s: Mapping[str, float]
    found_s: Mapping[str, float]
    """By cause; repairs count for what the losses came from."""
    within: Mapping[str, bool]
    """Whether each time that the kernel has sums of is right."""
    largest: str
    expected: frozenset[str]

    @property
    def is_right(self) -> bool:
        """Whether the largest cause is what the run was set up for."""
        return self.largest in self.expected

    @property
    def is_known(self) -> bool:
        """Whether most of the flow's life has a cause."""
        return 2 * self.found_s.get("unknown", 0.0) < sum(self.found_s.values())


def expected_causes(folder: Path, scenario: Scenario, known: truth.Truth) -> frozenset[str]:
    """Return the causes that may have the largest share, by the sums of the logs and counters of queues."""
    if known.largest != "network":
        return frozenset(KERNEL_HAS[known.largest])
    counters = json.loads((folder / "counters.json").read_text())["after"]
    dropped, lost = (_first(r"dropped (\d+)", counters[of]) for of in ("queues", "delays"))
    if _first(r"dropped (\d+)", counters["policer"]) > dropped:
        causes = {"policer"}
    elif scenario.competitors:
        # both hold; the table decides on marks before it decides on others
        causes = {"shared_bottleneck", "mark"} if known.delivered_ce > dropped else {"shared_bottleneck"}
    elif lost > dropped or (lost and _loses_without_queue(folder, known)):
        causes = {"loss"}
    elif known.delivered_ce > dropped:
        causes = {"mark"}
    elif scenario.backwards:
        # Its acknowledgements wait behind the data of the other connection. Its own queue, which drops
        # nothing of others, may be what holds it back all the same.
        causes = {"shared_bottleneck", "bottleneck"} if dropped else {"shared_bottleneck"}
    elif known.network_bps >= ALONE * scenario.rate_bps or scenario.limit == "short":
        causes = {"bottleneck"}
    elif scenario.sender.read_bps is not None:
        # It paces at what the receiver reads (BBR), below the window and without a queue.
        causes = {"receiver", "unknown"}
    elif not dropped:
        # Its congestion control kept the window below what the path takes, of itself (CDG, NV).
        causes = {"bottleneck", "unknown"}
    else:
        # Once full, CAKE drops by chance for a while, whether or not a queue stands (BLUE).
        causes = {"bottleneck", "loss"} if scenario.queue == "cake" else {"bottleneck"}
    return frozenset(causes | ({"slow_start"} if scenario.limit == "short" else set()))


def _loses_without_queue(folder: Path, known: truth.Truth) -> bool:
    """Return whether most repairs began at the kernel's base round-trip time: a queue dropped the others."""
    samples = truth.rows(folder / "flow.tcp_info.csv.gz")
    began = [
        before["rtt_us"] for before, after in pairwise(samples) if _is_open(before) and not _is_open(after)
    ]
    at_base = [rtt_us for rtt_us in began if rtt_us / 1e3 <= 1.1 * known.min_rtt_ms + 2]
    return 4 * len(at_base) > 3 * len(began)


def _is_open(sample: Mapping[str, Any]) -> bool:
    """Return whether nothing is repaired (`TCP_CA_Recovery` and `TCP_CA_Loss` are higher)."""
    return bool(sample["ca_state"] < 3)


def _first(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def found_causes(capture: Path, port: int) -> dict[str, float]:
    """Return seconds by cause of the data that a port sent."""
    trace = tfrctrace.open(capture)
    flows = trace.flows.filter(pl.col("src_port") == port).select("flow", "direction")
    rows = trace.causes.join(flows, on=["flow", "direction"], how="semi")
    cause = pl.when(pl.col("cause").is_in(REPAIRS)).then(pl.coalesce("second_cause", "cause"))
    sums = rows.group_by(cause.otherwise("cause").alias("cause")).agg(
        (pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9
    )
    return dict(sums.iter_rows())


def changes(samples: Sequence[Mapping[str, Any]], states: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how often the logs show that each time began or ended."""

    def of(holds: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]) -> int:
        held = [holds(before, after) for before, after in pairwise(samples)]
        return sum(before != after for before, after in pairwise(held))

    return {
        "application": len(states),
        "receiver": of(lambda before, after: after["rwnd_limited_us"] > before["rwnd_limited_us"]),
        "send_buffer": of(lambda _, after: after["notsent_bytes"] == 0) + len(states),
    }


def judge(folder: Path, vantage: str) -> Judged:
    """Judge a run."""
    scenario, known = truth.read(folder)
    samples, states = (truth.rows(folder / f"flow.{log}.csv.gz") for log in ("tcp_info", "application"))
    found = found_causes(folder / f"{vantage}.pcap.gz", scenario.sender.port)
    true_s = {
        "application": known.application_s,
        "receiver": known.receiver_s,
        "send_buffer": known.send_buffer_s,
    }
    changed = changes(samples, states)
    least_s = true_s | {"receiver": known.receiver_least_s}
    within = {}
    for name, most_s in true_s.items():
        error_s = max(0.02 * known.life_s, 0.02 + 0.01 * changed[name])
        found_s = sum(found.get(cause, 0.0) for cause in KERNEL_HAS[name])
        within[name] = least_s[name] - error_s <= found_s <= most_s + error_s
    return Judged(
        name=folder.name,
        limit=scenario.limit,
        controller=scenario.sender.controller,
        vantage=vantage,
        true_s=true_s,
        found_s=found,
        within=within,
        largest=_largest(found),
        expected=expected_causes(folder, scenario, known),
    )


def _largest(found_s: Mapping[str, float]) -> str:
    """Return the largest cause, as far as the kernel divides them: it knows no servers, and no handshake."""
    sums = {cause: seconds for cause, seconds in found_s.items() if cause not in ("handshake", "server")}
    sums["application"] = sums.get("application", 0.0) + found_s.get("server", 0.0)
    return max(sums, key=sums.__getitem__)


def table(title: str, judged: Sequence[Judged], key: Callable[[Judged], str]) -> list[str]:
    """Return lines with how many of each key are right."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    columns = ("flows", "application", "receiver", "send_buffer", "largest", "known")
    lines = [f"{title:22}" + "".join(f"{column:>13}" for column in columns)]
    for name, group in sorted(groups.items()):
        right = [sum(one.within[column] for one in group) for column in columns[1:4]]
        right += [sum(one.is_right for one in group), sum(one.is_known for one in group)]
        shares = "".join(f"{100 * count / len(group):12.0f}%" for count in right)
        lines.append(f"{name:22}{len(group):13}{shares}")
    return lines


def described(one: Judged) -> str:
    """Return a line on a run that is not judged right."""
    times = ", ".join(
        f"{name} {sum(one.found_s.get(cause, 0.0) for cause in KERNEL_HAS[name]):.2f} s of {seconds:.2f} s"
        for name, seconds in one.true_s.items()
        if not one.within[name]
    )
    causes = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in _largest_first(one.found_s))
    expected = " or ".join(sorted(one.expected))
    return f"{one.name} at the {one.vantage}: expected {expected}; found {causes}" + (
        f"; wrong: {times}" if times else ""
    )


def _largest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])[:4]


def main() -> None:
    """Print how right the causes of all runs below a folder are."""
    parser = truth.parser_of_runs(__doc__)
    parser.add_argument("--vantage", action="append", choices=VANTAGES, help="only this one; repeatable")
    parser.add_argument("--wrong", action="store_true", help="also list what is wrong")
    asked = parser.parse_args()
    folders = truth.finished(asked.runs)
    judged = [judge(folder, vantage) for vantage in asked.vantage or VANTAGES for folder in folders]
    print(*table("vantage", judged, lambda one: one.vantage), "", sep="\n")
    for vantage in asked.vantage or VANTAGES:
        shown = [one for one in judged if one.vantage == vantage]
        print(*table(f"limit, {vantage}", shown, lambda one: one.limit), "", sep="\n")
        print(*table(f"controller, {vantage}", shown, lambda one: one.controller), "", sep="\n")
    if asked.wrong:
        wrong = [one for one in judged if not one.is_right or not all(one.within.values())]
        print(*map(described, wrong), sep="\n")


if __name__ == "__main__":
    main()
