"""What is said of a link: its sides, and when and for whom it was bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tfrctrace.metrics.link import ALL
from tfrctrace.reports.records import records

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.metrics.link import LinkTables

_NEAR: Final = 10
"""How many times shorter the median RTT of a side is than the other one's, if the capture was taken there."""


class LinkSide(NamedTuple):
    """A side of a link, or both together: what is known of all its hosts."""

    side: str
    rtt_samples: int
    rtt_p50_ms: float
    """This and other percentiles are known of sides with samples."""
    rtt_p95_ms: float
    rtt_p99_ms: float
    tcp_data_segments: int | None
    sent_segments: int
    lost_segments: int | None
    connection_attempts: int
    failed_connections: int | None

    @property
    def where(self) -> str:
        """Where its RTTs lead: `to clients`."""
        return "" if self.side == ALL else f"to {self.side}"

    @property
    def noun(self) -> str:
        """What its losses are counted in: segments of TCP, unless other packets have numbers."""
        is_tcp = self.sent_segments - (self.lost_segments or 0) <= (self.tcp_data_segments or 0)
        return "TCP segment" if is_tcp else "packet"


class LinkHost(NamedTuple):
    """A host of a link, with its share of segments lost or of connections failed where that was computed."""

    group: str | None
    rtt_samples: int | None
    rtt_p95_ms: float | None
    sent_segments: int | None
    connection_attempts: int | None
    share: float | None

    @property
    def called(self) -> str:
        """Its address, or which node of a simulation it is."""
        return f"node {self.group}" if str(self.group).isdigit() else str(self.group)


def both_sides(link: LinkTables) -> LinkSide:
    """Return both sides of a link together."""
    return records(link.sides.head(1), LinkSide)[0]


def path_sides(link: LinkTables) -> list[LinkSide]:
    """Return the sides whose RTTs are those of a path: not of the hosts beside the capture.

    If the sides do not differ, both together are returned.
    """
    whole, *sides = records(link.sides, LinkSide)
    sampled = [side for side in sides if side.rtt_samples]
    if len(sampled) < 2:
        return [sampled[0] if sampled else whole] if whole.rtt_samples else []
    longest = max(side.rtt_p50_ms for side in sampled)
    return [side for side in sampled if side.rtt_p50_ms * _NEAR >= longest]


def hosts_with_most(link: LinkTables, part: str, whole: str) -> pl.DataFrame:
    """Return the hosts with any of `part`, those first that have most more than their share of `whole`."""
    import polars as pl

    some, all_ = link.sides.select(part, whole).row(0)
    usual = (some or 0) / (all_ or 1)
    return (
        link.hosts.filter(pl.col(part) > 0, pl.col(whole) > 0)
        .with_columns(share=pl.col(part) / pl.col(whole), excess=pl.col(part) - usual * pl.col(whole))
        .sort("excess", "group", descending=[True, False])
    )
