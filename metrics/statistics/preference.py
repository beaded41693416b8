"""Which values of metrics people prefer: higher, lower, or neither by itself."""

from __future__ import annotations

from typing import Final, Literal

Preference = Literal["higher", "lower"]

_HIGHER: Final = frozenset(
    {
        "rate_bps",
        "mean_rate_bps",
        "jain",
        "jain_window_mean",
        "jain_window_p5",
        "jain_window_p50",
        "jain_window_p95",
        "jain_weighted",
        "link_utilisation",
        "max_min",
        "equivalence_ratio",
        "pdr",
        "goodput_share",
    }
)

_LOWER: Final = frozenset(
    {
        "rate_std_bps",
        "burstiness",
        "cov_sample",
        "cov",
        "mean_relative_change",
        "worst_ratio",
        "fairness_settling_s",
        "loss_synchronisation",
        "convergence_s",
        "rise_s",
        "stability",
        "responsiveness_s",
        "timeout_share",
        "plr",
        "drop_ratio",
        "retransmission_ratio",
        "loss_event_rate",
        "rtt_min_ms",
        "rtt_mean_ms",
        "rtt_p50_ms",
        "rtt_p95_ms",
        "rtt_max_ms",
        "rtt_std_ms",
        "delay_mean_ms",
        "delay_p95_ms",
        "jitter_ms",
        "delay_variation_ms",
    }
)


def preference_of(metric: str) -> Preference | None:
    """Return whether more of a metric is better or worse; None if that depends."""
    name = metric.partition(" ")[0].removesuffix("_without_sparse")
    return "higher" if name in _HIGHER else "lower" if name in _LOWER else None
