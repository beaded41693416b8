"""How much an incident harmed: people times minutes times value over limit, for the order of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.objectives import Objective

_MOST_OVER: Final = 10.0
"""Times over the limit beyond which nobody notices a difference."""
_MINUTE_NS: Final = 60 * 10**9


def harm_of(
    incident: Incident, where: Attribution, objectives: Sequence[Objective], near: Sequence[str] | None
) -> float:
    """Return the harm of an incident; `near` are the hosts that open connections, if they are known."""
    over = max(
        (_over(stretch.value, objectives[stretch.objective]) for stretch in incident.stretches), default=1
    )
    return people_of(where, near) * incident.lasted_ns / _MINUTE_NS * over


def people_of(where: Attribution, near: Sequence[str] | None) -> int:
    """Return how many hosts an incident was noticed at: those of a place, else all that use the link."""
    if where.scope in {"one host", "some hosts"}:
        return len(where.hosts)
    return max(len(near or ()), 1)


def _over(value: float, objective: Objective) -> float:
    worse, better = (value, objective.bound) if objective.sign in {"<", "<="} else (objective.bound, value)
    return min(max(worse / better, 1.0), _MOST_OVER) if better > 0 else _MOST_OVER
