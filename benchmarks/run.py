"""Measure `tfrctrace flows` against other programs on generated captures, and print the ratios.

Every run is a whole process with the capture in the page cache. The programs of one comparison take turns
and the ratio is the median over the turns, so that a slow phase of the machine affects all of them.
Slow programs read a shorter capture of the same kind and are compared by packets per second.

`python benchmarks/run.py [--packets N] [--runs N] [--only NAME]`; the result also goes to a JSON file.
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
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plan import FarPlan, Form, Plan, TextPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
CAPTURES = HERE / "captures"
WARM_CHUNK = 1 << 20
FEW_FLOWS = 8
MANY_FLOWS = 100_000
SNAP_LENGTH = 96
FULL_SIZE_SNAP = 1514
SHORTEST_FLOW = 12
METRIC_FLOWS = 1000
METRIC_BINS = 36_000
"""An hour in bins of 0.1 s."""
NS2_LINES = 3_500_000
"""About 200 MB."""
REPORTS = 1_000_000
MOST_REPLAY_S = 2.0


AWK = """
$1 == "+" && $3 == 2 && $5 == "tcpFriend" { if (!($12 in sent)) { sent[$12] = $2; packets++ } }
$1 == "r" && $4 == 3 && $5 == "tcpFriend" { delay += $2 - sent[$12]; delete sent[$12]; arrived++ }
END { print arrived / packets, delay / arrived }
"""
"""Packet delivery ratio and mean delay of one flow, as published awk scripts compute them."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program to run on a capture; `command` is None with a `reason` if it cannot run here."""

    name: str
    command: Callable[[Path], list[str]] | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One process from start to end."""

    seconds: float
    peak_rss_bytes: int


@dataclass(slots=True)
class Entry:
    """One program on one capture."""

    program: str
    capture: str
    packets: int
    runs: list[Run] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Median time of a run."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def packets_per_second(self) -> float:
        """Packets per second of the median run."""
        return self.packets / self.seconds

    @property
    def peak_rss_bytes(self) -> int:
        """Largest of all runs."""
        return max(run.peak_rss_bytes for run in self.runs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A line of the result: what was compared, the ratio (or the memory), and whether it is enough."""

    name: str
    measured: float | None
    unit: str
    target: str
    verdict: Literal["pass", "fail", "skipped", "-"]
    remark: str = ""


def make(plan: Plan | TextPlan | FarPlan) -> Path:
    """Return the trace; made, if need be, by another process, as memory is measured from this one."""
    path = CAPTURES / plan.name
    if not path.exists():
        print(f"making {plan.name}", file=sys.stderr, flush=True)
        CAPTURES.mkdir(exist_ok=True)
        if isinstance(plan, TextPlan):
            what = ["texts.py", path, plan.kind, plan.source]
        elif isinstance(plan, FarPlan):
            what = ["far.py", path, make(plan.near)]
        else:
            what = ["captures.py", path, plan.packets, plan.flows, plan.snap_length, plan.form]
        subprocess.run([sys.executable, str(HERE / str(what[0])), *map(str, what[1:])], check=True)
    return path


def warm(path: Path) -> None:
    """Read the file once, so that no run waits for the disk."""
    with open(path, "rb", buffering=0) as file:
        while file.read(WARM_CHUNK):
            pass


def measure(command: Sequence[str]) -> Run:
    """Run a command with its output thrown away; end everything if it fails."""
    # a user's second start finds its modules compiled
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as complaints:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaints, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            complaints.seek(0)
            sys.exit(f"`{' '.join(command)}` ended with {process.returncode}: {complaints.read().decode()}")
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(seconds, usage.ru_maxrss * scale)


def take_turns(programs: Sequence[tuple[Entry, list[str]]], runs: int) -> None:
    """Run every program `runs` times, in turns; the first turn warms up and does not count."""
    for turn in range(runs + 1):
        for entry, command in programs:
            run = measure(command)
            if turn:
                entry.runs.append(run)


def ratio(slow: Entry, fast: Entry) -> float:
    """Median over the turns of how many times the time per packet of `fast` is that of `slow`."""
    pairs = zip(slow.runs, fast.runs, strict=True)
    return statistics.median(
        (theirs.seconds / slow.packets) / (ours.seconds / fast.packets) for theirs, ours in pairs
    )


