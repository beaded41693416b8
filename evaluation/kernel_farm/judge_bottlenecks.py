"""Compare what is said of bottlenecks with the queues and policers of the farm.

    python evaluation/kernel_farm/judge_bottlenecks.py RUNS [RUNS ...] [--vantage sender] [--wrong]

The flow of each run's main sender counts. Its capacity and buffer are right if they lie in the interval that
is given, its discipline if most drops of the queue were of that kind: a CoDel or PIE whose limit of packets
is reached drops at its tail. A flow filled its queue if that dropped or marked four packets.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

import tfrctrace

sys.path.insert(0, str(Path(__file__).resolve().parent))

from judge import VANTAGES
from scenario import FRAME_BYTES, scenario_of
from truth import finished, parser_of_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario import Scenario

PACKET_BYTES: Final = 1500
AT_IP_LAYER: Final = PACKET_BYTES / FRAME_BYTES
"""Rates and buffers of the farm count Ethernet's header, policers do not."""

DROPS: Final = 4

RATE_ERROR: Final = 0.02
BUCKET_ERROR: Final = 0.2
"""By which the rate and the bucket of a policer may be wrong."""

OF_QUEUE: Final[Mapping[str, str]] = {
    "bfifo": "tail_drop",
    "tbf": "tail_drop",
    "fq": "tail_drop",
    "codel": "aqm",
    "fq_codel": "aqm",
    "cake": "aqm",
    "pie": "aqm",
    "red": "aqm",
}


@dataclass(frozen=True, slots=True)
class Queue:
    """What is true of the bottleneck of a run."""

    capacity_bps: float
    buffer_bytes: float | None
    """None if packets of unknown length fill it, or losses come before it is full."""
    discipline: str | None
    """None if the queue dropped and marked less than four packets."""
    policer: tuple[float, int] | None
    """Rate and bucket, if it dropped more than the queue."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One run: what is true and what is said."""

    run: str
    scenario: Scenario
    true: Queue
    said: Mapping[str, Any]

    def width(self, name: str, unit: str) -> float:
        """Return the width of an interval as a part of its value."""
        low, value, high = (self.said[f"{name}{bound}_{unit}"] for bound in ("_low", "", "_high"))
        return float((high - low) / value)

    def covers(self, name: str, unit: str, value: float | None) -> bool:
        """Return whether an interval has the true value."""
        low, high = (self.said[f"{name}_{bound}_{unit}"] for bound in ("low", "high"))
        return value is not None and low is not None and low <= value <= high


