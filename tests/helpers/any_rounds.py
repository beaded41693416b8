"""Rounds of any kind, as a damaged or odd capture may show them."""

from __future__ import annotations

from hypothesis import strategies as st

A_ROUND = st.fixed_dictionaries(
    {
        "time_ns": st.integers(0, 2**62),
        "packet": st.integers(0, 2**40),
        "duration_ms": st.floats(0, 1e9),
        "flight_bytes": st.integers(0, 2**40),
        "cwnd_bytes": st.none() | st.integers(0, 2**40),
        "cwnd_least_bytes": st.none() | st.integers(0, 2**40),
        "delivered_bytes": st.integers(0, 2**40),
        "rtt_ms": st.none() | st.floats(0, 1e9),
        "ece_packets": st.sampled_from([None, 0, 0, 1, 9]),
        "repair": st.sampled_from([None, None, None, "recovery", "timeout"]),
    }
)
