"""Shapes of what a folder of results holds: anybody may have written its files."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final

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

_OPTIONAL_TIME: Final = (int, NoneType)

_SOURCE: Final = {"start_ns": _OPTIONAL_TIME, "end_ns": _OPTIONAL_TIME, "packets": int}
"""What is used of a source."""

INDEX: Final[Mapping[str, Any]] = {
    "results_version": int,
    "chains": [
        {
            **dict.fromkeys(("name", "key", "first_file"), str),
            "failed": bool,
            **dict.fromkeys(("files", "bytes", "packets", "flow_rows", "errors", "warnings"), int),
            **dict.fromkeys(("start_ns", "end_ns"), _OPTIONAL_TIME),
        }
    ],
    "problems": COMMON["problems"],
}


def has_facts(facts: Record) -> bool:
    """Return whether facts of a chain have the form in which they are written."""
    return (
        has_shape(facts, FACTS)
        and bool(facts["files"])
        and all(
            has_shape({name: source.get(name) for name in _SOURCE}, _SOURCE) for source in facts["sources"]
        )
    )
