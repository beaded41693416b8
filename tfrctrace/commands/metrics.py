"""`tfrctrace metrics`: fairness, burstiness, smoothness, delivery and convergence of the flows of traces."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.commands.measuring_options import MeasuringOptions
from tfrctrace.commands.options import Traces, check_place
from tfrctrace.commands.reading_options import ReadingOptions
from tfrctrace.console import Console
from tfrctrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.measuring import Measured

MetricsFormat = Literal["table", "json", "csv", "parquet"]

_FORMAT_OF_SUFFIX: Final[Mapping[str, MetricsFormat]] = {
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "table",
}


def metrics(
    traces: Traces,
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="NAME", help="Only this metric; once for each."),
    ] = None,
    form: Annotated[
        MetricsFormat | None,
        typer.Option(
            "--format", help="Form of the output; without it the name after -o tells, else a table."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    measuring: MeasuringOptions,
    reading: ReadingOptions,
) -> int:
    """Tell how fairly, evenly and completely the flows of traces were served, by published metrics.

    Only flows that were active at the same time are compared, in the windows that they have in common; these
    competing sets are shown. Every metric is explained in docs/metrics.md.
    """
    names = metric or []
    measuring.check(names)
    check_place(output, traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    trace = reading.open(traces, console, bin_ns=measuring.bin_ns)
    measured = trace.measure(*names, **measuring.arguments())
    _write(measured, output, form or _FORMAT_OF_SUFFIX.get(os.path.splitext(output)[1].lower(), "table"))
    return console.exit_status


def _write(measured: Measured, output: str, form: MetricsFormat) -> None:
    from tfrctrace import __version__
    from tfrctrace.reports.metrics import write_metrics_json, write_metrics_table, write_metrics_text
    from tfrctrace.reports.output import STANDARD_OUTPUT, open_output, open_text_output

    if form == "parquet" and output == STANDARD_OUTPUT and sys.stdout.isatty():
        raise UsageError(
            "parquet is not for a terminal", hint="name a file with `-o`, or choose another form"
        )
    if form == "table":
        with open_text_output(output) as file:
            write_metrics_text(file, measured.facts())
    elif form == "json":
        with open_text_output(output) as file:
            write_metrics_json(file, measured.facts(), version=__version__)
    else:
        with open_output(output) as file:
            write_metrics_table(file, form, measured.frame())
