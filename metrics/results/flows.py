"""What the inputs held, and what was wrong with them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
TimeNs = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, description="ns since the epoch")]
FlowNumber = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class Interface(Struct, frozen=True, forbid_unknown_fields=True):
    """An interface of a capture."""

    name: str | None
    link_type: str
    snap_length_bytes: Count | None
    is_filtered: Annotated[bool, Meta(description="whether the capture says that it had a filter")]
    packets: Count
    dropped_packets: Annotated[Count | None, Meta(description="by the capture; null if not recorded")]
    received_packets: Annotated[
        Count | None, Meta(description="by the interface while it was captured; null if not recorded")
    ]
    accepted_packets: Annotated[
        Count | None, Meta(description="of these, by the capture's filter; null if not recorded")
    ]
    capture_start_ns: Annotated[TimeNs | None, Meta(description="when the capture began, if recorded")]
    capture_end_ns: Annotated[TimeNs | None, Meta(description="when the capture ended, if recorded")]


class DecodeStop(Struct, frozen=True, forbid_unknown_fields=True):
    """Why packets could not be decoded to the end."""

    layer: str
    reason: str
    packets: Count
    first_packet: Count


class ClockStep(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the clock of a capture was set, by the TCP timestamps of both ends of a connection."""

    packet: Annotated[Count, Meta(description="number of the first packet after it")]
    before_ns: Annotated[int, Meta(description="time of the last packet before it, ns since the epoch")]
    after_ns: Annotated[int, Meta(description="time of the first packet after it, ns since the epoch")]
    step_ns: Annotated[int, Meta(description="how far it was set ahead; negative if it was set back")]


class SourceSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """What one input held."""

    source: Annotated[str, Meta(description="name of the input; `-` is standard input")]
    format: Annotated[str, Meta(description="such as `pcap` or `ns2`; empty if not recognised")]
    compression: Annotated[str, Meta(description="`gzip`, `zstd`, `lz4`, `xz`, or empty")]
    link_types: list[str]
    interfaces: list[Interface]
    start_ns: TimeNs | None
    end_ns: TimeNs | None
    packets: Count
    filtered_packets: Annotated[Count, Meta(description="left out by the filter, in no other count")]
    outside_packets: Annotated[
        Count, Meta(description="outside of the stretch of time that was read, in no other count")
    ]
    tcp_packets: Count
    udp_packets: Count
    dccp_packets: Count
    tfrc_packets: Annotated[Count, Meta(description="of a simulator's TFRC")]
    other_ip_packets: Count
    non_ip_packets: Count
    undecoded_packets: Annotated[Count, Meta(description="without a readable IP header")]
    untracked_packets: Annotated[Count, Meta(description="of flows beyond the bound on their number")]
    portless_packets: Annotated[Count, Meta(description="TCP and UDP without readable ports, in no flow")]
    repeated_packets: Annotated[Count, Meta(description="in 802.11 frames seen before; not in their flow")]
    decode_stops: list[DecodeStop]
    out_of_order_times: Annotated[Count, Meta(description="packets with a time before their predecessor's")]
    clock_steps: Annotated[list[ClockStep], Meta(description="steps that are proven, the first 32")]
    lines: Annotated[Count, Meta(description="of a text, all of them")]
    other_lines: Annotated[Count, Meta(description="understood, and no packets")]
    bad_lines: Annotated[Count, Meta(description="not understood")]
    wire_bytes: Count
    captured_bytes: Count


class SourceProblem(Struct, frozen=True, forbid_unknown_fields=True):
    """What was wrong with an input: the facts of a `Problem`, and its sentence."""

    severity: Literal["error", "warning", "note"]
    kind: Annotated[str, Meta(description="stable identifier, such as `truncated`")]
    source: str
    flows: Annotated[
        list[FlowNumber], Meta(description="numbers of the flows it is about, if it is about some only")
    ]
    packet: Annotated[Count | None, Meta(description="number of the packet where it was found, from 1")]
    line: Annotated[Count | None, Meta(description="number of the line where it was found, in a text")]
    byte: Annotated[Count | None, Meta(description="offset in the uncompressed input where it starts")]
    message: str
    hint: str | None
    packets_before: Annotated[Count, Meta(description="packets of the input that were analysed before")]
    text: Annotated[str, Meta(description="the sentence that the terminal shows")]
