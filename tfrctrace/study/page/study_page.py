"""The page of a study: what was claimed and found, figures, tables, tests, and how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.elements import Cell, Fact, Heading, Note, Report, Row, Section, TableView, Term
from tfrctrace.reports.page.html import render
from tfrctrace.reports.printers.means_table import view
from tfrctrace.reports.sections.caveats import problem_note
from tfrctrace.reports.units import MISSING, counted, format_count
from tfrctrace.trace.measuring import LEAST_PACKETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.reports.figures.charts import Chart
    from tfrctrace.reports.printers.means_table import Grid
    from tfrctrace.study.definition import Value
    from tfrctrace.study.results.check_claims import ClaimVerdict
    from tfrctrace.study.results.differences import TestResult
    from tfrctrace.study.run_study import StudyResults

_MOST_ROWS: Final = 2_000
"""Of a table of runs or tests; the files beside the page have all."""

_MOST_NOTES: Final = 200

_MOST_LOOKS: Final = 20

_LARGEST_WITHOUT_EXPONENT: Final = 1e15
"""Of the scenarios in which a claim fails."""


def page_of(results: StudyResults, grids: Sequence[Grid], charts: Sequence[Chart]) -> str:
    """Return the page as the text of an HTML file."""
    sections = [
        _overview(results),
        _claims(results),
        Section("figures", "Figures", charts=tuple(charts)) if charts else None,
        Section("tables", "Tables", tables=tuple(map(view, grids))) if grids else None,
        _tests(results),
        _runs(results),
        _measured(results),
    ]
    shown = tuple(one for one in sections if one is not None)
    return render(Report(results.study.title, shown, kind="Study of many runs"))


def _overview(results: StudyResults) -> Section:
    study = results.study
    failed = sum(record["failed"] for record in results.records)
    scenarios = {tuple(run.parameters[name] for name in study.runs.scenario) for run in results.runs}
    facts = [
        Fact("Runs", format_count(len(results.runs)), counted(failed, "broken run") if failed else ""),
        Fact("Scenarios", format_count(len(scenarios)), ", ".join(study.runs.scenario)),
        Fact("Quantities", format_count(len(study.quantities))),
    ]
    if results.verdicts:
        right = sum(verdict.is_as_expected for verdict in results.verdicts)
        facts.append(Fact("Claims", f"{right} of {len(results.verdicts)}", "as expected"))
    return Section(
        "overview",
        "Overview",
        paragraphs=((study.description,),) if study.description else (),
        facts=tuple(facts),
        notes=tuple(_notes(results.problems)),
    )


def _notes(problems: Sequence[Problem]) -> Iterator[Note]:
    for problem in problems[:_MOST_NOTES]:
        yield problem_note(problem)
    if len(problems) > _MOST_NOTES:
        yield Note("info", (f"{counted(len(problems) - _MOST_NOTES, 'more caveat')} not shown.",))


def where_text(scenario: Sequence[tuple[str, Value]]) -> str:
    """Return values of parameters as `queue = red, flows = 4`."""
    return ", ".join(f"{name} = {value}" for name, value in scenario)


def _claims(results: StudyResults) -> Section | None:
    if not results.verdicts:
        return None
    rows = [_claim_row(number, verdict) for number, verdict in enumerate(results.verdicts, start=1)]
    heads = (
        Heading("Claim", numeric=False),
        Heading("In words", numeric=False, is_prose=True),
        Heading("Finding", numeric=False),
        Heading("Expected", numeric=False),
        Heading("Where it fails", numeric=False, is_prose=True),
    )
    caption = "A claim holds if it holds in every scenario that it covers."
    return Section("claims", "Claims", tables=(TableView("claims-table", caption, heads, tuple(rows)),))


def _claim_row(number: int, verdict: ClaimVerdict) -> Row:
    expectation = verdict.expectation
    where = failing(verdict)
    words = "" if expectation.says == expectation.claim.text else expectation.says
    cells = (
        expectation.claim.text,
        words,
        verdict.finding,
        "holds" if expectation.holds else "fails",
        where,
    )
    return Row(f"claim-{number}", tuple(map(Cell, cells)))


def failing(verdict: ClaimVerdict) -> str:
    """Return where a claim does not hold, or why that is unknown; of many scenarios the first."""
    if verdict.reason:
        return verdict.reason
    looks = [look for look in verdict.looks if look.finding != "holds"]
    shown = [
        f"{where_text(look.scenario) or 'all runs'}: {_number(look.left)} against {_number(look.right)}"
        for look in looks[:_MOST_LOOKS]
    ]
    more = [f"and {len(looks) - _MOST_LOOKS} more"] if len(looks) > _MOST_LOOKS else []
    return "; ".join([*shown, *more])


def _number(value: float | None) -> str:
    if value is None:
        return MISSING
    # four digits, and no exponent where thousands can be read
    text = f"{value:.4g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(value) < _LARGEST_WITHOUT_EXPONENT else text


def _tests(results: StudyResults) -> Section | None:
    if not results.tests:
        return None
    shown = results.tests[:_MOST_ROWS]
    heads = (
        Heading("Quantity", numeric=False),
        Heading("Where", numeric=False),
        Heading("Between", numeric=False),
        Heading("Difference"),
        Heading("Effect", meaning="Hedges' g of two, epsilon squared of more"),
        Heading("Test", numeric=False),
        Heading("p"),
    )
    rows = tuple(_test_row(number, one) for number, one in enumerate(shown, start=1))
    caption = f"{counted(len(results.tests), 'test')}; two levels by Welch, more by Kruskal and Wallis."
    return Section(
        "tests", "Differences", tables=(TableView("tests-table", caption, heads, rows, sortable=True),)
    )


def _test_row(number: int, one: TestResult) -> Row:
    p_value = one.p_value if one.p_holm is None else one.p_holm
    interval = "" if one.low is None or one.high is None else f"{one.low:.4g} to {one.high:.4g}"
    return Row(
        f"test-{number}",
        (
            Cell(one.quantity),
            Cell(where_text(one.scenario) or "all runs"),
            Cell(", ".join(map(str, one.levels)), back=f"n = {', '.join(map(str, one.runs))}"),
            Cell(_with_unit(one.difference, one.unit), back=interval, sort=one.difference),
            Cell(_number(one.effect), sort=one.effect),
            Cell(one.test if one.reason is None else one.reason),
            Cell(_number(p_value), back="Holm" if one.p_holm is not None else "", sort=p_value),
        ),
    )


def _with_unit(value: float | None, unit: str) -> str:
    return _number(value) + (f" {unit}" if unit and value is not None else "")


def _runs(results: StudyResults) -> Section:
    parameters = results.study.runs.parameters
    heads = (Heading("Run", numeric=False), *(Heading(name, numeric=False) for name in parameters))
    rows = tuple(
        Row(
            f"run-{number}",
            (
                Cell(run.name, back="could not be read" if record["failed"] else ""),
                *(Cell(str(run.parameters[name])) for name in parameters),
            ),
        )
        for number, (run, record) in enumerate(zip(results.runs, results.records, strict=True), start=1)
    )
    caption = (
        f"the first {format_count(_MOST_ROWS)} of {counted(len(rows), 'run')}"
        if len(rows) > _MOST_ROWS
        else counted(len(rows), "run")
    )
    table = TableView("runs-table", caption, heads, rows[:_MOST_ROWS], sortable=True)
    return Section("runs", "Runs", tables=(table,))


def _counted_flows(least_packets: int | None) -> str:
    if least_packets is None:
        return f"all; metrics those with at least {counted(LEAST_PACKETS, 'data packet')}"
    return f"with at least {counted(least_packets, 'data packet')}"


def _measured(results: StudyResults) -> Section:
    import tfrctrace

    study = results.study
    measure = study.measure
    terms = [
        Term(
            "Rates",
            f"{measure.basis}, averaged over windows of {measure.window}"
            + (f", without the first {measure.warmup} of each flow" if measure.warmup else ""),
        ),
        Term(
            "Flows",
            _counted_flows(measure.least_packets) + (", with a label" if measure.only_labelled else ""),
        ),
        Term(
            "Intervals",
            f"{study.confidence:.0%}, Student's t; the tables beside this page also have bootstrap intervals",
        ),
        Term("Program", f"tfrctrace {tfrctrace.__version__}"),
    ]
    if measure.labels:
        terms.insert(2, Term("Labels", "; ".join(measure.labels)))
    return Section("measured", "How it was measured", terms=tuple(terms))
