"""Options of the commands that compute metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tfrctrace.commands.options.completion import label_rules, weighted_labels
from tfrctrace.commands.options.grouped_help import measuring_option
from tfrctrace.metrics.results.metrics import Basis
from tfrctrace.metrics.thresholds import LEAST_PACKETS, SPARSE_SHARE

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringOptions:
    """Windows, labels and the path: the arguments of `Trace.measure`."""

    window: Annotated[
        str,
        measuring_option(
            "--window", metavar="TIME", help="Width of the windows over which rates are averaged."
        ),
    ] = "1s"
    warmup: Annotated[
        str | None,
        measuring_option("--warmup", metavar="TIME", help="Skip the first TIME of each flow, e.g. 60s."),
    ] = None
    label: Annotated[
        list[str] | None,
        measuring_option(
            "--label",
            metavar="NAME=RULE",
            autocompletion=label_rules,
            help="Label flows, e.g. 'reno=port 5201'; others are labelled by transport.",
        ),
    ] = None
    only_labelled: Annotated[
        bool, measuring_option("--only-labelled", help="Skip flows that match no --label.")
    ] = False
    basis: Annotated[
        Basis,
        measuring_option(
            "--basis",
            help="Bytes counted: new payload, whole frames, or (simulations only) received packets.",
        ),
    ] = "goodput"
    least_packets: Annotated[
        int | None,
        measuring_option(
            "--least-packets",
            min=1,
            metavar="N",
            show_default=f"{LEAST_PACKETS} for metrics",
            help="Skip flows with fewer than N data packets.",
        ),
    ] = None
    capacity: Annotated[
        str | None,
        measuring_option(
            "--capacity", metavar="RATE", help="Report the utilization of a link of this capacity, e.g. 10M."
        ),
    ] = None
    weight: Annotated[
        list[str] | None,
        measuring_option(
            "--weight",
            metavar="NAME=NUMBER",
            autocompletion=weighted_labels,
            help="Weight a label in Jain's index, e.g. 'video=2'; others weigh 1.",
        ),
    ] = None
    step: Annotated[
        str | None,
        measuring_option("--step", metavar="TIME", help="Measure the response to a path change at TIME."),
    ] = None

    sparse_share: Annotated[
        float,
        measuring_option(
            "--sparse-share",
            metavar="SHARE",
            help="Report indices also without flows that asked for less than SHARE of the mean; 0: off.",
        ),
    ] = SPARSE_SHARE

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `Trace.measure`."""
        from tfrctrace.trace.labels import parse_weights

        return {
            "window": self.window,
            "warmup": self.warmup,
            "basis": self.basis,
            "labels": tuple(self.label or ()),
            "only_labelled": self.only_labelled,
            "least_packets": self.least_packets,
            "capacity": self.capacity,
            "weight": parse_weights(self.weight or ()),
            "step": self.step,
            "sparse_share": self.sparse_share,
        }

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise for invalid values before the traces are read; `names` are the selected metrics."""
        from tfrctrace.base.bitrates import parse_capacity_bps
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.trace.labels import parse_rule, parse_weights
        from tfrctrace.trace.measuring import check_names, check_sparse_share

        weights = parse_weights(self.weight or ())
        check_names(names, capacity=self.capacity, weight=weights, step=self.step)
        check_sparse_share(self.sparse_share)
        if self.capacity is not None:
            parse_capacity_bps(self.capacity)
        for option in ("window", "warmup", "step"):
            if (duration := getattr(self, option)) is not None:
                parse_duration_ns(duration, f"--{option}")
        for rule in self.label or ():
            parse_rule(rule)

    @property
    def bin_ns(self) -> int | None:
        """Width of the bins (ns) to collect; None if packets are counted instead."""
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.trace.measuring import base_width_ns

        return None if self.basis == "received" else base_width_ns(parse_duration_ns(self.window))
