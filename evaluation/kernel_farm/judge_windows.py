"""Compare windows, flights and pacing rates of the table of rounds with those of the kernels of the farm.

    python evaluation/kernel_farm/judge_windows.py RUNS [--vantage sender] [--by limit]

The kernel's window in a round is the largest of the samples of TCP_INFO in it. Between samples it may have
grown: it is known to be between the largest of those from the last before the round to the last in it, and
of these and the first after it. Of a recovery, the window at its end is known so. `cwnd_bytes` is right
within two segments or 2 %, whichever is more. `cwnd_least_bytes` must not be above the largest of these
samples; `pacing_bps` is right within 5 % of one of them, and wrong if the kernel did not pace;
`sender_flight_bytes` is right if the largest flight in a round-trip time of 40 ms or more may be within
`flight_error_bytes` and two segments or 2 %: it is at least the largest of the kernel's samples in that
time, and at most that of those around it and of the capture at the sender, as flights come and go between
samples.
"""

from __future__ import annotations

import json
import statistics
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

import tfrctrace

sys.path.insert(0, str(Path(__file__).resolve().parent))

import truth
from judge import VANTAGES
from scenario import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PACING: Final = frozenset({"bbr"})
"""Controllers of the farm for which the kernel paces."""

SEGMENTS: Final = 2
PART: Final = 0.02
PACING_PART: Final = 0.05
LEAST_RTT_US: Final = 40_000
"""Two samples: flights of shorter round-trip times come and go between them."""


@dataclass(slots=True)
class Judged:
    """The rounds of one run as one vantage shows them: lists have an item for each value that is told."""

    name: str
    limit: str
    controller: str
    rounds: int = 0
    ratios: list[float] = field(default_factory=list)
    """`cwnd_bytes` over the kernel's window."""
    windows: list[bool] = field(default_factory=list)
    """Whether it is right; likewise below."""
    least: list[bool] = field(default_factory=list)
    pacing: list[bool] = field(default_factory=list)
    told: int = 0
    """Rounds with a flight at the sender."""
    flights: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    """`flight_error_bytes` over the flight."""
    most_below_flight: int = 0
    """Directions whose `cwnd_max_bytes` is below their `max_flight_bytes`, and those that have it."""
    most_known: int = 0
    most_above: int = 0
    """Those in which it is above the kernel's largest."""


@dataclass(frozen=True, slots=True)
class Samples:
    """What the kernel said of a flow, by time."""

    times_ns: Sequence[int]
    windows: Sequence[int]
    flights: Sequence[int]
    pacing_bps: Sequence[int]
    rtts_us: Sequence[int]
    segment_bytes: int

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Samples:
        """Take the rows of a log."""
        return cls(
            times_ns=[row["time_ns"] for row in rows],
            windows=[row["snd_cwnd"] * row["snd_mss"] for row in rows],
            flights=[
                # segments are not all full; the SYN counts as acknowledged
                row["bytes_sent"]
                - row["bytes_retrans"]
                - row["bytes_acked"]
                + 1
                - row["sacked"] * row["snd_mss"]
                for row in rows
            ],
            pacing_bps=[8 * row["pacing_rate"] for row in rows],
            rtts_us=[row["rtt_us"] for row in rows],
            segment_bytes=rows[0]["snd_mss"],
        )

    def around(self, start_ns: float, end_ns: float) -> tuple[int, int]:
        """Return the places of the last sample before a time, and of the first after it."""
        before = max(bisect_right(self.times_ns, start_ns) - 1, 0)
        return before, min(bisect_left(self.times_ns, end_ns), len(self.times_ns) - 1)

    def is_near(self, value: float, low: float, high: float) -> bool:
        """Return whether a window is between two others, to two segments or 2 %."""
        margin = SEGMENTS * self.segment_bytes
        return low - max(margin, PART * low) <= value <= high + max(margin, PART * high)


def judge(folder: Path, vantage: str) -> Judged:
    """Judge a run."""
    scenario = scenario_of(json.loads((folder / "scenario.json").read_text()))
    samples = Samples.of(truth.rows(folder / "flow.tcp_info.csv.gz"))
    flows, rounds = _seen(folder / f"{vantage}.pcap.gz", scenario.sender.port)
    of_sender = rounds if vantage == "sender" else _seen(folder / "sender.pcap.gz", scenario.sender.port)[1]
    at_sender = (of_sender["time_ns"].to_list(), of_sender["flight_bytes"].to_list())
    one = Judged(folder.name, scenario.limit, scenario.sender.controller)
    for row in rounds.iter_rows(named=True):
        one.rounds += 1
        _judge_window(one, row, samples)
        _judge_pacing(one, row, samples)
        _judge_flight(one, row, samples, at_sender)
    for most, flight in flows.select("cwnd_max_bytes", "max_flight_bytes").iter_rows():
        if most is not None:
            one.most_known += 1
            one.most_below_flight += most < flight
            one.most_above += most > max(samples.windows) + SEGMENTS * samples.segment_bytes
    return one


