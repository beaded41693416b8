"""What an audit found, and what `audit.json` holds of it.

msgspec resolves the types of a `Part` at run time, so what they name is imported then.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from tfrctrace.metrics.audit.attribution import Confidence, Scope
from tfrctrace.metrics.audit.courses import CourseKind
from tfrctrace.metrics.audit.incidents import Ended
from tfrctrace.metrics.audit.signals import Place, SignalKey
from tfrctrace.metrics.audit.silence_proofs import SilenceKind, SilenceProof
from tfrctrace.metrics.results.document import Tool
from tfrctrace.metrics.results.why import Cause

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.metrics.audit.attribution import Attribution
    from tfrctrace.metrics.audit.courses import Course
    from tfrctrace.metrics.audit.held_back import HeldBack
    from tfrctrace.metrics.audit.incidents import Incident
    from tfrctrace.metrics.audit.queue_fillers import FilledQueue
    from tfrctrace.metrics.audit.states import State
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.profiles.score import Profile

Count: TypeAlias = Annotated[int, Meta(ge=0)]
TimeNs: TypeAlias = Annotated[int, Meta(description="ns since the epoch")]


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object that has all of its fields and no others."""


class Silence(Part, frozen=True):
    """A time in which a link had no packet, though it usually has."""

    begin_ns: TimeNs
    end_ns: TimeNs
    kind: Annotated[SilenceKind, Meta(description="unknown where no proof tells")]
    proofs: Annotated[tuple[SilenceProof, ...], Meta(description="what was captured or kept meanwhile")]


class Score(Part, frozen=True):
    """What a profile says of one link side, host or stream."""

    profile: str
    group: str
    segment: Annotated[str, Meta(description="part of the path between the capture and hosts")]
    value: Annotated[float | None, Meta(description="null where `reason` says why")]
    unit: Literal["%", "ms", "MOS"]
    grade: Annotated[str, Meta(description="empty where the profile has none, or without a value")]
    is_at_most: Annotated[bool, Meta(description="what is not known could only make it worse")]
    reason: Annotated[str, Meta(description="why there is no value, or what is not known")]
    n: Annotated[Count, Meta(description="samples of the delay, or packets of a stream")]
    first_ns: TimeNs
    last_ns: TimeNs
    inputs: Mapping[str, float | None]


class CaptureCounts(Part, frozen=True):
    """What was read of a link."""

    link: str
    pieces: Count
    failed: Annotated[Count, Meta(description="pieces that could not be read")]
    files: Count
    bytes: Count
    packets: Count
    problems: Count


