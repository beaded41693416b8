"""The JSON schema of an audit."""

from __future__ import annotations

from typing import Any, Final

JsonSchema = dict[str, Any]

RESULTS_SCHEMA_VERSION: Final = 2
"""Version of `results.json`; it changes when a name or a meaning does."""

AUDIT_SCHEMA_VERSION: Final = 1

_TEXT: Final[JsonSchema] = {"type": "string"}
_COUNT: Final[JsonSchema] = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
_INT64: Final[JsonSchema] = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


def audit_document() -> JsonSchema:
    """Return the schema of `audit.json` (`tfrctrace audit`)."""
    number = {"type": ["number", "null"]}
    text_or_null = {"type": ["string", "null"]}
    time_ns = _INT64 | {"description": "ns since the epoch"}
    width_ns = _INT64 | {"type": ["integer", "null"]}
    stretch = _object({"begin_ns": time_ns, "end_ns": time_ns})
    counts = dict.fromkeys(("intervals", "met", "violated", "severe", "without_data"), _COUNT)
    group = _object({"group": text_or_null, **counts, "share_met": number})
    measured = {
        f"{when}_{name}": _COUNT if name == "n" else number
        for when in ("before", "during")
        for name in ("value", "low", "high", "n")
    }
    objective = _object(
        {
            "name": _TEXT,
            "require": _TEXT,
            "severe": text_or_null,
            "by": _TEXT,
            "every_ns": width_ns,
            "least": _COUNT,
            "target": {"type": "number"},
            "raise": _COUNT,
            "clear": _COUNT,
            "unit": _TEXT,
        }
    )
    result = _object(
        {
            "name": _TEXT,
            "met": {"type": ["boolean", "null"], "description": "null without data"},
            "share_met": number,
            "groups": {"type": "array", "items": group},
        }
    )
    names = ("method", "class", "layer", "packet_size", "traffic_class", "sampling", "direction")
    metadata = {
        **dict.fromkeys((*names, "endpoints", "segments", "first_sample"), _TEXT),
        **dict.fromkeys(("duration_ms", "samples"), _COUNT),
    }
    score = _object(
        {
            "profile": _TEXT,
            "group": _TEXT,
            "segment": _TEXT | {"description": "part of the path between the capture and hosts"},
            "value": number | {"description": "null where `reason` says why"},
            "unit": {"enum": ["%", "ms", "MOS"]},
            "grade": _TEXT,
            "is_at_most": {"type": "boolean", "description": "what is not known could only make it worse"},
            "reason": _TEXT | {"description": "why there is no value, or what is not known"},
            "n": _COUNT | {"description": "samples of the delay, or packets"},
            "first_ns": time_ns,
            "last_ns": time_ns,
            "inputs": {"type": "object", "additionalProperties": number},
            "metadata": _object(metadata),
        }
    )
    profile = _object(
        {
            **dict.fromkeys(("name", "title", "source", "version", "url"), _TEXT),
            "rules": {"type": "object", "description": "thresholds, as in its file"},
        }
    )
    link = _object(
        {
            "name": _TEXT,
            "first_ns": time_ns,
            "last_ns": time_ns,
            "incidents": _COUNT,
            "silent": {"type": "array", "items": stretch, "description": "without any packet"},
            "objectives": {"type": "array", "items": result},
            "scores": {"type": "array", "items": score},
            "scores_left_out": _COUNT | {"description": "which `scores.parquet` has"},
        }
    )
    signal = _object(
        {
            "name": _TEXT,
            "place": _TEXT | {"description": "where the cause is if it is this that got worse"},
            "unit": _TEXT | {"description": "`ms`, `bit/s`, `dBm`, or empty for a share"},
            "changed": {"type": ["boolean", "null"], "description": "got worse by more than chance"},
            **measured,
        }
    )
    raised = _object(
        {
            "objective": _TEXT,
            "group": text_or_null,
            "begin_ns": time_ns,
            "end_ns": time_ns,
            "intervals": _COUNT | {"description": "violated ones, severely or not"},
            "severe": _COUNT,
            "value": {"type": "number", "description": "the worst"},
            "n": _COUNT | {"description": "samples of the worst value"},
            "at_ns": time_ns,
            "ended": {"enum": ["recovered", "no data", "end of data"]},
        }
    )
    incident = _object(
        {
            "number": _COUNT,
            "link": _TEXT,
            "begin_ns": time_ns,
            "end_ns": time_ns,
            "place": _TEXT,
            "under_load": {"type": "boolean"},
            "scope": _TEXT,
            "hosts": {"type": "array", "items": _TEXT},
            "confidence": {"enum": ["high", "medium", "low"]},
            "reason": _TEXT,
            "baseline": _TEXT,
            "signals": {"type": "array", "items": signal},
            "stretches": {"type": "array", "items": raised},
            "files": {"type": "array", "items": _TEXT},
        }
    )
    captures = _object(
        {
            "link": _TEXT,
            **dict.fromkeys(("pieces", "failed", "files", "bytes", "packets", "problems"), _COUNT),
        }
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tfrctrace audit",
        "description": "What `tfrctrace audit` writes into `audit.json`. Times are integers in ns.",
        **_object(
            {
                "schema_version": {"const": AUDIT_SCHEMA_VERSION},
                "tool": _object({"name": {"const": "tfrctrace"}, "version": _TEXT}),
                "title": _TEXT,
                "objectives": {"type": "array", "items": objective},
                "profiles": {"type": "array", "items": profile},
                "links": {"type": "array", "items": link},
                "incidents": {"type": "array", "items": incident},
                "captures": {"type": "array", "items": captures},
            }
        ),
    }


def _object(properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that has all of `properties` and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
