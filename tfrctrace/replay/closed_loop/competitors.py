"""Other flows of a trace that react in the model, each as the congestion control that its packets show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.algorithms import Algorithm, algorithm_named
from tfrctrace.replay.naming.candidates import BBR, CANDIDATES

if TYPE_CHECKING:
    from collections.abc import Collection

    import polars as pl

_OF_FLOWS: Final = ("flow", "direction", "start_ns", "end_ns", "rtt_min_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A flow that reacts."""

    flow: int
    direction: str
    algorithm: Algorithm
    start_ns: int
    end_ns: int
    base_rtt_s: float

    @property
    def key(self) -> tuple[int, str]:
        """What identifies it in a trace."""
        return self.flow, self.direction


def named_competitors(flows: pl.DataFrame, controls: pl.DataFrame) -> list[Competitor]:
    """Return the flows of which a congestion control is named that has a model; others stay as recorded."""
    named = controls.drop_nulls("congestion_control").select("flow", "direction", "congestion_control")
    rows = flows.select(_OF_FLOWS).join(named, on=("flow", "direction"), maintain_order="left")
    found = []
    for row in rows.drop_nulls("rtt_min_ms").iter_rows(named=True):
        algorithm = _algorithm(row["congestion_control"].split("|"))
        if algorithm is not None and row["rtt_min_ms"] > 0:
            found.append(
                Competitor(
                    flow=row["flow"],
                    direction=row["direction"],
                    algorithm=algorithm,
                    start_ns=row["start_ns"],
                    end_ns=row["end_ns"],
                    base_rtt_s=row["rtt_min_ms"] / 1e3,
                )
            )
    return found


def _algorithm(names: Collection[str]) -> Algorithm | None:
    """Return the first of the candidates that have one of the names, which are equal in what was seen."""
    if BBR in names:
        return algorithm_named(BBR)
    candidate = next((one for one in CANDIDATES if one.name in names), None)
    return None if candidate is None else Algorithm(candidate.name, candidate.kind, candidate.settings)
