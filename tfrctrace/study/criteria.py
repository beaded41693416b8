"""What a study judges: competing algorithms, by criteria, each in a place where all of them run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrctrace.study.file.claims import Bound

Queue = Literal["bfifo", "codel", "fq_codel", "pie", "red"]
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
    rtt_s: float | None
    """Its round-trip time, longer than that of the others; None if it has theirs."""


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
    queue: Queue
    ecn: bool
    clears_marks: bool
    """Whether a router after the bottleneck takes ECN out of IP headers, so that no mark arrives."""
    tunnel: bool
    """Whether the bottleneck sees packets inside IP in IP (RFC 2003)."""
    loss: float
    reordering: float
    duration_s: float
    change: tuple[float, float] | None
    """When the path changes, and its round-trip time from then on."""
    outage: tuple[float, float] | None
    """When packets begin to be lost, and for how long."""
    rates: tuple[tuple[float, float], ...]
    """From when on the bottleneck has another rate, and which."""
    back_rates: tuple[tuple[float, float], ...]
    """The same of the way back, which has no bottleneck if there are none."""
    flows: tuple[FlowOfPlace, ...]

    @property
    def buffer_bytes(self) -> int:
        """Size of the queue."""
        return round(self.buffer * self.rate_bps * self.rtt_s / 8)

    @property
    def least_rtt_s(self) -> float:
        """The smallest round-trip time that it has at any time."""
        return min(self.rtt_s, self.change[1]) if self.change else self.rtt_s

    def far_ports(self, ports: Mapping[str, Sequence[int]]) -> list[tuple[int, float]]:
        """Return the ports of receivers that are farther away, and by how many seconds."""
        return [
            (port, flow.rtt_s - self.rtt_s)
            for flow, port in zip(self.flows, self.ports_of_flows(ports), strict=True)
            if flow.rtt_s is not None
        ]

    def ports_of_flows(self, ports: Mapping[str, Sequence[int]]) -> list[int]:
        """Return the port of the receiver of each flow: the next of its label."""
        of_label = {label: iter(own) for label, own in ports.items()}
        return [next(of_label[flow.label]) for flow in self.flows]

    def path_text(self) -> str:
        """Return its path in words: `20 Mbit/s, 40 ms, bfifo of 0.5 BDP`."""
        parts = [
            f"{self.rate_bps / 1e6:g} Mbit/s, {self.rtt_s * 1e3:g} ms, {self.queue} of {self.buffer:g} BDP",
            "ECN" if self.ecn else "",
            "which a router clears" if self.clears_marks else "",
            "in a tunnel of IP in IP" if self.tunnel else "",
            f"{self.loss:.2%} lost".replace("%", " %") if self.loss else "",
            f"{self.reordering:.2%} reordered".replace("%", " %") if self.reordering else "",
            *(f"{rate_bps / 1e6:g} Mbit/s from {at_s:g} s on" for at_s, rate_bps in self.rates),
            *(f"back {rate_bps / 1e6:g} Mbit/s from {at_s:g} s on" for at_s, rate_bps in self.back_rates),
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

    source: str
    """The document whose sections the criteria are of, such as `RFC 9743`."""
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
