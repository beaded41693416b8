"""`tfrctrace audit`: a page on links over days to months, with incidents, where they were and why."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace import __version__
from tfrctrace.base.errors import Message, UsageError
from tfrctrace.base.memory import trim_heap
from tfrctrace.commands.console import INTERNAL_ERROR, NOT_READ, Console, print_message
from tfrctrace.commands.options.anonymity_options import AnonymityOptions
from tfrctrace.commands.options.common import Causes, ExecutorName, Jobs
from tfrctrace.commands.options.grouped_help import measuring_option, output_option
from tfrctrace.commands.options.reading_options import NOT_OF_CHAINS, ReadingOptions
from tfrctrace.commands.run_progress import run_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.api import Trace
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.batch.chain_task import BatchPlan
    from tfrctrace.batch.run_batch import FoundChains
    from tfrctrace.metrics.objectives import Objective
    from tfrctrace.metrics.results.audit import Audit
    from tfrctrace.parsers.anonymity import Anonymizer
    from tfrctrace.runs.workers import Workers

PAGE: Final = "index.html"
_RESULTS: Final = "results"
_INDEX: Final = "index.json"


def audit(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURES|RESULTS",
            help="Captures and folders of them, or one folder of `tfrctrace batch` or of an audit.",
            show_default=False,
        ),
    ],
    *,
    output: Annotated[
        str, output_option("--output", "-o", metavar="DIR", help="Folder of the audit.", show_default=False)
    ],
    limits: Annotated[
        str | None,
        measuring_option(
            "--limits",
            metavar="FILE",
            show_default="usual limits",
            help="TOML file of objectives (docs/check.md).",
        ),
    ] = None,
    raise_after: Annotated[
        int | None,
        measuring_option(
            "--raise",
            min=1,
            metavar="N",
            show_default="as the objectives",
            help="Violated intervals in a row that begin an incident.",
        ),
    ] = None,
    clear_after: Annotated[
        int | None,
        measuring_option(
            "--clear",
            min=1,
            metavar="N",
            show_default="as the objectives",
            help="Intervals in a row that met the objective and end an incident.",
        ),
    ] = None,
    causes: Causes = False,
    profile: Annotated[
        list[str] | None,
        measuring_option(
            "--profile",
            metavar="NAME|FILE",
            show_default=False,
            help="Score links by a profile: quality-of-outcome, delay-under-load, voice, or a TOML file of "
            "your own (docs/audit.md). Several may be given.",
        ),
    ] = None,
    inventory: Annotated[
        str | None,
        output_option(
            "--inventory",
            metavar="FILE",
            show_default=False,
            help="TOML file that names links (docs/groups.md#inventory).",
        ),
    ] = None,
    pages: Annotated[
        bool,
        output_option("--pages", help="Write a report of the captures of each incident, of the 20 longest."),
    ] = False,
    title: Annotated[str | None, output_option("--title", metavar="TEXT", help="Title of the page.")] = None,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    reading: Annotated[ReadingOptions, NOT_OF_CHAINS],
    anonymity: AnonymityOptions,
) -> int:
    """Find when links were bad over months, where that was, and why.

    Captures are read once each, as `tfrctrace batch` does: the next time only days with new files. DIR gets a
    page, a summary for tickets, the incidents as JSON, and tables by date and link.
    """
    from tfrctrace.audit.incident_pages import write_incident_pages
    from tfrctrace.audit.perform_audit import (
        base_width_ns,
        check_objectives,
        fitted,
        perform_audit,
        with_hysteresis,
    )
    from tfrctrace.audit.pieces import named_links, read_pieces
    from tfrctrace.audit.read_fillers import BIN_NS, with_fillers
    from tfrctrace.base.durations import duration_text
    from tfrctrace.base.hours_of_use import parse_hours
    from tfrctrace.base.inventory import read_inventory
    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.commands.batch import batch_plan
    from tfrctrace.gate.limits_file import read_audited
    from tfrctrace.profiles.profile_file import read_profiles
    from tfrctrace.reports.output import check_folder
    from tfrctrace.reports.units import enumerated
    from tfrctrace.runs.workers import chosen_workers

    console = Console(quiet=reading.quiet, strict=reading.strict)
    workers = chosen_workers(executor, jobs)
    zone = TimeZone.named(reading.timezone)
    check_folder(output)
    asked = read_audited(limits or _usual())
    objectives = with_hysteresis(asked.objectives, raise_after, clear_after)
    profiles = read_profiles(profile or ())
    paths: dict[str, str] = {}
    results = _results_of(inputs)
    if results is None:
        results = os.path.join(output, _RESULTS)
        every = duration_text(base_width_ns(objectives)).replace(" ", "")
        plan = replace(batch_plan(results, "host", every, reading, anonymity), causes=causes)
        usual = objectives if limits is None else ()
        paths = _read_captures(inputs, plan, reading, workers, console, usual=usual)
    else:
        _check_unread(reading, anonymity, pages=pages or causes)
    read = read_pieces(results)
    if inventory is not None:
        read = named_links(read, read_inventory(inventory))
    if limits is None:
        objectives = fitted(objectives, read.longest_ns, read.grouping.every_ns or 1)
    check_objectives(objectives, read.grouping.by, read.grouping.every_ns or 0)
    with run_progress(console, "days") as progress:
        found = perform_audit(
            read,
            objectives,
            os.path.abspath(output),  # workers may be in another folder
            workers=workers,
            profiles=profiles,
            hours=parse_hours(asked.hours, zone),
            progress=progress,
        )
    opening = partial(_open_quietly, reading, anonymity.anonymizer(console))
    found = with_fillers(
        found,
        output,
        paths,
        options=repr(reading.arguments()),
        trace_of=partial(opening, bin_ns=BIN_NS),
    )
    written = (
        write_incident_pages(
            found, output, paths, trace_of=opening, on_problems=console.print_problems, zone=zone
        )
        if pages
        else {}
    )
    left_out = _write(found, output, title or _title(found), zone, written)
    _report(found, output, console)
    if left_out:
        print_message(Message("error", f"left out of the page, which names why: {enumerated(left_out)}"))
        return INTERNAL_ERROR
    problems = [problem for one in found.evidence for problem in one.problems]
    errors = [one for one in problems if one["severity"] == "error"]
    warned = [one for one in problems if one["severity"] == "warning"]
    return NOT_READ if errors or (warned and console.strict) else console.exit_status


def _usual() -> str:
    """Return the file of objectives that is used without another."""
    from importlib import resources

    return str(resources.files("tfrctrace.audit").joinpath("usual.toml"))


def _results_of(inputs: Sequence[str]) -> str | None:
    """Return the folder of results that is named; None for captures."""
    for given in inputs:
        for folder in (given, os.path.join(given, _RESULTS)):
            if os.path.isfile(os.path.join(folder, _INDEX)) and os.path.isdir(os.path.join(folder, "chains")):
                if len(inputs) > 1:
                    raise UsageError(
                        f"`{given}` holds results, and other inputs are named",
                        hint="unite results with `tfrctrace merge`, and audit that",
                    )
                return folder
    return None


def _check_unread(reading: ReadingOptions, anonymity: AnonymityOptions, *, pages: bool) -> None:
    """Raise for options that say how captures are read, where results are named."""
    if anonymity.is_enabled:
        raise UsageError(
            "results of a batch cannot be anonymized any more",
            hint="anonymize the batch, or audit the captures",
        )
    usual = ReadingOptions(timezone=reading.timezone)
    if pages or reading.arguments() != usual.arguments():
        raise UsageError(
            "results are named, and options that say how captures are read",
            hint="name the captures: what was read before is not read again",
        )


def _read_captures(
    captures: Sequence[str],
    plan: BatchPlan,
    reading: ReadingOptions,
    workers: Workers,
    console: Console,
    *,
    usual: Sequence[Objective],
) -> dict[str, str]:
    """Perform the batch of which the audit is made; return the paths of files by their names in results.

    Intervals are those of the plan, of `usual` objectives such that they fit the captures.
    """
    from tfrctrace.batch.run_batch import chains_of, perform_batch
    from tfrctrace.commands.batch import announce, report_batch

    found = chains_of(captures, "days", store=reading.store)
    if usual:
        plan = replace(plan, grouping=replace(plan.grouping, every_ns=_fitting_ns(usual, found, plan.folder)))
    announce(found, console)
    with run_progress(console, "chains") as progress:
        done = perform_batch(found, plan, workers, progress=progress)
    report_batch(done, plan.folder, console, None)
    trim_heap()
    return {plan.shown("file", file.name): file.path for chain in found.chains for file in chain.files}


def _fitting_ns(usual: Sequence[Objective], found: FoundChains, results: str) -> int:
    """Return intervals that fit the captures, and those of which there are results."""
    from tfrctrace.audit.perform_audit import base_width_ns, fitted
    from tfrctrace.audit.pieces import longest_kept_ns
    from tfrctrace.batch.chains import longest_ns

    lasts_ns = longest_ns(found.chains)
    known_ns = longest_kept_ns(results) if os.path.isfile(os.path.join(results, _INDEX)) else 0
    return base_width_ns(usual if lasts_ns is None else fitted(usual, max(lasts_ns, known_ns)))


def _open_quietly(
    reading: ReadingOptions,
    anonymizer: Anonymizer | None,
    files: list[str],
    since: str,
    until: str,
    *,
    bin_ns: int | None = None,
) -> Trace:
    """Return captures between two times of UTC as a trace, whose problems the batch has reported."""
    from tfrctrace.commands.checked_runs import RecordingConsole

    within = replace(reading, join=len(files) > 1, since=since, until=until, last=None, timezone="UTC")
    silent = RecordingConsole(quiet=reading.quiet, strict=reading.strict, is_silent=True)
    return within.open(files, silent, bin_ns=bin_ns, anonymizer=anonymizer)


def _title(found: Audit) -> str:
    return (
        f"Audit of {found.links[0].name}" if len(found.links) == 1 else f"Audit of {len(found.links)} links"
    )


def _write(found: Audit, folder: str, title: str, zone: TimeZone, pages: Mapping[int, str]) -> list[str]:
    """Write the files of an audit; return the titles of the parts that could not be made."""
    from tfrctrace.reports.audit.audit_json import write_audit_json, write_scores
    from tfrctrace.reports.audit.page import FAILED, audit_report, summary_report
    from tfrctrace.reports.files.markdown import markdown
    from tfrctrace.reports.output import open_text_output
    from tfrctrace.reports.page.html import write_page

    write_audit_json(os.path.join(folder, "audit.json"), found, title, __version__)
    write_scores(os.path.join(folder, "scores.parquet"), found)
    with open_text_output(os.path.join(folder, "summary.md")) as file:
        file.write(markdown(summary_report(found, title=title, zone=zone), {}))
    page = audit_report(found, title=title, zone=zone, pages=pages)
    write_page(os.path.join(folder, PAGE), page)
    return [section.title for section in page.sections if section.key.startswith(FAILED)]


def _report(found: Audit, output: str, console: Console) -> None:
    from tfrctrace.reports.audit.incident_tables import filled_words
    from tfrctrace.reports.units import counted

    # one line would be the same for each of all others
    looked_for = (None, "captures gone", "not readable", "no bytes")
    for one in (one for link in found.links for one in link.incidents):
        if one.queue is not None and one.queue.lacking in looked_for:
            console.note(f"incident {one.number}, under load: {filled_words(one.queue)}")
    number = sum(len(link.incidents) for link in found.links)
    console.note(
        f"{counted(len(found.links), 'link')}, {counted(number, 'incident')}; the page: "
        f"`{os.path.join(output, PAGE)}`"
    )
