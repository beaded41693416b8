"""What replays of flows have in common, in open and in closed loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_DIRECTION: Final = ("flow", "direction", "src", "src_port", "dst", "dst_port")
"""Columns that identify a direction of a flow, in each table of replays."""

Flow = TypeVar("Flow", bound="FlowDirection")
Run = TypeVar("Run", bound="AlgorithmRun")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowDirection:
    """A direction of a flow, with its ends as in the table of flows."""

    flow: int
    direction: str
    src: str
    src_port: int
    dst: str
    dst_port: int

    @property
    def key(self) -> tuple[int, str]:
        """What identifies it in a trace."""
        return self.flow, self.direction


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRun(FlowDirection):
    """An algorithm that was run over a direction."""

    algorithm: str
    profile: str | None
    series: Mapping[str, list[Any]] = field(default_factory=dict)
    """Values of all steps by name, which JSON has beside the summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReplayable(FlowDirection):
    """A direction of a flow that cannot be replayed."""

    transport: str
    what: str
    """What is missing."""
    hint: str
    """How to supply it."""


@dataclass(frozen=True, slots=True)
class SparingStation:
    """A station that sends only so much."""

    mbps: float
    load_bps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StationsStep:
    """Who shares the medium for some time."""

    from_s: float
    until_s: float | None
    uploads_mbps: tuple[float, ...]
    sparing: tuple[SparingStation, ...]
    access_point_mbps: float | None
    downloads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayHead:
    """What is said of a replay as a whole."""

    loop: Literal["open", "closed"]
    notes: tuple[str, ...]
    """On the algorithms."""
    stations_seen: tuple[StationsStep, ...] = ()
    """Where the trace shows them and they were asked for."""
    sweep: str | None = None
    """The property of the bottleneck that takes the values `swept`, a key of `closed_loop.SWEPT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays(Generic[Flow, Run]):
    """Flows with what algorithms did in their place, and flows without replays."""

    head: ReplayHead
    flows: tuple[Flow, ...]
    lacking: tuple[NotReplayable, ...]
    replays: tuple[Run, ...]
    flows_left_out: int = 0
    """Flows with replays beyond those that a screen has room for."""
    lacking_left_out: Mapping[str, int] = field(default_factory=dict)
    """Flows without replays beyond those, by what is missing."""
