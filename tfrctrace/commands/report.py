"""`tfrctrace report`: the whole story of captures as one HTML file."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import UsageError
from tfrctrace.base.memory import trim_heap
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import OptionalTraces, check_output_place
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.commands.pages import write_pages
from tfrctrace.reports.output import STANDARD_OUTPUT, make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.reports.results import Results
    from tfrctrace.trace.trace import Trace

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
Csv = Annotated[bool, typer.Option("--csv", help="With --results: each table as CSV too.")]

PagesTo = Annotated[
    str | None,
    typer.Option(
        "--pages",
        metavar="DIRECTORY",
        help="Write a page for each capture there, and an index of them, instead of one page of all.",
    ),
]


def report(
    traces: OptionalTraces = None,
    *,
    saved: Saved = None,
    save_to: SaveTo = None,
    csv: Csv = False,
    pages: PagesTo = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default="NAME.html of one capture that is not anonymized, else report.html",
            help="Where to write; a name in .md makes it Markdown, - is standard output.",
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

    Without -o it is put into the current directory and named after the capture. With a name such as link.md
    it is Markdown, and its figures are SVG files in link-figures. With --from it is made of results that were
    saved before, and is the same to the byte. With --pages each capture has its own page.
    """
    from tfrctrace.reports.files.saved_results import load, save

    traces = traces or []
    if csv and save_to is None:
        raise UsageError("`--csv` is about saved results", hint="say where with `--results`")
    if pages is not None:
        others = {"--from": saved, "--join": reading.join, "--pair": reading.pair}
        _refuse_beside(
            {**others, "-o": output, "--results": save_to},
            "a page for each capture",
            "leave it out, or `--pages`",
        )
    path = output or default_name([] if anonymity.is_wanted else traces)
    check_output_place(path, traces)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    if saved is not None:
        others = {
            "--results": save_to,
            **_changed_reading_options(reading),
            "--anonymize": anonymity.is_wanted,
        }
        _refuse_beside(
            {"TRACE": traces, **others},
            "saved results",
            "it counts when the trace is read: leave it out, or make the report from the trace",
        )
        results, saved_title = load(saved)
        _write(results, path, title or saved_title)
        _print_location(path, console)
        return console.exit_status
    if not traces:
        raise UsageError("no trace is named", hint="name one, or results of a report with `--from`")
    if save_to is not None:
        make_folder(save_to)
    anonymizer = anonymity.anonymizer(console)
    if pages is not None:
        write_pages(
            traces,
            pages,
            lambda name: reading.open([name], console, anonymizer=anonymizer),
            console,
            title=title,
        )
        console.note(f"pages written to `{pages}`")
        return console.exit_status
    results, name = _results_and_name(reading.open(traces, console, anonymizer=anonymizer))
    trim_heap()
    _write(results, path, title or name)
    if save_to is not None:
        save(results, save_to, title=title or name, version=__version__, csv=csv)
    _print_location(path, console)
    return console.exit_status


def _results_and_name(trace: Trace) -> tuple[Results, str]:
    """Return what is told of a trace, and its name; the trace itself may be large, and is not needed."""
    return trace.results(), trace.name


def _changed_reading_options(reading: ReadingOptions) -> dict[str, bool]:
    """Return which options say how to read, and are not what they are by themselves."""
    usual = ReadingOptions(strict=reading.strict, quiet=reading.quiet)
    return {
        f"--{one.name.removesuffix('_bytes').replace('_', '-')}": getattr(reading, one.name)
        != getattr(usual, one.name)
        for one in fields(reading)
    }


def _refuse_beside(others: Mapping[str, object], what: str, hint: str) -> None:
    """Raise if something is given that has no effect on `what`."""
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"`{given[0]}` is of no use to {what}", hint=hint)


def _print_location(path: str, console: Console) -> None:
    if path != STANDARD_OUTPUT:
        console.note(f"report written to `{path}`")


def _write(results: Results, path: str, title: str) -> None:
    from tfrctrace.reports.build_report import build_report
    from tfrctrace.reports.formats import write_report

    write_report(path, build_report(results, title=title))


def default_name(traces: list[str]) -> str:
    """Return the name of the report of `traces`: the capture's own, if there is one and it is a file."""
    from tfrctrace.base.errors import STANDARD_INPUT
    from tfrctrace.parsers.sources import without_suffixes

    if len(traces) != 1 or traces[0] == STANDARD_INPUT or os.path.isdir(traces[0]):
        return "report.html"
    return f"{without_suffixes(traces[0])}.html"
