"""`tfrctrace report`: the whole story of captures as one HTML file."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from tfrctrace.commands.anonymity_options import AnonymityOptions
from tfrctrace.commands.options import OptionalTraces, check_place
from tfrctrace.commands.reading_options import ReadingOptions
from tfrctrace.console import Console
from tfrctrace.errors import UsageError
from tfrctrace.reports.output import STANDARD_OUTPUT, make_folder, open_output

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
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Write a report of traces: one HTML file that needs no network and no other file.

    Without -o it is put into the current directory and named after the capture. With --from it is made of
    results that were saved before, and is the same to the byte.
    """
    traces = traces or []
    path = output or default_name([] if anonymity.is_wanted else traces)
    check_place(path, traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    if saved is not None:
        others = {"--results": save_to, **_given(reading), "--anonymize": anonymity.is_wanted}
        _refuse_beside_saved({"TRACE": traces, **others})
        _write_saved(saved, path, title)
        _say_where(path, console)
        return console.exit_status
    if not traces:
        raise UsageError("no trace is named", hint="name one, or results of a report with `--from`")
    if save_to is not None:
        make_folder(save_to)
    trace = reading.open(traces, console, anonymizer=anonymity.anonymizer(console))
    trace.report(path, title=title)
    if save_to is not None:
        trace.save_results(save_to, title=title)
    _say_where(path, console)
    return console.exit_status


def _given(reading: ReadingOptions) -> dict[str, bool]:
    """Return which options say how to read, and are not what they are by themselves."""
    usual = ReadingOptions(strict=reading.strict, quiet=reading.quiet)
    return {
        f"--{one.name.removesuffix('_bytes').replace('_', '-')}": getattr(reading, one.name)
        != getattr(usual, one.name)
        for one in fields(reading)
    }


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
