"""What is kept of a run: anybody may have written the file, so each record is checked by its type."""

from __future__ import annotations

from msgspec import Struct, convert

from tfrctrace.base.errors import Problem
from tfrctrace.metrics.results.quantities import QuantityValues
from tfrctrace.metrics.results.verdict import RunOutcome


class RunRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every record has, and all that one of a run has that could not be read."""

    failed: bool
    problems: list[Problem]


class CheckRecord(RunRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of a gate."""

    taken: dict[str, QuantityValues]
    """By the name of the quantity."""
    objectives: tuple[RunOutcome, ...]


def is_a(kind: type, value: object) -> bool:
    """Return whether `value`, made of JSON, is of a type."""
    try:
        convert(value, kind)
    except (ValueError, RecursionError):
        return False
    return True
