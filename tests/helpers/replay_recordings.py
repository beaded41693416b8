"""Recordings of flows for replays, written out."""

from __future__ import annotations

from typing import Any

import polars as pl

from tfrctrace.replay.recordings.recording import FlowEnds, Recording

NS = 1_000_000_000
END_S = 10.0


def recording(
    reports: list[dict[str, Any]],
    *,
    segment_bytes: float = 1000.0,
    sends: list[float] | None = None,
    end_s: float = END_S,
    handshake_rtt_s: float | None = None,
) -> Recording:
    """Return a flow that starts at 0; times in s and rates in bytes/s, as in the vectors."""
    rows = [
        {
            "time_ns": round(report["t"] * NS),
            "rtt_ms": None if report["r_sample"] is None else report["r_sample"] * 1e3,
            "p": float(report["p"]),
            "x_recv_bps": report["x_recv"] * 8.0,
            "loss_events": 0,
            "lost_ns": None,
            "lost_packets": 0,
            "timeouts": 0,
            "is_data_limited": bool(report.get("data_limited", False)),
        }
        for report in reports
    ]
    schema = {
        "time_ns": pl.Int64,
        "rtt_ms": pl.Float64,
        "p": pl.Float64,
        "x_recv_bps": pl.Float64,
        "loss_events": pl.UInt32,
        "lost_ns": pl.Int64,
        "lost_packets": pl.UInt32,
        "timeouts": pl.UInt32,
        "is_data_limited": pl.Boolean,
    }
    return Recording(
        flow=1,
        direction="fwd",
        ends=FlowEnds(src="2", src_port=0, dst="3", dst_port=0),
        transport="tfrc",
        source="reports",
        start_ns=0,
        end_ns=round(end_s * NS),
        segment_bytes=segment_bytes,
        handshake_rtt_ms=None if handshake_rtt_s is None else handshake_rtt_s * 1e3,
        reports=pl.DataFrame(rows, schema=schema),
        sends=pl.DataFrame(
            {
                "time_ns": [round(time * NS) for time in sends or []],
                "payload_bytes": [1000] * len(sends or []),
                "arrives": [None] * len(sends or []),
            },
            schema={"time_ns": pl.Int64, "payload_bytes": pl.UInt32, "arrives": pl.Boolean},
        ),
    )
