"""Every column of every table: name, type, unit, meaning, and when it is null.

These modules are the one place in Python that names columns. The Rust core builds the same tables
in the same order (`native/src/tables/`); a test holds the two together. The page `docs/columns.md`
is made from here.

Rows of flows are tidy: one row for each flow and direction. Times are integer nanoseconds,
counts are integers, rates are bits per second, shares go from 0 to 1. Null means "cannot be known
from this trace" (the column `notes` says why); zero means measured zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.parsers.schema.column import Column, ColumnType, polars_type
from tfrctrace.parsers.schema.flows import FLOWS
from tfrctrace.parsers.schema.links import LINK_SAMPLES, LINKS
from tfrctrace.parsers.schema.packets import PACKETS, TRANSITS
from tfrctrace.parsers.schema.replay import CLOSED_LOOP, REPLAY
from tfrctrace.parsers.schema.rtp import RTP_SOURCES
from tfrctrace.parsers.schema.samples import BINS, LOSSES, ROUNDS, RTT, RTT_BUCKETS, VARIABLES
from tfrctrace.parsers.schema.tcp import TCP
from tfrctrace.parsers.schema.tfrc import FEEDBACK, FINDINGS, LOSS_EVENTS, LOSS_INTERVALS

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "BINS",
    "CLOSED_LOOP",
    "FEEDBACK",
    "FINDINGS",
    "FLOWS",
    "LINKS",
    "LINK_SAMPLES",
    "LOSSES",
    "LOSS_EVENTS",
    "LOSS_INTERVALS",
    "PACKETS",
    "REPLAY",
    "ROUNDS",
    "RTP_SOURCES",
    "RTT",
    "RTT_BUCKETS",
    "SCHEMA_VERSION",
    "TABLES",
    "TCP",
    "TRANSITS",
    "VARIABLES",
    "Column",
    "ColumnType",
    "polars_schema",
    "polars_type",
]

SCHEMA_VERSION: Final = 1
"""Version of the JSON form; it changes when a name or a meaning does."""

TABLES: Final = {
    "flows": FLOWS,
    "tcp": TCP,
    "packets": PACKETS,
    "bins": BINS,
    "rtt": RTT,
    "rtt_buckets": RTT_BUCKETS,
    "losses": LOSSES,
    "rounds": ROUNDS,
    "variables": VARIABLES,
    "feedback": FEEDBACK,
    "loss_events": LOSS_EVENTS,
    "loss_intervals": LOSS_INTERVALS,
    "findings": FINDINGS,
    "rtp_sources": RTP_SOURCES,
    "replay": REPLAY,
    "closed_loop": CLOSED_LOOP,
    "links": LINKS,
    "link_samples": LINK_SAMPLES,
    "transits": TRANSITS,
}
"""All tables by name."""


def polars_schema(table: str) -> dict[str, pl.DataType]:
    """Return the Polars schema of `table` (one of `TABLES`)."""
    return {column.name: polars_type(column.type) for column in TABLES[table]}
