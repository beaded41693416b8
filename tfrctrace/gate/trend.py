"""The trend of each quantity over the builds of a history, and the first build that was worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from tfrctrace.metrics.statistics.change_points import LEAST, change_points

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.gate.history import Build, History
    from tfrctrace.gate.regression import Rules
    from tfrctrace.runs.quantity import Better, Quantity

LEAST_BUILDS: Final = 2 * LEAST
"""With fewer builds no change can be told from noise."""

Direction = Literal["better", "worse", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """The mean of a quantity is another from `build` on."""

    build: Build
    before: float
    after: float
    p_value: float
    direction: Direction

    def facts(self) -> dict[str, Any]:
        """Return the change as JSON and the printers have it."""
        own = {name: getattr(self, name) for name in ("before", "after", "p_value", "direction")}
        return {"build": self.build.name, "time_ns": self.build.time_ns, **own}


@dataclass(frozen=True, slots=True)
class Trend:
    """One quantity over the builds that have a value of it, oldest first."""

    quantity: str
    unit: str
    builds: tuple[Build, ...]
    means: tuple[float, ...]
    """One for each build."""
    changes: tuple[Change, ...]

    @property
    def first_worse(self) -> Change | None:
        """The change since which it has been worse; None if a later one made it better, or there is none."""
        last = None
        for change in self.changes:
            if change.direction == "worse":
                last = last or change
            elif change.direction == "better":
                last = None
        return last

    def facts(self) -> dict[str, Any]:
        """Return the trend as JSON and the printers have it."""
        first_worse = self.first_worse
        return {
            "quantity": self.quantity,
            "unit": self.unit,
            "builds": [{"name": build.name, "time_ns": build.time_ns} for build in self.builds],
            "means": list(self.means),
            "least_builds": LEAST_BUILDS,
            "changes": [change.facts() for change in self.changes],
            "first_worse": None if first_worse is None else first_worse.build.name,
        }


def trends(history: History, quantities: Sequence[tuple[Quantity, Better]], rules: Rules) -> list[Trend]:
    """Return the trends of the quantities that builds have a value of.

    Changes by less than the tolerance are left out. The probability of a false one is `rules.significance`
    for all quantities together.
    """
    found = (_trend(history, quantity, better, rules, len(quantities)) for quantity, better in quantities)
    return [one for one in found if one.builds]


def _trend(history: History, quantity: Quantity, better: Better, rules: Rules, count: int) -> Trend:
    builds = tuple(build for build in history.builds if build.values.get(quantity.name))
    means = tuple(math.fsum(own) / len(own) for own in (build.values[quantity.name] for build in builds))
    return Trend(
        quantity.name, quantity.unit, builds, means, tuple(_changes(builds, means, better, rules, count))
    )


def _changes(
    builds: Sequence[Build], means: Sequence[float], better: Better, rules: Rules, count: int
) -> Iterator[Change]:
    for point in change_points(means, significance=rules.significance / count):
        change = point.after - point.before
        if abs(change) > rules.tolerance * abs(point.before):
            direction: Direction = "changed"
            if better != "same":
                direction = "better" if (change > 0) == (better == "higher") else "worse"
            yield Change(builds[point.index], point.before, point.after, point.p_value, direction)
