"""Time each built-in kind of TFRC on a recording of a million reports; print seconds by algorithm as JSON.

`python benchmarks/replaying.py [REPORTS]`. The recording is computed, always the same: reports 50 ms apart,
with round-trip times that swing, a loss event each two seconds, and a packet each 5 ms.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from typing import Final, get_args

import numpy as np
import polars as pl

from tfrctrace.replay.recordings.recording import FlowEnds, Recording
from tfrctrace.replay.tfrc import VARIANTS, Profile, TfrcVariant, run

INTERVAL_NS: Final = 50_000_000
PACKETS_PER_REPORT: Final = 10
PAYLOAD_BYTES: Final = 1000


def made(reports: int) -> Recording:
    """Return a recording of so many reports."""
    number = np.arange(1, reports + 1)
    start_ns = 1_700_000_000 * 10**9
    sent = np.arange(reports * PACKETS_PER_REPORT) * (INTERVAL_NS // PACKETS_PER_REPORT)
    swing = np.sin(number / 50)
    return Recording(
        flow=1,
        direction="fwd",
        transport="tfrc",
        source="reports",
        ends=FlowEnds("192.0.2.1", 5001, "192.0.2.2", 5001),
        start_ns=start_ns,
        end_ns=start_ns + reports * INTERVAL_NS,
        segment_bytes=float(PAYLOAD_BYTES),
        handshake_rtt_ms=None,
        reports=pl.DataFrame(
            {
                "time_ns": start_ns + number * INTERVAL_NS,
                "rtt_ms": 50 + 10 * swing,
                "p": np.where(number < 100, 0.0, 0.01 + 0.002 * (number % 40) / 40),
                "x_recv_bps": 1.6e6 + 2e5 * swing,
                "lost_packets": np.zeros(reports, dtype=np.uint64),
                "is_data_limited": np.zeros(reports, dtype=bool),
            }
        ),
        sends=pl.DataFrame(
            {"time_ns": start_ns + sent, "payload_bytes": np.full(len(sent), PAYLOAD_BYTES, dtype=np.uint32)}
        ),
    )


def main() -> None:
    """Run every kind of TFRC once, after one of them to warm up."""
    recording = made(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    run(TfrcVariant(), recording)
    seconds: dict[str, float] = {}
    for variant, profile in product(VARIANTS, get_args(Profile)):
        if profile == "ns2" and variant != "tfrc":
            continue
        started = time.perf_counter()
        steps = run(TfrcVariant(variant, profile), recording)
        seconds[f"{variant} {profile}"] = time.perf_counter() - started
        assert steps.height >= recording.reports.height - 1
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main()
