"""The criteria that a study judges by: for the page, Markdown, LaTeX, frames and the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView
from tfrctrace.reports.figures.charts import REST, Chart, Series
from tfrctrace.reports.printers.means_table import Estimate, estimate_text, text_latex, text_markdown
from tfrctrace.study.page.tc_commands import tc_commands
from tfrctrace.study.results.judge import VERDICTS, algorithms, by_criterion
from tfrctrace.study.results.paper_rows import estimate_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.study.criteria import Criterion, Judging, Place
    from tfrctrace.study.results.judge import Judgement
    from tfrctrace.study.run_study import StudyResults

MOST_ROWS: Final = 2_000
"""Of a table of runs or tests; the files beside the page have all."""

_WIDTH: Final = 80
_WORDS: Final = {
    ("harm", "worse"): "more harm",
    ("harm", "no worse"): "no more harm",
    ("performance", "worse"): "does worse",
    ("performance", "no worse"): "does no worse",
}
_COLOURS: Final = {"worse": 1, "no worse": 2, "cannot tell": 0, "not judged": REST}


def verdict_text(one: Judgement) -> str:
    """Return a verdict in words that fit its criterion."""
    if one.criterion.limit is not None and one.is_decided:
        return "beyond the threshold" if one.verdict == "worse" else "within the threshold"
    return _WORDS.get((one.criterion.about, one.verdict), one.verdict)


def _value_text(one: Judgement) -> str:
    return "" if one.cell is None else estimate_text(estimate_of(one.cell), one.cell.unit)


def _against_text(one: Judgement) -> str:
    """Return the values of the references, or the threshold."""
    if one.cell is None:
        return ""
    if one.criterion.limit is not None:
        return f"threshold {estimate_text(Estimate(value=one.criterion.limit), one.cell.unit)}"
    return ", ".join(
        f"{name} {estimate_text(estimate_of(cell), cell.unit)}" for name, cell in one.references.items()
    )


def _margin_text(criterion: Criterion) -> str:
    """Return how much worse is worse."""
    worse = criterion.worse
    if worse is None or criterion.limit is not None:
        return ""
    times = worse.factor if worse.sign == ">" else 1 / worse.factor
    margin = f"by a factor of {times:.3g}" if times > 1 else ""
    return " and ".join(filter(None, (margin, f"{abs(worse.margin):g}" if worse.margin else "")))


def _harm_text(one: Judgement) -> str:
    if one.harm is None:
        return ""
    if one.harm.low is None or one.harm.high is None:
        return f"{one.harm.value:.2f}"
    return f"{one.harm.value:.2f} ({one.harm.low:.2f} to {one.harm.high:.2f})"


def profile_chart(results: StudyResults) -> Chart:
    """Return how many criteria of each algorithm have which verdict."""
    named = algorithms(results.judgements)
    counts = Counter((one.algorithm, one.verdict) for one in results.judgements)
    return Chart(
        key="profile",
        title="Verdicts by algorithm",
        description=f"How many criteria have which verdict, of {', '.join(named)}",
        caption="Criteria that a specification answers, or whose place was not run, are not judged.",
        kind="stacks",
        x_label="",
        y_label="criteria",
        unit="",
        series=tuple(
            Series(
                label=verdict,
                x=tuple(map(float, range(len(named)))),
                values=tuple(float(counts[name, verdict]) for name in named),
                colour=_COLOURS[verdict],
            )
            for verdict in VERDICTS
        ),
        categories=tuple(named),
    )


def criteria_sections(results: StudyResults) -> Iterator[Section]:
    """Give the sections of a page: verdicts side by side, what each rests on, and the places."""
    judging = results.study.judging
    if judging is None:
        return
    level = f"{results.study.confidence:.0%}"
    beyond = "More harm, or worse, is beyond the threshold"
    if judging.references:
        beyond = (
            f"More harm, or worse, is beyond the worse of {' and '.join(judging.references)} in the same "
            "place by more than the margin"
        )
    caption = (
        f"{beyond}, by Welch's test at {level}, with p values corrected over the criteria of an algorithm "
        "(Benjamini and Hochberg). Margins and thresholds are this study's where its criteria do not name "
        "their source."
    )
    if judging.references:
        caption += " A reference is judged against the others."
    yield Section(
        "verdicts",
        "Verdicts",
        charts=(profile_chart(results),),
        tables=(_matrix(results.judgements, judging.source, caption),),
    )
    yield Section("evidence", "What verdicts rest on", tables=(_evidence(results),))
    yield Section("places", "Scenarios", paragraphs=((_LAYOUT,),), tables=(_places(judging),))


_LAYOUT: Final = (
    "A run is a capture at the sender, before the bottleneck: RUNS/ALGORITHM/SCENARIO/NUMBER/sender.pcap, "
    "also compressed. The ports of the receivers tell flows apart."
)


def _matrix(judgements: Sequence[Judgement], source: str, caption: str) -> TableView:
    heads = [Heading(source, numeric=False), Heading("Criterion", numeric=False, is_prose=True)]
    heads += [Heading(name, numeric=False) for name in algorithms(judgements)]
    rows = []
    for number, members in enumerate(by_criterion(judgements), start=1):
        criterion = members[0].criterion
        cells = [Cell(f"section {criterion.section}"), Cell(criterion.title, back=criterion.reason)]
        cells += [
            Cell("" if criterion.reason else verdict_text(one), back=_value_text(one)) for one in members
        ]
        rows.append(Row(f"criterion-{number}", tuple(cells)))
    return TableView("verdicts-table", caption, tuple(heads), tuple(rows))


_EVIDENCE: Final = (
    "section", "criterion", "scenario", "metric", "algorithm", "value", "against", "margin", "harm", "runs",
    "p", "verdict", "reason",
)  # fmt: skip


def _evidence_texts(judgements: Sequence[Judgement]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give a row of texts for each judgement, and one for all algorithms that lack the same.

    With each is the name of its first run, empty if it has none.
    """
    for members in by_criterion(judgements):
        lacking: dict[str, list[str]] = {}
        for one in members:
            if one.cell is None:
                lacking.setdefault(one.reason, []).append(one.algorithm)
                continue
            criterion, cells = one.criterion, [one.cell, *one.references.values()]
            texts = (
                criterion.section,
                criterion.title,
                criterion.place,
                criterion.metric,
                one.algorithm,
                _value_text(one),
                _against_text(one),
                _margin_text(criterion),
                _harm_text(one),
                "/".join(str(cell.repetitions) for cell in cells),
                "" if one.p_corrected is None else f"{one.p_corrected:.2g}",
                verdict_text(one),
                one.reason,
            )
            yield texts, one.cell.runs[0].name
        criterion = members[0].criterion
        for reason, names in lacking.items():
            about = (criterion.section, criterion.title, criterion.place, criterion.metric)
            named = "all" if len(names) == len(members) else ", ".join(names)
            yield (*about, named, *[""] * 6, "not judged", reason), ""


