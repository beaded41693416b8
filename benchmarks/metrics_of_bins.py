"""Metrics of many flows with bins of 0.1 s in memory, by tfrctrace or by pandas.

`python metrics_of_bins.py tfrctrace|pandas FLOWS BINS` prints the seconds that the metrics took. The pandas
code is that of a script for one paper: Jain's index, burstiness by timescale, and smoothness.
"""

from __future__ import annotations

import sys
import time

import numpy as np

WIDTH_NS = 100_000_000
WINDOW_NS = 1_000_000_000
IDLE = 0.05
"""Share of bins in which a flow sends nothing."""
FACTORS = (1, 2, 5, 10, 20, 50, 100)


def columns(flows: int, bins: int) -> dict[str, np.ndarray]:
    """Return the columns of a table of bins, one row for each in which something was sent."""
    random = np.random.default_rng(1)
    sent = random.random(flows * bins) > IDLE
    sizes = random.integers(1, 20_000, flows * bins, dtype=np.uint64)
    return {
        "flow": np.repeat(np.arange(1, flows + 1, dtype=np.uint32), bins)[sent],
        "time_ns": np.tile(np.arange(bins, dtype=np.int64) * WIDTH_NS, flows)[sent],
        "unique_bytes": sizes[sent],
    }


def by_tfrctrace(flows: int, bins: int) -> float:
    """Return the seconds for all metrics of the catalogue."""
    import polars as pl

    from tfrctrace.trace.measuring import measure

    table = pl.DataFrame(columns(flows, bins))
    # real columns, as the core makes them, not one value that stands for all rows
    direction = pl.Series("direction", ["fwd"]).new_from_index(0, table.height)
    width_ns = pl.Series("width_ns", np.full(table.height, WIDTH_NS))
    table = table.with_columns(direction, width_ns)
    end_ns = bins * WIDTH_NS
    rtts = (f"rtt_{name}_ms" for name in ("min", "mean", "p50", "p95", "max", "std"))
    delays = ("delay_mean_ms", "delay_p95_ms", "jitter_ms", "delay_variation_ms")
    unknown = ("pdr", "plr", *delays, "rto_ms", "duration_s", *rtts)
    rows = [
        {
            **dict.fromkeys(unknown),
            "flow": flow,
            "direction": "fwd",
            "source": "link.pcap",
            "transport": "tcp",
            "label": f"group {flow % 2}",
            "start_ns": 0,
            "end_ns": end_ns,
            **dict.fromkeys(("packets", "data_packets", "payload_bytes", "wire_bytes"), 1000),
            **dict.fromkeys(("sent_packets", "received_packets", "dropped_packets", "unique_bytes"), 1000),
            **dict.fromkeys(("rtt_samples", "rto_episodes"), 0),
        }
        for flow in range(1, flows + 1)
    ]
    described = pl.DataFrame(rows, schema_overrides={"flow": pl.UInt32, **dict.fromkeys(unknown, pl.Float64)})
    started = time.perf_counter()
    measured = measure(described, table, window_ns=WINDOW_NS, least_packets=20)
    seconds = time.perf_counter() - started
    assert len(measured.sets) == 1
    return seconds


def by_pandas(flows: int, bins: int) -> float:
    """Return the seconds for a part of the metrics, as a script would do it."""
    import pandas as pd

    table = pd.DataFrame(columns(flows, bins))
    started = time.perf_counter()
    for factor in FACTORS:
        window = table["time_ns"] // (WIDTH_NS * factor)
        rates = table.groupby(["flow", window])["unique_bytes"].sum().unstack(fill_value=0)
        rates.std(axis=1, ddof=0) / rates.mean(axis=1)
        if WIDTH_NS * factor == WINDOW_NS:
            rates.sum() ** 2 / (flows * (rates.astype(float) ** 2).sum())
            (rates.diff(axis=1).abs() / rates.shift(axis=1)).mean(axis=1)
    return time.perf_counter() - started


if __name__ == "__main__":
    ways = {"tfrctrace": by_tfrctrace, "pandas": by_pandas}
    print(ways[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3])))
