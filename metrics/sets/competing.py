"""Which flows competed: those that were active at the same time in one trace.

Flows that follow each other must not meet in one index. A competing set is a largest set of flows that all
overlap; a flow may be in several, one after the other. A trace is taken as one shared link.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.windows import whole_windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tfrctrace.metrics.windows import Windows

MAX_SETS: Final = 20
"""Most sets that are returned: those with most flows times time."""

LEAST_WINDOWS: Final = 2
"""Whole windows that flows must have in common to have competed."""


@dataclass(frozen=True, slots=True)
class FlowLifetime:
    """When a flow was active in a trace."""

    flow: int
    source: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class CompetingSet:
    """Flows that were active together, and the whole windows that they have in common."""

    number: int
    source: str
    flows: tuple[int, ...]
    windows: Windows
    last_start_ns: int
    """When the last of them began."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A moment at which a largest set of flows is active, from the last start to the first end."""

    at_ns: int
    flows: int
    from_ns: int
    until_ns: int

    @property
    def weight(self) -> int:
        """Flows times ns."""
        return self.flows * (self.until_ns - self.from_ns)


def competing_sets(
    lives: Sequence[FlowLifetime],
    origins_ns: Mapping[str, int],
    base_ns: int,
    window_ns: int,
    *,
    warmup_ns: int = 0,
) -> tuple[list[CompetingSet], int]:
    """Return the competing sets of each trace in order of time, and how many more there are.

    Windows of `window_ns` begin on the grid of `base_ns` from the trace's entry in `origins_ns`, `warmup_ns`
    after the start of each flow or later.
    """
    by_source: dict[str, list[FlowLifetime]] = {source: [] for source in origins_ns}
    for life in lives:
        by_source[life.source].append(replace(life, start_ns=life.start_ns + warmup_ns))
    sets: list[CompetingSet] = []
    left_out = 0
    # windows begin on a grid, which may cost one step of it
    needed_ns = LEAST_WINDOWS * window_ns + base_ns
    for source, warm in by_source.items():
        overlaps = list(_overlaps(warm, needed_ns))
        chosen = heapq.nlargest(MAX_SETS, overlaps, key=lambda overlap: (overlap.weight, -overlap.at_ns))
        left_out += len(overlaps) - len(chosen)
        for overlap in sorted(chosen, key=lambda overlap: overlap.at_ns):
            flows = [life.flow for life in warm if life.start_ns <= overlap.at_ns <= life.end_ns - needed_ns]
            base = whole_windows(origins_ns[source], base_ns, overlap.from_ns, overlap.until_ns)
            sets.append(
                CompetingSet(
                    number=len(sets) + 1,
                    source=source,
                    flows=tuple(sorted(flows)),
                    windows=base.coarser(window_ns // base_ns),
                    last_start_ns=overlap.from_ns - warmup_ns,
                )
            )
    return sets, left_out


def _overlaps(lives: Iterable[FlowLifetime], needed_ns: int) -> Iterator[Overlap]:
    """Give a moment in each largest set of flows that have `needed_ns` in common.

    Whoever is active at a moment and for `needed_ns` after it has that in common with the others. A set is
    largest if a flow has joined since the last one left.
    """
    moments = sorted(
        moment
        for life in lives
        if life.end_ns - life.start_ns >= needed_ns
        for moment in ((life.start_ns, 0), (life.end_ns - needed_ns, 1))
    )
    number, joined_ns, has_grown = 0, 0, False
    for at_ns, leaves in moments:
        if not leaves:
            number, joined_ns, has_grown = number + 1, at_ns, True
            continue
        if has_grown:
            yield Overlap(at_ns, number, joined_ns, at_ns + needed_ns)
            has_grown = False
        number -= 1
