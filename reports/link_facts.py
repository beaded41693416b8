"""What is said of a link: its sides, and when and for whom it was bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.link import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tfrctrace.metrics.link import LinkTables

_NEAR: Final = 10
"""How many times shorter the median RTT of a side is than the other one's, if the capture was taken there."""


def path_sides(link: LinkTables) -> list[dict[str, Any]]:
    """Return the sides whose RTTs are those of a path: not of the hosts beside the capture.

    If the sides do not differ, both together are returned.
    """
    whole, *sides = link.sides.to_dicts()
    sampled = [side for side in sides if side["rtt_samples"]]
    if len(sampled) < 2:
        return [sampled[0] if sampled else whole] if whole["rtt_samples"] else []
    longest = max(side["rtt_p50_ms"] for side in sampled)
    return [side for side in sampled if side["rtt_p50_ms"] * _NEAR >= longest]


def side_words(side: Mapping[str, Any]) -> str:
    """Return where the RTTs of a side lead: `to clients`."""
    name = side["side"]
    if name == ALL:
        return ""
    return f"to {name}"


def hosts_with_most(link: LinkTables, part: str, whole: str) -> pl.DataFrame:
    """Return the hosts with any of `part`, those first that have most more than their share of `whole`."""
    import polars as pl

    total = link.sides.row(0, named=True)
    usual = (total[part] or 0) / (total[whole] or 1)
    return (
        link.hosts.filter(pl.col(part) > 0, pl.col(whole) > 0)
        .with_columns(share=pl.col(part) / pl.col(whole), excess=pl.col(part) - usual * pl.col(whole))
        .sort("excess", "group", descending=[True, False])
    )
