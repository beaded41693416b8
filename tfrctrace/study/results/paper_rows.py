"""The figures and tables of a paper, row by row: what each shows, its value, ours, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from tfrctrace.parsers.sources import natural_key
from tfrctrace.reports.printers.means_table import Estimate, estimate_text
from tfrctrace.reports.units import counted, enumerated
from tfrctrace.study.results.cells import Cell, is_same, matches
from tfrctrace.study.results.pivot import merge_cells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tfrctrace.study.definition import FigurePlan, Reference, TablePlan, Value
    from tfrctrace.study.results.check_claims import ClaimCheck, ClaimVerdict
    from tfrctrace.study.run_study import StudyResults

_MOST_CHECKS: Final = 6
"""Scenarios of a claim whose values are shown; `claims` has all."""

_MOST_VALUES: Final = 8
"""Published values of a figure that are shown; its table and drawing have all."""

OWN: Final = "own question"
"""What the paper states of a claim that is not its own."""

_SURE: Final = 0.9995

_STATUS: Final = {
    "drawn": "drawn",
    "drawing": "drawing without data",
    "text only": "text only",
    "not run": "cannot tell",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """A figure or table of the paper, and one claim about it if there is any."""

    figure: str
    shows: str
    setting: str
    claim: str
    """The claim in testable form, or what the paper says without one."""
    says: str = ""
    stated: str = ""
    """What the paper states of the claim."""
    ours: str = ""
    paper: str = ""
    """The values that the paper prints."""
    verdict: str
    confidence: float | None = None
    agrees: bool | None = None
    reason: str = ""


def paper_rows(results: StudyResults) -> list[PaperRow]:
    """Return the rows of all figures and tables that have an id, in order of the ids."""
    study = results.study
    plans: tuple[FigurePlan | TablePlan, ...] = (*study.figures, *study.tables)
    by_id: dict[str, list[FigurePlan | TablePlan]] = {}
    for plan in plans:
        if plan.paper.id is not None:
            by_id.setdefault(plan.paper.id, []).append(plan)
    return [row for name in sorted(by_id, key=_order) for row in _rows_of_figure(results, name, by_id[name])]


def _order(name: str) -> tuple[int, list[tuple[int, int, str]]]:
    """Return a sort key: figures, tables, then what has another name."""
    kinds = ("figure", "table")
    kind = next((place for place, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))
    return kind, natural_key(name)


def _rows_of_figure(
    results: StudyResults, name: str, plans: Sequence[FigurePlan | TablePlan]
) -> Iterator[PaperRow]:
    shows = _joined(plan.title for plan in plans)
    setting = _joined(_set_ups(plan) for plan in plans)
    reason = _joined(plan.paper.reason for plan in plans)
    states = _joined(plan.paper.states for plan in plans)
    published = [reference for reference in results.study.references if reference.figure == name]
    verdicts = [one for one in results.verdicts if name in one.expectation.figures]
    if published or not verdicts:
        ours, paper = _published(results, published)
        status = _STATUS[plans[0].paper.status]
        yield PaperRow(
            figure=name,
            shows=shows,
            setting=setting,
            claim=states,
            ours=ours,
            paper=paper,
            verdict="values" if published and status == "drawn" else status,
            reason=reason,
        )
    for verdict in verdicts:
        expectation = verdict.expectation
        yield PaperRow(
            figure=name,
            shows=shows,
            setting=setting,
            claim=expectation.claim.text,
            says="" if expectation.says == expectation.claim.text else expectation.says,
            stated=stated_text(verdict),
            ours=ours_text(verdict),
            verdict=verdict.finding,
            confidence=verdict.confidence,
            agrees=verdict.agrees_with_paper,
            reason=reason_text(verdict),
        )


def _set_ups(plan: FigurePlan | TablePlan) -> str:
    """Return the set-up of the paper, and what this study has instead."""
    paper, here = plan.paper.setting, plan.paper.set_up
    return "; ".join(filter(None, (paper, here and f"here: {here}")))


def _joined(texts: Iterator[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def stated_text(verdict: ClaimVerdict) -> str:
    """Return what the paper states of a claim."""
    stated = verdict.expectation.holds_in_paper
    return OWN if stated is None else "holds" if stated else "does not hold"


def finding_text(verdict: ClaimVerdict | PaperRow) -> str:
    """Return a finding with its confidence: `holds (99.2 %)`."""
    finding = verdict.verdict if isinstance(verdict, PaperRow) else verdict.finding
    return finding if verdict.confidence is None else f"{finding} ({confidence_text(verdict.confidence)})"


def confidence_text(confidence: float) -> str:
    """Return a confidence in percent, with what is left of it where it is nearly sure."""
    if confidence >= _SURE:
        return "> 99.9 %"
    return f"{confidence:.1%}".replace("%", " %")


def reason_text(verdict: ClaimVerdict) -> str:
    """Return why a claim cannot be told, or why it is not what the paper states; empty where it is."""
    expectation = verdict.expectation
    if verdict.finding == "cannot tell":
        return verdict.reason or ""
    is_as_stated = verdict.agrees_with_paper if expectation.holds_in_paper is not None else None
    return "" if is_as_stated or (verdict.finding == "holds" and is_as_stated is None) else expectation.reason


def scenario_text(scenario: Sequence[tuple[str, Value]]) -> str:
    """Return values of parameters as `queue = red, flows = 4`."""
    return ", ".join(f"{name} = {value}" for name, value in scenario)


def ours_text(verdict: ClaimVerdict) -> str:
    """Return the values that a claim compares, in each scenario; those that are not as claimed first."""
    checks = sorted(verdict.checks, key=lambda check: check.is_in_order is True)
    fixed = {name for name, values in verdict.expectation.where.items() if len(values) == 1}
    joints = verdict.expectation.claim.joints
    shown = [check_text(check, joints, fixed) for check in checks[:_MOST_CHECKS]]
    more = [f"and {len(checks) - _MOST_CHECKS} more"] if len(checks) > _MOST_CHECKS else []
    return "; ".join([*shown, *more])


def check_text(check: ClaimCheck, joints: Sequence[str], fixed: Collection[str] = ()) -> str:
    """Return the values of one scenario: `queue = red: 326 ± 74 kbit/s against 272 ± 76 kbit/s (3 runs)`.

    `joints` are between the values; parameters that are `fixed` by the claim are not repeated.
    """
    cells = [cell for cell in check.sides.cells if isinstance(cell, Cell)]
    sides = [
        estimate_text(estimate_of(cell), cell.unit) + (f" at {at}" if at else "")
        for at, cell in zip(check.sides.levels or ("",) * len(cells), cells, strict=True)
    ]
    # a number, which the claim has, is not repeated
    between = (joints or (", ",) * len(sides))[: len(sides) - 1]
    values = "".join(chain.from_iterable(zip_longest(sides, between, fillvalue="")))
    *fewer, most = dict.fromkeys(_counted_runs(cell) for cell in sorted(cells, key=_number_of_values))
    shown = f"{values} ({enumerated([*(one.removesuffix(' runs') for one in fewer), most])})"
    where = scenario_text([(name, value) for name, value in check.scenario if name not in fixed])
    return f"{where}: {shown}" if where else shown


def _number_of_values(cell: Cell) -> int:
    return len(cell.values)


def estimate_of(cell: Cell) -> Estimate:
    """Return the mean of a cell with its interval."""
    student = cell.student
    return Estimate(
        value=cell.mean,
        low=student.low if student else None,
        high=student.high if student else None,
        runs=len(cell.values),
    )


def _published(results: StudyResults, published: Sequence[Reference]) -> tuple[str, str]:
    """Return our values at the places of published ones, and these."""
    ours, theirs = [], []
    common = _common_conditions(published)
    for reference in published[:_MOST_VALUES]:
        own = [
            cell
            for cell in results.cells
            if cell.quantity == reference.quantity
            and matches(cell, reference.where)
            and (reference.group is None or (cell.group is not None and is_same(cell.group, reference.group)))
            and cell.values
        ]
        unit = own[0].unit if own else _unit(results, reference)
        name = _place_text(reference, common)
        merged = merge_cells(own, results.study.confidence, results.study.runs) if own else None
        mean = "no run" if merged is None else estimate_text(estimate_of(merged), unit)
        runs = f" ({_counted_runs(merged)})" if merged else ""
        ours.append(f"{name} {mean}{runs}")
        theirs.append(f"{name} {estimate_text(Estimate(value=reference.value), unit)}")
    if len(published) > _MOST_VALUES:
        theirs.append(f"and {len(published) - _MOST_VALUES} more")
    sources = dict.fromkeys(one.source for one in published if one.source != one.figure)
    note = f" ({'; '.join(sources)})" if sources else ""
    return "; ".join(ours), "; ".join(theirs) + note


def _counted_runs(cell: Cell) -> str:
    """Return of how many runs a mean is, and how many of them repeat it."""
    runs = counted(len(cell.values), "run")
    return runs if cell.repetitions == len(cell.values) else f"{runs} of {cell.repetitions} repetitions"


def _common_conditions(published: Sequence[Reference]) -> set[str]:
    """Return the parameters that have the same values in all places, which need not be repeated."""
    names = {name for one in published for name in one.where}
    return {name for name in names if len({one.where.get(name) for one in published}) == 1}


def _place_text(reference: Reference, common: Collection[str]) -> str:
    """Return where a published value is: `sent [reno, flows = 2]`."""
    conditions = [
        f"{name} = {shown}"
        for name, values in reference.where.items()
        if name not in common and (shown := " or ".join(map(str, values))) != reference.group
    ]
    place = ", ".join(filter(None, (reference.group, *conditions)))
    return f"{reference.quantity} [{place}]" if place else reference.quantity


def _unit(results: StudyResults, reference: Reference) -> str:
    return next(quantity.unit for quantity in results.study.quantities if quantity.name == reference.quantity)
