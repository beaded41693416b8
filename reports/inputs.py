"""What each input held, and packets and bytes of all: a simulator records a packet often, a log none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrctrace.reports.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

_WITH_PACKETS: Final = frozenset({"pcap", "pcapng", "tcpdump", "packets"})
"""Formats in which a record is a packet."""


class Input(NamedTuple):
    """What reports write of a `SourceSummary`, which explains each field."""

    source: str
    format: str
    compression: str
    link_types: Sequence[str]
    interfaces: Sequence[dict[str, Any]]
    start_ns: int | None
    end_ns: int | None
    packets: int
    filtered_packets: int
    outside_packets: int | None
    """None in results of an earlier version."""
    tcp_packets: int
    udp_packets: int
    other_ip_packets: int
    non_ip_packets: int
    undecoded_packets: int
    lines: int
    wire_bytes: int
    captured_bytes: int

    @property
    def name(self) -> str:
        """What it is called."""
        return self.source

    @property
    def has_packets(self) -> bool:
        """Whether its records are packets, each written once."""
        return self.format in _WITH_PACKETS or not self.format

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When its first and its last packet passed; None without packets that have times."""
        return None if self.start_ns is None or self.end_ns is None else (self.start_ns, self.end_ns)


def inputs_of(sources: Iterable[Mapping[str, Any]]) -> list[Input]:
    """Return what the core says of each input as records."""
    return [record(source, Input) for source in sources]


def volume(flows: pl.DataFrame, inputs: Sequence[Input]) -> tuple[int, int]:
    """Return packets and bytes on the wire of all inputs: of a simulation, and of totals, what flows sent."""
    import polars as pl

    whole = [source for source in inputs if source.has_packets]
    sent = flows.filter(pl.col("source").is_in([source.name for source in inputs if not source.has_packets]))
    return (
        sum(source.packets for source in whole) + int(sent["packets"].sum()),
        sum(source.wire_bytes for source in whole) + int(sent["wire_bytes"].sum()),
    )
