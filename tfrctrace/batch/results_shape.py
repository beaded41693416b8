"""Shapes of what a folder of results holds: anybody may have written its files."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.files.json_schema import source_document
from tfrctrace.reports.files.schema_check import first_complaint
from tfrctrace.runs.record_shape import COMMON, OPTIONAL_TEXT, has_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.runs.cache import Record

FACTS: Final[Mapping[str, Any]] = {
    **COMMON,
    "results_version": int,
    **dict.fromkeys(("key", "program", "name", "link"), str),
    "options": {str: object},
    "files": [{"name": str, "bytes": int, "version": (int, str), "xxh64": OPTIONAL_TEXT}],
    "sources": [{str: object}],
    "rows": {str: int},
    "tables": {str: str},
}
"""The facts of a chain; `tables` has the digest of each."""

_GROUPING: Final = {"by": str, "every_ns": int}
"""Options that an audit reads again."""

INDEX: Final[Mapping[str, Any]] = {
    "results_version": int,
    "chains": [
        {
            **dict.fromkeys(("name", "key", "first_file"), str),
            "failed": bool,
            **dict.fromkeys(("files", "bytes", "packets", "flow_rows", "errors", "warnings"), int),
            **dict.fromkeys(("start_ns", "end_ns"), (int, NoneType)),
        }
    ],
    "problems": COMMON["problems"],
}


def has_facts(facts: Record) -> bool:
    """Return whether facts of a chain have the form in which they are written."""
    return (
        has_shape(facts, FACTS)
        and has_shape({name: facts["options"].get(name) for name in _GROUPING}, _GROUPING)
        and bool(facts["files"])
        and all(map(_is_source, facts["sources"]))
    )


def _is_source(source: Record) -> bool:
    if first_complaint(source, source_document()) is not None:
        return False
    start_ns, end_ns = source["start_ns"], source["end_ns"]
    if start_ns is None or end_ns is None:
        return start_ns is end_ns
    return bool(start_ns <= end_ns)
