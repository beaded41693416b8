"""What an audit found: verdicts and incidents of each link, and the tables that its page draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tfrctrace.metrics.audit.attribution import Cause
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.profiles.score import Profile, Score


SIDES: Final = {"rev": "client side", "fwd": "server side"}
"""Directions of a link, and the half of the path to which their round-trip times belong."""


@dataclass(frozen=True, slots=True)
class FoundIncident:
    """An incident and its cause."""

    number: int
    """From 1, by begin, over all links."""
    incident: Incident
    cause: Cause
    files: tuple[str, ...]
    """Captures that have packets of this time."""


@dataclass(frozen=True, slots=True)
class AuditedLink:
    """A link between its first and its last packet."""

    name: str
    first_ns: int
    last_ns: int
    results: tuple[ObjectiveResult, ...]
    """Of each objective, without the intervals that met it."""
    verdicts: pl.DataFrame
    """`objective`, `group`, `start_ns` of an hour, and intervals by verdict."""
    incidents: tuple[FoundIncident, ...]
    near: tuple[str, ...] | None
    """Hosts that open connections; None where no side is known."""
    hours: pl.DataFrame
    """Sums of the link by hour and direction."""
    buckets: pl.DataFrame
    """Round-trip times of the link, and times of servers, by hour and direction."""
    host_hours: pl.DataFrame
    """Sums of hosts by hour and direction."""
    host_buckets: pl.DataFrame
    """Round-trip times of the hosts that are drawn."""
    silent: tuple[tuple[int, int], ...]
    """When it had no packet, though it usually has."""
    scores: tuple[Score, ...] = ()
    """By profile, of the whole time."""
    hour_scores: tuple[Score, ...] = ()
    """The quality of outcome of each hour."""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What was read of a link, and how far it can be trusted."""

    link: str
    pieces: int
    failed: int
    files: int
    bytes: int
    packets: int
    sources: tuple[Mapping[str, Any], ...]
    problems: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """Every link, the objectives, and what they were read from."""

    objectives: tuple[Objective, ...]
    links: tuple[AuditedLink, ...]
    evidence: tuple[ReadFiles, ...]
    problems: tuple[Mapping[str, Any], ...]
    """What was wrong with the inputs, beside captures."""
    profiles: tuple[Profile, ...]
    every_ns: int
    """Width of the intervals of evidence."""
    by: str
    """What evidence is grouped by."""
