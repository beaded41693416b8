"""Packets of all flows between each two captures of a network: how many came, were lost, and how late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class HopRow(NamedTuple):
    """A row of the table `hops`: one direction of a flow on one hop."""

    flow: int
    direction: str
    hop: int
    from_capture: str
    to_capture: str
    packets: int
    arrived_packets: int
    lost_packets: int
    in_flight_packets: int
    missed_packets: int
    delay_min_ms: float | None
    delay_mean_ms: float | None
    delay_p50_ms: float | None
    delay_p95_ms: float | None
    delay_max_ms: float | None


_COLUMNS: Final = tuple(name.removesuffix("_capture") for name in HopRow._fields)


def hop_rows(rows: Iterable[Mapping[str, Any]]) -> list[HopRow]:
    """Return rows of the table `hops` as records; `from` and `to` are words of Python."""
    return [HopRow._make(row[column] for column in _COLUMNS) for row in rows]


@dataclass(slots=True)
class HopTotals:
    """The hop between two captures, in one direction."""

    from_capture: str
    to_capture: str
    flows: int = 0
    packets: int = 0
    lost: int = 0
    in_flight: int = 0
    missed: int = 0
    _timed: int = 0
    _delay_sum_ms: float = 0.0
    delay_min_ms: float | None = None
    delay_max_ms: float | None = None

    @property
    def loss_share(self) -> float | None:
        """Lost packets over those whose outcome is known; None without any."""
        known = self.packets - self.in_flight
        return self.lost / known if known else None

    @property
    def delay_mean_ms(self) -> float | None:
        """Mean delay of the packets that are in both captures."""
        return self._delay_sum_ms / self._timed if self._timed else None

    def add(self, row: HopRow) -> None:
        """Add one direction of a flow."""
        self.flows += 1
        self.packets += row.packets
        self.lost += row.lost_packets
        self.in_flight += row.in_flight_packets
        self.missed += row.missed_packets
        if row.delay_mean_ms is None:
            return
        timed = row.arrived_packets - row.missed_packets
        self._timed += timed
        self._delay_sum_ms += row.delay_mean_ms * timed
        self.delay_min_ms = min(_known(self.delay_min_ms, row.delay_min_ms), default=None)
        self.delay_max_ms = max(_known(self.delay_max_ms, row.delay_max_ms), default=None)


def _known(*delays_ms: float | None) -> list[float]:
    return [delay_ms for delay_ms in delays_ms if delay_ms is not None]


def hop_totals(rows: Iterable[HopRow]) -> list[HopTotals]:
    """Return the totals of each hop, in the order of the first flow that takes it."""
    totals: dict[tuple[str, str], HopTotals] = {}
    for row in rows:
        ends = (row.from_capture, row.to_capture)
        if ends not in totals:
            totals[ends] = HopTotals(*ends)
        totals[ends].add(row)
    return list(totals.values())
