"""Who filled the queue in an incident under load: flows, or pairs of hosts, with most of the bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.audit.attribution import Way

NotRead = Literal["captures gone", "left out", "not hosts", "not readable", "no bytes"]
"""Why it is not known who filled a queue."""

OF_ENDS: Final = ("flow", "direction", "src", "src_port", "dst", "dst_port")
"""Columns of the table of flows that say whose bytes they are."""

_LEAST: Final = 0.1
"""Share of the bytes from which a flow, or a pair of hosts, is named beside the largest."""
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class QueueFiller:
    """A direction of a flow, or all that one host sent to another, and its part of the bytes."""

    src: str
    src_port: int | None
    """None of a pair of hosts, and where the transport has no ports."""
    dst: str
    dst_port: int | None
    flows: int
    flow: tuple[int, str] | None
    """Number and direction; None of several flows."""
    share: float
    congestion_control: str | None = None
    """As in `FlowCauses`; None where it is not known, and of a pair of hosts."""
    predicted_share: float | None = None
    """Share of the round trips that it predicts; None where a sign of its own names it."""
    reason: str | None = None
    """Why the congestion control of a single flow is not known, as in `FlowCauses`."""


@dataclass(frozen=True, slots=True)
class FilledQueue:
    """The largest fillers of a queue, or why they are not known."""

    fillers: tuple[QueueFiller, ...] = ()
    lacking: NotRead | None = None


def loaded_bytes(
    sent: pl.DataFrame, near: Collection[str] | None, hosts: Collection[str], loaded: Sequence[Way]
) -> pl.DataFrame:
    """Return the rows of directions with `OF_ENDS` whose bytes are the load.

    That is what passed in the loaded directions, of the hosts that suffered if some are named: what others
    sent fills no queue of theirs. Without known sides both directions count.
    """
    import polars as pl

    if hosts:
        sent = sent.filter(pl.col("src").is_in(list(hosts)) | pl.col("dst").is_in(list(hosts)))
    if near is None or len(loaded) > 1:
        return sent
    is_up = pl.col("src").is_in(list(near))
    return sent.filter(is_up if "up" in loaded else ~is_up)


def queue_fillers(load: pl.DataFrame) -> list[QueueFiller]:
    """Return the flows with a tenth of the bytes or more, else the pairs of hosts, at least the largest.

    `load` has `OF_ENDS` and `wire_bytes`.
    """
    import polars as pl

    total, largest_of_flows = load.select(
        all=pl.col("wire_bytes").sum(), most=pl.col("wire_bytes").max()
    ).row(0)
    if not total:
        return []
    pair = ("src", "dst")
    of_pairs = load.group_by(pair).agg(
        pl.col("flow", "direction").first(), pl.col("wire_bytes").sum(), flows=pl.len()
    )
    chosen = load.with_columns(flows=1) if largest_of_flows >= _LEAST * total else of_pairs
    largest = chosen.sort("wire_bytes", *pair, descending=[True, False, False]).head(_MOST_NAMED)
    return list(_named(largest, total))


def _named(largest: pl.DataFrame, total: int) -> Iterator[QueueFiller]:
    for place, row in enumerate(largest.iter_rows(named=True)):
        share = row["wire_bytes"] / total
        if place == 0 or share >= _LEAST:
            flow = (row["flow"], row["direction"]) if row["flows"] == 1 else None
            ports = row.get("src_port"), row.get("dst_port")
            yield QueueFiller(row["src"], ports[0], row["dst"], ports[1], row["flows"], flow, share)


def with_control(filler: QueueFiller, control: Mapping[str, Any] | None) -> QueueFiller:
    """Return a filler with what is known of its congestion control."""
    if control is None:
        return filler
    compared = control["compared_rounds"]
    is_named = control["congestion_control"] is not None
    return replace(
        filler,
        congestion_control=control["congestion_control"],
        predicted_share=control["predicted_rounds"] / compared if is_named and compared else None,
        reason=control["congestion_control_reason"],
    )
