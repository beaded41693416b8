"""Whether runs show what a study claims: by a test over repeated runs, and by the means alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.statistics.contrasts import clustered_contrast, contrast, paired_contrast
from tfrctrace.study.results.cells import Cell, matches
from tfrctrace.study.results.claim_sides import (
    AmbiguousTermError,
    Sides,
    clustered_values,
    rows_of_runs,
    run_means,
    sides_of,
)
from tfrctrace.study.results.pivot import merge_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.metrics.statistics.contrasts import Contrast
    from tfrctrace.study.definition import Expectation, RunRules
    from tfrctrace.study.file.claims import Claim
    from tfrctrace.study.results.claim_sides import Scenario

Finding = Literal["holds", "does not hold", "cannot tell"]

ONE_RUN: Final = "a single run does not show how much runs vary"
NO_VALUE: Final = "a side has no value"
NO_SCENARIO: Final = "no scenario has all that is compared"
NO_RATIO: Final = "a mean is 0, and ratios are of what is above 0"
OTHER_LEVELS: Final = "the settings have different values of the parameter of the trend"


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim in one scenario: its means, and one-sided p values that it holds and that it does not."""

    sides: Sides
    is_in_order: bool | None
    """Whether the means are as claimed; None if one of them is unknown."""
    test: str = ""
    runs: tuple[int, ...] = ()
    """Runs of each side that was tested."""
    p_holds: float | None = None
    p_contrary: float | None = None
    reason: str | None = None
    """Why there is no test."""

    @property
    def scenario(self) -> Scenario:
        """The parameters that all sides have in common."""
        return self.sides.scenario


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The result of checking a claim."""

    expectation: Expectation
    checks: tuple[ClaimCheck, ...]
    finding: Finding
    confidence: float | None
    """The highest level of intervals that still give the finding; None if it cannot be told."""
    reason: str | None = None
    """Why it cannot be told, if it cannot."""

    @property
    def is_in_order(self) -> bool | None:
        """Whether the means are as claimed, in as many scenarios as they must be."""
        known = [check.is_in_order for check in self.checks if check.is_in_order is not None]
        if not known or (len(known) < len(self.checks) and self.expectation.share == "all" and all(known)):
            return None
        return sum(known) >= _needed(self.expectation, len(known))

    @property
    def is_as_expected(self) -> bool:
        """Whether the means are as claimed, or are not if the study knows that.

        A gate must be able to decide by one run, so it goes by means.
        """
        return self.is_in_order is self.expectation.holds

    @property
    def agrees_with_paper(self) -> bool | None:
        """Whether the finding is what the paper states; None if that cannot be told, or it states nothing."""
        stated = self.expectation.holds_in_paper
        if stated is None or self.finding == "cannot tell":
            return None
        return (self.finding == "holds") is stated


def check_claim(
    cells: Sequence[Cell], expectation: Expectation, runs: RunRules, level: float, advice: str = ""
) -> ClaimVerdict:
    """Check a claim in each scenario that the expectation covers, at this level of confidence.

    `advice` follows the reason of what cannot be told.
    """
    claim = expectation.claim
    covered = [cell for cell in cells if matches(cell, expectation.where)]
    try:
        sides = list(sides_of(covered, claim, runs.scenario))
    except AmbiguousTermError as error:
        return ClaimVerdict(expectation, (), "cannot tell", None, str(error))
    if not sides:
        return ClaimVerdict(expectation, (), "cannot tell", None, _advised(NO_SCENARIO, advice))
    checks = (
        (_check_average(sides, claim, runs, level),)
        if expectation.share == "average"
        else tuple(_check(side, claim, runs) for side in sides)
    )
    finding, confidence = _together(expectation, checks, level)
    reasons = dict.fromkeys(check.reason for check in checks if check.reason)
    why = (
        _advised("; ".join(reasons) or "the runs vary too much", advice) if finding == "cannot tell" else None
    )
    return ClaimVerdict(expectation, checks, finding, confidence, why)


def _advised(reason: str, advice: str) -> str:
    return f"{reason}: {advice}" if advice else reason


def _needed(expectation: Expectation, scenarios: int) -> int:
    """Return in how many of so many scenarios a claim must hold; the average is one."""
    return scenarios // 2 + 1 if expectation.share == "most" else scenarios


def _together(
    expectation: Expectation, checks: Sequence[ClaimCheck], level: float
) -> tuple[Finding, float | None]:
    """Return what checks in several scenarios say together: partial conjunction of their p values.

    Of n scenarios k must hold, so the k-th smallest p value counts, n - k + 1 times (Y. Benjamini and
    R. Heller, 2008): the largest if all must hold. The contrary is that n - k + 1 of them do not.
    """
    number = len(checks)
    needed = _needed(expectation, number)
    p_holds = _conjunction([check.p_holds for check in checks], needed)
    p_contrary = _conjunction([check.p_contrary for check in checks], number - needed + 1)
    sure_holds, sure_contrary = (None if p is None else 1 - 2 * p for p in (p_holds, p_contrary))
    if sure_contrary is not None and sure_contrary >= level:
        return "does not hold", sure_contrary
    if sure_holds is not None and sure_holds >= level:
        return "holds", sure_holds
    return "cannot tell", None


def _conjunction(p_values: Sequence[float | None], needed: int) -> float | None:
    """Return the p value of at least `needed` of all; None if too many are unknown."""
    known = sorted(p_value for p_value in p_values if p_value is not None)
    if len(known) < needed:
        return None
    return min((len(p_values) - needed + 1) * known[needed - 1], 1.0)


def _check(sides: Sides, claim: Claim, runs: RunRules) -> ClaimCheck:
    means = [cell.mean if isinstance(cell, Cell) else cell for cell in sides.cells]
    known = [mean for mean in means if mean is not None]
    if len(known) < len(means):
        reasons = dict.fromkeys(
            cell.reason for cell in sides.cells if isinstance(cell, Cell) and not cell.values and cell.reason
        )
        return ClaimCheck(sides, None, reason="; ".join(reasons) or NO_VALUE)
    is_in_order = claim.holds(known)
    if claim.has_ratio:
        return _clustered_check(sides, clustered_values([sides], runs), claim, is_in_order)
    paired = rows_of_runs(sides, runs)
    if paired is not None and len(paired) < 2:
        return ClaimCheck(sides, is_in_order, reason=ONE_RUN)
    groups = [list(run_means(cell).values()) if isinstance(cell, Cell) else [cell] for cell in sides.cells]
    tested = [group for group, cell in zip(groups, sides.cells, strict=True) if isinstance(cell, Cell)]
    if paired is None and min(map(len, tested)) < 2:
        return ClaimCheck(sides, is_in_order, reason=ONE_RUN)
    values = _Values(groups, None if paired is None else list(paired.values()))
    found = claim.p_values(values.contrast, len(groups))
    name = "paired t" if paired is not None else "Welch's t" if len(tested) > 1 else "Student's t"
    p_holds, p_contrary = found or (None, None)
    return ClaimCheck(
        sides,
        is_in_order,
        test=f"{name}{claim.test}",
        runs=(len(paired),) if paired is not None else tuple(map(len, tested)),
        p_holds=p_holds,
        p_contrary=p_contrary,
    )


def _check_average(settings: Sequence[Sides], claim: Claim, runs: RunRules, level: float) -> ClaimCheck:
    """Check a claim of the means over all settings that have what it compares.

    What repeats are the repetitions: ten placements with seven settings each are ten, not seventy.
    """
    levels = settings[0].levels
    cells = [
        merge_cells([one for one in column if isinstance(one, Cell)], level, runs)
        if isinstance(column[0], Cell)
        else column[0]
        for column in zip(*(one.cells for one in settings), strict=False)
    ]
    common = set(settings[0].scenario).intersection(*(one.scenario for one in settings))
    sides = Sides(tuple(pair for pair in settings[0].scenario if pair in common), tuple(cells), levels)
    if any(one.levels != levels for one in settings):
        return ClaimCheck(sides, None, reason=OTHER_LEVELS)
    groups = clustered_values(settings, runs)
    if not all(groups):
        return ClaimCheck(sides, None, reason=NO_VALUE)
    means = [sum(value for _, value in group) / len(group) for group in groups]
    return _clustered_check(sides, groups, claim, claim.holds(means))


def _clustered_check(
    sides: Sides,
    groups: Sequence[Sequence[tuple[str | None, float]]],
    claim: Claim,
    is_in_order: bool | None,
) -> ClaimCheck:
    """Check a claim of values that stand after their clusters, which are what repeats."""

    def contrast_of(weights: Sequence[float], *, of_logs: bool = False) -> Contrast | None:
        return clustered_contrast(groups, weights, of_logs=of_logs)

    clusters = [{cluster for cluster, _ in group} - {None} for group in groups]
    repeated = tuple(map(len, filter(None, clusters)))
    if not all(groups) or min(repeated) < 2:
        return ClaimCheck(sides, is_in_order, reason=ONE_RUN if all(groups) else NO_VALUE)
    found = claim.p_values(contrast_of, len(groups))
    if found is None:
        return ClaimCheck(sides, is_in_order, reason=NO_RATIO)
    p_holds, p_contrary = found
    name = "cluster-robust t of logarithms" if claim.has_ratio else "cluster-robust t"
    return ClaimCheck(sides, is_in_order, f"{name}{claim.test}", repeated, p_holds, p_contrary)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of runs on each side; in `paired` one row for each run, if they are paired."""

    groups: Sequence[Sequence[float]]
    paired: Sequence[Sequence[float]] | None

    def contrast(self, weights: Sequence[float], *, of_logs: bool = False) -> Contrast | None:
        """Return the weighted sum of the sides; a number has no error. Ratios are of clusters alone."""
        if of_logs:
            return None
        if self.paired is not None:
            return paired_contrast(self.paired, weights)
        pairs = zip(self.groups, weights, strict=True)
        # a number counts as two runs that do not vary
        used = [(group if len(group) > 1 else [group[0]] * 2, weight) for group, weight in pairs if weight]
        return contrast([group for group, _ in used], [weight for _, weight in used])
