"""The fluid model of a dumbbell, made of its script's numbers, with algorithms as ns-2's agents have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tfrctrace.replay.algorithms import algorithm_named
from tfrctrace.replay.closed_loop.fluid import simulate
from tfrctrace.replay.closed_loop.path import Background, Path
from tfrctrace.replay.controller import Start
from tfrctrace.replay.tcp.vegas import Vegas
from tfrctrace.replay.tfrc import Profile, Tfrc, TfrcVariant

if TYPE_CHECKING:
    from tfrctrace.replay.controller import Controller

SEGMENT: Final = 1000
START: Final = Start(segment_bytes=SEGMENT)


def path_of(entry: dict[str, Any]) -> Path:
    """Return the path as the script of a run has it."""
    wire_bytes = SEGMENT + entry["header_bytes"]
    payload_share = SEGMENT / wire_bytes / 8
    # two access links of 5 ms and 10 Mbit/s at each end
    on_the_way_s = 2 * (entry["delay_ms"] + 10) / 1000 + 2 * wire_bytes * 8 / 10e6
    return Path(
        capacity=entry["bottleneck_bps"] * payload_share,
        base_rtt_s=on_the_way_s + wire_bytes * 8 / entry["bottleneck_bps"],
        # ns-2's DropTail drops what would fill its last place
        buffer_bytes=(entry["buffer_packets"] - 1) * SEGMENT,
        random_loss=entry["random_loss"],
        background=Background((0.0,), (entry["cbr_bps"] * payload_share,)),
    )


def control_of(entry: dict[str, Any], profile: Profile = "rfc5348") -> Controller:
    """Return the algorithm of a run."""
    if entry["algorithm"] == "vegas":
        return Vegas(START, agent="ns2")
    if entry["algorithm"] == "tfrc":
        return Tfrc(START, TfrcVariant(profile=profile))
    return algorithm_named(entry["algorithm"]).make(START)


def received_share(entry: dict[str, Any], profile: Profile = "rfc5348") -> float:
    """Return what arrives in the model over what ns-2's agent received."""
    [rounds] = simulate(
        path_of(entry), [control_of(entry, profile)], segment_bytes=SEGMENT, duration_s=entry["duration_s"]
    )
    return sum(one.arrived_bytes for one in rounds) / (SEGMENT * int(entry["received_packets"]))
