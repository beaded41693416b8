"""`tfrctrace metrics`: fairness, burstiness, smoothness, delivery and convergence of flows."""

from __future__ import annotations

from typing import Annotated, Final

from tfrctrace import __version__
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.common import Traces
from tfrctrace.commands.options.grouped_help import measuring_option
from tfrctrace.commands.options.measuring_options import MeasuringOptions
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions

MOST_SHOWN: Final = 1_000
"""Flows that have a line in the text, those with most data packets."""


def metrics(
    traces: Traces,
    *,
    metric: Annotated[
        list[str] | None,
        measuring_option("--metric", "-m", metavar="NAME", help="Compute this metric only; repeatable."),
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
            file, summary, rows, shown=measured.largest(MOST_SHOWN), zone=zone
        ),
        json=lambda file: write_metrics_json(file, summary, rows, version=__version__),
        rows=lambda file, form: write_metrics_table(file, form, rows, raw=result.raw),
    )
    return console.exit_status
