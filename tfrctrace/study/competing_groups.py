"""Whether groups that are compared shared a bottleneck: then they took from each other.

The difference shows how they compete, and says little of what each does alone, or of what happens if all use
one of them (B. Spang et al., Unbiased Experiments in Congested Networks, IMC 2021).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import input_problem
from tfrctrace.study.definition import GROUP
from tfrctrace.study.file.claims import ScenarioMean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tfrctrace.base.errors import Problem
    from tfrctrace.metrics.results.study import StudyRecord
    from tfrctrace.study.definition import Study

_HINT: Final = "runs in which all flows are of one group, beside runs of the other, show what each does"


def competition_notes(
    pairs: Collection[tuple[str, str]], names: Sequence[str], records: Sequence[StudyRecord | None]
) -> Iterator[Problem]:
    """Give a note for each pair of groups whose flows were active together in a run."""
    # both sides of a comparison may be of the same runs
    read = {name: record for name, record in zip(names, records, strict=True) if record is not None}
    for one, other in pairs:
        together = [name for name, record in read.items() if {one, other} <= _competing(record)]
        if together:
            message = (
                f"`{one}` and `{other}` were active together in {len(together)} of {len(read)} runs: "
                "if they shared a bottleneck, a difference shows how they compete, not what each does alone"
            )
            yield input_problem(together[0], "competing_groups", message, severity="note", hint=_HINT)


def compared_groups(study: Study, records: Sequence[StudyRecord | None]) -> list[tuple[str, str]]:
    """Return the pairs of groups that a study compares in the same runs."""
    pairs: dict[tuple[str, str], None] = {}
    for expectation in study.expectations:
        sides = [side for side in expectation.claim.compared if isinstance(side, ScenarioMean) and side.group]
        for one, other in combinations(sides, 2):
            if one.group and other.group and one.group != other.group and one.where == other.where:
                pairs[one.group, other.group] = None
    if any(plan.between == GROUP for plan in study.comparisons):
        there = {flow.group for record in records if record is not None for flow in record.flows}
        pairs.update(dict.fromkeys(combinations(sorted(filter(None, there)), 2)))
    return list(pairs)


def _competing(record: StudyRecord) -> set[str]:
    """Return the groups of the flows that were active at the same time."""
    flows = set(record.set.flows) if record.set is not None else set()
    return {flow.group for flow in record.flows if flow.flow in flows and flow.group is not None}
