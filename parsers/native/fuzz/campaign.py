"""Run the fuzz targets, each until it covers no more code, and print executions and edges of each.

libFuzzer runs in rounds; a target is done after `--quiet` seconds without a new edge, or after `--seconds`.
What it keeps goes to `corpus/TARGET`, what it finds to `artifacts/TARGET` here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FUZZ: Final = Path(__file__).resolve().parent
TARGETS: Final = tuple(sorted(path.name for path in (FUZZ / "corpora").iterdir() if path.is_dir()))
HOST: Final = re.compile(r"^host: (\S+)$", re.MULTILINE)
ROUND_S: Final = 300.0
"""Longest round, in seconds."""
TIMEOUT_S: Final = 25
"""Seconds after which an input counts as one that never ends."""
SLOWEST_S: Final = 5
"""Seconds after which an input is reported as slow."""
MEMORY_MB: Final = 2048

# What cargo-fuzz passes, without a sanitizer of addresses: the core denies unsafe code.
COVERAGE: Final = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg fuzzing",
    "-Ccodegen-units=4",
    "-Cdebug-assertions",
    "-Coverflow-checks",
)


@dataclass(slots=True)
class Tally:
    """What came of a target."""

    executions: int = 0
    edges: int = 0
    seconds: float = 0.0
    quiet: float = 0.0
    findings: list[str] = field(default_factory=list)


def build() -> Path:
    """Build the program of all targets and return its path."""
    shown = subprocess.run(["rustc", "+nightly", "-vV"], capture_output=True, text=True, check=True).stdout
    host = str(HOST.findall(shown)[0])
    environment = {**os.environ, "RUSTFLAGS": " ".join(COVERAGE)}
    command = ["cargo", "+nightly", "build", "--locked", "--release", "--target", host]
    subprocess.run(command, cwd=FUZZ, env=environment, check=True)
    folder = Path(os.environ.get("CARGO_TARGET_DIR", FUZZ / "target"))
    return folder / host / "release" / "fuzz"


def run_round(program: Path, target: str, seconds: float, tally: Tally) -> None:
    """Run a target for some seconds and add to its tally."""
    corpus, artifacts = FUZZ / "corpus" / target, FUZZ / "artifacts" / target
    for folder in (corpus, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(artifacts.iterdir())
    done = subprocess.run(
        [
            program,
            f"-dict={FUZZ / 'dictionaries' / target}.dict",
            f"-artifact_prefix={artifacts}/",
            f"-max_total_time={max(round(seconds), 1)}",
            f"-timeout={TIMEOUT_S}",
            f"-report_slow_units={SLOWEST_S}",
            f"-rss_limit_mb={MEMORY_MB}",
            "-print_final_stats=1",
            corpus,
            FUZZ / "corpora" / target,
        ],
        env={**os.environ, "FUZZ_TARGET": target},
        capture_output=True,
        check=False,
    )
    log = done.stderr.decode(errors="replace")
    executions = re.findall(r"^stat::number_of_executed_units: (\d+)", log, re.MULTILINE)
    edges = max(map(int, re.findall(r" cov: (\d+)", log)), default=0)
    tally.executions += int(executions[0]) if executions else 0
    tally.seconds += seconds
    tally.quiet = 0.0 if edges > tally.edges else tally.quiet + seconds
    tally.edges = max(tally.edges, edges)
    tally.findings += sorted(str(path) for path in set(artifacts.iterdir()) - before)
    if done.returncode and not tally.findings:
        tally.findings.append(log[-2000:])


def fuzz(program: Path, target: str, seconds: float | None, quiet: float) -> Tally:
    """Run a target until its time is over, it covers no more, or something is found."""
    tally = Tally()
    while not tally.findings and tally.quiet < quiet:
        left = ROUND_S if seconds is None else seconds - tally.seconds
        if left <= 0:
            break
        run_round(program, target, min(left, quiet, ROUND_S), tally)
    return tally


def main() -> int:
    """Run the targets that are named."""
    parser = argparse.ArgumentParser(description="Run fuzz targets.")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)"
    )
    parser.add_argument("--seconds", type=float, help="time of each target (default: no limit)")
    parser.add_argument(
        "--quiet", type=float, default=3600.0, help="seconds without a new edge (default: 3600)"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no target `{unknown[0]}`; there are {', '.join(TARGETS)}")

    program = build()
    print(f"{'target':<10} {'executions':>12} {'edges':>7} {'seconds':>8}", flush=True)
    found = 0
    for target in arguments.targets or TARGETS:
        tally = fuzz(program, target, arguments.seconds, arguments.quiet)
        print(f"{target:<10} {tally.executions:>12,} {tally.edges:>7,} {tally.seconds:>8.0f}", flush=True)
        for finding in tally.findings:
            print(f"  found: {finding}", flush=True)
        found += len(tally.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
