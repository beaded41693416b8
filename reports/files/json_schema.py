"""The JSON schema of `flows --format json`, made from the one list of columns.

`docs/flows.schema.json` is this, written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.parsers.schema import FLOWS, SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.parsers.schema import Column

JsonSchema = dict[str, Any]

RESULTS_SCHEMA_VERSION: Final = 2
"""Version of `results.json`; it changes when a name or a meaning does."""

AUDIT_SCHEMA_VERSION: Final = 1

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Final[JsonSchema] = {"type": "string"}

_TYPES: Final[Mapping[str, JsonSchema]] = {
    "uint32": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
    "uint64": {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "float64": {"type": "number"},
    "string": {"type": "string"},
}


_COUNT: Final = _TYPES["uint64"]
_INTEGER_OR_NULL: Final = _TYPES["int64"] | {"type": ["integer", "null"]}
_TIME_NS: Final = _INTEGER_OR_NULL | {"description": "ns since the epoch"}
_FLOWS: Final[JsonSchema] = {"type": "array", "items": _TYPES["uint32"], "description": "numbers of flows"}


def flows_document() -> JsonSchema:
    """Return the schema of the whole document."""
    return {
        "$schema": _DIALECT,
        "title": "tfrctrace flows",
        "description": "What `tfrctrace flows --format json` writes. Times are integers in ns, rates bit/s.",
        **_object(
            {
                "schema_version": {"const": SCHEMA_VERSION},
                "tool": _object({"name": {"const": "tfrctrace"}, "version": _TEXT}),
                "sources": {"type": "array", "items": source_document()},
                "flows": {"type": "array", "items": _object({one.name: _column(one) for one in FLOWS})},
                "hops": {
                    "type": "array",
                    "items": _object({one.name: _column(one) for one in TABLES["hops"]}),
                    "description": "of more than two captures (`--pair`), else empty",
                },
                "warnings": {"type": "array", "items": _warning()},
            }
        ),
    }


def results_document() -> JsonSchema:
    """Return the schema of `results.json` (`tfrctrace report --results`)."""
    number = {"type": ["number", "null"]}
    clock = _object(
        {
            "is_given": {"type": "boolean"},
            "has_delays": {"type": "boolean"},
            "reference_ns": _TYPES["int64"],
            "offset_ns": _TYPES["int64"],
            "offset_low_ns": _INTEGER_OR_NULL,
            "offset_high_ns": _INTEGER_OR_NULL,
            "drift_ppm": number,
            "drift_low_ppm": number,
            "drift_high_ppm": number,
            "packets": _COUNT,
        }
    )
    return {
        "$schema": _DIALECT,
        "title": "tfrctrace results",
        "description": "What `tfrctrace report --results` writes beside tables. Times are integers in ns.",
        **_object(
            {
                "schema_version": {"const": RESULTS_SCHEMA_VERSION},
                "tool": _object({"name": {"const": "tfrctrace"}, "version": _TEXT}),
                "title": _TEXT,
                "made_with": _TEXT | {"description": "version and command, without paths"},
                "joined": {"type": "boolean", "description": "whether the sources are one trace"},
                "clock": {"anyOf": [clock, {"type": "null"}], "description": "of a pair of captures"},
                "tables": {
                    "type": "object",
                    "additionalProperties": _TEXT,
                    "description": "file name by table, columns as in columns.md",
                },
                "digests": {
                    "type": "object",
                    "additionalProperties": _TEXT,
                    "description": "SHA-256 of the file by table",
                },
                "sources": {"type": "array", "items": source_document()},
                "warnings": {"type": "array", "items": _warning()},
                "metrics": {
                    "anyOf": [_metrics(), {"type": "null"}],
                    "description": "as `tfrctrace metrics --format json` has them; null for too many flows",
                },
            }
        ),
    }


def audit_document() -> JsonSchema:
    """Return the schema of `audit.json` (`tfrctrace audit`)."""
    number = {"type": ["number", "null"]}
    text_or_null = {"type": ["string", "null"]}
    time_ns = _TYPES["int64"] | {"description": "ns since the epoch"}
    width_ns = _TYPES["int64"] | {"type": ["integer", "null"]}
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
        "$schema": _DIALECT,
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


def _metrics() -> JsonSchema:
    """Return the schema of the metrics; later releases may say more of each."""
    text_or_null, number_or_null = ({"type": [kind, "null"]} for kind in ("string", "number"))
    competing_set = {
        "number": _COUNT,
        "source": _TEXT,
        "flows": _FLOWS,
        "start_ns": _TYPES["int64"],
        "end_ns": _TYPES["int64"],
    }
    small_flow = {
        "flow": _COUNT,
        "of_mean": {"type": "number"},
        "is_sparse": {"type": "boolean"},
        "evidence": _TEXT,
    }
    sets = _open_object(competing_set)
    # results of earlier releases lack it
    sets["properties"]["small_flows"] = {"type": "array", "items": _open_object(small_flow)}
    metric = {
        "name": _TEXT,
        "value": number_or_null,
        "unit": _TEXT,
        "n": _COUNT,
        "window_s": number_or_null,
        "flows": _FLOWS,
        "group": text_or_null,
        "competing_set": _INTEGER_OR_NULL,
    }
    return _open_object(
        {
            "window_s": {"type": "number"},
            "competing_sets": {"type": "array", "items": sets},
            "metrics": {"type": "array", "items": _open_object(metric)},
        }
    )


def _open_object(properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that has all of `properties`, and perhaps more."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _object(properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object that has all of `properties` and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _column(column: Column) -> JsonSchema:
    schema = dict(_TYPES[column.type])
    words = f"{column.meaning} ({column.unit})" if column.unit else column.meaning
    if column.null_when:
        schema["type"] = [schema["type"], "null"]
        words += f"; null: {column.null_when}"
    return schema | {"description": words}


def source_document() -> JsonSchema:
    """Return the schema of what one input held."""
    return _object(
        {
            "source": _TEXT | {"description": "name of the input; `-` is standard input"},
            "format": _TEXT | {"description": "such as `pcap` or `ns2`; empty if not recognised"},
            "compression": _TEXT | {"description": "`gzip`, `zstd`, `lz4`, `xz`, or empty"},
            "link_types": {"type": "array", "items": _TEXT},
            "interfaces": {"type": "array", "items": _interface()},
            "start_ns": _TIME_NS,
            "end_ns": _TIME_NS,
            "packets": _COUNT,
            "filtered_packets": _COUNT | {"description": "left out by the filter, in no other count"},
            "outside_packets": _COUNT
            | {"description": "outside of the stretch of time that was read, in no other count"},
            "tcp_packets": _COUNT,
            "udp_packets": _COUNT,
            "dccp_packets": _COUNT,
            "tfrc_packets": _COUNT | {"description": "of a simulator's TFRC"},
            "other_ip_packets": _COUNT,
            "non_ip_packets": _COUNT,
            "undecoded_packets": _COUNT | {"description": "without a readable IP header"},
            "untracked_packets": _COUNT | {"description": "of flows beyond the bound on their number"},
            "portless_packets": _COUNT | {"description": "TCP and UDP without readable ports, in no flow"},
            "repeated_packets": _COUNT | {"description": "in 802.11 frames seen before; not in their flow"},
            "decode_stops": {"type": "array", "items": _decode_stop()},
            "out_of_order_times": _COUNT | {"description": "packets with a time before their predecessor's"},
            "lines": _COUNT | {"description": "of a text, all of them"},
            "other_lines": _COUNT | {"description": "understood, and no packets"},
            "bad_lines": _COUNT | {"description": "not understood"},
            "wire_bytes": _COUNT,
            "captured_bytes": _COUNT,
        }
    )


def _interface() -> JsonSchema:
    nullable_count = {"type": ["integer", "null"], "minimum": 0}
    return _object(
        {
            "name": {"type": ["string", "null"]},
            "link_type": _TEXT,
            "snap_length_bytes": nullable_count,
            "packets": _COUNT,
            "dropped_packets": nullable_count | {"description": "by the capture; null if not recorded"},
        }
    )


def _decode_stop() -> JsonSchema:
    """Return the schema of a reason for which packets could not be decoded to the end."""
    return _object({"layer": _TEXT, "reason": _TEXT, "packets": _COUNT, "first_packet": _COUNT})


def _warning() -> JsonSchema:
    """Return the schema of what was wrong with an input."""
    position = {"type": ["integer", "null"], "minimum": 0}
    return _object(
        {
            "severity": {"enum": ["error", "warning", "note"]},
            "kind": _TEXT | {"description": "stable identifier, such as `truncated`"},
            "source": _TEXT,
            "flows": _FLOWS | {"description": "numbers of the flows it is about, if it is about some only"},
            "line": position | {"description": "number of the line where it was found, in a text"},
            "packet": position | {"description": "number of the packet where it was found, from 1"},
            "byte": position | {"description": "offset in the uncompressed input where it starts"},
            "message": _TEXT,
            "hint": {"type": ["string", "null"]},
            "packets_before": _COUNT | {"description": "packets of the input that were analysed before"},
            "text": _TEXT | {"description": "the sentence that the terminal shows"},
        }
    )
