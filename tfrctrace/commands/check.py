"""`tfrctrace check`: check runs against limits and a baseline, for continuous integration."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import STANDARD_INPUT, UsageError
from tfrctrace.commands.checked_runs import RecordingConsole, measured_runs, measuring_facts
from tfrctrace.commands.console import CHECK_FAILED, drop_standard_output
from tfrctrace.commands.options.common import (
    ExecutorName,
    Force,
    Jobs,
    OutputFile,
    Traces,
    check_output_places,
)
from tfrctrace.commands.options.completion import quantities
from tfrctrace.commands.options.grouped_help import other_option, output_option
from tfrctrace.commands.options.measuring_options import MeasuringOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.gate import GateFormat
from tfrctrace.reports.printers.terminal import terminal_width
from tfrctrace.runs.compare_groups import TestName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.commands.console import Console
    from tfrctrace.gate.gate_plan import GatePlan
    from tfrctrace.gate.values import CheckedRun
    from tfrctrace.metrics.results.trend import Trend
    from tfrctrace.metrics.results.verdict import Verdict
    from tfrctrace.runs.workers import Workers

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
            autocompletion=quantities,
            help="Fail unless this holds in every run, e.g. 'p95(rtt_ms) < 80 where port 5201'; repeatable.",
        ),
    ] = None,
    warn: Annotated[
        list[str] | None,
        typer.Option(
            "--warn",
            metavar="LIMIT",
            autocompletion=quantities,
            help="Report a violation without failing; repeatable.",
        ),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="FILE",
            help="Limits, comparisons and objectives over time in a TOML file (docs/check.md).",
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
            show_default="a standard set",
            help="Quantity to compare with or save in a baseline, e.g. 'mean(goodput_bps)'; repeatable.",
        ),
    ] = None,
    write_baseline: Annotated[
        str | None, typer.Option("--write-baseline", metavar="FILE", help="Save these runs as a baseline.")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Take what is worse into --baseline, as a change that is meant, and pass."
        ),
    ] = False,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="DIR",
            help="Append what was measured to the history there, report since which build a quantity is "
            "worse, and draw the page of all builds.",
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(
            "--build",
            metavar="NAME",
            show_default="the commit, as the CI server says",
            help="Name of the build in the history.",
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            "--tolerance",
            metavar="SHARE",
            show_default="5%",
            help="How much worse a mean may be than the baseline's.",
        ),
    ] = None,
    significance: Annotated[
        str | None,
        typer.Option(
            "--significance",
            metavar="SHARE",
            show_default="1%",
            help="Probability that a comparison of repeated runs fails by chance.",
        ),
    ] = None,
    test: Annotated[
        TestName | None,
        typer.Option(
            "--test", show_default="welch", help="Significance test: Welch's t test, or a rank test."
        ),
    ] = None,
    unknown: Annotated[
        Unknown, typer.Option("--unknown", help="Result of a check whose value is unknown.")
    ] = "fail",
    junit: Annotated[
        str | None, output_option("--junit", metavar="FILE", help="Write JUnit XML for a CI server.")
    ] = None,
    summary: Annotated[
        str | None,
        output_option("--summary", metavar="FILE", help="Write Markdown, e.g. to $GITHUB_STEP_SUMMARY."),
    ] = None,
    annotations: Annotated[
        Annotations,
        output_option("--annotations", help="Print failures to stderr as annotations of a GitHub workflow."),
    ] = "none",
    measuring: MeasuringOptions,
    form: Annotated[GateFormat, output_option("--format", help="Output format.")] = "table",
    output: OutputFile = "-",
    force: Force = False,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    cache: Annotated[
        str | None,
        other_option("--cache", metavar="DIRECTORY", help="Cache measured runs there, and reuse them."),
    ] = None,
    reading: ReadingOptions,
) -> int:
    """Check runs against limits or a baseline.

    The exit status is 1 if a check fails. Each trace is a run; with --join all files are one, and each
    directory is one; with --pair each two traces. A quantity is a column of the flow table, a metric, a share
    of time by cause, or rtt_ms (every sample), aggregated over the flows by min, max, mean, sum, count,
    median or p1 to p99; without an aggregate the limit must hold for each flow.
    """
    from tfrctrace.gate.gate_plan import make_plan
    from tfrctrace.gate.keep_history import checked_build, keep_history
    from tfrctrace.metrics.results.document import Tool
    from tfrctrace.metrics.results.verdict import GateResult
    from tfrctrace.reports.files.junit import write_junit
    from tfrctrace.reports.output import open_output, open_text_output
    from tfrctrace.reports.printers.build_trends import trend_markdown
    from tfrctrace.reports.printers.gate import (
        GATE_SCHEMA_VERSION,
        annotation_lines,
        gate_status,
        write_gate,
        write_summary,
    )
    from tfrctrace.reports.units import counted
    from tfrctrace.runs.cache import Cache

    _check_shaping(baseline, {"--test": test, "--accept": "yes" if accept else None})
    _check_shaping(baseline or history, {"--tolerance": tolerance, "--significance": significance})
    build = checked_build(history, build)
    if accept and write_baseline is not None:
        raise UsageError(
            "`--accept` and `--write-baseline` both write a baseline", hint="leave out one of them"
        )
    measuring.check()
    plan = make_plan(
        require or [],
        warn or [],
        limits=limits,
        baseline=baseline,
        compare=compare or [],
        is_written=write_baseline is not None,
        is_followed=history is not None,
        tolerance=tolerance,
        significance=significance,
        test=test or "welch",
        unknown=unknown,
        measured_with=measuring_facts(measuring, reading),
    )
    check_output_places((output, junit, summary, write_baseline), traces, force=force)
    console = RecordingConsole(quiet=reading.quiet, strict=reading.strict)
    kept = None if cache is None else Cache(cache)
    runs = measured_runs(
        traces,
        measuring,
        reading,
        plan.quantities,
        console,
        objectives=plan.objectives,
        workers=_workers(traces, executor, jobs),
        cache=kept,
    )
    judged = plan.judge(runs)
    if accept:
        judged = _accept(plan, judged, runs, console)
    trends: list[Trend] = []
    if history is not None:
        trends, left_out = keep_history(history, str(build), plan, runs, reading.zone)
        console.print_problems(left_out)
    gate = GateResult(
        schema_version=GATE_SCHEMA_VERSION,
        tool=Tool("tfrctrace", __version__),
        runs=tuple(run.name for run in runs),
        baseline=baseline,
        status=gate_status(judged),
        checks=tuple(judged),
        trends=tuple(trends),
    )
    if write_baseline is not None:
        with open_text_output(write_baseline) as file:
            plan.write_baseline(file, runs, version=__version__)
        console.note(f"baseline of {counted(len(runs), 'run')} written to `{write_baseline}`")
    if summary is not None:
        with open_text_output(summary) as file:
            write_summary(file, gate, reading.zone)
            file.writelines(trend_markdown(trends, reading.zone))
    if junit is not None:
        with open_output(junit) as binary:
            write_junit(binary, gate.checks, console.problems, reading.zone)
    if annotations == "github":
        for line in annotation_lines(gate.checks, limits):
            print(line, file=sys.stderr)
    try:
        with open_text_output(output) as file:
            write_gate(file, form, gate, reading.zone, width=terminal_width(file))
    except BrokenPipeError:
        # the reader has seen enough; the verdict is the same
        drop_standard_output()
    return CHECK_FAILED if gate.status == "fail" else console.exit_status


def _workers(traces: list[str], executor: str | None, jobs: int | None) -> Workers:
    """Return who measures the runs: threads unless an executor is named, which cannot read standard input."""
    from tfrctrace.runs.workers import chosen_workers, threads

    if executor is None:
        return threads(jobs)
    if STANDARD_INPUT in traces:
        raise UsageError("an executor cannot read standard input", hint="leave out `--executor`")
    return chosen_workers(executor, jobs)


def _check_shaping(baseline: str | None, shaping: Mapping[str, str | None]) -> None:
    """Raise for options that would change nothing."""
    idle = [name for name, value in shaping.items() if value is not None]
    if baseline is None and idle:
        raise UsageError(f"`{idle[0]}` is about a baseline", hint="name one with `--baseline`")


def _accept(
    plan: GatePlan, verdicts: Sequence[Verdict], runs: Sequence[CheckedRun], console: Console
) -> list[Verdict]:
    """Write what is worse into the baseline, print the difference, and return the verdicts after it."""
    from tfrctrace.gate.acceptance import accepted, is_acceptable
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.printers.gate import difference

    text = plan.accept(verdicts, runs)
    if plan.baseline is not None and text is not None:
        with open_text_output(plan.baseline.path) as file:
            file.write(text)
        for verdict in filter(is_acceptable, verdicts):
            console.note(f"accepted into `{plan.baseline.path}`: {difference(verdict)}")
    return accepted(verdicts)
