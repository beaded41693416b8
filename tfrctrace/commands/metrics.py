"""`tfrctrace metrics`: fairness, burstiness, smoothness, delivery and convergence of flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from tfrctrace import __version__
from tfrctrace.base.errors import UsageError
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.common import Traces
from tfrctrace.commands.options.completion import groupings, metric_names
from tfrctrace.commands.options.grouped_help import measuring_option
from tfrctrace.commands.options.measuring_options import MeasuringOptions
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.printers.terminal import terminal_width

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SHOWN: Final = 1_000
"""Flows that have a line in the text, those with most data packets."""


def metrics(
    traces: Traces,
    *,
    metric: Annotated[
        list[str] | None,
        measuring_option(
            "--metric",
            "-m",
            metavar="NAME",
            autocompletion=metric_names,
            help="Compute this metric only; repeatable.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        measuring_option(
            "--by",
            metavar="WHAT",
            autocompletion=groupings,
            help="Compute metrics of groups instead: host, prefix/16, port, link, ... (docs/groups.md).",
        ),
    ] = None,
    every: Annotated[
        str | None,
        measuring_option("--every", metavar="TIME", help="Width of intervals of groups, e.g. 1min."),
    ] = None,
    result: OutputOptions,
    measuring: MeasuringOptions,
    reading: ReadingOptions,
) -> int:
    """Compute fairness, smoothness, delivery and other metrics.

    Flows are compared only if they were active at the same time, over the windows they have in common; the
    output lists these sets of competing flows. docs/all-metrics.md defines every metric.
    """
    from tfrctrace.reports.printers.metrics import (
        left_out,
        write_metrics_json,
        write_metrics_table,
        write_metrics_text,
    )

    names, zone = metric or [], reading.zone
    if by is not None:
        return _of_groups(traces, by, every, names, result, measuring.label or (), reading)
    if every is not None:
        raise UsageError("`--every` needs `--by`", hint="windows of flows are those of `--window`")
    measuring.check(names)
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, bin_ns=measuring.bin_ns)
    measured = trace.measure(*names, **measuring.arguments(), columns=())
    summary, rows = measured.summary(), measured.rows
    if result.chosen in {"csv", "parquet"}:
        # rows have no place for what they do not count
        for line in left_out(summary):
            console.note(line)
    result.write(
        table=lambda file: write_metrics_text(
            file, summary, rows, shown=measured.largest(MOST_SHOWN), zone=zone, width=terminal_width(file)
        ),
        json=lambda file: write_metrics_json(file, summary, rows, version=__version__),
        rows=lambda file, form: write_metrics_table(file, form, rows, raw=result.raw),
    )
    return console.exit_status


def _of_groups(  # noqa: PLR0917
    traces: list[str],
    by: str,
    every: str | None,
    names: list[str],
    result: OutputOptions,
    labels: Sequence[str],
    reading: ReadingOptions,
) -> int:
    """Write the metrics of groups by interval."""
    from tfrctrace.base.grouping import parse_grouping
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.group_metrics import check_group_metrics, group_metrics
    from tfrctrace.parsers.schema import SCHEMA_VERSION
    from tfrctrace.reports.files.table_files import write_table
    from tfrctrace.reports.printers.metrics_of_groups import (
        write_group_metrics_json,
        write_group_metrics_text,
    )
    from tfrctrace.trace.gather_groups import check_labels, gather_groups

    check_group_metrics(names)
    grouping = parse_grouping(by, every)
    check_labels(grouping, labels)
    result.check(traces)
    zone = TimeZone.named(reading.timezone)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console)
    rows = group_metrics(gather_groups(trace, grouping, labels), names)
    head = {"schema_version": SCHEMA_VERSION, "tool": {"name": "tfrctrace", "version": __version__}}
    result.write(
        table=lambda file: write_group_metrics_text(
            file, rows, every_ns=grouping.every_ns, zone=zone, most=MOST_SHOWN
        ),
        json=lambda file: write_group_metrics_json(file, rows, head),
        rows=lambda file, form: write_table(file, form, [rows], rows, raw=result.raw),
    )
    return console.exit_status
