"""Write what the commands print for every trace of the repository, or compare two such folders.

    python evaluation/outputs.py write FOLDER      run every command on every trace, one file for each output
    python evaluation/outputs.py compare OLD NEW   print the files that differ; exit status 1 if any does

A change that must not alter results is made between two runs of `write`. Commands run in forks of a process
that has imported everything, so that a thousand of them take minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from tfrctrace import cli

ROOT: Final = Path(__file__).resolve().parent.parent

TRACE: Final = re.compile(r"\.(pcap|pcapng|cap|tr|txt|csv|log|mon|json|qlog|xml)(\.(gz|xz|zst|bz2|lz4))?$")

LIMITS: Final = """
[[objective]]
name = "delay"
require = "p95(rtt_ms) < 90 ms"
by = "host"
every = "1s"
target = "95 %"

[[objective]]
name = "losses"
require = "sum(retransmitted_packets) / sum(tcp_data_packets) < 2 %"
by = "host"
every = "1s"
target = "80 %"
"""

NOISE: Final = (
    r"^more/batch/batch/chains/.*(facts.json|checkpoint)$",
    r"/audit/results/chains/.*/facts.json$",
    r"^more/experiment-[^/]*/stderr$",
)
"""Files that hold times of day or of processors."""

OTHER_FOLDERS: Final = {"studies", "corpus", "gate", "study", "expected", "vectors"}
"""Runs of studies, corpora, and what is no trace."""

LENT: Final = {"sample_traces": ROOT / "sample_traces", "tests": ROOT / "tests"}
"""What commands find in their folder."""

COMMANDS: Final[dict[str, list[str]]] = {
    "flows": ["flows", "{trace}", "--format", "json"],
    "flows-table": ["flows", "{trace}"],
    "convert-packets": ["convert", "{trace}", "-w", "packets", "-o", "packets.csv"],
    "convert-rounds": ["convert", "{trace}", "-w", "rounds", "-o", "rounds.csv"],
    "convert-losses": ["convert", "{trace}", "-w", "losses", "-o", "losses.csv"],
    "convert-tcp": ["convert", "{trace}", "-w", "tcp", "-o", "tcp.csv"],
    "metrics": ["metrics", "{trace}", "--format", "json"],
    "metrics-table": ["metrics", "{trace}"],
    "groups": ["groups", "{trace}", "--by", "host", "--every", "1s", "--format", "json"],
    "groups-judged": ["groups", "{trace}", "--limits", "limits.toml", "--format", "json"],
    "groups-table": ["groups", "{trace}", "--by", "host"],
    "replay": ["replay", "{trace}", "--format", "json"],
    "check": [
        "check",
        "{trace}",
        "--require",
        "p95(rtt_ms) < 80",
        "--limits",
        "limits.toml",
        "--format",
        "json",
    ],
    "check-table": ["check", "{trace}", "--require", "p95(rtt_ms) < 80"],
    "report": ["report", "{trace}", "-o", "report.html", "--results", "results", "--csv"],
    "report-md": ["report", "{trace}", "-o", "report.md"],
    "audit": ["audit", "{trace}", "-o", "audit"],
}

MORE: Final[dict[str, list[str]]] = {
    "experiment-" + study.parent.name: ["experiment", str(study), "-o", "study", "-j", "1"]
    for study in sorted((ROOT / "sample_traces" / "studies").glob("*/study.toml"))
    if study.parent.name != "zhang"
} | {
    "compare": [
        "compare",
        "sample_traces/two-flows.pcapng.gz",
        "sample_traces/mixed.pcap.zst",
        "--format",
        "json",
    ],
    "compare-table": ["compare", "sample_traces/two-flows.pcapng.gz", "sample_traces/mixed.pcap.zst"],
    "report-of-several": [
        "report",
        "sample_traces/two-flows.pcapng.gz",
        "sample_traces/mixed.pcap.zst",
        "sample_traces/dumbbell.tr.xz",
        "sample_traces/dccp-ccid3.pcap.gz",
        "-o",
        "report.html",
    ],
    "batch": ["batch", "sample_traces", "-o", "batch", "-j", "1"],
}


def traces() -> list[Path]:
    """Return every trace of the repository, relative to it."""
    files = (path for folder in LENT.values() for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.relative_to(ROOT) for path in files if is_trace(path)]


def is_trace(path: Path) -> bool:
    """Say whether a file is a trace that the commands read."""
    folders = set(path.relative_to(ROOT).parts[:-1])
    is_truth = path.name.endswith(".truth.json") or path.parent.name == "data"
    return bool(TRACE.search(path.name)) and not is_truth and not OTHER_FOLDERS & folders


def run_in_fork(arguments: list[str], folder: Path) -> None:
    """Run one command in a child, with its streams, status and files below a folder."""
    folder.mkdir(parents=True)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        run_here(arguments, folder)
    finally:
        os._exit(0)


def run_here(arguments: list[str], folder: Path) -> None:
    """Run one command in this process, whose streams are files of the folder from now on."""
    os.chdir(folder)
    for name, place in LENT.items():
        Path(name).symlink_to(place)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644), number)
    os.environ["COLUMNS"] = "80"
    Path("limits.toml").write_text(LIMITS, encoding="utf-8")
    status: object = None
    try:
        status = cli.run(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        Path("status").write_text(f"{status}\n", encoding="utf-8")
        for name in (*LENT, "limits.toml"):
            Path(name).unlink()
        for name in ("stdout", "stderr"):
            Path(name).write_bytes(Path(name).read_bytes().replace(bytes(folder), b"FOLDER"))


def runs(folder: Path, only: str, of: str) -> list[tuple[list[str], Path]]:
    """Return the command lines whose names, and traces, match an expression, and the folder of each."""
    of_traces = [
        ([word.replace("{trace}", str(trace)) for word in words], str(trace).replace("/", "+"), name)
        for trace in traces()
        if re.search(of, str(trace))
        for name, words in COMMANDS.items()
    ]
    of_several = [(words, "more", name) for name, words in MORE.items() if not of]
    return [
        (words, folder / place / name)
        for words, place, name in of_traces + of_several
        if re.search(only, name)
    ]


def write(folder: Path, jobs: int, only: str, of: str) -> None:
    """Write the outputs of all commands."""
    for heavy in ("polars", "matplotlib.figure", "tfrctrace.reports.build_report"):
        importlib.import_module(heavy)
    for name in cli.COMMANDS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"tfrctrace.commands.{name}")
    waiting = runs(folder, only, of)
    print(f"{len(waiting)} runs", file=sys.stderr)
    # forked from workers of one thread each: a process with threads must not fork
    children = []
    for index in range(jobs):
        child = os.fork()
        if not child:
            for arguments, place in waiting[index::jobs]:
                run_in_fork(arguments, place)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def compare(old: Path, new: Path, expected: list[str]) -> int:
    """Print which files differ."""
    before, after = digests(old), digests(new)
    wrong = 0
    for name in sorted(before.keys() | after.keys()):
        if any(re.search(pattern, name) for pattern in [*NOISE, *expected]):
            continue
        if before.get(name) != after.get(name):
            wrong += 1
            where = "only before" if name not in after else "only after" if name not in before else "differs"
            print(f"{where}: {name}")
    print(f"{len(before)} files before, {len(after)} after, {wrong} differ")
    return int(wrong > 0)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_subparsers(dest="what", required=True)
    writing = what.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    writing.add_argument("--only", default="", metavar="REGEX", help="commands whose name matches")
    writing.add_argument("--of", default="", metavar="REGEX", help="traces whose path matches")
    comparing = what.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument(
        "--expected", action="append", default=[], metavar="REGEX", help="files that may differ"
    )
    asked = parser.parse_args()
    if asked.what == "compare":
        return compare(asked.old, asked.new, asked.expected)
    shutil.rmtree(asked.folder, ignore_errors=True)
    write(asked.folder.resolve(), asked.jobs, asked.only, asked.of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
