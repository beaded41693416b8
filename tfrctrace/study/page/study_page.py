"""The page of a study: the figures of its paper, claims, figures, tables, tests, and how it was measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from tfrctrace.base.version import VERSION
from tfrctrace.metrics.thresholds import LEAST_PACKETS
from tfrctrace.reports.elements import Cell, Fact, Heading, Note, Report, Row, Section, TableView, Term
from tfrctrace.reports.page.html import render
from tfrctrace.reports.printers.means_table import view
from tfrctrace.reports.sections.caveats import problem_note
from tfrctrace.reports.units import MISSING, counted, format_count
from tfrctrace.runs.problems import OF_OPTIONS
from tfrctrace.study.page.criteria_tables import MOST_ROWS, criteria_sections
from tfrctrace.study.page.paper_table import paper_section
from tfrctrace.study.results.paper_rows import (
    confidence_text,
    ours_text,
    paper_rows,
    reason_text,
    scenario_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.reports.figures.charts import Chart
    from tfrctrace.reports.printers.means_table import Grid
    from tfrctrace.study.definition import Study
    from tfrctrace.study.results.check_claims import ClaimVerdict
    from tfrctrace.study.results.differences import TestResult
    from tfrctrace.study.run_study import StudyResults

_MOST_NOTES: Final = 200

_LARGEST_WITHOUT_EXPONENT: Final = 1e15


def page_of(results: StudyResults, grids: Sequence[Grid], charts: Sequence[Chart]) -> str:
    """Return the page as the text of an HTML file."""
    rows = paper_rows(results)
    sections = [
        _overview(results),
        *criteria_sections(results),
        paper_section(results.study, rows) if rows else None,
        _claims(results, has_paper=bool(rows)),
        Section("figures", "Figures", charts=tuple(charts)) if charts else None,
        Section("tables", "Tables", tables=tuple(map(view, grids))) if grids else None,
        _tests(results),
        _runs(results),
        _measured(results),
    ]
    shown = tuple(section for section in sections if section is not None)
    return render(Report(results.study.title, shown, kind="Study of many runs"))


def _overview(results: StudyResults) -> Section:
    study = results.study
    failed = sum(record is None for record in results.records)
    scenarios = {tuple(run.parameters[name] for name in study.runs.scenario) for run in results.runs}
    facts = [
        Fact("Runs", format_count(len(results.runs)), counted(failed, "broken run") if failed else ""),
        Fact("Scenarios", format_count(len(scenarios)), ", ".join(study.runs.scenario)),
        Fact("Quantities", format_count(len(study.quantities))),
    ]
    facts += _claim_facts(results)
    paper = f"Repeats {study.paper}." if study.paper else ""
    return Section(
        "overview",
        "Overview",
        paragraphs=tuple((text,) for text in (paper, study.description) if text),
        facts=tuple(facts),
        notes=tuple(_notes(results.problems)),
    )


def _claim_facts(results: StudyResults) -> Iterator[Fact]:
    """Give how many claims hold, do not hold, or cannot be told."""
    if results.verdicts:
        found = Counter(verdict.finding for verdict in results.verdicts)
        detail = f"{found['does not hold']} do not, {found['cannot tell']} cannot be told"
        yield Fact("Claims that hold", f"{found['holds']} of {len(results.verdicts)}", detail)
    agrees = [one for one in (verdict.agrees_with_paper for verdict in results.verdicts) if one is not None]
    if agrees:
        yield Fact("As in the paper", f"{sum(agrees)} of {len(agrees)}", "claims that can be told")


def _notes(problems: Sequence[Problem]) -> Iterator[Note]:
    """Give a note for each problem; one that many runs have is there once, and names the first."""
    alike: dict[tuple[str, str, str | None], list[Problem]] = {}
    for problem in problems:
        option = problem["source"] if problem["kind"] in OF_OPTIONS else None
        alike.setdefault((problem["kind"], problem["message"], option), []).append(problem)
    for first, *more in list(alike.values())[:_MOST_NOTES]:
        others = f", and so in {counted(len(more), 'more run')}" if more else ""
        yield problem_note({**first, "message": first["message"] + others})
    if len(alike) > _MOST_NOTES:
        yield Note("info", (f"{counted(len(alike) - _MOST_NOTES, 'more caveat')} not shown.",))


def _claims(results: StudyResults, *, has_paper: bool) -> Section | None:
    """Return the claims that stand in no row of the paper."""
    verdicts = [one for one in results.verdicts if not one.expectation.figures]
    if not verdicts:
        return None
    level = results.study.confidence
    rows = [_claim_row(number, verdict) for number, verdict in enumerate(verdicts, start=1)]
    heads = (
        Heading("Claim", numeric=False, is_prose=True),
        Heading("In words", numeric=False, is_prose=True),
        Heading("Verdict", numeric=False),
        Heading("Means", numeric=False, meaning="whether means alone are as claimed, which gates go by"),
        Heading("Values", numeric=False, is_prose=True),
        Heading("Reason", numeric=False, is_prose=True),
    )
    caption = (
        f"A verdict is by a test over repeated runs, at {level:.0%} confidence or more; one run cannot tell. "
        "A claim holds if it does in every scenario that it covers."
    )
    title = "Questions of the study's own" if has_paper else "Claims"
    return Section("claims", title, tables=(TableView("claims-table", caption, heads, tuple(rows)),))


def _claim_row(number: int, verdict: ClaimVerdict) -> Row:
    expectation = verdict.expectation
    words = "" if expectation.says == expectation.claim.text else expectation.says
    means = {True: "as claimed", False: "not as claimed", None: "unknown"}[verdict.is_in_order]
    confidence = "" if verdict.confidence is None else confidence_text(verdict.confidence)
    return Row(
        f"claim-{number}",
        (
            Cell(expectation.claim.text),
            Cell(words),
            Cell(verdict.finding, back=confidence),
            Cell(means, back=_gate_text(verdict)),
            Cell(ours_text(verdict)),
            Cell(reason_text(verdict)),
        ),
    )


def _gate_text(verdict: ClaimVerdict) -> str:
    """Return what a required claim means for the exit status, where it is not as it says."""
    expectation = verdict.expectation
    if not expectation.is_required or verdict.is_as_expected:
        return "" if expectation.holds else "known not to hold"
    return "required"


def _number(value: float | None) -> str:
    if value is None:
        return MISSING
    # four digits, and no exponent where thousands can be read
    text = f"{value:.4g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(value) < _LARGEST_WITHOUT_EXPONENT else text


def _tests(results: StudyResults) -> Section | None:
    if not results.tests:
        return None
    shown = results.tests[:MOST_ROWS]
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
            Cell(scenario_text(one.scenario) or "all runs"),
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
                Cell(
                    run.name,
                    back="could not be read" if record is None else "",
                    page=results.pages.get(run.name, ""),
                ),
                *(Cell(str(run.parameters[name])) for name in parameters),
            ),
        )
        for number, (run, record) in enumerate(zip(results.runs, results.records, strict=True), start=1)
    )
    caption = (
        f"the first {format_count(MOST_ROWS)} of {counted(len(rows), 'run')}"
        if len(rows) > MOST_ROWS
        else counted(len(rows), "run")
    )
    table = TableView("runs-table", caption, heads, rows[:MOST_ROWS], sortable=True)
    return Section("runs", "Runs", tables=(table,))


def _counted_flows(least_packets: int | None) -> str:
    if least_packets is None:
        return f"all; metrics those with at least {counted(LEAST_PACKETS, 'data packet')}"
    return f"with at least {counted(least_packets, 'data packet')}"


def _measured(results: StudyResults) -> Section:
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
        *_differing(study),
        Term("Program", f"tfrctrace {VERSION}"),
    ]
    if measure.labels:
        terms.insert(2, Term("Labels", "; ".join(measure.labels)))
    return Section("measured", "How it was measured", terms=tuple(terms))


def _differing(study: Study) -> Iterator[Term]:
    """Give what differs for some of the runs."""
    for rule in study.runs.rules:
        if rule.measure is not None:
            changed = [
                f"{field.name} {value}"
                for field in fields(rule.measure)
                if (value := getattr(rule.measure, field.name)) != getattr(study.measure, field.name)
                and field.name not in {"labels", "replay"}
            ]
            labels = (
                f"labels {'; '.join(rule.measure.labels)}"
                if rule.measure.labels != study.measure.labels
                else ""
            )
            words = "; ".join(filter(None, (*changed, labels)))
            if words:
                yield Term(f"Runs {', '.join(rule.files) or rule.table}", words)
