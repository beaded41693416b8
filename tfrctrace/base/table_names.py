"""Names of the tables that one pass over the inputs fills."""

from __future__ import annotations

from typing import Literal

TableName = Literal[
    "flows",
    "tcp",
    "bins",
    "rtt",
    "rtt_buckets",
    "losses",
    "rounds",
    "variables",
    "feedback",
    "loss_events",
    "loss_intervals",
    "findings",
    "rtp_sources",
    "links",
    "link_samples",
    "transits",
]
"""The core has the same; packets are read in batches instead (`Trace.packets`)."""