def _seen(capture: Path, port: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the flows that a port sent, and their rounds."""
    trace = tfrctrace.open(capture)
    flows = trace.flows.filter(pl.col("src_port") == port)
    return flows, trace.rounds.join(flows, on=["flow", "direction"], how="semi")


def _judge_window(one: Judged, row: Mapping[str, Any], samples: Samples) -> None:
    end_ns = row["time_ns"] + 1e6 * row["duration_ms"]
    before, after = samples.around(row["time_ns"], end_ns)
    if row["repair"] is not None:
        before = max(after - 1, 0)
    during = samples.windows[before : max(after, before + 1)]
    low, high = max(during), max(*during, samples.windows[after])
    if row["repair"] is not None:
        low = min(*during, samples.windows[after])
    if row["cwnd_bytes"] is not None:
        one.ratios.append(row["cwnd_bytes"] / low)
        one.windows.append(samples.is_near(row["cwnd_bytes"], low, high))
    if row["cwnd_least_bytes"] is not None:
        one.least.append(row["cwnd_least_bytes"] <= high)


def _judge_pacing(one: Judged, row: Mapping[str, Any], samples: Samples) -> None:
    if row["pacing_bps"] is None:
        return
    before, after = samples.around(row["time_ns"], row["time_ns"] + 1e6 * row["duration_ms"])
    rates = samples.pacing_bps[before : after + 1]
    is_near = any(abs(row["pacing_bps"] - rate) <= PACING_PART * rate for rate in rates)
    one.pacing.append(one.controller in PACING and is_near)


def _judge_flight(
    one: Judged, row: Mapping[str, Any], samples: Samples, at_sender: tuple[Sequence[int], Sequence[int]]
) -> None:
    if row["sender_flight_bytes"] is None:
        return
    one.told += 1
    middle_ns = row["time_ns"] + 0.5e6 * row["duration_ms"]
    rtt_us = samples.rtts_us[samples.around(middle_ns, middle_ns)[0]]
    start_ns, end_ns = middle_ns - 500 * rtt_us, middle_ns + 500 * rtt_us
    before, after = samples.around(start_ns, end_ns)
    during = samples.flights[before + 1 : after]
    if rtt_us < LEAST_RTT_US or not during:
        return
    begins, flights_seen = at_sender
    first, last = max(bisect_right(begins, start_ns) - 1, 0), bisect_right(begins, end_ns)
    flight, error = row["sender_flight_bytes"], row["flight_error_bytes"]
    margin = max(SEGMENTS * samples.segment_bytes, PART * flight)
    low, high = max(during), max(*samples.flights[before : after + 1], *flights_seen[first:last])
    one.flights.append(low - margin <= flight + error and flight - error <= high + margin)
    one.errors.append(error / max(flight, 1))


COLUMNS: Final = (
    *("runs", "rounds", "windows", "ratio", "right", "least", "paced", "right", "flights", "right", "error"),
    *("most", "below", "above"),
)


def _share(right: Sequence[bool]) -> str:
    return f"{100 * sum(right) / len(right):.1f}%" if right else "-"


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3f}" if values else "-"


def _line(name: str, group: Sequence[Judged]) -> str:
    def every(of: Callable[[Judged], list[Any]]) -> list[Any]:
        return [value for one in group for value in of(one)]

    windows, pacing, flights = (
        every(lambda one: one.windows),
        every(lambda one: one.pacing),
        every(lambda one: one.flights),
    )
    cells = (
        *(len(group), sum(one.rounds for one in group)),
        *(len(windows), _median(every(lambda one: one.ratios)), _share(windows)),
        _share(every(lambda one: one.least)),
        *(len(pacing), _share(pacing)),
        *(len(flights), _share(flights), _median(every(lambda one: one.errors))),
        *(sum(one.most_known for one in group), sum(one.most_below_flight for one in group)),
        sum(one.most_above for one in group),
    )
    return f"{name:14}" + "".join(f"{cell:>9}" for cell in cells)


def table(title: str, judged: Sequence[Judged], key: Callable[[Judged], str]) -> list[str]:
    """Return lines for each key, those with the largest share of wrong windows first, and for all."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)

    def right(group: Sequence[Judged]) -> float:
        windows = [is_right for one in group for is_right in one.windows]
        return sum(windows) / len(windows) if windows else 1.0

    ordered = sorted(groups.items(), key=lambda item: (right(item[1]), item[0]))
    return [
        f"{title:14}" + "".join(f"{column:>9}" for column in COLUMNS),
        *(_line(name, group) for name, group in ordered),
        _line("all", judged),
    ]


def main() -> None:
    """Print how right the rounds of all runs below folders are."""
    parser = truth.parser_of_runs(__doc__)
    parser.add_argument("--vantage", action="append", choices=VANTAGES, help="only this one; repeatable")
    parser.add_argument("--by", choices=("controller", "limit", "name"), default="controller")
    asked = parser.parse_args()
    folders = truth.finished(asked.runs)
    for vantage in asked.vantage or VANTAGES:
        judged = [judge(folder, vantage) for folder in folders]
        print(*table(vantage, judged, lambda one: str(getattr(one, asked.by))), "", sep="\n")


if __name__ == "__main__":
    main()
