"""Profiles with their sources, and scores with what they were made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

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


@dataclass(frozen=True, slots=True)
class Score:
    """What a profile says of one link side, host or stream."""

    profile: str
    group: str
    segment: str
    """Between which ends: `client side`, `server side` or `both sides` of the capture, `host`, `stream`."""
    value: float | None
    unit: str
    """`%` of quality of outcome, `ms` of an increase, `MOS`."""
    grade: str
    """Empty where the profile has none, or without a value."""
    is_at_most: bool
    """Whether something that is not known could only make it worse."""
    reason: str
    """Why there is no value, or what is not known."""
    n: int
    """Samples of the delay, or packets of a stream."""
    first_ns: int
    last_ns: int
    inputs: Mapping[str, float | None] = field(default_factory=dict)
    """What it was computed from."""
