"""Profiles with their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tfrctrace.metrics.profiles.delay_grades import DelayGrades
    from tfrctrace.metrics.profiles.outcome import Requirement
    from tfrctrace.metrics.profiles.voice import Voice

    Rules: TypeAlias = Requirement | DelayGrades | Voice


@dataclass(frozen=True, slots=True)
class Profile:
    """Thresholds, and where they are from: without version and thresholds no score can be compared."""

    name: str
    title: str
    source: str
    version: str
    url: str
    rules: Rules
