"""An audit as JSON, for programs; `docs/audit.schema.json` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tfrctrace.metrics.results.audit import (
    AuditDocument,
    JudgedGroup,
    JudgedObjective,
    ListedFiller,
    ListedIncident,
    ListedLink,
    ListedScore,
    ListedSignal,
    ListedState,
    ListedStretch,
    StatedObjective,
    StatedProfile,
)
from tfrctrace.metrics.results.document import Tool
from tfrctrace.reports.audit.place_words import LACKING_WORDS, NOT_READ_WORDS, SIGNAL_NAMES, reason_text
from tfrctrace.reports.audit.profile_tables import MOST_SCORES, metadata
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.output import open_output, open_text_output

if TYPE_CHECKING:
    from tfrctrace.metrics.audit.queue_fillers import QueueFiller
    from tfrctrace.metrics.audit.signals import Measured, Signal
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.results.audit import Audit, AuditedLink, FoundIncident


_MOST_GROUPS: Final = 1_000
"""Groups of an objective that are listed, the worst first."""


def write_audit_json(path: str, audit: Audit, title: str, version: str) -> None:
    """Write an audit into a file; the same audit gives the same text."""
    with open_text_output(path) as file:
        facts = msgspec.to_builtins(audit_document(audit, title, version))
        file.write(json.dumps(facts, indent=1) + "\n")


def audit_document(audit: Audit, title: str, version: str) -> AuditDocument:
    """Return what the file holds."""
    return AuditDocument(
        schema_version=3,
        tool=Tool("tfrctrace", version),
        title=title,
        objectives=tuple(map(_objective, audit.objectives)),
        profiles=tuple(
            StatedProfile(**{**asdict(profile), "rules": asdict(profile.rules)}) for profile in audit.profiles
        ),
        links=tuple(map(_link, audit.links)),
        incidents=tuple(
            _incident(found, audit.objectives) for link in audit.links for found in link.incidents
        ),
        captures=tuple(read.counts for read in audit.evidence),
    )


def _objective(objective: Objective) -> StatedObjective:
    return StatedObjective(
        name=objective.name,
        require=objective.require,
        severe=objective.severe,
        by=objective.grouping.text,
        every_ns=objective.grouping.every_ns,
        least=objective.least,
        target=objective.target,
        raise_after=objective.raise_after,
        clear_after=objective.clear_after,
        unit=objective.unit,
    )


def _link(link: AuditedLink) -> ListedLink:
    return ListedLink(
        name=link.name,
        first_ns=link.first_ns,
        last_ns=link.last_ns,
        incidents=len(link.incidents),
        silent=link.silent,
        objectives=tuple(map(_judged, link.results)),
        states=tuple(
            ListedState(**{**asdict(state), "objective": link.results[state.objective].objective.name})
            for state in link.states
        ),
        scores=tuple(
            ListedScore(**msgspec.structs.asdict(score), metadata=metadata(score))
            for score in link.scores[:MOST_SCORES]
        ),
        scores_left_out=max(len(link.scores) - MOST_SCORES, 0),
    )


def _judged(result: ObjectiveResult) -> JudgedObjective:
    listed = result.groups.head(_MOST_GROUPS).select(JudgedGroup.__struct_fields__)
    return JudgedObjective(
        name=result.objective.name,
        met=result.total.meets(result.objective.target),
        share_met=result.total.share_met,
        groups=tuple(JudgedGroup(**group) for group in listed.iter_rows(named=True)),
        groups_left_out=len(result.groups) - len(listed),
    )


def _incident(found: FoundIncident, objectives: tuple[Objective, ...]) -> ListedIncident:
    incident, where, queue = found.incident, found.where, found.queue
    return ListedIncident(
        number=found.number,
        link=incident.link,
        begin_ns=incident.begin_ns,
        end_ns=incident.end_ns,
        began_from_ns=incident.began_ns[0],
        began_until_ns=incident.began_ns[1],
        ended_from_ns=incident.ended_ns[0],
        ended_until_ns=incident.ended_ns[1],
        course=found.course.kind,
        days=found.course.days,
        place=where.place,
        under_load=where.under_load,
        scope=where.scope,
        hosts=where.hosts,
        confidence=where.confidence,
        reason=reason_text(where.reason),
        baseline=where.baseline,
        causes_ns=found.why.ns or None,
        no_causes=None if found.why.lacking is None else LACKING_WORDS[found.why.lacking],
        queue_filled_by=tuple(map(_filler, queue.fillers)) if queue and queue.fillers else None,
        no_queue_filled_by=NOT_READ_WORDS[queue.lacking] if queue and queue.lacking else None,
        signals=tuple(map(_signal, where.signals)),
        stretches=tuple(
            ListedStretch(**{**asdict(stretch), "objective": objectives[stretch.objective].name})
            for stretch in incident.stretches
        ),
        files=found.files,
    )


def _filler(filler: QueueFiller) -> ListedFiller:
    return ListedFiller(
        src=filler.src,
        src_port=filler.src_port,
        dst=filler.dst,
        dst_port=filler.dst_port,
        flows=filler.flows,
        share=filler.share,
        congestion_control=filler.congestion_control,
        predicted_share=filler.predicted_share,
        congestion_control_reason=filler.reason,
    )


def _signal(signal: Signal) -> ListedSignal:
    return ListedSignal(
        key=signal.key,
        name=SIGNAL_NAMES[signal.key],
        place=signal.place,
        unit=signal.unit,
        changed=signal.has_changed,
        **_measured("before", signal.before),
        **_measured("during", signal.during),
    )


def _measured(when: str, measured: Measured) -> dict[str, Any]:
    return {f"{when}_{name}": getattr(measured, name) for name in ("value", "low", "high", "n")}


def write_scores(path: str, audit: Audit) -> None:
    """Write all scores, also of hours, as Parquet; without profiles remove those of an earlier audit."""
    import polars as pl

    if not audit.profiles:
        Path(path).unlink(missing_ok=True)
        return
    schema = {
        "link": pl.String,
        "profile": pl.String,
        "group": pl.String,
        "segment": pl.String,
        "is_hour": pl.Boolean,
        "first_ns": pl.Int64,
        "last_ns": pl.Int64,
        "value": pl.Float64,
        "unit": pl.String,
        "grade": pl.String,
        "is_at_most": pl.Boolean,
        "reason": pl.String,
        "n": pl.Int64,
    }
    names = [name for name in schema if name not in {"link", "is_hour"}]
    rows = [
        {"link": link.name, "is_hour": is_hour, **{name: getattr(score, name) for name in names}}
        for link in audit.links
        for is_hour, scores in ((False, link.scores), (True, link.hour_scores))
        for score in scores
    ]
    frame = pl.DataFrame(rows, schema=schema)
    with open_output(path) as file:
        file.write(parquet_bytes(frame))
