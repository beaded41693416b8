"""`tfrctrace report`: the whole story of captures as one HTML file."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tfrctrace.commands.options import (
    ClockOffset,
    Dissect,
    Filter,
    Format,
    Join,
    Layer,
    MaxDecompressed,
    MaxFlows,
    Pair,
    Quiet,
    Strict,
    Traces,
    Vantage,
    check_place,
    open_trace,
)
from tfrctrace.console import Console
from tfrctrace.trace import MAX_DECOMPRESSED_BYTES, MAX_FLOWS


def report(
    traces: Traces,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default="NAME.html of one capture, else report.html",
            help="Where to write; - is standard output.",
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="Heading of the report; else the capture's name."),
    ] = None,
    filter: Filter = None,
    input_format: Format = None,
    layer: Layer = None,
    vantage: Vantage = "auto",
    dissect: Dissect = None,
    join: Join = False,
    pair: Pair = False,
    clock_offset: ClockOffset = None,
    max_flows: MaxFlows = MAX_FLOWS,
    max_decompressed_bytes: MaxDecompressed = MAX_DECOMPRESSED_BYTES,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Write a report of traces: one HTML file that needs no network and no other file.

    Without -o it is put into the current directory and named after the capture.
    """
    from tfrctrace.reports.output import STANDARD_OUTPUT

    path = output or default_name(traces)
    check_place(path, traces)
    console = Console(quiet=quiet, strict=strict)
    trace = open_trace(
        traces,
        console,
        filter=filter,
        input_format=input_format,
        layer=layer,
        vantage=vantage,
        dissect=dissect,
        join=join,
        pair=pair,
        clock_offset=clock_offset,
        max_flows=max_flows,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    trace.report(path, title=title)
    if path != STANDARD_OUTPUT:
        console.note(f"report written to `{path}`")
    return console.exit_status


def default_name(traces: list[str]) -> str:
    """Return the name of the report of `traces`: the capture's own, if there is one and it is a file."""
    from tfrctrace.errors import STANDARD_INPUT
    from tfrctrace.parsers.sources import without_suffixes

    if len(traces) != 1 or traces[0] == STANDARD_INPUT or os.path.isdir(traces[0]):
        return "report.html"
    return f"{without_suffixes(traces[0])}.html"
