"""`tfrctrace metrics`: fairness, burstiness, smoothness, delivery and convergence of the flows of traces."""

from __future__ import annotations

from typing import Annotated

import typer

from tfrctrace import __version__
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.common import Traces
from tfrctrace.commands.options.measuring_options import MeasuringOptions
from tfrctrace.commands.options.output_options import OutputOptions
from tfrctrace.commands.options.reading_options import ReadingOptions


def metrics(
    traces: Traces,
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="NAME", help="Only this metric; once for each."),
    ] = None,
    result: OutputOptions,
    measuring: MeasuringOptions,
    reading: ReadingOptions,
) -> int:
    """Tell how fairly, evenly and completely the flows of traces were served, by published metrics.

    Only flows that were active at the same time are compared, in the windows that they have in common; these
    competing sets are shown. Every metric is explained in docs/metrics.md.
    """
    from tfrctrace.reports.printers.metrics import write_metrics_json, write_metrics_table, write_metrics_text

    names = metric or []
    measuring.check(names)
    result.check(traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, bin_ns=measuring.bin_ns)
    measured = trace.measure(*names, **measuring.arguments())
    result.write(
        table=lambda file: write_metrics_text(file, measured.facts()),
        json=lambda file: write_metrics_json(file, measured.facts(), version=__version__),
        rows=lambda file, form: write_metrics_table(file, form, measured.frame()),
    )
    return console.exit_status
