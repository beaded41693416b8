"""`tfrctrace metrics`: fairness, burstiness, smoothness, delivery and convergence of the flows of traces."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tfrctrace.commands.options import (
    Capacity,
    Dissect,
    Filter,
    Format,
    Join,
    Layer,
    MaxDecompressed,
    MaxFlows,
    Quiet,
    Step,
    Strict,
    Traces,
    Weight,
    check_place,
    open_trace,
)
from tfrctrace.console import Console
from tfrctrace.errors import UsageError
from tfrctrace.measuring import Basis  # noqa: TC001  Typer reads the annotation
from tfrctrace.trace import LEAST_PACKETS, MAX_DECOMPRESSED_BYTES, MAX_FLOWS

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
    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="Width of the windows in which rates are taken.")
    ] = "1s",
    warmup: Annotated[
        str | None,
        typer.Option("--warmup", metavar="TIME", help="Leave out the first TIME of each flow, as 60s."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=RULE",
            help="Call flows NAME, as 'reno=port 5201'; others go by their transport.",
        ),
    ] = None,
    only_labelled: Annotated[
        bool, typer.Option("--only-labelled", help="Leave out flows without a label.")
    ] = False,
    basis: Annotated[
        Basis,
        typer.Option(
            "--basis", help="What a rate counts: payload seen first, frames, or (simulations) what arrived."
        ),
    ] = "goodput",
    least_packets: Annotated[
        int,
        typer.Option(
            "--least-packets", min=1, metavar="N", help="Leave out flows with fewer than N data packets."
        ),
    ] = LEAST_PACKETS,
    capacity: Capacity = None,
    weight: Weight = None,
    step: Step = None,
    form: Annotated[
        MetricsFormat | None,
        typer.Option(
            "--format", help="Form of the output; without it the name after -o tells, else a table."
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; - is standard output.")
    ] = "-",
    filter: Filter = None,
    input_format: Format = None,
    layer: Layer = None,
    dissect: Dissect = None,
    join: Join = False,
    max_flows: MaxFlows = MAX_FLOWS,
    max_decompressed_bytes: MaxDecompressed = MAX_DECOMPRESSED_BYTES,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Tell how fairly, evenly and completely the flows of traces were served, by published metrics.

    Only flows that were active at the same time are compared, in the windows that they have in common; these
    competing sets are shown. Every metric is explained in docs/metrics.md.
    """
    from tfrctrace.bitrates import parse_capacity_bps
    from tfrctrace.durations import parse_duration_ns
    from tfrctrace.labels import parse_rule, parse_weights
    from tfrctrace.measuring import base_width_ns, check_names

    names, weights = metric or [], parse_weights(weight or ())
    check_names(names, capacity=capacity, weight=weights, step=step)
    if capacity is not None:
        parse_capacity_bps(capacity)
    if step is not None:
        parse_duration_ns(step)
    for text in label or ():
        parse_rule(text)  # before anybody waits for the reading
    check_place(output, traces)
    console = Console(quiet=quiet, strict=strict)
    trace = open_trace(
        traces,
        console,
        filter=filter,
        input_format=input_format,
        layer=layer,
        dissect=dissect,
        join=join,
        max_flows=max_flows,
        max_decompressed_bytes=max_decompressed_bytes,
        bin_ns=None if basis == "received" else base_width_ns(parse_duration_ns(window)),
    )
    measured = trace.measure(
        *names,
        window=window,
        warmup=warmup,
        basis=basis,
        labels=label or (),
        only_labelled=only_labelled,
        least_packets=least_packets,
        capacity=capacity,
        weight=weights,
        step=step,
    )
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
