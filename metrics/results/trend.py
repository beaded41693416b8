"""The trend of each quantity of a gate over the builds of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["better", "worse", "changed"]


@dataclass(frozen=True, slots=True)
class Build:
    """A build, and when it was checked first."""

    name: str
    time_ns: int
    """Since the epoch."""


@dataclass(frozen=True, slots=True)
class Change:
    """The mean of a quantity is another from `build` on."""

    build: str
    time_ns: int
    before: float
    after: float
    p_value: float
    direction: Direction


@dataclass(frozen=True, slots=True)
class Trend:
    """One quantity over the builds that have a value of it, oldest first."""

    quantity: str
    unit: str
    builds: tuple[Build, ...]
    means: tuple[float, ...]
    """One for each build."""
    least_builds: int
    """With fewer no change can be told from noise."""
    changes: tuple[Change, ...]
    first_worse: str | None
    """The build since which it has been worse; None if a later one made it better, or there is none."""