def tfrctrace() -> Peer:
    """Return the program under test, from the environment this script runs in."""
    program = Path(sys.executable).with_name("tfrctrace")
    return Peer("tfrctrace", lambda capture: [str(program), "flows", "--quiet", str(capture)])


def tool(name: str, *arguments: str) -> Peer:
    """Return a peer found on the path; `{}` stands for the capture."""
    program = shutil.which(name)
    if program is None:
        return Peer(name, None, f"{name} is not installed")
    return Peer(name, lambda capture: [program, *(part.replace("{}", str(capture)) for part in arguments)])


def script(name: str, module: str) -> Peer:
    """Return a peer that is a Python loop beside this file."""
    probe = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False)
    if probe.returncode:
        return Peer(module, None, f"{module} is not installed")
    return Peer(module, lambda capture: [sys.executable, str(HERE / name), str(capture)])


def bare_loop(scratch: Path) -> Peer:
    """Compile the loop that only counts, for the system's libpcap or the one in the PyPI package."""
    name = "bare loop"
    compiler = shutil.which("cc")
    library = _libpcap()
    if compiler is None or library is None:
        return Peer(name, None, "no C compiler" if compiler is None else "no libpcap found")
    program = scratch / "count"
    command = [compiler, "-O2", str(HERE / "count.c"), "-o", str(program), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        return Peer(name, None, f"count.c could not be built: {built.stderr.strip().splitlines()[-1]}")
    return Peer(name, lambda capture: [str(program), str(library), str(capture)])


def _libpcap() -> Path | None:
    """Find the libpcap of the system, else of the PyPI package."""
    places = [Path("/usr/lib"), Path("/usr/local/lib"), Path("/opt/homebrew/lib")]
    patterns = ["libpcap.so*", "*-linux-gnu/libpcap.so*", "libpcap.dylib"]
    for place in places:
        for pattern in patterns:
            if found := sorted(place.glob(pattern)):
                return found[0]
    return _bundled_libpcap()


def _bundled_libpcap() -> Path | None:
    """Ask the PyPI package which file it loads."""
    ask = "import libpcap; libpcap.config(LIBPCAP='tcpdump'); from libpcap import _dll; print(_dll.DLL_PATH)"
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    path = Path(answer.stdout.strip())
    return path if answer.returncode == 0 and path.is_file() else None


@dataclass(slots=True)
class Bench:
    """The comparisons, and what they have measured so far."""

    packets: int
    runs: int
    scratch: Path
    entries: list[Entry] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)

    def capture(self, plan: Plan | TextPlan | FarPlan) -> Path:
        """Return the capture, made if need be, and in the page cache."""
        path = make(plan)
        warm(path)
        return path

    def plan(
        self, *, flows: int = FEW_FLOWS, share: int = 1, snap_length: int = SNAP_LENGTH, form: Form = "pcap"
    ) -> Plan:
        """Return the plan of a capture with a `share`-th of the packets asked for."""
        return Plan(max(self.packets // share, flows * SHORTEST_FLOW), flows, snap_length, form)

    def compare(
        self,
        name: str,
        peer: Peer,
        plan: Plan | TextPlan,
        *,
        at_least: float | None,
        peer_plan: Plan | TextPlan | None = None,
    ) -> Entry | None:
        """Measure a peer and tfrctrace in turns; return tfrctrace's entry."""
        target = "-" if at_least is None else f">= {at_least:g}"
        if peer.command is None:
            self.comparisons.append(Comparison(name, None, "times", target, "skipped", peer.reason))
            return None
        peer_plan = peer_plan or plan
        under_test = tfrctrace()
        assert under_test.command is not None
        ours = Entry("tfrctrace", plan.name, plan.written)
        theirs = Entry(peer.name, peer_plan.name, peer_plan.written)
        programs = [
            (theirs, peer.command(self.capture(peer_plan))),
            (ours, under_test.command(self.capture(plan))),
        ]
        take_turns(programs, self.runs)
        self.entries += [theirs, ours]
        measured = ratio(theirs, ours)
        verdict = "-" if at_least is None else _verdict(measured >= at_least)
        remark = "" if peer_plan is plan else f"{peer.name} on {peer_plan.written:,} packets, by rate"
        self.comparisons.append(Comparison(name, measured, "times", target, verdict, remark))
        return ours

    def memory(self, name: str, entry: Entry | None, limit_mb: float = 200) -> None:
        """Compare the peak memory of tfrctrace with its limit."""
        if entry is None:
            self.comparisons.append(
                Comparison(name, None, "MB", f"< {limit_mb:g}", "skipped", "nothing was measured")
            )
            return
        measured = entry.peak_rss_bytes / 1e6
        self.comparisons.append(
            Comparison(name, measured, "MB", f"< {limit_mb:g}", _verdict(measured < limit_mb))
        )

    # The comparisons, one method each; `--only` takes their names.

    def few(self) -> None:
        """Few flows: tcptrace, the bare loop, and memory."""
        plan = self.plan()
        self.compare("tcptrace, few flows", tcptrace(), plan, at_least=8)
        entry = self.compare("bare libpcap loop", bare_loop(self.scratch), plan, at_least=1)
        self.memory("memory, few flows", entry or self.alone(plan))

    def many(self) -> None:
        """100,000 interleaved flows: tcptrace, and memory."""
        plan = self.plan(flows=MANY_FLOWS)
        entry = self.compare(f"tcptrace, {MANY_FLOWS:,} flows", tcptrace(), plan, at_least=20)
        self.memory(f"memory, {MANY_FLOWS:,} flows", entry or self.alone(plan))

    def full(self) -> None:
        """Full-size packets: tcptrace and the bare loop."""
        plan = self.plan(share=10, snap_length=FULL_SIZE_SNAP)
        self.compare("tcptrace, full-size packets", tcptrace(), plan, at_least=None)
        self.compare("bare libpcap loop, full-size packets", bare_loop(self.scratch), plan, at_least=None)

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
        command = tfrctrace().command
        assert command is not None
        plans = (self.plan(), self.plan(form="pcapng"))
        entries = [Entry("tfrctrace", plan.name, plan.written) for plan in plans]
        commands = [command(self.capture(plan)) for plan in plans]
        take_turns(list(zip(entries, commands, strict=True)), self.runs)
        self.entries += entries
        measured = ratio(entries[1], entries[0])
        self.comparisons.append(
            Comparison("pcapng over pcap", measured, "times", "<= 1.15", _verdict(measured <= 1.15))
        )

    def text(self) -> None:
        """Text traces: an awk script for one flow of an ns-2 trace, and tcpdump printing a capture."""
        trace = TextPlan("ns2", NS2_LINES, str(NS2_LINES))
        entry = None
        for awk in ("mawk", "gawk"):
            entry = self.compare(f"{awk}, ns-2 trace", tool(awk, AWK, "{}"), trace, at_least=3) or entry
        self.memory("memory, ns-2 trace", entry or self.alone(trace), limit_mb=100)
        printed = self.plan(share=10)
        if shutil.which("tcpdump"):
            make(printed)
        text = TextPlan("tcpdump", printed.written, str(CAPTURES / printed.name))
        peer = tool("tcpdump", "-nn", "-tt", "-r", "{}")
        self.compare("tcpdump printing", peer, text, at_least=5, peer_plan=printed)

    def pair(self) -> None:
        """Two captures of one path, few and many flows: how many times as long as one of them alone."""
        command = tfrctrace().command
        assert command is not None
        for flows in (FEW_FLOWS, MANY_FLOWS):
            near = self.plan(share=10, flows=flows)
            alone = Entry("tfrctrace", near.name, near.written)
            both = Entry("tfrctrace --pair", near.name, near.written)
            paths = [self.capture(near), self.capture(FarPlan(near))]
            paired = [*command(paths[0])[:-1], "--pair", *map(str, paths)]
            take_turns([(both, paired), (alone, command(paths[0]))], self.runs)
            self.entries += [both, alone]
            times, name = ratio(both, alone), f"{flows:,} flows"
            memory = both.peak_rss_bytes / 1e6
            self.comparisons += [
                Comparison(f"pair over one alone, {name}", times, "times", "-", "-"),
                Comparison(f"memory of a pair, {name}", memory, "MB", "-", "-"),
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
            verdict = _verdict(measured < MOST_REPLAY_S)
            self.comparisons.append(
                Comparison(f"replay, {name}", measured, "s", f"< {MOST_REPLAY_S:g}", verdict)
            )

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
            Comparison(name, took, "s", "< 2", _verdict(took < 2)),
            Comparison("pandas, a part of the metrics", times, "times", "-", "-", "by flows"),
        ]

    def alone(self, plan: Plan | TextPlan) -> Entry:
        """Measure tfrctrace alone."""
        command = tfrctrace().command
        assert command is not None
        entry = Entry("tfrctrace", plan.name, plan.written)
        take_turns([(entry, command(self.capture(plan)))], self.runs)
        self.entries.append(entry)
        return entry


GROUPS: dict[str, Callable[[Bench], None]] = {
    "few": Bench.few,
    "many": Bench.many,
    "full": Bench.full,
    "pcapng": Bench.pcapng,
    "pair": Bench.pair,
    "text": Bench.text,
    "tshark": Bench.tshark,
    "python": Bench.python,
    "replay": Bench.replay,
    "metrics": Bench.metrics,
}


def _seconds_of_metrics(way: str, flows: int) -> float:
    """Return how long metrics took, without the start of Python and the making of the bins."""
    command = [sys.executable, str(HERE / "metrics_of_bins.py"), way, str(flows), str(METRIC_BINS)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def tcptrace() -> Peer:
    """tcptrace with everything of the long form: RTT and retransmissions, no names looked up."""
    return tool("tcptrace", "-n", "-l", "-r", "{}")


def _verdict(holds: bool) -> Literal["pass", "fail"]:
    return "pass" if holds else "fail"


def show(bench: Bench) -> None:
    """Print what was measured: first the programs, then the ratios."""
    print(f"\n{'program':<12}{'capture':<44}{'s':>9}{'packets/s':>14}{'peak MB':>9}")
    for entry in bench.entries:
        print(
            f"{entry.program:<12}{entry.capture:<44}{entry.seconds:>9.3f}"
            f"{entry.packets_per_second:>14,.0f}{entry.peak_rss_bytes / 1e6:>9.0f}"
        )
    print(f"\n{'comparison':<40}{'measured':>12}  {'target':<10}{'verdict':<9}")
    for line in bench.comparisons:
        measured = "-" if line.measured is None else f"{line.measured:.2f} {line.unit}"
        print(f"{line.name:<40}{measured:>12}  {line.target:<10}{line.verdict:<9}{line.remark}".rstrip())


def save(bench: Bench, path: Path) -> None:
    """Write everything, each single run included, as JSON."""
    result = {
        "machine": {
            "system": platform.platform(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "runs": bench.runs,
        "comparisons": [asdict(line) for line in bench.comparisons],
        "programs": [
            asdict(entry) | {"median_s": entry.seconds, "packets_per_s": entry.packets_per_second}
            for entry in bench.entries
        ],
    }
    path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> int:
    """Run the groups asked for; 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packets", type=int, default=10_000_000, help="packets of the large captures")
    parser.add_argument("--runs", type=int, default=5, help="runs of each program that count")
    parser.add_argument(
        "--only", choices=GROUPS, action="append", help="one group of comparisons; repeatable"
    )
    parser.add_argument("--result", type=Path, default=CAPTURES / "result.json", help="where the JSON goes")
    chosen = parser.parse_args()
    if chosen.packets < 1 or chosen.runs < 1:
        parser.error("--packets and --runs must be at least 1")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(chosen.packets, chosen.runs, Path(scratch))
        for name in chosen.only or GROUPS:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            GROUPS[name](bench)
    show(bench)
    CAPTURES.mkdir(exist_ok=True)
    save(bench, chosen.result)
    print(f"\nevery run: {chosen.result}")
    return int(any(line.verdict == "fail" for line in bench.comparisons))


if __name__ == "__main__":
    sys.exit(main())
