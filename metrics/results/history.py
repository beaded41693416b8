"""The history of a gate: a line of JSON for each check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What one check measured of a build."""

    history_version: Literal[1]
    build: str
    time_ns: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    """Since the epoch."""
    measured_with: dict[str, Any]
    runs: tuple[str, ...] = ()
    # squares of larger numbers overflow
    quantities: dict[str, tuple[Annotated[float, Meta(ge=-1e60, le=1e60)], ...]]
    """A value for each run."""
