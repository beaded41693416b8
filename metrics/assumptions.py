"""What a user says of a path, which a trace does not show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Facts about path and flows that a trace does not show; metrics that need them are computed then."""

    capacity_bps: float | None = None
    """Capacity of the shared link."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Share that each flow of a group should have, in any one unit; 1 for groups without an entry."""
    step_ns: int | None = None
    """Time of the path change since 0 s of each trace."""


NO_ASSUMPTIONS: Final = Assumptions()
