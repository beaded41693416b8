"""Columns of `packets` (a row for each read) and `transits` (a row for each packet between two captures)."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

PACKETS: Final = (
    Column("packet", "uint64", "", "number in the source, from 1, as Wireshark counts; in a text the line"),
    Column("time_ns", "int64", "ns", "since the epoch, or since the start of a simulation"),
    Column("node", "string", "", "capture interface, or node of a simulation", "the file names none"),
    Column(
        "event",
        "string",
        "",
        "what happened at the node: `sent`, `received`, `forwarded`, `enqueued`, `dequeued`, `dropped`",
        "a capture does not say",
    ),
    Column("flow", "uint32", "", "number of the conversation", "belongs to no flow"),
    Column("direction", "string", "", "`fwd` or `rev`", "belongs to no flow"),
    Column("transport", "string", "", "`tcp`, `udp`, `dccp`, or the IP protocol by number", "not IP"),
    Column("src", "string", "", "sender", "not IP"),
    Column("src_port", "uint32", "", "sender's port", "no ports"),
    Column("dst", "string", "", "receiver", "not IP"),
    Column("dst_port", "uint32", "", "receiver's port", "no ports"),
    Column("captured_bytes", "uint32", "bytes", "bytes in the file"),
    Column("wire_bytes", "uint32", "bytes", "bytes of the frame on the wire"),
    Column("payload_bytes", "uint32", "bytes", "transport payload", "cut off, or not TCP, UDP or DCCP"),
    Column("seq", "uint32", "", "sequence number as sent", "not TCP, or cut off"),
    Column("ack", "uint32", "", "acknowledgement number as sent", "no ACK flag"),
    Column(
        "seq_rel", "int64", "bytes", "sequence number from the first of its direction, unwrapped", "as seq"
    ),
    Column("ack_rel", "int64", "bytes", "acknowledgement number, likewise", "as ack"),
    Column("flags", "string", "", "TCP flags, letters of `FSRPAUECN`", "not TCP, or cut off"),
    Column("window_bytes", "uint64", "bytes", "receive window, scaled", "the scale is not known"),
    Column("ts_val", "uint32", "", "TCP timestamp value", "no timestamps"),
    Column("ts_ecr", "uint32", "", "TCP timestamp echo reply", "no timestamps"),
    Column(
        "ip_id",
        "uint32",
        "",
        "IPv4 identification, or that of an IPv6 fragment",
        "IPv6 without fragment header",
    ),
    Column("ttl", "uint32", "", "time to live or hop limit", "not IP"),
    Column("ecn", "uint32", "", "ECN bits of the IP header: 0 not-ECT, 1 ECT(1), 2 ECT(0), 3 CE", "not IP"),
    Column(
        "dscp",
        "uint32",
        "",
        "differentiated services codepoint of the IP header (RFC 2474)",
        "not IP, or the source does not show it",
    ),
    Column("layer", "string", "", "where in the node a simulator saw it", "not a simulation"),
    Column(
        "point", "string", "", "where on its path: `source`, `destination`, `between`", "not a simulation"
    ),
    Column(
        "drop_reason", "string", "", "why it was dropped, as the trace names it", "not dropped, or not said"
    ),
    Column("uid", "uint64", "", "tells a packet of a simulation from all others", "not a simulation"),
    Column(
        "sequence",
        "uint64",
        "",
        "sequence number of a protocol other than TCP, or of a traffic generator in UDP",
        "none, or not read",
    ),
    Column(
        "acknowledged", "uint64", "", "highest sequence number received, as a DCCP packet says", "as sequence"
    ),
    Column(
        "kind",
        "string",
        "",
        "DCCP packet type; of TFRC in a simulation `data` or `feedback`",
        "no such packet",
    ),
    Column("ccval", "uint32", "", "DCCP's CCVal: of CCID 3 and 4 the sender's window counter", "not DCCP"),
    Column(
        "dccp",
        "string",
        "",
        "what else a DCCP header says, and its options, as `name=value` with the numbers of the wire "
        "(times in 10 µs). `timestamp_echo` is `TIMESTAMP+ELAPSED`, `ack_vector_0` and `_1` (by the nonce) "
        "count `R`eceived, `M`arked and `N`ot received from the acknowledged packet down, `loss_intervals` "
        "are `SKIP:LOSSLESS+LOSS/DATA/NONCE`, a feature is `change_l_FEATURE=VALUES`; of very many options "
        "the rest is `...`",
        "not DCCP",
    ),
    Column("flow_id", "uint32", "", "the simulator's own flow id", "the trace has none"),
    Column(
        "agent",
        "string",
        "",
        "what ns-2 calls the packets of its agent",
        "not of ns-2, or of an agent that ns-2.35 does not have",
    ),
    Column("decode_stop", "string", "", "layer and reason where decoding ended", "decoded whole"),
)

TRANSITS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`"),
    Column(
        "fate",
        "string",
        "",
        "`arrived` (in both captures), `lost` (between them), `duplicate` (arrived once more), `unsent` "
        "(only in the other), `unknown` (the other was not running when it should have come)",
    ),
    Column(
        "sent_ns",
        "int64",
        "ns",
        "when it passed the capture nearer to its sender, by the clock of the capture named first",
        "`duplicate` or `unsent`",
    ),
    Column(
        "received_ns", "int64", "ns", "when it passed the other, by the same clock", "`lost` or `unknown`"
    ),
    Column("delay_ns", "int64", "ns", "from one to the other", "not `arrived`, or the offset is not known"),
    Column("sent_packet", "uint64", "", "its number in the capture nearer to its sender", "as sent_ns"),
    Column("received_packet", "uint64", "", "its number in the other", "as received_ns"),
    Column(
        "payload_bytes",
        "uint32",
        "bytes",
        "transport payload; a segment that was several packets on the wire has a row for each",
    ),
)