def _evidence(results: StudyResults) -> TableView:
    prose = {"criterion", "against", "reason", "metric"}
    heads = tuple(Heading(name.capitalize(), numeric=False, is_prose=name in prose) for name in _EVIDENCE)
    run_rows = {run.name: f"run-{number}" for number, run in enumerate(results.runs[:MOST_ROWS], start=1)}
    rows = tuple(
        Row(
            f"evidence-{number}",
            tuple(
                Cell(text, anchor=run_rows.get(first_run, "") if name == "runs" else "")
                for name, text in zip(_EVIDENCE, texts, strict=True)
            ),
        )
        for number, (texts, first_run) in enumerate(_evidence_texts(results.judgements), start=1)
    )
    caption = (
        "p: two-sided, corrected. Harm (Ware et al., 2019): the part of what the flow has alone that it "
        "loses beside the algorithm, with its interval by Fieller's method. Runs: of the algorithm (the link "
        "is to the first of them) and of each reference."
    )
    return TableView("evidence-table", caption, heads, rows)


PLACE_HEADS: Final = ("scenario", "path", "flows", "tc")
PLACE_LEGEND: Final = (
    "IN is the interface of the bottleneck towards the receiver, OUT one beyond it, BACK one of the way "
    "back; times are since the start of the run."
)


def place_texts(place: Place, judging: Judging) -> tuple[str, ...]:
    """Return what a scenario is: its name, its path, its flows and the commands that make it."""
    flows = "; ".join(_flow_texts(place, judging))
    return (
        place.name,
        f"{place.says}: {place.path_text()}",
        flows,
        "; ".join(tc_commands(place, judging.ports)),
    )


def _places(judging: Judging) -> TableView:
    heads = tuple(
        Heading(name.capitalize(), numeric=False, is_prose=name != "scenario") for name in PLACE_HEADS
    )
    rows = tuple(
        Row(f"place-{place.name}", tuple(map(Cell, place_texts(place, judging)))) for place in judging.places
    )
    return TableView("places-table", PLACE_LEGEND, heads, rows)


CRITERION_HEADS: Final = ("section", "criterion", "scenario", "metric", "worse")


