"""Whether an algorithm does worse than the references do in the same place, criterion by criterion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.statistics.contrasts import contrast
from tfrctrace.metrics.statistics.harm import Harm, harm
from tfrctrace.metrics.statistics.significance import benjamini_hochberg
from tfrctrace.reports.units import counted
from tfrctrace.study.results.cells import Cell, is_same, sorted_values
from tfrctrace.study.results.claim_sides import run_means

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.study.criteria import Criterion, Judging
    from tfrctrace.study.file.claims import Bound

Verdict = Literal["worse", "no worse", "cannot tell", "not judged"]
VERDICTS: Final[tuple[Verdict, ...]] = ("worse", "no worse", "cannot tell", "not judged")

UNCLEAR: Final = "runs vary too much"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One criterion of one algorithm."""

    criterion: Criterion
    algorithm: str
    verdict: Verdict
    reason: str = ""
    """Why there is no verdict."""
    cell: Cell | None = None
    references: Mapping[str, Cell] = field(default_factory=dict)
    p_value: float | None = None
    """Two-sided, of the test that decides."""
    p_corrected: float | None = None
    """The same, corrected for the number of criteria."""
    is_worse: bool | None = None
    """To which side of the margin the means are."""
    harm: Harm | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the test has decided."""
        return self.verdict in {"worse", "no worse"}


def judge(cells: Sequence[Cell], judging: Judging, level: float) -> list[Judgement]:
    """Return a judgement for each criterion and algorithm, in the order of the criteria.

    p values are corrected over the criteria of each algorithm.
    """
    there = [str(name) for name in sorted_values(cell.scenario[judging.parameter] for cell in cells)]
    found: list[Judgement] = []
    for algorithm in sorted(there, key=lambda name: name not in judging.references):
        own = [_judged(cells, judging, criterion, algorithm) for criterion in judging.criteria]
        tested = [one.p_value for one in own if one.p_value is not None]
        corrected = iter(benjamini_hochberg(tested))
        found += [one if one.p_value is None else _decided(one, next(corrected), level) for one in own]
    places = {id(criterion): place for place, criterion in enumerate(judging.criteria)}
    return sorted(found, key=lambda one: places[id(one.criterion)])


def _decided(one: Judgement, corrected: float, level: float) -> Judgement:
    if corrected > 1 - level:
        return replace(one, p_corrected=corrected, verdict="cannot tell", reason=UNCLEAR)
    return replace(one, p_corrected=corrected, verdict="worse" if one.is_worse else "no worse")


def _judged(cells: Sequence[Cell], judging: Judging, criterion: Criterion, algorithm: str) -> Judgement:
    def not_judged(reason: str) -> Judgement:
        return Judgement(criterion=criterion, algorithm=algorithm, verdict="not judged", reason=reason)

    if criterion.reason:
        return not_judged(criterion.reason)
    others = [name for name in judging.references if name != algorithm]
    if criterion.limit is None and not others:
        return not_judged("it is the only reference")
    wanted = (algorithm, *(others if criterion.limit is None else ()))
    by_quantity = [
        [_cell(cells, judging, criterion, quantity, name) for name in wanted]
        for quantity in criterion.quantities
    ]
    # the first that all have; else the one that most have, which tells what is lacking
    chosen = max(by_quantity, key=lambda found: sum(cell is not None and bool(cell.values) for cell in found))
    for name, cell in zip(wanted, chosen, strict=True):
        if (lacking := _lacks(cell, judging, name, criterion)) is not None:
            return not_judged(lacking)
    own, *references = [cell for cell in chosen if cell is not None]
    judged = Judgement(
        criterion=criterion,
        algorithm=algorithm,
        verdict="cannot tell",
        cell=own,
        references=dict(zip(wanted[1:], references, strict=True)),
        harm=_harm(cells, judging, criterion, own),
    )
    return _tested(judged)


def _lacks(cell: Cell | None, judging: Judging, name: str, criterion: Criterion) -> str | None:
    """Return why the runs of an algorithm are not judged; None if they are."""
    if cell is None:
        return f"no run of {name} in `{criterion.place}`"
    if not cell.values:
        return f"{name} has no `{cell.quantity}` in `{criterion.place}`: {cell.reason or 'no value'}"
    runs = len(run_means(cell))
    if runs < judging.least_runs:
        return (
            f"{name} has {counted(runs, 'run')} in `{criterion.place}`, and {judging.least_runs} are needed"
        )
    return None


def _cell(
    cells: Sequence[Cell], judging: Judging, criterion: Criterion, quantity: str, name: str
) -> Cell | None:
    return next(
        (
            cell
            for cell in cells
            if cell.quantity == quantity
            and cell.group == criterion.group
            and is_same(cell.scenario[judging.scenario], criterion.place)
            and is_same(cell.scenario[judging.parameter], name)
        ),
        None,
    )


def _tested(judged: Judgement) -> Judgement:
    """Return a judgement with the p value of the side on which it is.

    Worse is worse than each reference, so that the largest p value counts; no worse is no worse than one of
    them, so that the smallest does, as many times as there are references.
    """
    criterion, own = judged.criterion, judged.cell
    if own is None or criterion.worse is None:
        return judged
    bound, values = criterion.worse, _values(own)
    if criterion.limit is None:
        against = [_values(cell) for cell in judged.references.values()]
    else:
        against = [[criterion.limit, criterion.limit]]
    pairs = [_p_values(bound, values, other) for other in against]
    p_worse = max(worse for worse, _ in pairs)
    p_no_worse = min(1.0, len(pairs) * min(contrary for _, contrary in pairs))
    is_worse = p_worse < p_no_worse
    return replace(judged, is_worse=is_worse, p_value=min(1.0, 2 * min(p_worse, p_no_worse)))


def _p_values(bound: Bound, values: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    difference = contrast([values, other], [1.0, -bound.factor])
    assert difference is not None, "each side has two runs or more"
    return bound.p_values(difference, bound.margin)


def _values(cell: Cell) -> list[float]:
    """Return the mean of each run."""
    return list(run_means(cell).values())


def _harm(cells: Sequence[Cell], judging: Judging, criterion: Criterion, own: Cell) -> Harm | None:
    """Return the harm to the flow of a criterion, relative to what it has alone."""
    if not criterion.alone or criterion.worse is None:
        return None
    alone = next(
        (
            cell
            for cell in cells
            if cell.quantity == own.quantity
            and is_same(cell.scenario[judging.scenario], judging.alone_place)
            and is_same(cell.scenario[judging.parameter], criterion.alone)
            and cell.values
        ),
        None,
    )
    if alone is None:
        return None
    return harm(_values(alone), _values(own), more_is_better=criterion.worse.sign == "<")


def algorithms(judgements: Sequence[Judgement]) -> list[str]:
    """Return the algorithms that are judged."""
    return list(dict.fromkeys(one.algorithm for one in judgements))


def by_criterion(judgements: Sequence[Judgement]) -> Iterator[list[Judgement]]:
    """Give the judgements of each criterion, one of each algorithm."""
    rows: dict[int, list[Judgement]] = {}
    for one in judgements:
        rows.setdefault(id(one.criterion), []).append(one)
    yield from rows.values()
