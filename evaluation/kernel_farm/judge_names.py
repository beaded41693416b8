"""Compare the congestion controls that are named with those that sent the flows of the farm.

    python evaluation/kernel_farm/judge_names.py RUNS [RUNS ...] [--vantage sender] [--wrong]

The flow of each run's main sender counts, by the capture at one place. An answer is
right if the controller of the flow is among its names. A flow without a name is neither right nor wrong.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import tfrctrace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth
from judge import VANTAGES
from scenario import CONTROLLERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scenario import Scenario


@dataclass(frozen=True, slots=True)
class Named:
    """One flow, and what was said of it."""

    run: str
    scenario: Scenario
    controller: str
    """What sent it; without ECN Linux' DCTCP is Reno."""
    names: tuple[str, ...]
    """Empty without an answer."""
    reason: str
    beta: tuple[float, float, float] | None
    """What a loss left of a window, and its interval; None if that is not known."""
    c: tuple[float, float, float] | None
    """C of CUBIC, likewise."""

    @property
    def is_right(self) -> bool:
        """Whether the answer has the controller."""
        return self.controller in self.names


def judge(folder: Path, vantage: str) -> Named | None:
    """Return what is said of the main flow of a run, None without one."""
    scenario, _ = truth.read(folder)
    trace = tfrctrace.open(folder / f"{vantage}.pcap.gz")
    for row in trace.why():
        if row.src_port == scenario.sender.port:
            modes = trace.flows.filter(flow=row.flow)["ecn_mode"]
            is_reno = scenario.sender.controller == "dctcp" and "none" in modes
            names = tuple(row.congestion_control.split("|")) if row.congestion_control else ()
            return Named(
                folder.name,
                scenario,
                "reno" if is_reno else scenario.sender.controller,
                names,
                row.congestion_control_reason or "",
                *parameters(trace, row.flow),
            )
    return None


def parameters(trace: tfrctrace.Trace, flow: int) -> list[tuple[float, float, float] | None]:
    """Return beta and C of a flow, as far as they are known."""
    rows = trace.congestion_controls.filter(flow=flow)
    found = []
    for name in ("beta", "c"):
        own = rows.select(name, f"{name}_low", f"{name}_high").drop_nulls()
        found.append(own.row(0) if len(own) else None)
    return found


SET: Final = {
    "beta": {"reno": 0.5, "hybla": 0.5, "cubic": 0.7, "bic": 0.8, "scalable": 0.875},
    "c": {"cubic": 0.4},
}
"""Parameters of stock Linux, of windows above BIC's low one."""
NEAR: Final = {"beta": 0.02, "c": 0.04}


def parameter_table(judged: Sequence[Named]) -> list[str]:
    """Return lines with how near the parameters of flows, whose answer has their name, are to Linux'."""
    lines = [
        "| parameter | sent by | told | within | in the interval | median width |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for parameter, values in SET.items():
        for name, value in values.items():
            mine = [getattr(one, parameter) for one in judged if one.controller == name and name in one.names]
            told = [one for one in mine if one is not None]
            near = sum(abs(found - value) <= NEAR[parameter] for found, _, _ in told)
            covered = sum(low <= value <= high for _, low, high in told)
            width = f"{median(high - low for _, low, high in told):.2f}" if told else ""
            cells = (f"{len(told)} of {len(mine)}", near, covered, width)
            lines.append(f"| {parameter} | {name} | {' | '.join(map(str, cells))} |")
    return lines


def table(title: str, judged: Sequence[Named], key: Callable[[Named], str]) -> list[str]:
    """Return lines with the answers of each key."""
    groups: dict[str, list[Named]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    lines = [
        f"| {title} | flows | answered | right | names | reasons of the others |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, group in [*sorted(groups.items()), ("all", list(judged))]:
        answered = [one for one in group if one.names]
        right = sum(one.is_right for one in answered)
        names = sum(len(one.names) for one in answered) / len(answered) if answered else 0
        reasons = Counter(one.reason for one in group if not one.names)
        told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
        lines.append(f"| {name} | {len(group)} | {len(answered)} | {right} | {names:.1f} | {told} |")
    return lines


def matrix(judged: Sequence[Named]) -> list[str]:
    """Return lines with how often each controller was among the names of each."""
    shown = [name for name in sorted(CONTROLLERS) if any(name in one.names for one in judged)]
    lines = [f"| sent by | {' | '.join([*shown, 'none'])} |", "|---|" + "--:|" * (len(shown) + 1)]
    for controller in sorted({one.controller for one in judged}):
        mine = [one for one in judged if one.controller == controller]
        counts = [sum(name in one.names for one in mine) for name in shown]
        cells = [str(count) if count else "" for count in (*counts, sum(not one.names for one in mine))]
        lines.append(f"| {controller} | {' | '.join(cells)} |")
    return lines


def _rtt(one: Named) -> str:
    milliseconds = one.scenario.base_rtt_s * 1e3
    return "under 20 ms" if milliseconds < 20 else "20 to 60 ms" if milliseconds < 60 else "over 60 ms"


def main() -> None:
    """Print how right the names of all runs below some folders are."""
    parser = truth.parser_of_runs(__doc__)
    parser.add_argument("--wrong", action="store_true", help="also list what is wrong")
    parser.add_argument("--vantage", choices=VANTAGES, default="sender", help="where the captures were made")
    asked = parser.parse_args()
    folders = truth.finished(asked.runs)
    judged = [one for folder in folders if (one := judge(folder, asked.vantage)) is not None]
    print(*table("limit", judged, lambda one: one.scenario.limit), "", sep="\n")
    print(*table("round-trip time", judged, _rtt), "", sep="\n")
    print(*table("queue", judged, lambda one: one.scenario.queue), "", sep="\n")
    print(*matrix(judged), "", sep="\n")
    print(*parameter_table(judged), sep="\n")
    if asked.wrong:
        for one in judged:
            if one.names and not one.is_right:
                print(f"{one.run}: {'|'.join(one.names)}")


if __name__ == "__main__":
    main()
