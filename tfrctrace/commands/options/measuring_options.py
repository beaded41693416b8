"""How flows are measured: the options of all commands that tell metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfrctrace.trace.measuring import Basis
from tfrctrace.trace.trace import LEAST_PACKETS

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringOptions:
    """What is said of windows, labels and the path, as `Trace.metrics` takes it."""

    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="Width of the windows in which rates are taken.")
    ] = "1s"
    warmup: Annotated[
        str | None,
        typer.Option("--warmup", metavar="TIME", help="Leave out the first TIME of each flow, as 60s."),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=RULE",
            help="Call flows NAME, as 'reno=port 5201'; others go by their transport.",
        ),
    ] = None
    only_labelled: Annotated[
        bool, typer.Option("--only-labelled", help="Leave out flows without a label.")
    ] = False
    basis: Annotated[
        Basis,
        typer.Option(
            "--basis", help="What a rate counts: payload seen first, frames, or (simulations) what arrived."
        ),
    ] = "goodput"
    least_packets: Annotated[
        int,
        typer.Option(
            "--least-packets", min=1, metavar="N", help="Leave out flows with fewer than N data packets."
        ),
    ] = LEAST_PACKETS
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity", metavar="RATE", help="Tell how much of a link of this capacity was used, as 10M."
        ),
    ] = None
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="NAME=NUMBER",
            help="Tell Jain's index by weights of labels, as 'video=2'; others have 1.",
        ),
    ] = None
    step: Annotated[
        str | None,
        typer.Option(
            "--step",
            metavar="TIME",
            help="Tell how flows responded to what changed TIME after the trace began.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return them as `Trace.metrics` takes them."""
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
        }

    def check(self, names: Sequence[str] = ()) -> None:
        """Raise for what is wrong, before anybody waits for the reading; `names` are wanted metrics."""
        from tfrctrace.base.bitrates import parse_capacity_bps
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.trace.labels import parse_rule, parse_weights
        from tfrctrace.trace.measuring import check_names

        weights = parse_weights(self.weight or ())
        check_names(names, capacity=self.capacity, weight=weights, step=self.step)
        if self.capacity is not None:
            parse_capacity_bps(self.capacity)
        for duration in (self.window, self.warmup, self.step):
            if duration is not None:
                parse_duration_ns(duration)
        for rule in self.label or ():
            parse_rule(rule)

    @property
    def bin_ns(self) -> int | None:
        """Width of the bins (ns) that one pass has to count for this; None where packets are counted."""
        from tfrctrace.base.durations import parse_duration_ns
        from tfrctrace.trace.measuring import base_width_ns

        return None if self.basis == "received" else base_width_ns(parse_duration_ns(self.window))
