"""Saved results of a report: `results.json` beside the tables."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from tfrctrace.metrics.results.document import Tool
from tfrctrace.metrics.results.flows import Count, SourceProblem, SourceSummary, TimeNs
from tfrctrace.metrics.results.metrics import TraceMetrics

RESULTS_SCHEMA_VERSION: Final = 3
"""It changes when a name or a meaning does."""


class Clock(Struct, frozen=True, forbid_unknown_fields=True):
    """The clock of the second of two captures against that of the first."""

    is_given: bool
    has_delays: bool
    reference_ns: TimeNs
    offset_ns: TimeNs
    offset_low_ns: TimeNs | None
    offset_high_ns: TimeNs | None
    drift_ppm: float | None
    drift_low_ppm: float | None
    drift_high_ppm: float | None
    packets: Count


class SavedResults(Struct, frozen=True, forbid_unknown_fields=True):
    """What `tfrctrace report --results` writes beside tables. Times are integers in ns."""

    schema_version: Annotated[int, Meta(ge=RESULTS_SCHEMA_VERSION, le=RESULTS_SCHEMA_VERSION)]
    tool: Tool
    title: str
    made_with: Annotated[str, Meta(description="version and command, without paths")]
    joined: Annotated[bool, Meta(description="whether the sources are one trace")]
    clock: Annotated[Clock | None, Meta(description="of a pair of captures")]
    tables: Annotated[dict[str, str], Meta(description="file name by table, columns as in columns.md")]
    sources: list[SourceSummary]
    warnings: list[SourceProblem]
    metrics: Annotated[
        TraceMetrics | None,
        Meta(description="as `tfrctrace metrics --format json` has them; null for too many flows"),
    ]
    digests: Annotated[dict[str, str], Meta(description="SHA-256 of the file by table")]