@dataclass(frozen=True, slots=True)
class FoundIncident:
    """An incident, where it was, and what held flows back meanwhile."""

    number: int
    """From 1, by begin, over all links."""
    incident: Incident
    course: Course
    where: Attribution
    why: HeldBack
    files: tuple[str, ...]
    """Captures that have packets of this time."""
    queue: FilledQueue | None = None
    """Who filled the queue; None if it was not under load."""


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
    silent: tuple[Silence, ...]
    states: tuple[State, ...] = ()
    """What groups violate all the time, which is no incident."""
    scores: tuple[Score, ...] = ()
    """By profile, of the whole time."""
    hour_scores: tuple[Score, ...] = ()
    """The quality of outcome of each hour."""
    column_ns: int = 3_600 * 10**9
    """Width of the intervals of verdicts, sums and buckets: an hour, or less of a short capture."""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What was read of a link, and how far it can be trusted."""

    counts: CaptureCounts
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


class StatedObjective(Part, frozen=True):
    """An objective as users wrote it."""

    name: str
    require: str
    severe: str | None
    by: str
    every_ns: int | None
    least: Count
    target: float
    raise_after: Count = field(name="raise")
    clear_after: Count = field(name="clear")
    unit: str


class StatedProfile(Part, frozen=True):
    """A profile with its thresholds."""

    name: str
    title: str
    source: str
    version: str
    url: str
    rules: Annotated[dict[str, Any], Meta(description="thresholds, as in its file")]


class JudgedGroup(Part, frozen=True):
    """The intervals of a group by verdict."""

    group: str | None
    intervals: Count
    met: Count
    violated: Count
    severe: Count
    without_data: Count
    share_met: float | None


class JudgedObjective(Part, frozen=True):
    """What became of an objective on a link."""

    name: str
    met: Annotated[bool | None, Meta(description="null without data")]
    share_met: float | None
    groups: Annotated[tuple[JudgedGroup, ...], Meta(description="the worst first")]
    groups_left_out: Annotated[Count, Meta(description="which the table `verdicts` has")]


class ListedState(Part, frozen=True):
    """An objective that a group violates as it usually is: no incident."""

    objective: str
    group: str | None
    intervals: Annotated[Count, Meta(description="those with data")]
    violated: Count
    value: Annotated[float, Meta(description="median of the intervals, or share of all of them")]
    first_ns: TimeNs
    last_ns: TimeNs


class Metadata(Part, frozen=True):
    """How a score was measured (draft-ietf-ippm-qoo)."""

    method: str
    class_: str = field(name="class")
    layer: str
    packet_size: str
    traffic_class: str
    sampling: str
    direction: str
    endpoints: str
    segments: str
    first_sample: str
    duration_ms: Count
    samples: Count


class ListedScore(Score, frozen=True):
    """A score, and how it was measured."""

    metadata: Metadata


class ListedLink(Part, frozen=True):
    """A link, its verdicts and scores."""

    name: str
    first_ns: TimeNs
    last_ns: TimeNs
    incidents: Count
    silent: tuple[Silence, ...]
    objectives: tuple[JudgedObjective, ...]
    states: Annotated[tuple[ListedState, ...], Meta(description="what is always so, of each objective")]
    scores: tuple[ListedScore, ...]
    scores_left_out: Annotated[Count, Meta(description="which `scores.parquet` has")]


class ListedSignal(Part, frozen=True):
    """A quantity in usual times and during an incident, with limits of 95 %."""

    key: SignalKey
    name: Annotated[str, Meta(description="in English; later releases may word it otherwise")]
    place: Annotated[Place, Meta(description="where the trouble is if it is this that got worse")]
    unit: Annotated[str, Meta(description="`ms`, `bit/s`, `dBm`, or empty for a share")]
    changed: Annotated[bool | None, Meta(description="got worse by more than chance")]
    before_value: float | None
    before_low: float | None
    before_high: float | None
    before_n: Count
    during_value: float | None
    during_low: float | None
    during_high: float | None
    during_n: Count


class ListedStretch(Part, frozen=True):
    """Violated intervals of a group in a row."""

    objective: str
    group: str | None
    begin_ns: TimeNs
    first_end_ns: Annotated[int, Meta(description="end of its first interval: it began between the two")]
    last_begin_ns: Annotated[int, Meta(description="begin of its last interval: it ended from then on")]
    end_ns: TimeNs
    intervals: Annotated[Count, Meta(description="violated ones, severely or not")]
    severe: Count
    value: Annotated[float, Meta(description="the worst")]
    n: Annotated[Count, Meta(description="samples of the worst value")]
    at_ns: TimeNs
    ended: Ended


class ListedFiller(Part, frozen=True):
    """A direction of a flow, or all that one host sent to another, that filled a queue."""

    src: str
    src_port: Annotated[Count | None, Meta(description="null of a pair of hosts, and without ports")]
    dst: str
    dst_port: Count | None
    flows: Annotated[Count, Meta(description="1, or those of a pair of hosts")]
    share: Annotated[float, Meta(description="of the bytes in the directions with the load")]
    congestion_control: Annotated[
        str | None, Meta(description="as `why` names it; null where it is not known, and of several flows")
    ]
    predicted_share: Annotated[
        float | None,
        Meta(description="share of its round trips that it predicts; null if another sign names it"),
    ]
    congestion_control_reason: Annotated[
        str | None, Meta(description="why it is not known, as `why` has it; null of what is not TCP")
    ]


class ListedIncident(Part, frozen=True):
    """An incident, where it was, and what held flows back meanwhile."""

    number: Count
    link: str
    begin_ns: TimeNs
    end_ns: TimeNs
    began_from_ns: Annotated[TimeNs, Meta(description="it began between this time and the next one")]
    began_until_ns: TimeNs
    ended_from_ns: Annotated[TimeNs, Meta(description="it ended between this time and the next one")]
    ended_until_ns: TimeNs
    course: CourseKind
    days: Annotated[Count, Meta(description="on which it began at this hour, if it recurs")]
    place: Place
    under_load: bool
    scope: Scope
    hosts: tuple[str, ...]
    confidence: Confidence
    reason: str
    baseline: str
    causes_ns: Annotated[
        Mapping[Cause, Count] | None,
        Meta(description="time of TCP flows by what held them back, the largest first; null: `no_causes`"),
    ]
    no_causes: Annotated[str | None, Meta(description="why `causes_ns` is null")]
    queue_filled_by: Annotated[
        tuple[ListedFiller, ...] | None,
        Meta(description="what had most of the bytes, the largest first; null: `no_queue_filled_by`"),
    ]
    no_queue_filled_by: Annotated[
        str | None, Meta(description="why `queue_filled_by` is null; null if it was not under load")
    ]
    signals: tuple[ListedSignal, ...]
    stretches: tuple[ListedStretch, ...]
    files: tuple[str, ...]


class AuditDocument(Part, frozen=True):
    """What `tfrctrace audit` writes into `audit.json`. Times are integers in ns."""

    schema_version: Literal[3]
    tool: Tool
    title: str
    objectives: tuple[StatedObjective, ...]
    profiles: tuple[StatedProfile, ...]
    links: tuple[ListedLink, ...]
    incidents: tuple[ListedIncident, ...]
    captures: tuple[CaptureCounts, ...]
