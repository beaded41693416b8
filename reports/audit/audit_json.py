"""An audit as JSON, for programs; `docs/audit.schema.json` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfrctrace.metrics.audit.signals import facts
from tfrctrace.reports.audit.profile_tables import MOST_SCORES, metadata
from tfrctrace.reports.files.json_schema import AUDIT_SCHEMA_VERSION
from tfrctrace.reports.files.table_files import parquet_bytes
from tfrctrace.reports.output import open_output, open_text_output

if TYPE_CHECKING:
    from tfrctrace.metrics.audit.result import Audit, AuditedLink, FoundIncident, ReadFiles
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult
    from tfrctrace.metrics.profiles.score import Profile, Score


def write_audit_json(path: str, audit: Audit, title: str, version: str) -> None:
    """Write an audit into a file; the same audit gives the same text."""
    with open_text_output(path) as file:
        file.write(json.dumps(audit_facts(audit, title, version), indent=1) + "\n")


def audit_facts(audit: Audit, title: str, version: str) -> dict[str, Any]:
    """Return an audit as names and values."""
    return {
        "schema_version": AUDIT_SCHEMA_VERSION,
        "tool": {"name": "tfrctrace", "version": version},
        "title": title,
        "objectives": [_objective(one) for one in audit.objectives],
        "profiles": [_profile(one) for one in audit.profiles],
        "links": [_link(one) for one in audit.links],
        "incidents": [_incident(one, audit.objectives) for link in audit.links for one in link.incidents],
        "captures": [_captures(one) for one in audit.evidence],
    }


def _objective(one: Objective) -> dict[str, Any]:
    return {
        "name": one.name,
        "require": one.require,
        "severe": one.severe,
        "by": one.grouping.text,
        "every_ns": one.grouping.every_ns,
        "least": one.least,
        "target": one.target,
        "raise": one.raise_after,
        "clear": one.clear_after,
        "unit": one.unit,
    }


def _profile(one: Profile) -> dict[str, Any]:
    return {**asdict(one), "rules": asdict(one.rules)}


def _link(link: AuditedLink) -> dict[str, Any]:
    return {
        "name": link.name,
        "first_ns": link.first_ns,
        "last_ns": link.last_ns,
        "incidents": len(link.incidents),
        "silent": [{"begin_ns": begin_ns, "end_ns": end_ns} for begin_ns, end_ns in link.silent],
        "objectives": [_result(one) for one in link.results],
        "scores": [_score(one) for one in link.scores[:MOST_SCORES]],
        "scores_left_out": max(len(link.scores) - MOST_SCORES, 0),
    }


def _score(one: Score) -> dict[str, Any]:
    return {**asdict(one), "metadata": metadata(one)}


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
        {"link": link.name, "is_hour": is_hour, **{name: getattr(one, name) for name in names}}
        for link in audit.links
        for is_hour, scores in ((False, link.scores), (True, link.hour_scores))
        for one in scores
    ]
    frame = pl.DataFrame(rows, schema=schema)
    with open_output(path) as file:
        file.write(parquet_bytes(frame))


def _result(one: ObjectiveResult) -> dict[str, Any]:
    counts = ("intervals", "met", "violated", "severe", "without_data")
    return {
        "name": one.objective.name,
        "met": one.total.meets(one.objective.target),
        "share_met": one.total.share_met,
        "groups": [
            {"group": row["group"], **{name: row[name] for name in counts}, "share_met": row["share_met"]}
            for row in one.groups.iter_rows(named=True)
        ],
    }


def _incident(one: FoundIncident, objectives: tuple[Objective, ...]) -> dict[str, Any]:
    incident, cause = one.incident, one.cause
    return {
        "number": one.number,
        "link": incident.link,
        "begin_ns": incident.begin_ns,
        "end_ns": incident.end_ns,
        "place": cause.place,
        "under_load": cause.under_load,
        "scope": cause.scope,
        "hosts": list(cause.hosts),
        "confidence": cause.confidence,
        "reason": cause.reason,
        "baseline": cause.baseline,
        "signals": [facts(signal) for signal in cause.signals],
        "stretches": [{**row, "objective": objectives[row["objective"]].name} for row in incident.stretches],
        "files": list(one.files),
    }


def _captures(one: ReadFiles) -> dict[str, Any]:
    return {
        **{name: value for name, value in asdict(one).items() if name not in {"sources", "problems"}},
        "problems": len(one.problems),
    }
