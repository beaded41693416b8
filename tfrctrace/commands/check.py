"""`tfrctrace check`: limits and a baseline that runs must hold, for continuous integration."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from tfrctrace import __version__
from tfrctrace.commands.measuring_options import MeasuringOptions
from tfrctrace.commands.options import Jobs, Traces, check_places
from tfrctrace.commands.reading_options import ReadingOptions
from tfrctrace.console import CHECK_FAILED, Console, drop_standard_output
from tfrctrace.errors import InputError, UsageError
from tfrctrace.gate.regression import TestName
from tfrctrace.reports.gate import GateFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from tfrctrace.experiment.cache import Cache
    from tfrctrace.gate.quantity import Quantity
    from tfrctrace.gate.values import Run
    from tfrctrace.parsers._native import Problem
    from tfrctrace.parsers.reading import TableName

_BOUNDS: Final = ("max_flows", "max_decompressed_bytes", "strict")
"""Options that decide how much of an input is read, and how grave it is if not all of it can be."""

Annotations = Literal["none", "github"]
Unknown = Literal["fail", "warn", "pass"]


def check(
    traces: Traces,
    *,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            "-r",
            metavar="LIMIT",
            help="What must be true in every run, as 'p95(rtt_ms) < 80 where port 5201'; once for each.",
        ),
    ] = None,
    warn: Annotated[
        list[str] | None,
        typer.Option("--warn", metavar="LIMIT", help="What should be true: it is told, but fails nothing."),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits", metavar="FILE", help="Limits and comparisons in a TOML file (docs/check.md)."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="FILE", help="Fail if runs are worse than those of this baseline."
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="QUANTITY",
            help="What a baseline has or is asked for, as 'mean(goodput_bps)'; without it the usual ones.",
        ),
    ] = None,
    write_baseline: Annotated[
        str | None,
        typer.Option("--write-baseline", metavar="FILE", help="Keep these runs as a baseline."),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            "--tolerance",
            metavar="SHARE",
            show_default="5%",
            help="What a mean may be worse than that of the baseline.",
        ),
    ] = None,
    significance: Annotated[
        str | None,
        typer.Option(
            "--significance",
            metavar="SHARE",
            show_default="1%",
            help="How often the comparison of repeated runs may fail by chance.",
        ),
    ] = None,
    test: Annotated[
        TestName | None,
        typer.Option(
            "--test", show_default="welch", help="What tells noise from change: Welch's t test, or ranks."
        ),
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option("--unknown", help="What a check amounts to whose value cannot be known.")
    ] = "fail",
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Write JUnit's XML for a CI server.")
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option("--summary", metavar="FILE", help="Write Markdown, as for $GITHUB_STEP_SUMMARY."),
    ] = None,
    annotations: Annotated[
        Annotations,
        typer.Option("--annotations", help="Say on stderr what failed, as a workflow of GitHub shows it."),
    ] = "none",
    measuring: MeasuringOptions,
    form: Annotated[GateFormat, typer.Option("--format", help="Form of the output.")] = "table",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    jobs: Jobs = None,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="DIRECTORY",
            help="Take runs that were measured before from there, and keep those that were not.",
        ),
    ] = None,
    reading: ReadingOptions,
) -> int:
    """Check that runs hold limits and are no worse than a baseline; ends with 1 if one of them fails.

    Each trace is a run, with --join each argument, with --pair each two of them. A quantity is a column of
    the table of flows, a metric, or rtt_ms (every sample), and min, max, mean, sum, count, median or p1 to
    p99 of it over the flows; a bare name must hold of each flow.
    """
    from tfrctrace.experiment.cache import Cache
    from tfrctrace.gate.plan import make_plan
    from tfrctrace.reports.gate import annotation_lines, gate_status, write_gate, write_summary
    from tfrctrace.reports.junit import write_junit
    from tfrctrace.reports.output import open_output, open_text_output

    _check_shaping(baseline, {"--tolerance": tolerance, "--significance": significance, "--test": test})
    measuring.check()
    plan = make_plan(
        require or [],
        warn or [],
        limits=limits,
        baseline=baseline,
        compare=compare or [],
        is_written=write_baseline is not None,
        tolerance=tolerance,
        significance=significance,
        test=test or "welch",
        unknown=unknown,
        measured_with=_measured_with(measuring, reading),
    )
    check_places((output, junit, summary, write_baseline), traces)
    console = _Listening(quiet=reading.quiet, strict=reading.strict)
    runs = _measured(
        _inputs(traces, reading),
        measuring,
        reading,
        plan.quantities,
        console=console,
        jobs=jobs,
        kept=None if cache is None else Cache(cache),
    )
    verdicts = [asdict(one) for one in plan.judge(runs)]
    head = _head(runs, baseline)
    if write_baseline is not None:
        with open_text_output(write_baseline) as file:
            plan.write_baseline(file, runs, version=__version__)
    if summary is not None:
        with open_text_output(summary) as file:
            write_summary(file, verdicts, head)
    if junit is not None:
        with open_output(junit) as binary:
            write_junit(binary, verdicts, console.problems)
    if annotations == "github":
        for line in annotation_lines(verdicts):
            print(line, file=sys.stderr)
    try:
        with open_text_output(output) as file:
            write_gate(file, form, verdicts, head)
    except BrokenPipeError:
        # whoever reads has seen enough; the verdict is the same
        drop_standard_output()
    return CHECK_FAILED if gate_status(verdicts) == "fail" else console.exit_status


class _Listening(Console):
    """A console that keeps what it is told, for those who read files instead of a terminal."""

    def __init__(self, *, quiet: bool, strict: bool, is_silent: bool = False) -> None:
        """With `is_silent` what is told is only kept."""
        super().__init__(quiet=quiet, strict=strict)
        self.problems: list[Problem] = []
        self._is_silent = is_silent

    def tell(self, problems: Iterable[Problem]) -> None:
        told = list(problems)
        for problem in told:
            is_error = self.strict and problem["severity"] == "warning"
            self.problems.append({**problem, "severity": "error"} if is_error else problem)
        if not self._is_silent:
            super().tell(told)


def _check_shaping(baseline: str | None, shaping: Mapping[str, str | None]) -> None:
    """Raise for options that would change nothing."""
    idle = [name for name, value in shaping.items() if value is not None]
    if baseline is None and idle:
        raise UsageError(f"`{idle[0]}` is about a baseline", hint="name one with `--baseline`")


def _measured_with(measuring: MeasuringOptions, reading: ReadingOptions) -> dict[str, Any]:
    """Return what changes numbers, by the names of the options."""
    return {
        **measuring.arguments(),
        **{
            one.name: getattr(reading, one.name)
            for one in fields(reading)
            if one.name not in {*_BOUNDS, "quiet"}
        },
    }


def _bounds(reading: ReadingOptions) -> dict[str, Any]:
    return {name: getattr(reading, name) for name in _BOUNDS}


def _inputs(traces: list[str], reading: ReadingOptions) -> list[list[str]]:
    """Return the inputs of each run."""
    if reading.pair:
        if len(traces) % 2:
            raise UsageError(
                f"with `--pair` each two captures are a run, and there are {len(traces)}",
                hint="name the capture near the sender and that near the receiver of each run",
            )
        return [traces[place : place + 2] for place in range(0, len(traces), 2)]
    return [[name] for name in traces]


def _measured(
    inputs: list[list[str]],
    measuring: MeasuringOptions,
    reading: ReadingOptions,
    quantities: Sequence[Quantity],
    *,
    console: _Listening,
    jobs: int | None,
    kept: Cache | None,
) -> list[Run]:
    """Return the runs that can be read, measured side by side; raises `InputError` if none can.

    Those that are `kept` are not measured again.
    """
    from concurrent.futures import ThreadPoolExecutor

    from tfrctrace.gate.kept import gate_key, record_of, run_of
    from tfrctrace.gate.values import needs_samples, take_all
    from tfrctrace.parsers.sources import find_inputs
    from tfrctrace.patience import as_finished

    unread: list[Problem] = []
    if not (reading.join or reading.pair):
        found = find_inputs([name for names in inputs for name in names])
        inputs, unread = [[name] for name in found.names], list(found.problems)
    tables: tuple[TableName, ...] = ("flows", "bins", *(("rtt",) if needs_samples(quantities) else ()))
    workers = min(jobs or os.cpu_count() or 1, max(len(inputs), 1))

    asked = {**_measured_with(measuring, reading), **_bounds(reading)}

    def measure(names: list[str]) -> tuple[Run | None, list[Problem]]:
        key = None if kept is None else gate_key(names, quantities, asked)
        if kept is None or key is None:
            return measure_anew(names)
        record = kept.get(key)
        if record is not None:
            return run_of(record)
        run, problems = measure_anew(names)
        # a run that could not be read may be there the next time
        if run is not None:
            kept.put(key, record_of(run, problems))
        return run, problems

    def measure_anew(names: list[str]) -> tuple[Run | None, list[Problem]]:
        # several bars of progress would be drawn over each other
        own = _Listening(quiet=reading.quiet or workers > 1, strict=reading.strict, is_silent=True)
        try:
            trace = reading.open(names, own, bin_ns=measuring.bin_ns)
            # all of it from one pass, which is all that standard input has
            trace.read(*tables)
            measured = trace.measure(**measuring.arguments())
            return take_all(" and ".join(names), trace, measured, quantities), own.problems
        except InputError as error:
            return None, [*own.problems, *error.problems]

    runs: list[Run] = []
    with _stopping(ThreadPoolExecutor(workers)) as pool:
        measured = [pool.submit(measure, names) for names in inputs]
        for one in as_finished(measured):
            one.result()  # an error of any run ends them all
    for one in measured:
        run, problems = one.result()
        if run is None:
            unread += problems
        else:
            console.tell(problems)
            runs.append(run)
    if kept is not None:
        kept.trim()
    if not runs:
        raise InputError(unread)
    console.tell(unread)
    return runs


@contextmanager
def _stopping(pool: ThreadPoolExecutor) -> Iterator[ThreadPoolExecutor]:
    """Give a pool whose waiting work is forgotten when something goes wrong."""
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _head(runs: Sequence[Run], baseline: str | None) -> dict[str, Any]:
    return {
        "tool": {"name": "tfrctrace", "version": __version__},
        "runs": [run.name for run in runs],
        "baseline": baseline,
    }
