"""The trend of each quantity over the builds of a history, and the first build that was worse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.results.trend import Change, Trend
from tfrctrace.metrics.statistics.change_points import LEAST, change_points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.gate.history import History
    from tfrctrace.gate.regression import Rules
    from tfrctrace.metrics.results.trend import Build, Direction
    from tfrctrace.runs.quantity import Better, Quantity

LEAST_BUILDS: Final = 2 * LEAST
"""With fewer builds no change can be told from noise."""


def trends(history: History, quantities: Sequence[tuple[Quantity, Better]], rules: Rules) -> list[Trend]:
    """Return the trends of the quantities that builds have a value of.

    Changes by less than the tolerance are left out. The probability of a false one is `rules.significance`
    for all quantities together.
    """
    found = (_trend(history, quantity, better, rules, len(quantities)) for quantity, better in quantities)
    return [trend for trend in found if trend.builds]


def _trend(history: History, quantity: Quantity, better: Better, rules: Rules, count: int) -> Trend:
    measured = [build for build in history.builds if build.values.get(quantity.name)]
    builds = tuple(one.build for one in measured)
    values = [one.values[quantity.name] for one in measured]
    means = tuple(math.fsum(of_build) / len(of_build) for of_build in values)
    changes = tuple(_changes(builds, means, better, rules, count))
    return Trend(
        quantity=quantity.name,
        unit=quantity.unit,
        builds=builds,
        means=means,
        least_builds=LEAST_BUILDS,
        changes=changes,
        first_worse=_first_worse(changes),
    )


def _first_worse(changes: Sequence[Change]) -> str | None:
    """Return the build since which a quantity has been worse, if no later change made it better."""
    found = None
    for change in changes:
        if change.direction == "worse":
            found = found or change.build
        elif change.direction == "better":
            found = None
    return found


def _changes(
    builds: Sequence[Build], means: Sequence[float], better: Better, rules: Rules, count: int
) -> Iterator[Change]:
    for point in change_points(means, significance=rules.significance / count):
        change = point.after - point.before
        if abs(change) > rules.tolerance * abs(point.before):
            direction: Direction = "changed"
            if better != "same":
                direction = "better" if (change > 0) == (better == "higher") else "worse"
            build = builds[point.index]
            yield Change(build.name, build.time_ns, point.before, point.after, point.p_value, direction)
