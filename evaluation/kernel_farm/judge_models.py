"""Compare predicted windows with those of the kernels that sent the flows of the farm.

    python evaluation/kernel_farm/judge_models.py RUNS [RUNS ...] [--wrong]

Each run's main flow is replayed with its own controller (`--loop open`), by the capture at the sender. A
decision is right if the predicted window is within one segment or 1 % of the kernel's, whichever is more: of
a round `tcpi_snd_cwnd`, of a loss or a mark `tcpi_snd_ssthresh`, to which a recovery reduces the window. The
kernel's log has a sample every 20 ms: its window is between those before and after the end of the round.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import tfrctrace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALGORITHMS: Final = {
    "reno": "sack",
    **{name: name for name in ("cubic", "dctcp", "vegas", "westwood", "veno", "illinois", "htcp", "yeah")},
    **{name: name for name in ("lp", "hybla", "bic", "scalable", "highspeed", "nv")},
}
"""The algorithm of each controller that has a window; BBR and CDG have none that could be predicted."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A predicted and the observed window beside the kernel's, in segments."""

    run: str
    controller: str
    event: str
    time_ns: int
    predicted: float
    observed: float
    kernel: tuple[int, int]
    """Least and largest of the samples around it."""

    @property
    def is_right(self) -> bool:
        """Whether the predicted window is the kernel's."""
        return self._distance(self.predicted) <= max(1.0, 0.01 * self.kernel[1])

    @property
    def is_seen(self) -> bool:
        """Whether the observed window is the kernel's."""
        return self._distance(self.observed) <= max(1.0, 0.01 * self.kernel[1])

    def _distance(self, window: float) -> float:
        least, largest = self.kernel
        return max(least - window, window - largest, 0.0)


def decisions(folder: Path) -> Iterator[Decision]:
    """Give the decisions of the main flow of a run that are predicted, none without such a controller."""
    scenario, _ = truth.read(folder)
    controller = scenario.sender.controller
    if controller not in ALGORITHMS:
        return
    samples = truth.rows(folder / "flow.tcp_info.csv.gz")
    times = [sample["time_ns"] for sample in samples]
    frame = tfrctrace.open(folder / "sender.pcap.gz").one_step(ALGORITHMS[controller])
    mine = frame.filter(frame["src_port"] == scenario.sender.port, frame["time_ns"].is_not_null())
    for row in mine.iter_rows(named=True):
        after = bisect_right(times, row["time_ns"])
        window = "snd_ssthresh" if row["event"] in {"loss", "mark"} else "snd_cwnd"
        around = [sample[window] for sample in samples[max(after - 1, 0) : after + 1]]
        segment = samples[min(after, len(samples) - 1)]["snd_mss"]
        yield Decision(
            folder.name,
            controller,
            row["event"],
            row["time_ns"],
            row["predicted_bytes"] / segment,
            row["observed_bytes"] / segment,
            (min(around), max(around)),
        )


def table(title: str, judged: Sequence[Decision], key: str) -> list[str]:
    """Return lines with how many decisions are right by an attribute, the worst first."""
    groups: dict[Any, list[Decision]] = defaultdict(list)
    for one in judged:
        groups[getattr(one, key)].append(one)
    ordered = sorted(groups.items(), key=lambda group: _share([one.is_right for one in group[1]]))
    lines = [
        f"| {title} | flows | decisions | as the kernel | median deviation | observed as the kernel |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, group in [*ordered, ("all", list(judged))]:
        flows = len({one.run for one in group})
        deviation = median(one.predicted - one.observed for one in group)
        shares = [
            f"{_share(those):.1%}".replace("%", " %")
            for those in ([one.is_right for one in group], [one.is_seen for one in group])
        ]
        lines.append(f"| {name} | {flows} | {len(group)} | {shares[0]} | {deviation:+.2f} | {shares[1]} |")
    return lines


def _share(those: Sequence[bool]) -> float:
    return sum(those) / len(those)


def main() -> None:
    """Print how right the predictions of all runs below some folders are."""
    parser = truth.parser_of_runs(__doc__)
    parser.add_argument("--wrong", action="store_true", help="also list what is wrong")
    asked = parser.parse_args()
    folders = truth.finished(asked.runs)
    judged = [one for folder in folders for one in decisions(folder)]
    if not judged:
        sys.exit("no decision is predicted")
    print(*table("controller", judged, "controller"), "", *table("decision", judged, "event"), sep="\n")
    if asked.wrong:
        for one in judged:
            if not one.is_right:
                print(f"{one.run} {one.time_ns}: {one.event}, {one.predicted:.1f} instead of {one.kernel}")


if __name__ == "__main__":
    main()
