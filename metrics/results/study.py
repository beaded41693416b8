"""What is kept of a run of a study, and of all of them."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from tfrctrace.base.errors import Problem
from tfrctrace.metrics.results.metrics import Metric
from tfrctrace.metrics.results.records import RunRecord

SAVED_VERSION: Final = 1

Count = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""A whole number that a float holds exactly."""
Real = Annotated[float, Meta(ge=-1e60, le=1e60)]
"""A number whose fourth power, which tests of means form, is finite; a saved file may be a stranger's."""


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

    flow: Count
    group: str | None
    unit: str
    time_s: list[Real]
    values: list[Count | Real | None]


class StudyRecord(RunRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A run of a study: its metrics, its flows and, if a figure needs them, its series."""

    sets: int
    set: ChosenSet | None
    least_packets: int
    flows_left_out: int
    metrics: list[Metric]
    flows: list[StudyFlow]
    series: dict[str, list[Series]]


class SavedValue(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One value of a quantity in one run; `reason` is why it is unknown."""

    quantity: str
    group: str | None = None
    value: Real | None = None
    unit: str = ""
    made_of: Count = 0
    flow: Count | None = None
    reason: str | None = None


class SavedRun(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What tables and figures need of one run."""

    name: str
    parameters: dict[str, Count | Real | str]
    failed: bool = False
    values: list[SavedValue] = []
    series: dict[str, list[Series]] = {}
    """Of the flows that a figure over time shows."""


class SavedStudy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The runs of a study, from which its results are made without a trace."""

    saved_version: Annotated[int, Meta(ge=SAVED_VERSION, le=SAVED_VERSION)]
    made_with: str
    settings: dict[str, str]
    """The `[values]` of the study file with which the runs were measured."""
    runs: list[SavedRun]
    problems: list[Problem]
