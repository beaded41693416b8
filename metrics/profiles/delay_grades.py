"""Grades of delay under load: how much longer round trips take while a link is loaded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DelayGrades:
    """Grades by the increase of the median, ascending; the last is that of anything longer."""

    below: tuple[tuple[str, float], ...]
    """Name, and the increase in ms below which it is given."""
    rest: str

    def grade(self, increase_ms: float) -> str:
        """Return the grade of an increase."""
        return next((name for name, limit_ms in self.below if increase_ms < limit_ms), self.rest)
