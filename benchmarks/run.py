"""Measure tfrctrace against other programs on captures of many kinds of traffic, and print the ratios.

Slow programs read a shorter capture of the same kind and are compared by packets per second. Every run goes
to a JSON record with the machine, the commit and the compiler.

`python benchmarks/run.py [--packets N] [--runs N] [--only NAME] [--command NAME] [--against COMMIT]`
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import real
from measuring import Comparison, Entry, ratio, take_turns, warm
from peers import COMMANDS, HERE, Peer, bare_loop, older, script, tcptrace, tfrctrace, tool
from plan import FEW, KINDS, MANY, AnyPlan, FarPlan, Form, Kind, Plan, RealPlan, TextPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CAPTURES = HERE / "captures"
METRIC_FLOWS = 1000
METRIC_BINS = 36_000
"""An hour in bins of 0.1 s."""
NS2_LINES = 3_500_000
"""About 200 MB."""
REPORTS = 1_000_000
MOST_REPLAY_S = 2.0

TCPTRACE_COMMANDS = ("flows", "metrics", "report")
"""Commands that are compared with tcptrace."""
FLOWS_TIMES = {"turns-8": 8.0, "real": 8.0, "turns-100000": 15.0}
"""How many times as fast as tcptrace `flows` should be; on other TCP kinds 5 times."""
LOOP_TIMES = {"turns-8": 1.3, "real": 1.3}
"""The same for the bare libpcap loop."""
METRICS_TIMES = {"turns-8": 2.0, "random-200": 2.0, "turns-100000": 2.5, "random-100000": 2.5}
REPORT_TIMES = {"turns-8": 1.0, "random-200": 1.0, "turns-100000": 2.5, "random-100000": 2.5}
OVER_TURNS = {"udp": 1.5, "rtp": 1.5, "quic": 1.5, "holes": 1.3}
"""How many times the cost of a packet of `turns-8` a packet may cost."""
FLOWS_MB = {"turns-8": 200, "turns-100000": 200, "random-100000": 200}


AWK = """
$1 == "+" && $3 == 2 && $5 == "tcpFriend" { if (!($12 in sent)) { sent[$12] = $2; packets++ } }
$1 == "r" && $4 == 3 && $5 == "tcpFriend" { delay += $2 - sent[$12]; delete sent[$12]; arrived++ }
END { print arrived / packets, delay / arrived }
"""
"""Packet delivery ratio and mean delay of one flow, as published awk scripts compute them."""


def make(plan: AnyPlan) -> Path:
    """Return the trace; made, if need be, by another process, as memory is measured from this one."""
    path = CAPTURES / plan.name
    if not path.exists():
        print(f"making {plan.name}", file=sys.stderr, flush=True)
        CAPTURES.mkdir(exist_ok=True)
        match plan:
            case TextPlan():
                what = ["texts.py", path, plan.kind, plan.source]
            case FarPlan():
                what = ["far.py", path, make(plan.near)]
            case RealPlan():
                what = ["real.py", path, plan.packets]
            case Plan():
                kind = next(name for name, kind in KINDS.items() if kind == plan.kind)
                what = ["captures.py", path, kind, plan.packets, plan.seed, plan.form]
        subprocess.run([sys.executable, str(HERE / str(what[0])), *map(str, what[1:])], check=True)
    return path


def flows_target(name: str) -> float | None:
    """Return how many times as fast as tcptrace `flows` should be on this kind; it skips datagrams."""
    is_tcp = name == "real" or KINDS[name].transport == "tcp"
    return FLOWS_TIMES.get(name, 5.0) if is_tcp else None


@dataclass(slots=True)
class Bench:
    """The comparisons, and what they have measured so far."""

    packets: int
    runs: int
    scratch: Path
    entries: list[Entry] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    older: Path | None = None
    commands: tuple[str, ...] = tuple(COMMANDS)
    seed: int = 1

    def capture(self, plan: AnyPlan) -> Path:
        """Return the capture, made if need be, and in the page cache."""
        path = make(plan)
        warm(path)
        return path

    def plan(self, kind: Kind = FEW, *, share: int = 1, form: Form = "pcap") -> Plan:
        """Return the plan of a capture with a `share`-th of the packets asked for."""
        return Plan(kind, max(self.packets // (share * kind.share), 1), self.seed, form)

    def measure(self, programs: Sequence[tuple[Entry, list[str]]]) -> None:
        """Run these programs in turns."""
        take_turns(programs, self.runs)
        self.entries += [entry for entry, _ in programs]

    def compare(
        self,
        name: str,
        peer: Peer,
        plan: AnyPlan,
        *,
        at_least: float | None,
        peer_plan: AnyPlan | None = None,
    ) -> Entry | None:
        """Measure a peer and `flows` in turns; return tfrctrace's entry."""
        if peer.command is None:
            self.comparisons.append(Comparison.skipped(name, peer.reason))
            return None
        peer_plan = peer_plan or plan
        ours, theirs = self.entry("flows", plan), self.entry(peer.name, peer_plan)
        self.measure(
            [(theirs, peer.command(self.capture(peer_plan))), (ours, tfrctrace()(self.capture(plan)))]
        )
        remark = "" if peer_plan is plan else f"{peer.name} on {peer_plan.packets:,} packets, by rate"
        self.comparisons.append(Comparison.at_least(name, ratio(theirs, ours), at_least, remark))
        return ours

    @staticmethod
    def entry(program: str, plan: AnyPlan) -> Entry:
        """Return an entry without runs."""
        packets = plan.near.packets if isinstance(plan, FarPlan) else plan.packets
        return Entry(program, plan.name, packets)

    def kind(self, name: str) -> None:
        """Measure one kind of traffic."""
        if name == "real" and (reason := real.missing()):
            self.comparisons.append(Comparison.skipped("real", reason))
            return
        plan = RealPlan(max(self.packets // 5, 1)) if name == "real" else self.plan(KINDS[name])
        for command in self.commands:
            self.command(command, name, plan)

    def command(self, command: str, name: str, plan: AnyPlan) -> None:
        """Measure one command on a kind, in turns with tcptrace, the bare loop and the older tfrctrace."""
        path = self.capture(plan)
        ours = self.entry(command, plan)
        programs = [(ours, tfrctrace(command, self.scratch)(path))]
        peers = [tcptrace()] if command in TCPTRACE_COMMANDS and flows_target(name) else []
        if command == "flows":
            peers.append(bare_loop(self.scratch))
        rivals: dict[str, Entry] = {}
        for peer in peers:
            if peer.command is None:
                self.comparisons.append(Comparison.skipped(f"{name}: {peer.name}", peer.reason))
            else:
                rivals[peer.name] = self.entry(peer.name, plan)
                programs.append((rivals[peer.name], peer.command(path)))
        if self.older is not None:
            rivals["older"] = self.entry(f"older {command}", plan)
            programs.append((rivals["older"], tfrctrace(command, self.scratch, self.older)(path)))
        if command == "flows" and name in OVER_TURNS:
            turns = self.plan()
            rivals["turns-8"] = self.entry("flows", turns)
            programs.append((rivals["turns-8"], tfrctrace()(self.capture(turns))))
        self.measure(programs)
        self.judge(f"{name}: {command}", command, name, ours, rivals)

    def judge(self, label: str, command: str, name: str, ours: Entry, rivals: dict[str, Entry]) -> None:
        """Compare what was measured with the targets."""
        targets = {
            "flows": {"tcptrace": flows_target(name), "bare loop": LOOP_TIMES.get(name)},
            "metrics": {"tcptrace": METRICS_TIMES.get(name)},
            "report": {"tcptrace": REPORT_TIMES.get(name)},
        }.get(command, {})
        for rival, theirs in rivals.items():
            if rival == "turns-8":
                cost = ratio(ours, theirs)
                self.comparisons.append(Comparison.at_most(f"{label} over {rival}", cost, OVER_TURNS[name]))
                continue
            against = Comparison.at_least(f"{label}, {rival}", ratio(theirs, ours), targets.get(rival))
            self.comparisons.append(against)
            if rival == "older":
                cpu = ratio(theirs, ours, of_cpu=True)
                self.comparisons.append(Comparison.at_least(f"{label}, {rival}, CPU", cpu, None))
        limit = FLOWS_MB.get(name) if command == "flows" else None
        self.comparisons.append(
            Comparison.at_most(f"{label}, memory", ours.peak_rss_bytes / 1e6, limit, "MB")
        )

    # What is not a kind of traffic, one method each; `--only` takes their names.

    def tshark(self) -> None:
        """tshark's table of conversations."""
        peer = tool("tshark", "-n", "-q", "-z", "conv,tcp", "-r", "{}")
        self.compare("tshark", peer, self.plan(), at_least=150, peer_plan=self.plan(share=20))

    def python(self) -> None:
        """Loops in Python that do a fraction of the work."""
        for name, module, share in (("dpkt_loop.py", "dpkt", 20), ("scapy_loop.py", "scapy", 200)):
            peer = script(name, module)
            self.compare(f"{module} loop", peer, self.plan(), at_least=None, peer_plan=self.plan(share=share))

    def pcapng(self) -> None:
        """The same packets as pcapng: at most 15 % slower than pcap."""
        plans = (self.plan(), self.plan(form="pcapng"))
        entries = [self.entry("flows", plan) for plan in plans]
        commands = [tfrctrace()(self.capture(plan)) for plan in plans]
        self.measure(list(zip(entries, commands, strict=True)))
        self.comparisons.append(Comparison.at_most("pcapng over pcap", ratio(entries[1], entries[0]), 1.15))

    def text(self) -> None:
        """Text traces: an awk script for one flow of an ns-2 trace, and tcpdump printing a capture."""
        trace = TextPlan("ns2", NS2_LINES, str(NS2_LINES))
        entry = None
        for awk in ("mawk", "gawk"):
            entry = self.compare(f"{awk}, ns-2 trace", tool(awk, AWK, "{}"), trace, at_least=3) or entry
        if entry is not None:
            memory = entry.peak_rss_bytes / 1e6
            self.comparisons.append(Comparison.at_most("memory, ns-2 trace", memory, 100, "MB"))
        printed = self.plan(share=10)
        if shutil.which("tcpdump"):
            make(printed)
        text = TextPlan("tcpdump", printed.packets, str(CAPTURES / printed.name))
        peer = tool("tcpdump", "-nn", "-tt", "-r", "{}")
        self.compare("tcpdump printing", peer, text, at_least=5, peer_plan=printed)

    def pair(self) -> None:
        """Two captures of one path, few and many flows: how many times as long as one of them alone."""
        for kind in (FEW, MANY):
            near = self.plan(kind, share=10)
            alone, both = self.entry("flows", near), self.entry("flows --pair", near)
            paths = [self.capture(near), self.capture(FarPlan(near))]
            command = tfrctrace()(paths[0])
            self.measure([(both, [*command[:-1], "--pair", *map(str, paths)]), (alone, command)])
            name, memory = f"{kind.flows:,} flows", both.peak_rss_bytes / 1e6
            self.comparisons += [
                Comparison.at_most(f"pair over one alone, {name}", ratio(both, alone), None),
                Comparison.at_most(f"memory of a pair, {name}", memory, None, "MB"),
            ]

    def replay(self) -> None:
        """A million reports through each kind of TFRC: at most 2 s."""
        command = [sys.executable, str(HERE / "replaying.py"), str(REPORTS)]
        runs = [
            json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            for _ in range(self.runs)
        ]
        for name in runs[0]:
            measured = statistics.median(run[name] for run in runs)
            self.comparisons.append(Comparison.at_most(f"replay, {name}", measured, MOST_REPLAY_S, "s"))

    def metrics(self) -> None:
        """Metrics of 1,000 flows x 36,000 bins; pandas makes a part of them, for a tenth of the flows."""
        ratios, seconds = [], []
        for turn in range(self.runs + 1):
            theirs = _seconds_of_metrics("pandas", METRIC_FLOWS // 10)
            ours = _seconds_of_metrics("tfrctrace", METRIC_FLOWS)
            if turn:
                ratios.append(10 * theirs / ours)
                seconds.append(ours)
        took, times = statistics.median(seconds), statistics.median(ratios)
        name = f"metrics, {METRIC_FLOWS:,} flows x {METRIC_BINS:,} bins"
        self.comparisons += [
            Comparison.at_most(name, took, 2, "s"),
            Comparison("pandas, a part of the metrics", times, "times", "-", "-", "by flows"),
        ]


GROUPS: dict[str, Callable[[Bench], None]] = {
    **{name: partial(Bench.kind, name=name) for name in (*KINDS, "real")},
    "pcapng": Bench.pcapng,
    "pair": Bench.pair,
    "text": Bench.text,
    "tshark": Bench.tshark,
    "python": Bench.python,
    "replaying": Bench.replay,
    "metrics-of-bins": Bench.metrics,
}


def _seconds_of_metrics(way: str, flows: int) -> float:
    """Return how long metrics took, without the start of Python and the making of the bins."""
    command = [sys.executable, str(HERE / "metrics_of_bins.py"), way, str(flows), str(METRIC_BINS)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def first_line(*command: str) -> str | None:
    """Return the first line that a command prints; None if it cannot run."""
    if shutil.which(command[0]) is None:
        return None
    answer = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return answer.stdout.partition("\n")[0] or None


def processor() -> str:
    """Return the processor's name."""
    names = Path("/proc/cpuinfo")
    lines = names.read_text().splitlines() if names.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def show(bench: Bench) -> None:
    """Print what was measured: first the programs, then the ratios."""
    print(f"\n{'program':<14}{'capture':<44}{'s':>9}{'CPU s':>9}{'packets/s':>14}{'peak MB':>9}")
    for entry in bench.entries:
        print(
            f"{entry.program:<14}{entry.capture:<44}{entry.seconds:>9.3f}{entry.cpu_seconds:>9.3f}"
            f"{entry.packets_per_second:>14,.0f}{entry.peak_rss_bytes / 1e6:>9.0f}"
        )
    print(f"\n{'comparison':<48}{'measured':>12}  {'target':<10}{'verdict':<9}")
    for line in bench.comparisons:
        measured = "-" if line.measured is None else f"{line.measured:.2f} {line.unit}"
        print(f"{line.name:<48}{measured:>12}  {line.target:<10}{line.verdict:<9}{line.remark}".rstrip())


def save(bench: Bench, path: Path) -> None:
    """Write everything, each single run included, as JSON."""
    result = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "compiler": first_line("rustc", "--version"),
        "against": None if bench.older is None else str(bench.older),
        "machine": {
            "system": platform.platform(),
            "processor": processor(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "runs": bench.runs,
        "seed": bench.seed,
        "comparisons": [asdict(line) for line in bench.comparisons],
        "programs": [
            asdict(entry)
            | {
                "median_s": entry.seconds,
                "median_cpu_s": entry.cpu_seconds,
                "packets_per_s": entry.packets_per_second,
            }
            for entry in bench.entries
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> int:
    """Run the groups asked for; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packets", type=int, default=10_000_000, help="packets of the large captures")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program that count")
    parser.add_argument(
        "--only", choices=GROUPS, action="append", help="one group of comparisons; repeatable"
    )
    parser.add_argument("--command", choices=COMMANDS, action="append", help="one command; repeatable")
    parser.add_argument("--against", help="measure also the tfrctrace of this commit, or this program")
    parser.add_argument("--seed", type=int, default=1, help="seed of the captures")
    parser.add_argument("--result", type=Path, help="where the JSON record goes")
    chosen = parser.parse_args()
    if chosen.packets < 1 or chosen.runs < 1:
        parser.error("--packets and --runs must be at least 1")
    program = older(chosen.against, CAPTURES / "older") if chosen.against else None
    commands = tuple(chosen.command or COMMANDS)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(
            chosen.packets, chosen.runs, Path(scratch), older=program, commands=commands, seed=chosen.seed
        )
        for name in chosen.only or GROUPS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            GROUPS[name](bench)
    show(bench)
    result = chosen.result or CAPTURES / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.json"
    save(bench, result)
    print(f"\nevery run: {result}")
    return int(any(line.verdict == "fail" for line in bench.comparisons))


if __name__ == "__main__":
    sys.exit(main())
