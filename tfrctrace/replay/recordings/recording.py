"""What a trace shows of one flow, in the form that every algorithm is driven by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.replay.column_arrays import sent_between
from tfrctrace.replay.controller import Report, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

Source = Literal["reports", "simulated_reports", "tcp"]
"""Where the reports come from: a receiver's own in the trace; a receiver that is rebuilt from arrivals of
numbered packets; the losses, rounds and round-trip times of a TCP connection."""

REPORTS: Final = (
    "time_ns",
    "rtt_ms",
    "p",
    "x_recv_bps",
    "loss_events",
    "lost_ns",
    "lost_packets",
    "timeouts",
    "is_data_limited",
)
"""Columns of `Recording.reports`; `is_data_limited` is null where that follows from what was sent."""

SENDS: Final = ("time_ns", "payload_bytes", "arrives")
"""Columns of `Recording.sends`; `arrives` is null where the trace does not show the receiver."""

DATA_LIMITED_SHARE: Final = 0.9
"""A sender that sends less than this share of what is allowed has no more to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEnds:
    """Addresses and ports of one direction, as in the table of flows."""

    src: str
    src_port: int
    dst: str
    dst_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSeries:
    """Reports that were made of what a trace shows, or what was missing for that."""

    reports: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    lacks: tuple[str, str] | None = None
    """What is missing, and what would supply it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One direction of one flow."""

    flow: int
    direction: str
    ends: FlowEnds
    transport: str
    source: Source
    start_ns: int
    """Time of the first data packet, from which algorithms count."""
    end_ns: int
    """Time of the last one: what comes later finds a sender that has stopped."""
    segment_bytes: float
    """Payload of a full packet."""
    handshake_rtt_ms: float | None
    reports: pl.DataFrame
    """In order of time, with the columns `REPORTS`; `rtt_ms` and `is_data_limited` may be null."""
    sends: pl.DataFrame
    """Data packets in order of time, with the columns `SENDS`; empty where the trace does not give them."""
    notes: tuple[str, ...] = ()
    """Caveats."""

    @property
    def start(self) -> Start:
        """What an algorithm knows before the first report."""
        handshake_ms = self.handshake_rtt_ms
        return Start(
            segment_bytes=self.segment_bytes,
            handshake_rtt_s=None if handshake_ms is None else handshake_ms / 1e3,
        )

    def seconds(self, time_ns: int) -> float:
        """Return a time of the trace as algorithms count it."""
        return (time_ns - self.start_ns) / 1e9

    def steps(self) -> Iterator[Report]:
        """Give the reports one by one, `is_data_limited` False where it is not known."""
        before_s = 0.0
        sent = sent_between(self.sends, self.reports["time_ns"].to_numpy()).tolist()
        for row, sent_bytes in zip(self.reports.iter_rows(named=True), sent, strict=True):
            time_s = self.seconds(row["time_ns"])
            rtt_ms = row["rtt_ms"]
            yield Report(
                time_s=time_s,
                interval_s=time_s - before_s,
                rtt_s=None if rtt_ms is None else rtt_ms / 1e3,
                p=row["p"],
                x_recv=row["x_recv_bps"] / 8,
                sent_bytes=sent_bytes,
                loss_events=row["loss_events"],
                lost_s=None if row["lost_ns"] is None else self.seconds(row["lost_ns"]),
                lost_packets=row["lost_packets"],
                timeouts=row["timeouts"],
                is_data_limited=bool(row["is_data_limited"]),
            )
            before_s = time_s