def queue_of(folder: Path, scenario: Scenario) -> Queue:
    """Return what is true of the bottleneck of a run, by its settings and the counters of its queue."""
    counters = json.loads((folder / "counters.json").read_text())["after"]
    text = counters["queues"]
    dropped, policed = (_count(r"dropped (\d+)", of) for of in (text, counters["policer"]))
    marked = _count(r"ecn_mark (\d+)", text) + _count(r"marked (\d+)", text)
    # CAKE has a column for each of its tins
    marked += sum(map(int, " ".join(re.findall(r"^ *marks([ \d]+)$", text, re.MULTILINE)).split()))
    overflowed = _count(r"drop_overlimit (\d+)", text) + _count(r"overlimit (\d+) dropped", text)
    discipline = "tail_drop" if 2 * overflowed > dropped + marked else OF_QUEUE[scenario.queue]
    is_filled = dropped + marked >= DROPS and policed <= dropped
    buffer_bytes = None
    if discipline == "tail_drop" and scenario.queue in ("bfifo", "tbf"):
        buffer_bytes = scenario.buffer_bytes * AT_IP_LAYER
    elif discipline == "tail_drop" and not scenario.offload:
        buffer_bytes = max(scenario.buffer_bytes // FRAME_BYTES, 5) * PACKET_BYTES
    return Queue(
        capacity_bps=scenario.rate_bps * AT_IP_LAYER,
        buffer_bytes=buffer_bytes,
        discipline=discipline if is_filled else None,
        policer=scenario.policer if policed > dropped else None,
    )


def _count(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def judge(folder: Path, vantage: str) -> Judged | None:
    """Return what is said of the bottleneck of the main flow of a run, None without one."""
    scenario = scenario_of(json.loads((folder / "scenario.json").read_text()))
    trace = tfrctrace.open(folder / f"{vantage}.pcap.gz")
    sent = trace.flows.filter(pl.col("src_port") == scenario.sender.port).select("flow", "direction")
    rows = trace.bottlenecks.join(sent, on=["flow", "direction"], how="semi").to_dicts()
    return Judged(folder.name, scenario, queue_of(folder, scenario), rows[0]) if rows else None


def _share(count: int, of: int) -> str:
    return f"{count} of {of}" + (f" ({100 * count / of:.0f} %)" if of else "")


def lines(judged: Sequence[Judged]) -> list[str]:
    """Return the table of one vantage."""
    filled = [one for one in judged if one.true.discipline is not None]
    tail = [one for one in filled if one.true.buffer_bytes is not None]
    named = [one for one in filled if one.said["discipline"] is not None]
    right = sum(one.said["discipline"] == one.true.discipline for one in named)
    return [
        "| fact | told | right | median width |",
        "|---|--:|--:|--:|",
        interval_line("capacity", "bps", [(one, one.true.capacity_bps) for one in filled]),
        interval_line("buffer", "bytes", [(one, one.true.buffer_bytes) for one in tail]),
        f"| discipline | {_share(len(named), len(filled))} | {_share(right, len(named))} | |",
        *policer_lines(judged),
        change_line(judged),
    ]


def interval_line(name: str, unit: str, flows: Sequence[tuple[Judged, float | None]]) -> str:
    """Return a row on intervals: widths as a part of the value, and whether they have the true one."""
    known = [(one, value) for one, value in flows if one.said[f"{name}_{unit}"] is not None]
    covered = sum(one.covers(name, unit, value) for one, value in known)
    width = f"{100 * statistics.median(one.width(name, unit) for one, _ in known):.1f} %" if known else ""
    return f"| {name} | {_share(len(known), len(flows))} | {_share(covered, len(known))} | {width} |"


def change_line(judged: Sequence[Judged]) -> str:
    """Return a row on changes of the path, which packets show where they were captured after it."""
    changed = [bool(one.said["path_changes"]) for one in judged if one.scenario.change is not None]
    false = sum(bool(one.said["path_changes"]) for one in judged if one.scenario.change is None)
    return f"| path change | {_share(sum(changed), len(changed))} | {false} false | |"


def policer_lines(judged: Sequence[Judged]) -> list[str]:
    """Return rows on policers: how many are found, and how many rates are right."""
    policed = [(one, one.true.policer) for one in judged if one.true.policer is not None]
    found = [(one, policer) for one, policer in policed if one.said["policer_bps"] is not None]
    others = [one for one in judged if one.true.policer is None]
    false = sum(one.said["policer_bps"] is not None for one in others)
    rates = [abs(one.said["policer_bps"] / rate - 1) <= RATE_ERROR for one, (rate, _) in found]
    return [
        f"| policer | {_share(len(found), len(policed))} | {false} false of {len(others)} | |",
        f"| its rate within 2 % | {_share(len(rates), len(found))} | {_share(sum(rates), len(rates))} | |",
    ]


def described(one: Judged) -> str:
    """Return a line on what is true and what is said of a run."""
    facts = ("capacity_bps", "buffer_bytes", "discipline", "policer_bps")
    said = ", ".join(f"{name} {one.said[name]}" for name in facts if one.said[name] is not None)
    reasons = {one.said[f"{name}_reason"] for name in ("capacity", "buffer", "discipline")} - {None}
    return f"{one.run} ({one.scenario.queue}): {one.true}; said {said}; {sorted(reasons)}"


def main() -> None:
    """Print how right the bottlenecks of all runs below some folders are."""
    parser = parser_of_runs(__doc__)
    parser.add_argument("--vantage", action="append", choices=VANTAGES, help="only this one; repeatable")
    parser.add_argument("--wrong", action="store_true", help="also list what is true and said of each run")
    asked = parser.parse_args()
    folders = finished(asked.runs)
    for vantage in asked.vantage or VANTAGES:
        judged = [one for folder in folders if (one := judge(folder, vantage)) is not None]
        print(f"captured at the {vantage}, {len(judged)} flows", "", *lines(judged), "", sep="\n")
        if asked.wrong:
            print(*map(described, judged), "", sep="\n")


if __name__ == "__main__":
    main()
