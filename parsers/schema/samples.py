"""Columns of what happens over the life of a flow: bins, RTT, losses, rounds, logged variables."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

BINS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`"),
    Column("time_ns", "int64", "ns", "start of the bin; bins without a packet have no row"),
    Column("width_ns", "int64", "ns", "width of the bin, the same for every row"),
    Column("packets", "uint64", "", "packets in the bin"),
    Column("wire_bytes", "uint64", "bytes", "their frames"),
    Column("payload_bytes", "uint64", "bytes", "their payload"),
    Column("unique_bytes", "uint64", "bytes", "payload not seen before (all payload for UDP)"),
    Column("retransmitted_packets", "uint64", "", "data packets with bytes seen before"),
    Column("rtt_samples", "uint64", "", "RTT samples whose acknowledgement arrived in the bin"),
    Column("rtt_min_ms", "float64", "ms", "smallest of them", "no sample"),
    Column("rtt_mean_ms", "float64", "ms", "their mean", "no sample"),
    Column("rtt_max_ms", "float64", "ms", "largest of them", "no sample"),
    Column(
        "delay_samples",
        "uint64",
        "",
        "packets sent in the bin with a one-way delay",
        "the trace does not show both ends",
    ),
    Column("delay_min_ms", "float64", "ms", "smallest one-way delay", "no sample"),
    Column("delay_mean_ms", "float64", "ms", "their mean", "no sample"),
    Column("delay_max_ms", "float64", "ms", "largest of them", "no sample"),
    Column(
        "lost_packets",
        "uint64",
        "",
        "packets sent in the bin that never arrived",
        "as delay_samples",
    ),
)

RTT: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data that was acknowledged"),
    Column("time_ns", "int64", "ns", "when the acknowledgement was seen"),
    Column("rtt_ns", "int64", "ns", "time since the data was seen"),
    Column(
        "method",
        "string",
        "",
        "`ack` (Karn's rule), `timestamp` (RFC 7323 echo), `handshake` or `report` (RTCP's echo)",
    ),
    Column(
        "delayed_ack",
        "uint32",
        "",
        "1 if it seems to have waited for a delayed-acknowledgement timer, as counted in the table of flows",
    ),
    Column("packet", "uint64", "", "number of the acknowledging packet"),
)

RTT_BUCKETS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`: whose data were acknowledged"),
    Column("from_ns", "uint64", "ns", "the shortest round-trip time of the bucket: 64 buckets double it"),
    Column("to_ns", "uint64", "ns", "the longest one"),
    Column("samples", "uint64", "", "samples in it, the same that `rtt_samples` of flows counts"),
)

LOSSES: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
    Column("time_ns", "int64", "ns", "when the packet was seen"),
    Column("packet", "uint64", "", "its number in the source"),
    Column("seq_rel", "int64", "bytes", "its first sequence number, from the first of the direction"),
    Column("payload_bytes", "uint32", "bytes", "its payload"),
    Column("repeated_bytes", "uint32", "bytes", "how many of them the capture had already shown"),
    Column(
        "kind",
        "string",
        "",
        "`retransmission` or `out_of_order`, as counted in the table of flows",
        "a control segment, a probe or a duplicate",
    ),
    Column(
        "class",
        "string",
        "",
        "why it repeats or is late: `fast_retransmission`, `sack_retransmission`, `rto_retransmission`, "
        "`tail_loss_probe`, `unexplained_retransmission`, `syn_retransmission`, `fin_retransmission`, "
        "`keep_alive`, `zero_window_probe`, `network_duplicate`, `capture_duplicate`, `reordering`, "
        "`retransmission_of_unseen`",
    ),
    Column(
        "evidence",
        "string",
        "",
        "by what the class was recognised: `ip_id`, `timestamp`, `time`, `interface`, `duplicate_acks`, "
        "`sack`, `recovery`, `timer`, `window`, `flags` or `none`",
    ),
    Column(
        "spurious",
        "string",
        "",
        "by what it was found that it was not needed: `acknowledged`, `d_sack`, `timestamp`, `time`, "
        "`f_rto`, `ip_id` or `arrived`",
        "not found",
    ),
)

ROUNDS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
    Column("time_ns", "int64", "ns", "when the round began"),
    Column("duration_ms", "float64", "ms", "how long it lasted"),
    Column("flight_bytes", "uint64", "bytes", "most data outstanding in it, as max_flight_bytes of the flow"),
    Column(
        "window_bytes",
        "uint64",
        "bytes",
        "receive window at its end, scaled",
        "the scale is not known (no SYN)",
    ),
    Column(
        "cwnd_bytes",
        "uint64",
        "bytes",
        "estimate of the congestion window: flight_bytes where nothing else was the limit, and of a recovery "
        "with SACK, which makes it smaller, the flight at its end",
        "the application or the receiver was the limit, a recovery goes on or has no SACK, after a timeout, "
        "or captured away from the sender",
    ),
    Column("delivered_bytes", "uint64", "bytes", "data acknowledged in it"),
    Column("rtt_ms", "float64", "ms", "RTT sample of the acknowledgement that ended it", "it gave none"),
    Column(
        "limit",
        "string",
        "",
        "why the flight was not larger: `application`, `receiver` or `network`",
        "captured away from the sender",
    ),
    Column(
        "phase",
        "string",
        "",
        "`slow_start` (the flight grew by half or more), `congestion_avoidance`, `recovery` or `timeout` "
        "(until all that was outstanding at the retransmission is acknowledged)",
        "something else than the network limited the flight, or captured away from the sender",
    ),
)

VARIABLES: Final = (
    Column(
        "flow", "uint32", "", "number of the conversation with the same ends", "none of the inputs has it"
    ),
    Column("direction", "string", "", "direction of which `src` is the sender", "as flow"),
    Column("src", "string", "", "the sender whose variable it is"),
    Column("src_port", "uint32", "", "its port; 0 if the log does not say"),
    Column("dst", "string", "", "whom it sends to"),
    Column("dst_port", "uint32", "", "port of the receiver; 0 if the log does not say"),
    Column("time_ns", "int64", "ns", "since the epoch, or since the start of a simulation or of the log"),
    Column("name", "string", "", "such as `cwnd`, `ssthresh`, `srtt`, `rttvar`, `throughput`"),
    Column("unit", "string", "", "`packets`, `bytes`, `ms`, `bit/s`, or empty for a plain number"),
    Column("value", "float64", "", "what the sender itself wrote down"),
)
