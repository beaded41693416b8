"""Compare closed loops with kernels: each flow's own controller, in the model of the path as it was set up.

    python evaluation/kernel_farm/judge_loops.py RUNS [RUNS ...]

Flows that were alone and limited by the path count. The table has what the model received over what the
kernel's receiver acknowledged, and its mean round-trip time over that of `tcpi_rtt`, the worst first.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.fluid import simulate
from tfrctrace.replay.closed_loop.path import Path as ModelledPath
from tfrctrace.replay.controller import Start

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth
from judge_models import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenario import Scenario

    from tfrctrace.replay.closed_loop.path import DisciplineName

SEGMENT: Final = 1448
FRAME: Final = 1514

DISCIPLINES: Final[dict[str, DisciplineName]] = {
    "bfifo": "tail_drop",
    "tbf": "tail_drop",
    "codel": "codel",
    "fq_codel": "codel",
    "pie": "pie",
    "red": "red",
}
AS_LINUX: Final = {
    "cubic": {"increase_beyond": 0.0},
    # it seldom has the one-way delays by which it would yield
    "lp": {"delta": 0.99},
    "westwood": {"late": 1.0},
}


@dataclass(frozen=True, slots=True)
class Modelled:
    """A flow, and the model over the kernel."""

    run: str
    scenario: Scenario
    received: float
    rtt: float


def path_of(scenario: Scenario) -> ModelledPath:
    """Return the path as the kernel had it, in payload."""
    buffer_bytes = scenario.buffer_bytes
    if scenario.queue == "red":
        # its thresholds are a sixth and half of the model's buffer
        buffer_bytes = 6 * max(buffer_bytes // 6, 4 * FRAME)
    elif scenario.queue in {"codel", "fq_codel", "pie"}:
        buffer_bytes = max(buffer_bytes // FRAME, 5) * FRAME
    return ModelledPath(
        capacity=scenario.rate_bps / 8 * SEGMENT / FRAME,
        base_rtt_s=scenario.base_rtt_s,
        buffer_bytes=buffer_bytes * SEGMENT / FRAME,
        random_loss=scenario.loss,
        discipline=DISCIPLINES[scenario.queue],
        has_ecn=scenario.ecn,
    )


def judge(folder: Path) -> Modelled | None:
    """Return the model of a run's flow over the kernel; None if it was not alone, or has no such queue."""
    scenario, _ = truth.read(folder)
    controller = scenario.sender.controller
    is_alone = scenario.limit in {"bottleneck", "loss", "marks"} and not scenario.competitors
    if not is_alone or scenario.queue not in DISCIPLINES or controller not in ALGORITHMS:
        return None
    samples = truth.rows(folder / "flow.tcp_info.csv.gz")
    seconds = (samples[-1]["time_ns"] - samples[0]["time_ns"]) / 1e9
    algorithm = replace(algorithm_named(ALGORITHMS[controller]), settings=AS_LINUX.get(controller, {}))
    control = algorithm.begin(Start(segment_bytes=SEGMENT, least_rto_s=0.2))
    [rounds] = simulate(path_of(scenario), [control], segment_bytes=SEGMENT, duration_s=seconds)
    rtt_s = sum(one.rtt_s * one.duration_s for one in rounds) / seconds
    kernel_s = sum(sample["rtt_us"] for sample in samples) / len(samples) / 1e6
    received = sum(one.arrived_bytes for one in rounds) / samples[-1]["bytes_acked"]
    return Modelled(folder.name, scenario, received, rtt_s / kernel_s)


def table(judged: Sequence[Modelled]) -> list[str]:
    """Return lines with a flow each, the worst received rate first."""
    lines = [
        "| run | queue | ECN | random loss | received: model / kernel | mean RTT: model / kernel |",
        "|---|---|---|--:|--:|--:|",
    ]
    for one in sorted(judged, key=lambda one: -abs(one.received - 1)):
        drawn = one.scenario
        lines.append(
            f"| {one.run} | {drawn.queue} | {'yes' if drawn.ecn else ''} | {100 * drawn.loss:.2g} % "
            f"| {one.received:.2f} | {one.rtt:.2f} |"
        )
    return lines


def main() -> None:
    """Print how near models are to the runs below some folders."""
    folders = truth.finished(truth.parser_of_runs(__doc__).parse_args().runs)
    judged = [one for folder in folders if (one := judge(folder)) is not None]
    print(*table(judged), sep="\n")


if __name__ == "__main__":
    main()
