"""`tfrctrace report`: the whole story of captures as one HTML file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from tfrctrace.commands.options import (
    Anonymize,
    AnonymizeKey,
    ClockOffset,
    Dissect,
    Filter,
    Format,
    Join,
    Layer,
    MaxDecompressed,
    MaxFlows,
    OptionalTraces,
    Pair,
    Quiet,
    Strict,
    Vantage,
    check_place,
    open_trace,
)
from tfrctrace.console import Console
from tfrctrace.errors import UsageError
from tfrctrace.reports.output import STANDARD_OUTPUT, make_folder, open_output
from tfrctrace.trace import MAX_DECOMPRESSED_BYTES, MAX_FLOWS

if TYPE_CHECKING:
    from collections.abc import Mapping

Saved = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="DIRECTORY",
        help="Make the report of results that --results has saved, without the trace.",
    ),
]
SaveTo = Annotated[
    str | None,
    typer.Option(
        "--results",
        metavar="DIRECTORY",
        help="Also save the results there: JSON for the facts, Parquet for the tables.",
    ),
]


def report(
    traces: OptionalTraces = None,
    *,
    saved: Saved = None,
    save_to: SaveTo = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default="NAME.html of one capture that is not anonymized, else report.html",
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
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Write a report of traces: one HTML file that needs no network and no other file.

    Without -o it is put into the current directory and named after the capture. With --from it is made of
    results that were saved before, and is the same to the byte.
    """
    traces = traces or []
    is_anonymous = anonymize or anonymize_key is not None
    path = output or default_name([] if is_anonymous else traces)
    check_place(path, traces)
    console = Console(quiet=quiet, strict=strict)
    if saved is not None:
        _refuse_beside_saved(
            {
                "TRACE": traces,
                "--results": save_to,
                "--filter": filter,
                "--input-format": input_format,
                "--layer": layer,
                "--vantage": vantage != "auto",
                "--dissect": dissect,
                "--join": join,
                "--pair": pair,
                "--clock-offset": clock_offset,
                "--max-flows": max_flows != MAX_FLOWS,
                "--max-decompressed": max_decompressed_bytes != MAX_DECOMPRESSED_BYTES,
                "--anonymize": is_anonymous,
            }
        )
        _write_saved(saved, path, title)
        _say_where(path, console)
        return console.exit_status
    if not traces:
        raise UsageError("no trace is named", hint="name one, or results of a report with `--from`")
    if save_to is not None:
        make_folder(save_to)
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
        anonymize=anonymize,
        anonymize_key=anonymize_key,
    )
    trace.report(path, title=title)
    if save_to is not None:
        trace.save_results(save_to, title=title)
    _say_where(path, console)
    return console.exit_status


def _refuse_beside_saved(others: Mapping[str, object]) -> None:
    """Raise if something is given that is decided when a trace is read."""
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(
            f"`{given[0]}` is of no use to saved results",
            hint="it counts when the trace is read: leave it out, or make the report from the trace",
        )


def _say_where(path: str, console: Console) -> None:
    if path != STANDARD_OUTPUT:
        console.note(f"report written to `{path}`")


def _write_saved(folder: str, path: str, title: str | None) -> None:
    from tfrctrace.reports.html import render
    from tfrctrace.reports.model import build_report
    from tfrctrace.reports.saved import load

    results, saved_title = load(folder)
    page = render(build_report(results, title=title or saved_title))
    with open_output(path) as file:
        file.write(page.encode(errors="backslashreplace"))


def default_name(traces: list[str]) -> str:
    """Return the name of the report of `traces`: the capture's own, if there is one and it is a file."""
    from tfrctrace.errors import STANDARD_INPUT
    from tfrctrace.parsers.sources import without_suffixes

    if len(traces) != 1 or traces[0] == STANDARD_INPUT or os.path.isdir(traces[0]):
        return "report.html"
    return f"{without_suffixes(traces[0])}.html"
