"""What people call the metrics, and how a change of one reads."""

from __future__ import annotations

from typing import Final

from tfrctrace.metrics.catalogue import WITHOUT_SPARSE

_NAMES: Final = {
    "rate_bps": "rate",
    "rate_std_bps": "rate deviation",
    "burstiness": "rate variation",
    "cov_sample": "sample rate variation",
    "cov": "rate variation in",
    "mean_relative_change": "mean change of rate",
    "worst_ratio": "largest step of rate",
    "sparse_flows": "sparse flows",
    "jain": "fairness (Jain)",
    "jain_window_mean": "fairness in windows mean",
    "jain_window_p5": "fairness in windows p5",
    "jain_window_p50": "fairness in windows p50",
    "jain_window_p95": "fairness in windows p95",
    "jain_weighted": "fairness by weight",
    "link_utilisation": "link utilisation",
    "upload_download_ratio": "upload / download rate",
    "fairness_settling_s": "time until fair",
    "loss_synchronisation": "losses together",
    "mean_rate_bps": "mean rate of flows",
    "max_min": "smallest / largest rate",
    "inter_protocol_normalized": "rate / that of others",
    "inter_protocol_ratio": "rate of others / own",
    "equivalence_ratio": "likeness of rates",
    "convergence_s": "time to a steady rate",
    "rise_s": "time to 90 % of rate",
    "stability": "late rate variation",
    "responsiveness_s": "time to adapt to step",
    "aggressiveness_bps": "largest rate increase",
    "pdr": "delivered packets",
    "plr": "lost packets",
    "drop_ratio": "dropped packets",
    "loss_event_rate": "loss events",
    "retransmission_ratio": "retransmitted packets",
    "goodput_share": "goodput / throughput",
    "timeout_share": "time in timeouts",
    "rtt_min_ms": "smallest RTT",
    "rtt_mean_ms": "mean RTT",
    "rtt_p50_ms": "median RTT",
    "rtt_p95_ms": "RTT p95",
    "rtt_max_ms": "largest RTT",
    "rtt_std_ms": "deviation of RTT",
    "delay_mean_ms": "mean one-way delay",
    "delay_p95_ms": "one-way delay p95",
    "jitter_ms": "jitter",
    "delay_variation_ms": "delay variation",
}

_VARY: Final = frozenset(
    {"rate_std_bps", "burstiness", "cov_sample", "cov", "mean_relative_change", "worst_ratio", "stability"}
)
"""Metrics of which more means that the rate varies more."""

_COUNTS: Final = frozenset({"plr", "pdr", "drop_ratio", "loss_event_rate", "retransmission_ratio"})
"""Shares of packets, of which there are more or fewer."""


SHARES: Final = frozenset({*_COUNTS, "goodput_share", "timeout_share", "link_utilisation"})
"""Metrics that people read in percent."""


def metric_name(metric: str) -> str:
    """Return what people call a metric; a timescale of `cov` stays behind its name."""
    name, blank, timescale = metric.partition(" ")
    known = name.removesuffix(WITHOUT_SPARSE)
    called = f"{_NAMES.get(known, known)}{blank}{timescale}"
    return called if known == name else f"{called} without sparse"


def is_between_groups(metric: str) -> bool:
    """Return whether it is the share that people read as how many times the rate of others a group has."""
    return metric.removesuffix(WITHOUT_SPARSE) == "inter_protocol_normalized"


def change_words(metric: str, *, is_more: bool) -> str:
    """Return what is the case on the side with more of a metric, or with less."""
    name = metric.partition(" ")[0].removesuffix(WITHOUT_SPARSE)
    if name in _VARY:
        return f"the rate varies {'more' if is_more else 'less'}"
    if name in _COUNTS:
        return f"{'more' if is_more else 'fewer'} {_NAMES[name]}"
    return f"{'higher' if is_more else 'lower'} {metric_name(metric)}"
