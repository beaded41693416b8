"""`tfrctrace compare`: the metrics of two traces, or of two sets of runs, side by side."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.common import (
    ExecutorName,
    Force,
    Jobs,
    OutputFile,
    Quiet,
    RawText,
    RunCache,
    Strict,
    Timezone,
    check_output_place,
    check_raw,
    check_suffix,
    rows_option,
)
from tfrctrace.commands.options.completion import metric_names
from tfrctrace.commands.options.grouped_help import measuring_option, output_option
from tfrctrace.commands.options.measuring_options import MeasuringOptions
from tfrctrace.commands.options.reading_options import Filter, Format, Last, Layer, Since, Until
from tfrctrace.commands.run_progress import run_progress
from tfrctrace.reports.printers.comparison import DEFAULT_ROWS, FORM_OF_SUFFIX, ComparisonFormat


def compare(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A trace, a directory of runs, or a pattern in quotes.", show_default=False
        ),
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="The same, to compare with.", show_default=False)
    ],
    *,
    metric: Annotated[
        list[str] | None,
        measuring_option(
            "--metric",
            "-m",
            metavar="NAME",
            autocompletion=metric_names,
            help="Compare this metric only; repeatable.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="NAME:NAME",
            help="Compare flows with the first label in A with flows with the second in B.",
        ),
    ] = None,
    holm: Annotated[
        bool, typer.Option("--holm", help="Correct p values for the number of metrics (Holm's method).")
    ] = False,
    measuring: MeasuringOptions,
    form: Annotated[
        ComparisonFormat | None,
        output_option(
            "--format", show_default="by the suffix of -o, else table", help="Output format; html is a page."
        ),
    ] = None,
    rows: Annotated[
        int | None, rows_option("rows in the text table, the most important ones", DEFAULT_ROWS)
    ] = None,
    output: OutputFile = "-",
    force: Force = False,
    raw: RawText = False,
    filter: Filter = None,
    input_format: Format = None,
    layer: Layer = None,
    since: Since = None,
    until: Until = None,
    last: Last = None,
    timezone: Timezone = "UTC",
    jobs: Jobs = None,
    executor: ExecutorName = None,
    cache: RunCache = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Compare the metrics of two traces or two sets of runs.

    The first sentence says whether B is better or worse for users, and the table has rate, delay, losses and
    retransmissions first. With at least two runs per side a difference has a confidence interval, an effect
    size (Hedges' g) and Welch's test; with one run there is only the difference. Runs with equal bytes count
    once. Cached runs are not measured again.
    """
    from tfrctrace import __version__
    from tfrctrace.metrics.results.comparison import Comparison
    from tfrctrace.metrics.results.document import Tool
    from tfrctrace.reports.compared import conclusion_of, judged
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.printers.comparison import COMPARISON_SCHEMA_VERSION, write_comparison
    from tfrctrace.runs.cache import chosen_cache
    from tfrctrace.runs.workers import chosen_workers
    from tfrctrace.study.compare_runs import LEVEL, as_difference, differences, parse_groups
    from tfrctrace.study.definition import MeasuringPlan

    check_suffix(output, form, FORM_OF_SUFFIX)
    form = form or FORM_OF_SUFFIX.get(os.path.splitext(output)[1].lower(), "table")
    if rows is not None and form not in {"table", "markdown"}:
        raise UsageError(f"`--rows` applies to tables for people, but the format is {form}")
    measuring.check(metric or [])
    check_output_place(output, [first, second], force=force)
    check_raw(form, raw=raw)
    console = Console(quiet=quiet, strict=strict)
    plan = MeasuringPlan(
        **measuring.arguments(),
        filter=filter,
        input_format=input_format,
        layer=layer,
        since=since,
        until=until,
        last=last,
        timezone=timezone,
    )
    with run_progress(console) as progress:
        found, problems = differences(
            first,
            second,
            plan,
            metric or [],
            groups=None if groups is None else parse_groups(groups),
            level=LEVEL,
            holm=holm,
            workers=chosen_workers(executor, jobs),
            cache=chosen_cache(cache),
            progress=progress,
        )
    console.print_problems(problems)
    judgements = judged(map(as_difference, found))
    if form == "html":
        from tfrctrace.reports.comparison_page import comparison_report
        from tfrctrace.reports.formats import write_report
        from tfrctrace.study.compared_sides import gather_sides

        name = os.path.basename
        title = f"{name(first)} and {name(second)}"
        write_report(output, comparison_report(judgements, gather_sides(first, second, plan), title=title))
        return console.exit_status
    most = DEFAULT_ROWS if rows is None else rows or None
    comparison = Comparison(
        schema_version=COMPARISON_SCHEMA_VERSION,
        tool=Tool("tfrctrace", __version__),
        a=first,
        b=second,
        basis=plan.basis,
        window=plan.window,
        warmup=plan.warmup,
        confidence=LEVEL,
        verdict=conclusion_of(judgements),
        differences=tuple(judgements),
    )
    with open_text_output(output) as file:
        write_comparison(file, form, comparison, raw=raw, most=most)
    return console.exit_status