def criterion_texts(criterion: Criterion) -> tuple[str, ...]:
    """Return what a criterion asks, and by how much worse is worse; or why it is not measured."""
    if criterion.reason:
        return criterion.section, criterion.title, "", "", f"not judged: {criterion.reason}"
    worse = "" if criterion.worse is None else {">": "higher", "<": "lower"}[criterion.worse.sign]
    beyond = f"than {criterion.limit:,.10g}" if criterion.limit is not None else _margin_text(criterion)
    return criterion.section, criterion.title, criterion.place, criterion.metric, f"{worse} {beyond}".strip()


def _flow_texts(place: Place, judging: Judging) -> Iterator[str]:
    for flow, port in zip(place.flows, place.ports_of_flows(judging.ports), strict=True):
        parts = [
            f"{flow.label} to port {port}",
            flow.controller or "",
            f"from {flow.start_s:g} s" if flow.start_s else "",
            f"{flow.total:,} bytes" if flow.total is not None else "",
            f"{flow.send:,} bytes every {flow.every_s * 1e3:g} ms" if flow.every_s is not None else "",
            f"{flow.rtt_s * 1e3:g} ms" if flow.rtt_s is not None else "",
        ]
        yield ", ".join(filter(None, parts))


def criteria_markdown(results: StudyResults) -> str:
    """Return what verdicts rest on as a table of GitHub's Markdown."""
    texts = [texts for texts, _ in _evidence_texts(results.judgements)]
    return text_markdown(results.study.title, _EVIDENCE, texts)


def criteria_latex(results: StudyResults) -> str:
    """Return the verdicts of all algorithms side by side as a `tabular`."""
    named = algorithms(results.judgements)
    rows = [
        (members[0].criterion.section, members[0].criterion.title, *map(verdict_text, members))
        for members in by_criterion(results.judgements)
    ]
    return text_latex("criteria", results.study.title, ("section", "criterion", *named), rows)


def criteria_frame(results: StudyResults) -> pl.DataFrame | None:
    """Return a row for each criterion and algorithm; None if the study judges nothing."""
    import polars as pl

    if results.study.judging is None:
        return None
    rows = [_facts(one) for one in results.judgements]
    numbers = ("value", "low", "high", "limit", "harm", "harm_low", "harm_high", "p_value", "p_corrected")
    types: dict[str, Any] = dict.fromkeys(numbers, pl.Float64) | {"runs": pl.Int64}
    return pl.DataFrame(rows, schema={name: types.get(name, pl.String) for name in rows[0]} if rows else {})


def _facts(one: Judgement) -> dict[str, object]:
    criterion, cell, harm = one.criterion, one.cell, one.harm
    student = None if cell is None else cell.student
    return {
        "section": criterion.section,
        "criterion": criterion.title,
        "scenario": criterion.place or None,
        "metric": criterion.metric or None,
        "quantity": None if cell is None else cell.quantity,
        "group": criterion.group,
        "algorithm": one.algorithm,
        "verdict": one.verdict,
        "about": criterion.about,
        "value": None if cell is None else cell.mean,
        "low": student.low if student else None,
        "high": student.high if student else None,
        "unit": None if cell is None else cell.unit,
        "runs": None if cell is None else cell.repetitions,
        "files": None if cell is None else " ".join(dict.fromkeys(run.name for run in cell.runs)),
        "against": _against_text(one) or None,
        "margin": _margin_text(criterion) or None,
        "limit": criterion.limit,
        "harm": None if harm is None else harm.value,
        "harm_low": None if harm is None else harm.low,
        "harm_high": None if harm is None else harm.high,
        "p_value": one.p_value,
        "p_corrected": one.p_corrected,
        "reason": one.reason or None,
    }


def criteria_lines(results: StudyResults) -> Iterator[str]:
    """Give the lines of a terminal: the counts of each algorithm, and the criteria by which it is worse."""
    for name in algorithms(results.judgements):
        own = [one for one in results.judgements if one.algorithm == name]
        counts = Counter(one.verdict for one in own)
        judged = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS[:3])
        yield f"{name}: {judged}; not judged {counts['not judged']}"
        for one in own:
            if one.verdict == "worse":
                title = f"{one.criterion.section} {one.criterion.title}"
                yield from _wrapped(f"{title}: {_value_text(one)} against {_against_text(one)}")
        lacking = [
            f"{one.criterion.section}: {one.reason}"
            for one in own
            if one.verdict == "not judged"
            and not one.criterion.reason
            and not one.reason.startswith("no run")
        ]
        if lacking:
            yield from _wrapped(f"{len(lacking)} not judged for lack of runs or values, such as {lacking[0]}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
