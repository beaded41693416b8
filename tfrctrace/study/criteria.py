"""What a study judges: competing algorithms, by criteria, each in a place where all of them run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.study.file.claims import Bound

About = Literal["harm", "performance"]
"""What a criterion asks: whether others suffer, or how well the algorithm itself does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOfPlace:
    """A connection of a place; without a `controller` of its own it has the one that is judged."""

    label: str
    controller: str | None
    start_s: float
    total: int | None
    """Bytes that it sends; None until the end of the run."""
    send: int
    """Bytes that it sends `every_s`; as many as it can if that is None."""
    every_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A scenario: a path with one bottleneck, and the flows that share it."""

    name: str
    says: str
    rate_bps: float
    rtt_s: float
    """Without a queue."""
    buffer: float
    """In bandwidth-delay products."""
    queue: str
    ecn: bool
    loss: float
    reordering: float
    duration_s: float
    change: tuple[float, float] | None
    """When the path changes, and its round-trip time from then on."""
    outage: tuple[float, float] | None
    """When packets begin to be lost, and for how long."""
    flows: tuple[FlowOfPlace, ...]

    @property
    def buffer_bytes(self) -> int:
        """Size of the queue."""
        return round(self.buffer * self.rate_bps * self.rtt_s / 8)

    @property
    def least_rtt_s(self) -> float:
        """The smallest round-trip time that it has at any time."""
        return min(self.rtt_s, self.change[1]) if self.change else self.rtt_s

    def path_text(self) -> str:
        """Return its path in words: `20 Mbit/s, 40 ms, bfifo of 0.5 BDP`."""
        parts = [
            f"{self.rate_bps / 1e6:g} Mbit/s, {self.rtt_s * 1e3:g} ms, {self.queue} of {self.buffer:g} BDP",
            "ECN" if self.ecn else "",
            f"{self.loss:.2%} lost".replace("%", " %") if self.loss else "",
            f"{self.reordering:.2%} reordered".replace("%", " %") if self.reordering else "",
            f"{self.change[1] * 1e3:g} ms after {self.change[0]:g} s" if self.change else "",
            f"no packet arrives from {self.outage[0]:g} s on for {self.outage[1]:g} s" if self.outage else "",
            f"{self.duration_s:g} s",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A row: what is measured in which place; or the `reason` why nothing is."""

    section: str
    title: str
    reason: str = ""
    place: str = ""
    quantities: tuple[str, ...] = ()
    """What is measured: the first that all of the runs have."""
    metric: str = ""
    """The name of what is measured in RFC 5166."""
    group: str | None = None
    worse: Bound | None = None
    """When a value is worse than another, or than the limit."""
    limit: float | None = None
    """A threshold of the study in place of references."""
    about: About = "harm"
    alone: str = ""
    """The algorithm of the flow that suffers, whose value alone the harm is relative to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """All that is judged, and against what."""

    parameter: str
    """Its values are the algorithms."""
    scenario: str
    """The parameter whose values are the names of the places."""
    references: tuple[str, ...]
    least_runs: int
    places: tuple[Place, ...]
    criteria: tuple[Criterion, ...]
    ports: Mapping[str, tuple[int, ...]]
    """The ports of the flows of each label."""
    alone_place: str
    """Where each algorithm has the path to itself."""
