"""`tfrctrace experiment`: a study of many runs, from one file to its tables and figures."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.commands.console import CHECK_FAILED, DONE, Console
from tfrctrace.commands.options.common import ExecutorName, Jobs, Quiet, RawText, RunCache, Strict
from tfrctrace.commands.options.grouped_help import other_option, output_option, reading_option
from tfrctrace.commands.run_progress import run_progress
from tfrctrace.study.page.output_formats import FORMATS, SAVED_RUNS, check_formats

if TYPE_CHECKING:
    from tfrctrace.study.run_study import StudyResults

INIT: Final = "init"
"""Instead of a study: write one."""


def experiment(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="The study: a TOML file, or `bcp133` or `rfc8867` for those of RFC 9743 and RFC 8867; "
            f"`{INIT}` writes one for the runs in FOLDER.",
            show_default=False,
        ),
    ],
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[FOLDER]", help=f"For `{INIT}`: where the runs are.", show_default=False),
    ] = None,
    *,
    runs: Annotated[
        str | None,
        reading_option(
            "--runs",
            metavar="DIR",
            show_default="that of the study",
            help="Directory to which the paths of runs are relative.",
        ),
    ] = None,
    saved: Annotated[
        str | None,
        reading_option(
            "--from",
            metavar="FILE",
            show_default=False,
            help=f"Make the results from `{SAVED_RUNS}` of an earlier run of the study instead of traces.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        output_option(
            "--output",
            "-o",
            metavar="DIR",
            show_default="named after the study",
            help="Directory for tables, figures and the page.",
        ),
    ] = None,
    form: Annotated[
        list[str] | None,
        output_option(
            "--format",
            metavar="FORMAT",
            show_default="all",
            help=f"Write this format only; repeatable: {', '.join(FORMATS)}.",
        ),
    ] = None,
    pages: Annotated[
        bool,
        output_option("--pages", help="Write a report of each run too, to which the page links."),
    ] = False,
    raw: RawText = False,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    force: Annotated[bool, other_option("--force", help="Measure every run again, even if cached.")] = False,
    cache: RunCache = None,
    allow_code: Annotated[
        bool, other_option("--allow-code", help="Run the classes that the study names as `module:Class`.")
    ] = False,
    strict: Strict = False,
    quiet: Quiet = False,
) -> int:
    """Run a study and write its tables, figures and page.

    `init FOLDER` writes FOLDER/study.toml instead: a beginning, with parameters from the names of the runs.
    Cached runs are not measured again. The exit status is 1 if the means of a required claim are not as
    expected, 3 if a run cannot be read or was not made (the rest is done).
    """
    from tfrctrace.reports.output import check_folder
    from tfrctrace.reports.units import counted
    from tfrctrace.runs.cache import chosen_cache
    from tfrctrace.runs.workers import chosen_workers
    from tfrctrace.study.file.study_file import find_study, read_study
    from tfrctrace.study.page.write_results import write_results
    from tfrctrace.study.run_pages import write_run_pages
    from tfrctrace.study.run_study import perform, results_of_saved
    from tfrctrace.study.saved_runs import read_saved

    console = Console(quiet=quiet, strict=strict)
    if (study == INIT) != (folder is not None):
        raise UsageError(f"`{INIT}` and a folder belong together", hint=f"write `experiment {INIT} FOLDER`")
    if folder is not None:
        return _init(folder, console)
    forms = check_formats(form or FORMATS)
    if pages and "html" not in forms:
        raise UsageError("`--pages` needs the page that links to them", hint="add `--format html`")
    workers = chosen_workers(executor, jobs)
    if saved is not None and (runs is not None or force or pages):
        name = "--runs" if runs is not None else "--force" if force else "--pages"
        raise UsageError(f"`{name}` is for runs, and `--from` reads none", hint="leave out one of the two")
    earlier = None if saved is None else read_saved(saved)
    settings = None if earlier is None else earlier.settings
    path = find_study(study)
    if path != study and runs is None and saved is None:
        raise UsageError(
            f"the study `{study}` has no runs of its own", hint="name their folder: `--runs DIR`"
        )
    plan = read_study(path, runs=runs, allow_code=allow_code, settings=settings)
    place = output or os.path.splitext(os.path.basename(study))[0]
    if os.path.exists(place) and not os.path.isdir(place):
        raise UsageError(f"`{place}` is a file, not a folder", hint="choose another name with `-o`")
    check_folder(place)
    if earlier is not None and saved is not None:
        results = results_of_saved(plan, earlier, saved)
    else:
        with run_progress(console) as progress:
            results = perform(
                plan, workers=workers, cache=chosen_cache(cache), force=force, progress=progress
            )
    if pages:
        with run_progress(console, "pages") as progress:
            written, lacking = write_run_pages(
                plan, [run for run, _ in results.read()], place, workers=workers, progress=progress
            )
        console.print_problems(lacking)
        results = replace(results, pages=written)
    console.print_problems(results.problems)
    with console.printing_warnings():
        empty = write_results(results, place, forms, raw=raw)
    for name in empty:
        console.print_problems(
            [
                input_problem(
                    study, "figure", f"figure `{name}` is empty: no run has its values", severity="warning"
                )
            ]
        )
    _print_findings(results)
    known = f"{results.cached} from the cache" if saved is None else f"saved in `{saved}`"
    console.note(f"{counted(len(results.runs), 'run')}, {known}; results in `{place}`")
    if console.exit_status:
        return console.exit_status
    required = (verdict for verdict in results.verdicts if verdict.expectation.is_required)
    return DONE if all(verdict.is_as_expected for verdict in required) else CHECK_FAILED


def _init(folder: str, console: Console) -> int:
    """Write a study file for the runs below a folder."""
    from tfrctrace.reports.output import open_output
    from tfrctrace.study.file.new_study import new_study

    path = os.path.join(folder, "study.toml")
    if os.path.exists(path):
        raise UsageError(f"`{path}` exists", hint="delete or rename it first")
    text = new_study(folder)
    with open_output(path) as file:
        file.write(text.encode(errors="surrogateescape"))
    console.note(f"study written to `{path}`; `tfrctrace experiment {path}` runs it")
    return DONE


def _print_findings(results: StudyResults) -> None:
    """Print the rows of the paper, and the findings of all other claims."""
    from tfrctrace.base.errors import printable
    from tfrctrace.study.page.criteria_tables import criteria_lines
    from tfrctrace.study.page.paper_table import paper_lines
    from tfrctrace.study.results.paper_rows import finding_text, ours_text, paper_rows

    for line in (*criteria_lines(results), *paper_lines(paper_rows(results))):
        print(printable(line))
    for verdict in results.verdicts:
        unexpected = verdict.expectation.is_required and not verdict.is_as_expected
        if unexpected or not verdict.expectation.figures:
            marked = " (unexpected)" if unexpected else ""
            has_values = unexpected or verdict.finding != "holds"
            values = ours_text(verdict) if has_values else ""
            reasons = "; ".join(filter(None, (verdict.reason if has_values else "", values)))
            shown = f" [{reasons}]" if reasons else ""
            print(printable(f"{finding_text(verdict)}{marked}: {verdict.expectation.claim.text}{shown}"))
