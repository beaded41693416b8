"""`tfrctrace report`: a report of traces as one HTML file."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Final

from tfrctrace import __version__
from tfrctrace.base.errors import UsageError
from tfrctrace.base.memory import give_memory_back_at_once, trim_heap
from tfrctrace.commands.console import Console
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.closed_loop_options import ReportedLoops
from tfrctrace.commands.options.common import (
    ExecutorName,
    Force,
    Jobs,
    OptionalTraces,
    RawText,
    check_output_place,
)
from tfrctrace.commands.options.grouped_help import output_option, reading_option
from tfrctrace.commands.options.reading_options import ReadingOptions
from tfrctrace.reports.output import STANDARD_OUTPUT, make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.objectives import ObjectiveResult
    from tfrctrace.reports.results import Results

Saved = Annotated[
    str | None,
    reading_option(
        "--from",
        metavar="DIRECTORY",
        help="Make the report from results saved with --results instead of a trace.",
    ),
]
SaveTo = Annotated[
    str | None,
    output_option(
        "--results",
        metavar="DIRECTORY",
        help="Save the results there as well: facts as JSON, tables as Parquet.",
    ),
]
Csv = Annotated[bool, output_option("--csv", help="With --results: save each table as CSV as well.")]

PagesTo = Annotated[
    str | None,
    output_option(
        "--pages",
        metavar="DIRECTORY",
        help="Write one page per capture and an index there instead of a single report.",
    ),
]

_OTHER_SUFFIXES: Final = frozenset(
    {".pdf", ".svg", ".png", ".docx", ".odt", ".tex", ".csv", ".json", ".parquet", ".xls", ".xlsx", ".ods"}
)
"""Suffixes of what a report is not."""


def report(
    traces: OptionalTraces = None,
    *,
    saved: Saved = None,
    save_to: SaveTo = None,
    csv: Csv = False,
    raw: RawText = False,
    pages: PagesTo = None,
    output: Annotated[
        str | None,
        output_option(
            "--output",
            "-o",
            metavar="FILE",
            show_default="NAME.html for a single capture that is not anonymized, else report.html",
            help="Output file; .md writes Markdown, - is standard output.",
        ),
    ] = None,
    force: Force = False,
    title: Annotated[
        str | None,
        output_option("--title", metavar="TEXT", help="Title of the report; default: the capture's name."),
    ] = None,
    limits: Annotated[
        str | None,
        output_option(
            "--limits",
            metavar="FILE",
            help="Judge the objectives of a TOML file (docs/check.md), and show when they were violated.",
        ),
    ] = None,
    loops: ReportedLoops,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    reading: ReadingOptions,
    anonymity: AnonymityOptions,
) -> int:
    """Write an HTML report.

    The report is a single file that needs no network. Without -o it is written to the current directory and
    named after the capture. With -o link.md it is Markdown, with its figures as SVG files in link-figures.
    A report made with --from is identical, byte for byte, to the one made from the trace.
    """
    give_memory_back_at_once()
    from tfrctrace.base import timezones

    traces = traces or []
    zone = timezones.TimeZone.named(reading.timezone)
    _check_csv(save_to, csv=csv, raw=raw)
    if pages is not None:
        others = {"--from": saved, "--join": reading.join, "--pair": reading.pair}
        _refuse_together(
            {**others, "-o": output, "--results": save_to}, "--pages", "leave out one of the two"
        )
    elif jobs is not None or executor is not None:
        name = "--executor" if jobs is None else "--jobs"
        raise UsageError(f"`{name}` needs `--pages`: a single report is one pass")
    if limits is not None:
        others = {"--from": saved, "--results": save_to}
        _refuse_together(others, "--limits", "saved results hold no intervals to judge: read the trace")
    loops.check({"--from": saved, "--results": save_to, "--pages": pages})
    path = output or default_name([] if anonymity.is_enabled else traces)
    suffix = os.path.splitext(path)[1].lower()
    if output is not None and suffix in _OTHER_SUFFIXES:
        raise UsageError(
            f"a report is a page or Markdown, and not written as `{suffix}`",
            hint="print the page in a browser, draw single figures with `tfrctrace plot`, and write tables "
            "with `tfrctrace convert`",
        )
    check_output_place(path, traces, force=force)
    console = Console(quiet=reading.quiet, strict=reading.strict)
    if saved is not None:
        others = {
            "--results": save_to,
            **_changed_reading_options(reading),
            "--anonymize": anonymity.is_enabled,
        }
        _refuse_together(
            {"TRACE": traces, **others},
            "--from",
            "it applies when a trace is read: leave it out, or make the report from the trace",
        )
        from tfrctrace.reports.files.saved_results import load

        results, saved_title = load(saved)
        _write(results, path, console, title=title or saved_title, zone=zone)
        _print_location(path, console)
        return console.exit_status
    if not traces:
        raise UsageError("no trace is given", hint="name a trace, or saved results with `--from`")
    if save_to is not None:
        make_folder(save_to)
    anonymizer = anonymity.anonymizer(console)
    if pages is not None:
        from tfrctrace.commands.pages import write_pages

        write_pages(
            traces,
            pages,
            reading,
            anonymizer,
            console,
            title=title,
            zone=zone,
            jobs=jobs,
            executor=executor,
            limits=limits,
        )
        console.note(f"pages written to `{pages}`")
        return console.exit_status
    trace = reading.open(traces, console, anonymizer=anonymizer)
    objectives = [] if limits is None else trace.objectives(limits)
    closed_loops = loops.run(trace)
    results, name = replace(trace.results(), closed_loops=closed_loops), trace.name
    # it may be large
    del trace
    trim_heap()
    _write(results, path, console, title=title or name, zone=zone, objectives=objectives)
    if save_to is not None:
        from tfrctrace.reports.files.saved_results import save

        save(results, save_to, title=title or name, version=__version__, csv=csv, raw=raw)
    _print_location(path, console)
    return console.exit_status


def _check_csv(save_to: str | None, *, csv: bool, raw: bool) -> None:
    if raw and not csv:
        raise UsageError("`--raw` needs `--csv`: it applies to CSV only")
    if csv and save_to is None:
        raise UsageError("`--csv` needs `--results`", hint="name a directory with `--results`")


def _changed_reading_options(reading: ReadingOptions) -> dict[str, bool]:
    """Return, for each reading option, whether it differs from its default."""
    # the zone is also that of results
    default = ReadingOptions(strict=reading.strict, quiet=reading.quiet, timezone=reading.timezone)
    return {
        f"--{field.name.removesuffix('_bytes').replace('_', '-')}": getattr(reading, field.name)
        != getattr(default, field.name)
        for field in fields(reading)
    }


def _refuse_together(others: Mapping[str, object], option: str, hint: str) -> None:
    """Raise for the first of `others` that is set, as it has no effect beside `option`."""
    for name, value in others.items():
        if value:
            raise UsageError(f"`{name}` cannot be used with `{option}`", hint=hint)


def _print_location(path: str, console: Console) -> None:
    if path != STANDARD_OUTPUT:
        console.note(f"report written to `{path}`")


def _write(
    results: Results,
    path: str,
    console: Console,
    *,
    title: str,
    zone: TimeZone,
    objectives: Sequence[ObjectiveResult] = (),
) -> None:
    from tfrctrace.reports.build_report import build_report
    from tfrctrace.reports.formats import write_report

    with console.printing_warnings():
        write_report(path, build_report(results, title=title, zone=zone, objectives=objectives))


def default_name(traces: list[str]) -> str:
    """Return the file name of the report: after the capture if it is a single file."""
    from tfrctrace.base.errors import STANDARD_INPUT
    from tfrctrace.parsers.pcap_over_ip import is_pcap_over_ip
    from tfrctrace.parsers.sources import without_suffixes

    if (
        len(traces) != 1
        or traces[0] == STANDARD_INPUT
        or is_pcap_over_ip(traces[0])
        or os.path.isdir(traces[0])
    ):
        return "report.html"
    return f"{without_suffixes(traces[0])}.html"
