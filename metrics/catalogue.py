"""Every metric that `tfrctrace metrics` tells: name, unit, meaning, what its n counts, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

Need = Literal["capacity", "weight", "step"]
"""What a trace does not tell; options and settings of studies are called so."""

Subject = Literal["flow", "set", "group", "pair", "life"]
"""What a metric is about: a flow in the common windows of a competing set, the whole set, the flows of one
label or transport in it, two such groups, or one flow over its whole life."""


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """One metric: `counts` says what its `n` counts, `null_when` when it has no value.

    One that `needs` a capacity, weights or a step is told only of who gives that.
    """

    name: str
    unit: str
    subject: Subject
    meaning: str
    counts: str
    null_when: str
    source: str = ""
    needs: Need | None = None


CASONI: Final = "Casoni and Merani"
FLOYD: Final = "Floyd et al. 2000"

CATALOGUE: Final = (
    MetricDescription("rate_bps", "bit/s", "flow", "mean rate", "windows", "never", f"{CASONI}, eq. 8"),
    MetricDescription(
        "rate_std_bps", "bit/s", "flow", "standard deviation (population) of the rate", "windows", "never"
    ),
    MetricDescription(
        "burstiness",
        "",
        "flow",
        "standard deviation of the rate over its mean",
        "windows",
        "no byte in the windows",
        "De Cicco and Mascolo",
    ),
    MetricDescription(
        "cov_sample",
        "",
        "flow",
        "the same with the standard deviation of a sample (n - 1)",
        "windows",
        "no byte in the windows, or one window",
    ),
    MetricDescription(
        "cov",
        "",
        "flow",
        "burstiness by timescale: in windows of 0.1 to 10 s, each at most an eighth of the time",
        "windows",
        "no byte in the windows",
        FLOYD,
    ),
    MetricDescription(
        "mean_relative_change",
        "",
        "flow",
        "smoothness: mean change from one window to the next, relative to the first of the two",
        "changes",
        "no change from a rate above 0",
        FLOYD,
    ),
    MetricDescription(
        "worst_ratio",
        "",
        "flow",
        "largest ratio of the rates in two windows that follow each other, both above 0",
        "pairs of windows",
        "no such pair",
        FLOYD,
    ),
    MetricDescription(
        "jain",
        "",
        "set",
        "Jain's index of the rates, 1 is fair",
        "flows",
        "all rates are 0",
        "Jain et al. 1984",
    ),
    MetricDescription(
        "jain_window_mean",
        "",
        "set",
        "mean of Jain's index in each window",
        "windows with bytes",
        "no byte in the windows",
    ),
    MetricDescription(
        "jain_window_p5",
        "",
        "set",
        "5th percentile of the same (nearest rank)",
        "windows with bytes",
        "no byte in the windows",
    ),
    MetricDescription(
        "jain_window_p50", "", "set", "median of the same", "windows with bytes", "no byte in the windows"
    ),
    MetricDescription(
        "jain_window_p95",
        "",
        "set",
        "95th percentile of the same",
        "windows with bytes",
        "no byte in the windows",
    ),
    MetricDescription(
        "jain_weighted",
        "",
        "set",
        "Jain's index of the rates over their weights, 1 is the share that each ought to have",
        "flows",
        "all rates are 0",
        "Jain et al. 1984",
        needs="weight",
    ),
    MetricDescription(
        "link_utilisation",
        "",
        "set",
        "frames of its flows over what the link could carry, in bits",
        "windows",
        "never",
        needs="capacity",
    ),
    MetricDescription(
        "upload_download_ratio",
        "",
        "set",
        "mean rate of its uploads over that of its downloads, 1 is fair",
        "uploads and downloads",
        "no flow is known to be an upload or a download, or all downloads have 0",
        "Zhang et al., figure 7",
    ),
    MetricDescription(
        "fairness_settling_s",
        "s",
        "set",
        "time from the start of the last flow until Jain's index is 0.95 or more for 5 s",
        "windows",
        "it never is",
    ),
    MetricDescription(
        "mean_rate_bps",
        "bit/s",
        "group",
        "mean of the rates of its flows",
        "flows",
        "never",
        f"{CASONI}, eq. 9",
    ),
    MetricDescription(
        "max_min",
        "",
        "group",
        "smallest over largest rate of its flows",
        "flows",
        "all are 0",
        f"{CASONI}, eq. 11",
    ),
    MetricDescription(
        "inter_protocol_normalized",
        "",
        "group",
        "B_others/(B_others + B_own): 0.5 is ideal, above it the group is conservative",
        "flows",
        "one group only, or all rates are 0",
        f"{CASONI}, eq. 10",
    ),
    MetricDescription(
        "inter_protocol_ratio",
        "",
        "group",
        "B_others/B_own: 1 is ideal, above it the group is conservative",
        "flows",
        "one group only, or B_own is 0",
        f"{CASONI}, eq. 10 as printed",
    ),
    MetricDescription(
        "equivalence_ratio",
        "",
        "pair",
        "mean over pairs of flows of min(R_a/R_b, R_b/R_a) in each window, 1 is alike",
        "pairs of flows",
        "no byte in the windows, or more than 64 flows",
        FLOYD,
    ),
    MetricDescription(
        "convergence_s",
        "s",
        "life",
        "time from which the rate stays within 20 % of that of its last half for 5 s",
        "windows",
        "it never does",
    ),
    MetricDescription(
        "rise_s",
        "s",
        "life",
        "time until 90 % of the rate of its last half are reached",
        "windows",
        "no bytes there",
    ),
    MetricDescription(
        "stability", "", "life", "standard deviation over mean of its last half", "windows", "no bytes there"
    ),
    MetricDescription(
        "responsiveness_s",
        "s",
        "life",
        "time from a step of the path until the rate stays within 20 % of that of the last half after it",
        "windows after the step",
        "it never stays, or the flow was not there before and after the step",
        needs="step",
    ),
    MetricDescription(
        "aggressiveness_bps",
        "bit/s",
        "life",
        "largest increase of the rate from one window to the next, from the step on",
        "windows after the step",
        "the flow was not there before and after the step",
        f"{FLOYD}, there in windows of an RTT",
        needs="step",
    ),
    MetricDescription(
        "timeout_share",
        "",
        "life",
        "share of its time from a retransmission timeout until all that was outstanding is acknowledged",
        "episodes that are over",
        "not TCP, or not captured where its data can be followed to the acknowledgement",
    ),
    MetricDescription(
        "pdr",
        "",
        "life",
        "packet delivery ratio, none that was on its way at the end",
        "packets sent",
        "the trace shows one end only",
        "Sreenivasa Rao et al.",
    ),
    MetricDescription(
        "plr",
        "",
        "life",
        "packet loss ratio, lost/(received + lost)",
        "packets sent",
        "the trace shows one end only",
        "Sreenivasa Rao et al.",
    ),
    MetricDescription(
        "drop_ratio",
        "",
        "life",
        "packets dropped over packets sent, retransmissions too",
        "packets sent",
        "the trace shows no drops, or one end only",
        "Lillis et al.",
    ),
    MetricDescription(
        "goodput_share",
        "",
        "life",
        "goodput over throughput: payload seen first over bytes on the wire",
        "packets",
        "the payload is not known",
    ),
    *(
        MetricDescription(
            f"rtt_{name}_ms", "ms", "life", f"{meaning} of the RTT samples", "RTT samples", "no sample"
        )
        for name, meaning in (
            ("min", "smallest"),
            ("mean", "mean"),
            ("p50", "median (within 0.8 %)"),
            ("p95", "95th percentile (within 0.8 %)"),
            ("max", "largest"),
            ("std", "standard deviation (population)"),
        )
    ),
    MetricDescription(
        "delay_mean_ms", "ms", "life", "mean one-way delay", "packets received", "no delay is known"
    ),
    MetricDescription(
        "delay_p95_ms", "ms", "life", "95th percentile of it", "packets received", "no delay is known"
    ),
    MetricDescription(
        "jitter_ms",
        "ms",
        "life",
        "interarrival jitter at the end",
        "packets received",
        "no delay is known",
        "RFC 3550",
    ),
    MetricDescription(
        "delay_variation_ms",
        "ms",
        "life",
        "mean change of the delay from one arrival to the next",
        "packets received",
        "no delay is known",
        "RFC 3393",
    ),
)

BY_NAME: Final = {described.name: described for described in CATALOGUE}


def make_metric(
    name: str,
    value: float | None,
    n: int,
    *,
    flows: Sequence[int],
    group: str | None = None,
    window_s: float | None = None,
    warmup_s: float = 0.0,
    competing_set: int | None = None,
    reason: str | None = None,
) -> Metric:
    """Return the metric `name` with its unit; without a value for `reason`, or what the catalogue says."""
    described = BY_NAME[name]
    return Metric(
        name=name,
        value=value,
        unit=described.unit,
        n=n,
        window_s=window_s,
        warmup_s=warmup_s,
        flows=tuple(flows),
        group=group,
        competing_set=competing_set,
        reason=(reason or described.null_when) if value is None else None,
    )
