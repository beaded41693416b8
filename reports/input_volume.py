"""Packets and bytes of inputs: a simulator records a packet many times, and a log records none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

_WITH_PACKETS: Final = frozenset({"pcap", "pcapng", "tcpdump", "packets"})
"""Formats in which a record is a packet."""


def has_packets(source: Mapping[str, Any]) -> bool:
    """Return whether the records of an input are packets, each written once."""
    return source["format"] in _WITH_PACKETS or not source["format"]


def volume(flows: pl.DataFrame, sources: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return packets and bytes on the wire of all inputs: of a simulation, and of totals, what flows sent."""
    import polars as pl

    whole = [source for source in sources if has_packets(source)]
    others = [source["source"] for source in sources if not has_packets(source)]
    sent = flows.filter(pl.col("source").is_in(others))
    return (
        sum(source["packets"] for source in whole) + int(sent["packets"].sum()),
        sum(source["wire_bytes"] for source in whole) + int(sent["wire_bytes"].sum()),
    )
