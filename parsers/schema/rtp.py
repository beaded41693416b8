"""Columns of `rtp_sources`: one row for each source of media in a flow."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

RTP_SOURCES: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`"),
    Column("ssrc", "uint32", "", "synchronisation source (RFC 3550)"),
    Column("payload_type", "uint32", "", "of the first packet"),
    Column("clock_rate_hz", "uint32", "1/s", "ticks of the timestamps", "nothing tells it: `--dissect`"),
    Column(
        "clock_rate_by",
        "string",
        "",
        "`payload_type` (RFC 3551), `user`, `reports` (two sender reports) or `arrivals` (measured)",
        "as clock_rate_hz",
    ),
    Column("start_ns", "int64", "ns", "first packet"),
    Column("end_ns", "int64", "ns", "latest packet"),
    Column("sent_packets", "uint64", "", "from the first number captured to the highest"),
    Column("received_packets", "uint64", "", "of them those that came to the place of the capture"),
    Column("lost_packets", "uint64", "", "of them those that did not"),
    Column("duplicate_packets", "uint64", "", "packets that came again"),
    Column("reordered_packets", "uint64", "", "packets that came after one with a higher number"),
    Column("restarts", "uint64", "", "times the numbers began anew"),
    Column(
        "payload_bytes", "uint64", "bytes", "payload of the datagrams of received_packets, RTP header and all"
    ),
    Column("jitter_ms", "float64", "ms", "interarrival jitter here (RFC 3550 A.8)", "as clock_rate_hz"),
    Column("sender_packets", "uint64", "", "packets sent by its last sender report", "no such report"),
    Column("reports", "uint64", "", "reports of receivers on it"),
    Column("reported_fraction_lost", "float64", "", "share lost by the last of them", "no receiver report"),
    Column(
        "reported_lost_packets",
        "int64",
        "",
        "packets lost by it, less duplicates",
        "as reported_fraction_lost",
    ),
    Column(
        "reported_jitter_ms", "float64", "ms", "jitter by it", "as reported_fraction_lost or clock_rate_hz"
    ),
)
