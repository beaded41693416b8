"""Every metric of `tfrctrace metrics`: name, unit, subject, meaning, what n counts, source and function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.flow.delivery import drop_ratio, goodput_share, retransmission_ratio, timeout_share
from tfrctrace.metrics.flow.place import OF_RTTS, rtt_of_path
from tfrctrace.metrics.results.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

Need = Literal["capacity", "weight", "step"]
"""Facts that a user supplies; options of the command and settings of studies have these names."""

Subject = Literal["flow", "set", "group", "pair", "life"]
"""A flow in the common windows of a competing set, the whole set, the flows of one label or transport in it,
two such groups, or one flow over its whole life."""


@dataclass(frozen=True, slots=True)
class OfFlows:
    """How a metric is computed of the table of flows: a function of columns, or the column itself."""

    columns: tuple[str, ...]
    n_column: str
    """The column that counts its values."""
    function: Callable[..., pl.Expr] | None = None

    def value(self) -> pl.Expr:
        """Return the metric as an expression."""
        import polars as pl

        columns = map(pl.col, self.columns)
        return next(columns) if self.function is None else self.function(*columns)


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """One metric: what its `n` `counts`, and when it is null.

    A metric that `needs` a capacity, weights or a step is only computed if the user supplies it. `function`
    is its place in `tfrctrace.metrics`; empty for a column of the table of flows. One of flows has a
    `definition` by which it is computed.
    """

    name: str
    unit: str
    subject: Subject
    meaning: str
    counts: str
    null_when: str
    source: str = ""
    needs: Need | None = None
    function: str = ""
    definition: OfFlows | None = None

    def with_and_without_sparse(self) -> tuple[MetricDescription, ...]:
        """Return this metric and, where sparse flows spoil it, the same of the other flows."""
        if self.name not in SPOILT_BY_SPARSE:
            return (self,)
        lacking = ", or all flows of the group are sparse" if self.subject == "group" else ""
        rest = replace(
            self,
            name=f"{self.name}{WITHOUT_SPARSE}",
            meaning=f"{self.name} of the flows that are not sparse",
            null_when=f"{self.null_when}{lacking}",
        )
        return self, rest


CASONI: Final = "Casoni and Merani"
FLOYD: Final = "Floyd et al. 2000"

_NO_BYTE: Final = "no byte in the windows"
_NO_BYTE_AT_THE_END: Final = "no bytes in the last half"

WITHOUT_SPARSE: Final = "_without_sparse"
"""Ends the name of a metric of the flows of a set that are not sparse."""

SPOILT_BY_SPARSE: Final = {
    "jain",
    "jain_weighted",
    "jain_window_mean",
    "max_min",
    "inter_protocol_normalized",
    "inter_protocol_ratio",
}
"""Metrics that are also computed without sparse flows."""

_N_COLUMNS: Final = {
    "packets": "packets",
    "data segments": "data_segments",
    "packets sent": "sent_packets",
    "packets received": "received_packets",
    "completed episodes": "rto_episodes",
    "RTT samples": "rtt_samples",
}
"""The column that has what n of a metric of flows counts."""


def _of_flows(
    name: str,
    unit: str,
    meaning: str,
    counts: str,
    null_when: str,
    *,
    source: str = "",
    columns: tuple[str, ...] = (),
    function: Callable[..., pl.Expr] | None = None,
) -> MetricDescription:
    """Return a metric of the table of flows: a function of `columns`, or the column of its name."""
    place = "" if function is None else f"{function.__module__.partition('metrics.')[2]}.{function.__name__}"
    definition = OfFlows(columns or (name,), _N_COLUMNS[counts], function)
    return MetricDescription(
        name, unit, "life", meaning, counts, null_when, source, function=place, definition=definition
    )


_DESCRIPTIONS: Final = (
    MetricDescription(
        "rate_bps",
        "bit/s",
        "flow",
        "mean rate",
        "windows",
        "never",
        f"{CASONI}, eq. 8",
        function="flow.throughput.mean_rate_bps",
    ),
    *(
        MetricDescription(
            name,
            unit,
            "flow",
            meaning,
            "windows",
            null_when,
            source,
            function="flow.burstiness.rate_variation",
        )
        for name, unit, meaning, null_when, source in (
            ("rate_std_bps", "bit/s", "standard deviation (population) of the rate", "never", ""),
            (
                "burstiness",
                "",
                "standard deviation of the rate over its mean",
                _NO_BYTE,
                "De Cicco and Mascolo",
            ),
            (
                "cov_sample",
                "",
                "burstiness with the standard deviation of a sample (n - 1)",
                f"{_NO_BYTE}, or one window",
                "",
            ),
        )
    ),
    MetricDescription(
        "cov",
        "",
        "flow",
        "burstiness by timescale: in windows of 0.1 to 10 s, each at most an eighth of the time",
        "windows",
        _NO_BYTE,
        FLOYD,
        function="flow.burstiness.cov_by_timescale",
    ),
    MetricDescription(
        "mean_relative_change",
        "",
        "flow",
        "smoothness: mean change from one window to the next, relative to the first of the two",
        "changes",
        "no change from a rate above 0",
        FLOYD,
        function="flow.smoothness.rate_changes",
    ),
    MetricDescription(
        "worst_ratio",
        "",
        "flow",
        "largest ratio of the rates in two windows that follow each other, both above 0",
        "pairs of windows",
        "no such pair",
        FLOYD,
        function="flow.smoothness.rate_changes",
    ),
    MetricDescription(
        "sparse_flows",
        "",
        "set",
        "flows that asked for far less than a share; `flows` names them",
        "flows",
        "never",
        function="sets.sparse.small_flows",
    ),
    MetricDescription(
        "jain",
        "",
        "set",
        "Jain's index of the rates, 1 is fair",
        "flows",
        "all rates are 0",
        "Jain et al. 1984",
        function="sets.fairness.jain_index",
    ),
    *(
        MetricDescription(
            f"jain_window_{name}",
            "",
            "set",
            meaning,
            "windows with bytes",
            _NO_BYTE,
            function="sets.fairness.jain_over_time",
        )
        for name, meaning in (
            ("mean", "mean of Jain's index in each window"),
            ("p5", "5th percentile of Jain's index over the windows (nearest rank)"),
            ("p50", "median of Jain's index over the windows"),
            ("p95", "95th percentile of Jain's index over the windows"),
        )
    ),
    MetricDescription(
        "jain_weighted",
        "",
        "set",
        "Jain's index of the rates over their weights, 1 if each has its share",
        "flows",
        "all rates are 0",
        "Jain et al. 1984",
        needs="weight",
        function="sets.fairness.jain_index",
    ),
    MetricDescription(
        "link_utilisation",
        "",
        "set",
        "bits of the flows' frames over the capacity of the link",
        "windows",
        "never",
        needs="capacity",
        function="sets.utilisation.link_utilisation",
    ),
    MetricDescription(
        "upload_download_ratio",
        "",
        "set",
        "mean rate of the uploads over that of the downloads, 1 is fair",
        "uploads and downloads",
        "no upload or no download is known, or all downloads have 0",
        "Zhang et al., figure 7",
        function="sets.utilisation.upload_download_ratio",
    ),
    MetricDescription(
        "fairness_settling_s",
        "s",
        "set",
        "time from the start of the last flow until Jain's index is 0.95 or more for 5 s",
        "windows",
        "never reached",
        function="flow.convergence.fairness_settling_time_s",
    ),
    MetricDescription(
        "loss_synchronisation",
        "",
        "set",
        "mean share of the flows that lose (or retransmit) in the same 0.1 s, 1 if all do together",
        "parts of 0.1 s with losses",
        "no losses, one flow, more than 64, or the trace does not show the losses of each",
        function="sets.synchronisation.loss_synchronisation",
    ),
    MetricDescription(
        "mean_rate_bps",
        "bit/s",
        "group",
        "mean of the rates of its flows",
        "flows",
        "never",
        f"{CASONI}, eq. 9",
        function="sets.fairness.mean_rate",
    ),
    MetricDescription(
        "max_min",
        "",
        "group",
        "smallest over largest rate of its flows",
        "flows",
        "all are 0",
        f"{CASONI}, eq. 11",
        function="sets.fairness.max_min_ratio",
    ),
    MetricDescription(
        "inter_protocol_normalized",
        "",
        "group",
        "B_others/(B_others + B_own): 0.5 is ideal, above it the group is conservative",
        "flows",
        "one group only, or all rates are 0",
        f"{CASONI}, eq. 10",
        function="sets.fairness.inter_protocol_normalized",
    ),
    MetricDescription(
        "inter_protocol_ratio",
        "",
        "group",
        "B_others/B_own: 1 is ideal, above it the group is conservative",
        "flows",
        "one group only, or B_own is 0",
        f"{CASONI}, eq. 10 as printed",
        function="sets.fairness.inter_protocol_ratio",
    ),
    MetricDescription(
        "equivalence_ratio",
        "",
        "pair",
        "mean over pairs of flows of min(R_a/R_b, R_b/R_a) in each window, 1 if alike",
        "pairs of flows",
        "no byte in the windows, or more than 64 flows",
        FLOYD,
        function="flow.smoothness.equivalence_ratios",
    ),
    *(
        MetricDescription(
            name, unit, "life", meaning, "windows", null_when, function="flow.convergence.rate_shapes"
        )
        for name, unit, meaning, null_when in (
            (
                "convergence_s",
                "s",
                "time until the rate stays within 20 % of its mean over the last half for 5 s",
                "never reached",
            ),
            (
                "rise_s",
                "s",
                "time until the rate reaches 90 % of its mean over the last half",
                _NO_BYTE_AT_THE_END,
            ),
            (
                "stability",
                "",
                "standard deviation over mean of the rate in the last half",
                _NO_BYTE_AT_THE_END,
            ),
        )
    ),
    MetricDescription(
        "responsiveness_s",
        "s",
        "life",
        "time from a path change until the rate stays within 20 % of its mean over the last half after it",
        "windows after the step",
        "never reached, or the flow was not active before and after the step",
        needs="step",
        function="flow.convergence.response_time_s",
    ),
    MetricDescription(
        "aggressiveness_bps",
        "bit/s",
        "life",
        "largest increase of the rate from one window to the next, from the step on",
        "windows after the step",
        "the flow was not active before and after the step",
        f"{FLOYD}, with windows of an RTT",
        needs="step",
        function="flow.convergence.aggressiveness",
    ),
    *(
        _of_flows(
            name, "", meaning, "packets sent", "the trace shows one end only", source="Sreenivasa Rao et al."
        )
        for name, meaning in (
            ("pdr", "packet delivery ratio, without packets in flight at the end"),
            ("plr", "packet loss ratio, lost/(received + lost)"),
        )
    ),
    _of_flows(
        "drop_ratio",
        "",
        "packets dropped over packets sent, retransmissions included",
        "packets sent",
        "the trace shows no drops, or one end only",
        source="Lillis et al.",
        columns=("dropped_packets", "sent_packets"),
        function=drop_ratio,
    ),
    _of_flows(
        "retransmission_ratio",
        "",
        "retransmitted segments of all data segments, as captured",
        "data segments",
        "not TCP, or without data",
        columns=("retransmitted_segments", "data_segments"),
        function=retransmission_ratio,
    ),
    _of_flows(
        "loss_event_rate",
        "",
        "losses of data segments, where all of one round-trip time are one event",
        "data segments",
        "neither TCP nor TFRC, or no round-trip time is known",
        source="RFC 5348, section 5.2",
    ),
    _of_flows(
        "goodput_share",
        "",
        "goodput over throughput: unique payload over bytes on the wire",
        "packets",
        "the payload is not known",
        columns=("unique_bytes", "wire_bytes"),
        function=goodput_share,
    ),
    _of_flows(
        "timeout_share",
        "",
        "share of the duration from a retransmission timeout until all outstanding data is acknowledged",
        "completed episodes",
        "not TCP, or captured where acknowledgements cannot be matched to data",
        columns=("rto_ms", "duration_s"),
        function=timeout_share,
    ),
    *(
        _of_flows(
            f"rtt_{name}_ms",
            "ms",
            f"{meaning} of the RTT samples",
            "RTT samples",
            "no sample, or captured near the receiver, where they are its own delay",
            columns=tuple(dict.fromkeys((f"rtt_{name}_ms", *OF_RTTS))),
            function=rtt_of_path,
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
    *(
        _of_flows(name, "ms", meaning, "packets received", "no delay is known", source=source)
        for name, meaning, source in (
            ("delay_mean_ms", "mean one-way delay", ""),
            ("delay_p95_ms", "95th percentile of the one-way delay", ""),
            ("jitter_ms", "interarrival jitter at the end of the flow", "RFC 3550"),
            ("delay_variation_ms", "mean change of the delay from one arrival to the next", "RFC 3393"),
        )
    ),
)

OF_FLOWS: Final = {one.name: one.definition for one in _DESCRIPTIONS if one.definition is not None}
"""How each metric of the table of flows is computed."""

CATALOGUE: Final = tuple(one for each in _DESCRIPTIONS for one in each.with_and_without_sparse())
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
    """Return the metric `name`; if it is null, `reason` says why, by default the catalogue's `null_when`."""
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
