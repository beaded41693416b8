"""Why flows were no faster: shares of their time by cause."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tfrctrace.metrics.results.document import Tool
from tfrctrace.metrics.results.flows import Count, FlowNumber, SourceProblem, TimeNs

Cause = Literal[
    "handshake",
    "application",
    "server",
    "receiver",
    "send_buffer",
    "slow_start",
    "bottleneck",
    "shared_bottleneck",
    "policer",
    "loss",
    "mark",
    "recovery",
    "timeout",
    "outage",
    "unknown",
]
"""The causes of the core's table, in its order."""

Discipline = Literal["tail_drop", "aqm"]
"""Names of the core's table of bottlenecks."""

Share = Annotated[float, Meta(ge=0, le=1)]


class FlowCauses(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a direction with data was no faster. Its shares add up to 1."""

    flow: FlowNumber
    direction: Literal["fwd", "rev"]
    src: str
    src_port: Count
    dst: str
    dst_port: Count
    start_ns: TimeNs
    duration_s: Annotated[float, Meta(description="from the first packet of the flow to the last")]
    payload_bytes: Annotated[Count | None, Meta(description="null if packets were cut before their length")]
    goodput_bps: Annotated[float | None, Meta(description="null as in the table of flows")]
    main_cause: Annotated[Cause, Meta(description="the cause with the largest share")]
    main_cause_share: Share
    main_sign: Annotated[str, Meta(description="the sign that decided for most of the time of main_cause")]
    second_cause: Annotated[
        Cause | None, Meta(description="what that was if not main_cause; null if nothing else is near")
    ]
    changes: Annotated[Count, Meta(description="stretches of main_cause")]
    flight_bytes: Annotated[Count, Meta(description="most data in flight in them")]
    window_bytes: Annotated[
        Count | None, Meta(description="largest receive window in them; null if its scale is unknown")
    ]
    base_rtt_ms: Annotated[float | None, Meta(description="null without RTT samples")]
    rtt_p95_ms: Annotated[float | None, Meta(description="null without RTT samples")]
    handshake_share: Share
    application_share: Share
    server_share: Share
    receiver_share: Share
    send_buffer_share: Share
    slow_start_share: Share
    bottleneck_share: Share
    shared_bottleneck_share: Share
    policer_share: Share
    loss_share: Share
    mark_share: Share
    recovery_share: Share
    timeout_share: Share
    outage_share: Share
    unknown_share: Share
    congestion_control: Annotated[
        str | None,
        Meta(
            description="name of its congestion control in Linux, or `module:Class` of one of the user's; "
            "several joined by `|` are equal in what was seen; null if it is not known"
        ),
    ] = None
    congestion_control_reason: Annotated[
        str | None, Meta(description="why it is not known; null if it is, or was not looked for")
    ] = None
    compared_rounds: Annotated[
        Count | None, Meta(description="round trips whose window was predicted by congestion controls")
    ] = None
    predicted_rounds: Annotated[
        Count | None, Meta(description="of them those that the most likely one predicts")
    ] = None
    window_left: Annotated[
        float | None,
        Meta(description="median share of the window that a loss left; null with fewer than three losses"),
    ] = None
    rtt_probes: Annotated[
        Count | None,
        Meta(
            description="times that it kept four segments in flight for 200 ms, and then as many as before; "
            "null if it was not named by that"
        ),
    ] = None
    delay_backoffs: Annotated[
        Count | None,
        Meta(
            description="times that its window fell to 0.7 without a loss or a mark; null if it was not "
            "named by that"
        ),
    ] = None
    windows_estimated: Annotated[
        bool | None,
        Meta(
            description="whether it was told by estimates of its sender's windows, which the capture does "
            "not show; null if it is not known"
        ),
    ] = None
    capacity_bps: Annotated[
        float | None,
        Meta(description="rate of the bottleneck at the IP layer; null: capacity_reason says why"),
    ] = None
    capacity_low_bps: Annotated[float | None, Meta(description="lower bound of capacity_bps")] = None
    capacity_high_bps: Annotated[float | None, Meta(description="upper bound of capacity_bps")] = None
    capacity_reason: Annotated[str | None, Meta(description="why it is not known; null if it is")] = None
    buffer_bytes: Annotated[
        Count | None, Meta(description="buffer of the bottleneck; null: buffer_reason says why")
    ] = None
    buffer_low_bytes: Annotated[Count | None, Meta(description="lower bound of buffer_bytes")] = None
    buffer_high_bytes: Annotated[Count | None, Meta(description="upper bound of buffer_bytes")] = None
    buffer_ms: Annotated[
        float | None, Meta(description="delay of the full buffer; null if losses do not show it")
    ] = None
    buffer_reason: Annotated[str | None, Meta(description="why buffer_bytes is not known; null if it is")] = (
        None
    )
    discipline: Annotated[
        Discipline | None,
        Meta(description="how the queue of the bottleneck chooses what it drops; `aqm` before it is full"),
    ] = None
    discipline_reason: Annotated[str | None, Meta(description="why it is not known; null if it is")] = None
    policer_bps: Annotated[
        float | None, Meta(description="rate of a policer at the IP layer; null: policer_reason says why")
    ] = None
    policer_low_bps: Annotated[float | None, Meta(description="lower bound of policer_bps")] = None
    policer_high_bps: Annotated[float | None, Meta(description="upper bound of policer_bps")] = None
    policer_reason: Annotated[str | None, Meta(description="why it is not known; null if it is")] = None
    path_changes: Annotated[
        Count | None,
        Meta(
            description="lasting changes of the TTL (hop limit) of its packets; null if fewer than 16 in a "
            "row have the same"
        ),
    ] = None
    path_change_ns: Annotated[
        TimeNs | None, Meta(description="when the first of them was seen; null without one")
    ] = None


class UntoldFlow(Struct, frozen=True, forbid_unknown_fields=True):
    """A flow with data whose cause is unknown."""

    flow: FlowNumber
    transport: str
    payload_bytes: Annotated[Count | None, Meta(description="of both directions; null as in FlowCauses")]


class UntoldFlows(Struct, frozen=True, forbid_unknown_fields=True):
    """Flows of one kind whose cause is unknown."""

    reason: Annotated[str, Meta(description="in English; later releases may word it otherwise")]
    flows: list[UntoldFlow]


class WhyDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `tfrctrace why --format json` writes: a row for each direction with data of a TCP connection.

    `untold` has the other flows with data.
    """

    schema_version: int
    tool: Tool
    flows: list[FlowCauses]
    untold: list[UntoldFlows]
    warnings: list[SourceProblem]
