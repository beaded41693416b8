"""`tfrctrace batch`: thousands of captures analysed once each, as chains of rotated files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import KINDS
from tfrctrace.batch import Chaining
from tfrctrace.commands.console import NOT_READ, Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Causes, ExecutorName, Jobs, grouping_help
from tfrctrace.commands.options.completion import groupings
from tfrctrace.commands.options.grouped_help import (
    measuring_option,
    other_option,
    output_option,
    reading_option,
)
from tfrctrace.commands.options.reading_options import NOT_OF_CHAINS, ReadingOptions
from tfrctrace.commands.run_progress import run_progress

if TYPE_CHECKING:
    from tfrctrace.batch.chain_task import BatchPlan
    from tfrctrace.batch.chains import Chain
    from tfrctrace.batch.run_batch import BatchResult, FoundChains, Shard

_REMOTE_JOBS_PER_CORE: Final = 4

_PROBLEMS_SHOWN: Final = 20
"""Of thousands of chains: the others are in their facts."""


def batch(
    captures: Annotated[
        list[str],
        typer.Argument(metavar="CAPTURE", help="Captures, or folders of captures.", show_default=False),
    ],
    *,
    output: Annotated[
        str, output_option("--output", "-o", metavar="DIR", help="Folder of the results.", show_default=False)
    ],
    chains: Annotated[
        Chaining,
        reading_option(
            "--chains",
            help="Which files form one capture: auto decides by name, content and time; days also splits "
            "captures at midnight, which bounds memory; names joins all files whose names differ in "
            "numbers only; none reads each file separately.",
        ),
    ] = "auto",
    dry_run: Annotated[bool, other_option("--list", help="Print the chains without analysing them.")] = False,
    by: Annotated[
        str,
        measuring_option(
            "--by",
            metavar="WHAT",
            autocompletion=groupings,
            help=grouping_help(kind for kind in KINDS.values() if not kind.made_of),
        ),
    ] = "host",
    every: Annotated[
        str, measuring_option("--every", metavar="TIME", help="Width of the intervals of groups, e.g. 1min.")
    ] = "5min",
    causes: Causes = False,
    shard: Annotated[
        str | None,
        other_option(
            "--shard",
            metavar="N/OF",
            help="Analyse this part of the chains, e.g. 3/40 on the third of 40 machines.",
        ),
    ] = None,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    retry_failed: Annotated[
        bool, other_option("--retry-failed", help="Analyse chains again that failed before.")
    ] = False,
    watch: Annotated[
        str | None,
        other_option("--watch", metavar="TIME", help="Look for new captures every TIME until interrupted."),
    ] = None,
    verify: Annotated[
        bool,
        other_option(
            "--verify", help="Check the digests of finished chains, and analyse changed ones again."
        ),
    ] = False,
    reading: Annotated[ReadingOptions, NOT_OF_CHAINS],
    anonymity: AnonymityOptions,
) -> int:
    """Analyse thousands of captures once each, into a folder.

    Rotated files are recognised and read as one capture. Run it again to analyse what is missing: only new
    files are read, also of a capture that has grown. If a file cannot be read, the others are analysed all
    the same and the exit status is 3.
    """
    from tfrctrace.base.durations import parse_duration_ns
    from tfrctrace.base.interruptible import sleep_ns
    from tfrctrace.batch.run_batch import chains_of, parse_shard, perform_batch
    from tfrctrace.reports.output import check_folder
    from tfrctrace.runs.workers import chosen_workers

    console = Console(quiet=reading.quiet, strict=reading.strict)
    check_folder(output)
    plan = replace(batch_plan(output, by, every, reading, anonymity), causes=causes)
    part = None if shard is None else parse_shard(shard, plan.anonymity_key)
    found = chains_of(captures, chains, part, reading.store)
    if dry_run:
        _print_chains(found)
        console.print_problems(found.problems)
        return console.exit_status
    every_ns = None if watch is None else parse_duration_ns(watch)
    workers = chosen_workers(executor, jobs or _jobs_for(found))
    known: list[Chain] | None = None
    status = console.exit_status
    while True:
        if found.chains != known:
            known = found.chains
            announce(found, console)
            with run_progress(console, "chains") as progress:
                done = perform_batch(
                    found,
                    plan,
                    workers,
                    shard=part,
                    retry_failed=retry_failed,
                    verify=verify,
                    progress=progress,
                )
            status = report_batch(done, output, console, part)
        if every_ns is None:
            return status
        sleep_ns(every_ns)
        found = chains_of(captures, chains, part, reading.store)


def batch_plan(
    folder: str, by: str, every: str, reading: ReadingOptions, anonymity: AnonymityOptions
) -> BatchPlan:
    """Return how chains are analysed; raises `UsageError` for options that do not go together."""
    from tfrctrace.base.grouping import parse_grouping
    from tfrctrace.batch.chain_task import BatchPlan
    from tfrctrace.runs.cache import program_digest

    if reading.pair or reading.join:
        raise UsageError(
            f"`--{'pair' if reading.pair else 'join'}` cannot be used with a batch",
            hint="it joins rotated files by itself; `--chains names` joins all with like names",
        )
    if by in KINDS and (made_of := KINDS[by].made_of):
        raise UsageError(
            f"a batch cannot group by `{by}`",
            hint=f"group by `{made_of}`, of which groups by {by} are made afterwards",
        )
    grouping = parse_grouping(by, every)
    key = anonymity.kept_key("a batch")
    plan = BatchPlan(os.path.abspath(folder), program_digest(), reading.arguments(), grouping, key)
    _ = plan.settings  # made here, so that wrong options are reported once, not for each chain
    return plan


def _jobs_for(found: FoundChains) -> int | None:
    """Return more than one job for each core where a store is slower than the analysis."""
    from tfrctrace.runs.workers import default_jobs

    is_remote = any(file.is_remote for chain in found.chains for file in chain.files)
    return _REMOTE_JOBS_PER_CORE * default_jobs() if is_remote else None


def announce(found: FoundChains, console: Console) -> None:
    """Print what was found, before hours pass."""
    from tfrctrace.reports.units import counted, format_bytes

    files = sum(len(chain.files) for chain in found.chains)
    size = format_bytes(sum(chain.size for chain in found.chains))
    rotated = sum(len(chain.files) > 1 for chain in found.chains)
    of_several = f", {rotated} of several files" if rotated else ""
    console.note(f"{counted(len(found.chains), 'chain')}{of_several}: {counted(files, 'file')}, {size}")
    console.print_problems(found.problems)


def _print_chains(found: FoundChains) -> None:
    from tfrctrace.base.errors import printable
    from tfrctrace.reports.units import counted, format_bytes

    for chain in found.chains:
        print(printable(f"{chain.name}: {counted(len(chain.files), 'file')}, {format_bytes(chain.size)}"))


def report_batch(done: BatchResult, output: str, console: Console, part: Shard | None) -> int:
    """Print what was done and what failed, and return the exit status."""
    from tfrctrace.reports.units import counted, format_bytes

    failed = [record for record in done.records if record["failed"]]
    problems = [problem for record in done.records for problem in record["problems"]]
    errors = [problem for problem in problems if problem["severity"] == "error"]
    warned = [problem for problem in problems if problem["severity"] == "warning"]
    console.print_problems([*done.changed, *[*errors, *warned][:_PROBLEMS_SHOWN]])
    more = len(errors) + len(warned) - _PROBLEMS_SHOWN
    if more > 0:
        console.note(f"{counted(more, 'more problem')}: in the facts of the chains")
    for why, size in done.read_again.items():
        console.note(f"{format_bytes(size)} were read again, as their chains have new files: {why}")
    here = f" of shard {part.number}/{part.of}" if part else ""
    parts = [f"{counted(len(done.records), 'chain')}{here}", f"{done.done_before} done before"]
    went_on = sum(record.get("goes_on", False) for record in done.records)
    parts += [f"{went_on} continued after earlier files"] if went_on else []
    parts += [f"{len(failed)} failed"] if failed else []
    console.note(f"{', '.join(parts)}; results in `{output}`")
    return NOT_READ if errors or (warned and console.strict) else console.exit_status
