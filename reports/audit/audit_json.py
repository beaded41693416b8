"""An audit as JSON, for programs; `docs/audit.schema.json` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tfrctrace.metrics.audit.signals import facts
from tfrctrace.reports.files.json_schema import AUDIT_SCHEMA_VERSION
from tfrctrace.reports.output import open_text_output

if TYPE_CHECKING:
    from tfrctrace.metrics.audit.result import Audit, AuditedLink, FoundIncident, ReadFiles
    from tfrctrace.metrics.objectives import Objective, ObjectiveResult


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


def _link(link: AuditedLink) -> dict[str, Any]:
    return {
        "name": link.name,
        "first_ns": link.first_ns,
        "last_ns": link.last_ns,
        "incidents": len(link.incidents),
        "silent": [{"begin_ns": begin_ns, "end_ns": end_ns} for begin_ns, end_ns in link.silent],
        "objectives": [_result(one) for one in link.results],
    }


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
