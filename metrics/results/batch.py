"""What a folder of a batch, or of an audit, keeps beside its tables."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tfrctrace.base.errors import Problem
from tfrctrace.metrics.results.flows import SourceSummary
from tfrctrace.metrics.results.records import RunRecord


class CaptureFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a chain as it was read."""

    name: str
    bytes: int
    version: int | str
    """Time of its last change, or ETag."""
    xxh64: str | None


class ChainFacts(RunRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The facts of a chain."""

    results_version: int
    key: str
    program: str
    name: str
    link: str
    options: dict[str, Any]
    files: list[CaptureFacts]
    sources: list[SourceSummary]
    rows: dict[str, int]
    tables: dict[str, str]
    """Digests."""


class GroupingOptions(Struct, frozen=True):
    """Options of a chain that an audit reads again."""

    by: str
    every_ns: int


class ChainEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A chain in the index."""

    name: str
    key: str
    first_file: str
    failed: bool
    files: int
    bytes: int
    packets: int
    flow_rows: int
    errors: int
    warnings: int
    start_ns: int | None
    end_ns: int | None


class BatchIndex(Struct, frozen=True, forbid_unknown_fields=True):
    """What a batch, or a shard of one, consists of."""

    results_version: int
    chains: list[ChainEntry]
    problems: list[Problem]


class DayFacts(RunRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A day of a link in an audit."""

    link: str
    date: str
    tables: dict[str, str]
    """Digests."""
