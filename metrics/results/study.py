"""What is kept of a run of a study."""

from __future__ import annotations

from msgspec import Struct

from tfrctrace.metrics.results.metrics import Metric
from tfrctrace.metrics.results.records import RunRecord


class ChosenSet(Struct, frozen=True, forbid_unknown_fields=True):
    """The competing set whose metrics are kept."""

    source: str
    flows: list[int]
    start_ns: int
    end_ns: int


class StudyFlow(Struct, frozen=True, forbid_unknown_fields=True):
    """A flow, in the direction that carried more data."""

    flow: int
    group: str | None
    numbers: dict[str, int | float | None]
    """By the name of the column."""
    replayed: dict[str, float | None]
    """Mean rate that an algorithm allowed, by its name."""


class Series(Struct, frozen=True, forbid_unknown_fields=True):
    """A quantity of a flow over time."""

    flow: int
    group: str | None
    unit: str
    time_s: list[float]
    values: list[int | float | None]


class StudyRecord(RunRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of a study: its metrics, its flows and, if a figure needs them, its series."""

    sets: int
    set: ChosenSet | None
    least_packets: int
    flows_left_out: int
    metrics: list[Metric]
    flows: list[StudyFlow]
    series: dict[str, list[Series]]
