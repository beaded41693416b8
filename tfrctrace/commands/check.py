"""`tfrctrace check`: limits and a baseline that runs must hold, for continuous integration."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfrctrace import __version__
from tfrctrace.commands.options import (
    Dissect,
    Filter,
    Format,
    Layer,
    MaxDecompressed,
    MaxFlows,
    Quiet,
    Strict,
    Tfrc,
    Traces,
    Vantage,
    check_places,
    open_trace,
)
from tfrctrace.console import CHECK_FAILED, Console
from tfrctrace.errors import InputError, UsageError
from tfrctrace.gate.regression import TestName  # noqa: TC001  Typer reads the annotation
from tfrctrace.measuring import Basis  # noqa: TC001  Typer reads the annotation
from tfrctrace.reports.gate import GateFormat  # noqa: TC001  Typer reads the annotation
from tfrctrace.trace import LEAST_PACKETS, MAX_DECOMPRESSED_BYTES, MAX_FLOWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.gate.quantity import Quantity
    from tfrctrace.gate.values import Run
    from tfrctrace.parsers._native import Problem
    from tfrctrace.trace import Trace

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
    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="Width of the windows in which rates are taken.")
    ] = "1s",
    warmup: Annotated[
        str | None,
        typer.Option("--warmup", metavar="TIME", help="Leave out the first TIME of each flow, as 60s."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=RULE", help="Call flows NAME, as 'reno=port 5201'."),
    ] = None,
    only_labelled: Annotated[
        bool, typer.Option("--only-labelled", help="Leave out flows without a label.")
    ] = False,
    basis: Annotated[
        Basis, typer.Option("--basis", help="What a rate counts, as in `tfrctrace metrics`.")
    ] = "goodput",
    least_packets: Annotated[
        int,
        typer.Option(
            "--least-packets", min=1, metavar="N", help="Leave out flows with fewer than N data packets."
        ),
    ] = LEAST_PACKETS,
    form: Annotated[GateFormat, typer.Option("--format", help="Form of the output.")] = "table",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    filter: Filter = None,
    input_format: Format = None,
    layer: Layer = None,
    vantage: Vantage = "auto",
    dissect: Dissect = None,
    tfrc: Tfrc = None,
    max_flows: MaxFlows = MAX_FLOWS,
    max_decompressed_bytes: MaxDecompressed = MAX_DECOMPRESSED_BYTES,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Check that runs hold limits and are no worse than a baseline; ends with 1 if one of them fails.

    Each trace is a run. A quantity is a column of the table of flows, a metric, or rtt_ms (every sample), and
    min, max, mean, sum, count, median or p1 to p99 of it over the flows; a bare name must hold of each flow.
    """
    from tfrctrace.gate.plan import make_plan
    from tfrctrace.reports.gate import annotation_lines, gate_status, write_gate, write_summary
    from tfrctrace.reports.junit import write_junit
    from tfrctrace.reports.output import open_output, open_text_output

    _check_shaping(baseline, {"--tolerance": tolerance, "--significance": significance, "--test": test})
    measuring: dict[str, Any] = {
        "window": window,
        "warmup": warmup,
        "basis": basis,
        "labels": label or [],
        "only_labelled": only_labelled,
        "least_packets": least_packets,
    }
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
        measured_with={**measuring, "filter": filter, "layer": layer},
    )
    _check_measuring(measuring)
    check_places((output, junit, summary, write_baseline), traces)
    console = _Listening(quiet=quiet, strict=strict)

    def opened(name: str) -> Trace:
        return open_trace(
            [name],
            console,
            filter=filter,
            input_format=input_format,
            layer=layer,
            vantage=vantage,
            dissect=dissect,
            tfrc=tfrc,
            join=False,
            max_flows=max_flows,
            max_decompressed_bytes=max_decompressed_bytes,
            bin_ns=_bin_ns(window, basis),
        )

    runs = list(_measured(traces, opened, measuring, plan.quantities, console))
    verdicts = [asdict(one) for one in plan.judge(runs)]
    head = _head(runs, baseline)
    if write_baseline is not None:
        with open_text_output(write_baseline) as file:
            plan.write_baseline(file, runs, version=__version__)
    with open_text_output(output) as file:
        write_gate(file, form, verdicts, head)
    if summary is not None:
        with open_text_output(summary) as file:
            write_summary(file, verdicts, head)
    if junit is not None:
        with open_output(junit) as binary:
            write_junit(binary, verdicts, console.problems)
    if annotations == "github":
        for line in annotation_lines(verdicts):
            print(line, file=sys.stderr)
    return CHECK_FAILED if gate_status(verdicts) == "fail" else console.exit_status


class _Listening(Console):
    """A console that keeps what it is told, for those who read files instead of a terminal."""

    def __init__(self, *, quiet: bool, strict: bool) -> None:
        super().__init__(quiet=quiet, strict=strict)
        self.problems: list[Problem] = []

    def tell(self, problems: Iterable[Problem]) -> None:
        told = list(problems)
        for problem in told:
            is_error = self.strict and problem["severity"] == "warning"
            self.problems.append({**problem, "severity": "error"} if is_error else problem)
        super().tell(told)


def _check_shaping(baseline: str | None, shaping: Mapping[str, str | None]) -> None:
    """Raise for options that would change nothing."""
    idle = [name for name, value in shaping.items() if value is not None]
    if baseline is None and idle:
        raise UsageError(f"`{idle[0]}` is about a baseline", hint="name one with `--baseline`")


def _check_measuring(measuring: Mapping[str, Any]) -> None:
    """Raise for durations and rules that are none, before anybody waits for the reading."""
    from tfrctrace.durations import parse_duration_ns
    from tfrctrace.labels import parse_rule

    for duration in (measuring["window"], measuring["warmup"]):
        if duration is not None:
            parse_duration_ns(duration)
    for rule in measuring["labels"]:
        parse_rule(rule)


def _bin_ns(window: str, basis: Basis) -> int | None:
    from tfrctrace.durations import parse_duration_ns
    from tfrctrace.measuring import base_width_ns

    return None if basis == "received" else base_width_ns(parse_duration_ns(window))


def _measured(
    traces: list[str],
    opened: Callable[[str], Trace],
    measuring: Mapping[str, Any],
    quantities: Sequence[Quantity],
    console: Console,
) -> Iterator[Run]:
    """Give the runs that can be read, one after the other; raises `InputError` if none can."""
    from tfrctrace.gate.values import needs_samples, take_all
    from tfrctrace.parsers.sources import find_inputs

    inputs = find_inputs(traces)
    unread = list(inputs.problems)
    is_any_read = False
    for name in inputs.names:
        try:
            trace = opened(name)
            # all of it from one pass, which is all that standard input has
            trace.read("flows", "bins", *(("rtt",) if needs_samples(quantities) else ()))
            yield take_all(name, trace, trace.measure(**measuring), quantities)
            is_any_read = True
        except InputError as error:
            unread += error.problems
    if not is_any_read:
        raise InputError(unread)
    console.tell(unread)


def _head(runs: Sequence[Run], baseline: str | None) -> dict[str, Any]:
    return {
        "tool": {"name": "tfrctrace", "version": __version__},
        "runs": [run.name for run in runs],
        "baseline": baseline,
    }
