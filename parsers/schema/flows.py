"""Columns of `flows`: one row for each flow and direction."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.classes import CLASSES
from tfrctrace.parsers.schema.column import Column

FLOWS: Final = (
    Column("flow", "uint32", "", "number of the conversation, in order of first packet, from 1"),
    Column("direction", "string", "", "`fwd` from the side that opened the flow, else the first seen; `rev`"),
    Column(
        "transport",
        "string",
        "",
        "`tcp`, `udp`, `dccp`, `rtp`, `rtcp` without RTP, or `tfrc` for a simulator's TFRC",
    ),
    Column("label", "string", "", "name given by the user", "none was given"),
    Column("src", "string", "", "address of the sender of this direction; in a simulation its node"),
    Column("src_port", "uint32", "", "port of the sender of this direction"),
    Column("dst", "string", "", "address of the receiver of this direction, likewise"),
    Column("dst_port", "uint32", "", "port of the receiver of this direction"),
    Column("source", "string", "", "file the flow was read from (the first, when files are joined)"),
    Column(
        "vantage",
        "string",
        "",
        "where the data of this direction were captured: `sender`, `receiver` or `middle`; `both` if the "
        "trace shows both ends, as that of a simulator and two paired captures do",
        "nothing tells",
    ),
    Column(
        "vantage_confidence",
        "float64",
        "",
        "how sure that is, from 0 to 1: 1 if it was given",
        "nothing tells",
    ),
    Column(
        "state",
        "string",
        "",
        "of the connection when the capture ended: `attempted` (SYN without answer), `refused` (SYN answered "
        "by RST), `opening` (SYN and SYN/ACK, no final ACK), `established`, `half_closed` (one FIN), "
        "`closed` (both FINs), `reset`, `midstream` (no SYN in the capture, neither FIN nor RST)",
        "neither TCP nor DCCP, or no TCP header was whole",
    ),
    Column(
        "ccid",
        "uint32",
        "",
        "congestion control of the data sent this way (RFC 4340 section 10): 2 is TCP-like, 3 TFRC, 4 TFRC "
        "for small packets",
        "not DCCP, or the capture shows no agreement",
    ),
    Column("service_code", "uint32", "", "what a DCCP connection is for", "not DCCP, or not in the capture"),
    Column("start_ns", "int64", "ns", "time of the first packet of this direction", "no packet this way"),
    Column("end_ns", "int64", "ns", "time of the last packet of this direction", "no packet this way"),
    Column("duration_s", "float64", "s", "from first to last packet of this direction", "no packet this way"),
    Column("packets", "uint64", "", "packets of this direction in the capture; in a simulation those sent"),
    Column("wire_bytes", "uint64", "bytes", "whole frames as they were on the wire"),
    Column(
        "payload_bytes",
        "uint64",
        "bytes",
        "transport payload, retransmissions and what RST carries included",
        "the snap length cut the transport header",
    ),
    Column(
        "unique_bytes",
        "uint64",
        "bytes",
        "payload with every sequence number counted once",
        "not TCP, or as payload_bytes",
    ),
    Column(
        "throughput_bps",
        "float64",
        "bit/s",
        "wire_bytes over duration_s",
        "fewer than two packets, or all at one time",
    ),
    Column(
        "goodput_bps",
        "float64",
        "bit/s",
        "unique_bytes over duration_s (payload_bytes for UDP)",
        "as throughput_bps or unique_bytes",
    ),
    Column("data_packets", "uint64", "", "packets that carry payload", "as payload_bytes"),
    Column(
        "retransmitted_packets",
        "uint64",
        "",
        "data packets with at least one byte that the capture had already shown",
        "not TCP, or as payload_bytes",
    ),
    Column(
        "retransmitted_bytes",
        "uint64",
        "bytes",
        "payload bytes that the capture had already shown",
        "as retransmitted_packets",
    ),
    Column(
        "out_of_order_packets",
        "uint64",
        "",
        "data packets below the highest sequence number seen, with bytes not seen before",
        "as retransmitted_packets",
    ),
    Column(
        "duplicate_acks",
        "uint64",
        "",
        "pure acknowledgements sent this way that repeat number and window while data was outstanding "
        "(RFC 5681 section 2)",
        "not TCP, or as payload_bytes",
    ),
    Column("zero_windows", "uint64", "", "packets that announce a receive window of 0", "as duplicate_acks"),
    Column(
        "missing_bytes",
        "uint64",
        "bytes",
        "sequence numbers passed over and never seen in the capture (lost before it, or not captured)",
        "as retransmitted_packets",
    ),
    Column("mss", "uint32", "bytes", "maximum segment size this side announced", "no SYN with the option"),
    Column(
        "handshake_rtt_ms",
        "float64",
        "ms",
        "from SYN to the ACK that completes the handshake, the same from any capture point",
        "no complete handshake, or its packets were sent twice",
    ),
    Column(
        "syn_rtt_ms",
        "float64",
        "ms",
        "from this side's SYN to its acknowledgement: between the place of the capture and the other side; "
        "both directions' together are handshake_rtt_ms",
        "as handshake_rtt_ms",
    ),
    Column(
        "sender_rtt_p50_ms",
        "float64",
        "ms",
        "median RTT between the place of the capture and this side: from an acknowledgement of the other "
        "side to the first data that echo its timestamp (RFC 7323); rtt_p50_ms is the way to the other side",
        "no timestamps, fewer than 65 data segments, no acknowledgement while more data was on its way "
        "behind the capture (as at a receiver that misses nothing) but such as waited for a timer or the "
        "application, or as retransmitted_packets",
    ),
    *CLASSES,
    Column(
        "rtt_samples",
        "uint64",
        "",
        "data (and SYN, FIN) of this direction whose acknowledgement gave an RTT (Karn's rule: never from "
        "data sent twice or late); of DCCP packets, less the elapsed time that the receiver reports",
        "neither TCP nor DCCP, or as payload_bytes",
    ),
    Column("rtt_min_ms", "float64", "ms", "smallest sample", "no sample"),
    Column("rtt_mean_ms", "float64", "ms", "mean of the samples", "no sample"),
    Column("rtt_p50_ms", "float64", "ms", "median, within 0.8 %", "no sample"),
    Column("rtt_p95_ms", "float64", "ms", "95th percentile (nearest rank), within 0.8 %", "no sample"),
    Column("rtt_p99_ms", "float64", "ms", "99th percentile, likewise", "no sample"),
    Column("rtt_max_ms", "float64", "ms", "largest sample", "no sample"),
    Column("rtt_std_ms", "float64", "ms", "population standard deviation of the samples", "no sample"),
    Column(
        "ts_rtt_samples",
        "uint64",
        "",
        "RTT samples by TCP timestamp echo (RFC 7323), valid for retransmitted data too",
        "as rtt_samples, or no timestamps",
    ),
    Column("ts_rtt_min_ms", "float64", "ms", "smallest of them", "no sample"),
    Column("ts_rtt_mean_ms", "float64", "ms", "their mean", "no sample"),
    Column("ts_rtt_max_ms", "float64", "ms", "largest of them", "no sample"),
    Column(
        "max_flight_bytes",
        "uint64",
        "bytes",
        "most data (SYN, FIN) outstanding at one time, as seen at the place of the capture (FlightSize, "
        "RFC 5681 section 2, less what SACK blocks say has arrived)",
        "no data, not TCP, as payload_bytes, or sequence numbers count packets",
    ),
    Column(
        "mean_flight_bytes",
        "float64",
        "bytes",
        "mean over the time in which data was outstanding",
        "as max_flight_bytes, or no time went by",
    ),
    Column(
        "cwnd_max_bytes",
        "uint64",
        "bytes",
        "largest flight of a round that neither application nor receiver limited and in which nothing was "
        "sent again: a lower bound of the largest congestion window, and at the sender usually the window to "
        "a segment",
        "as app_limited_share, or no such round",
    ),
    Column(
        "receive_window_min_bytes",
        "uint64",
        "bytes",
        "smallest receive window that this side announced, scaled; SYN and RST do not count",
        "the scale is not known (no SYN), or as max_flight_bytes",
    ),
    Column("receive_window_max_bytes", "uint64", "bytes", "largest, likewise", "as receive_window_min_bytes"),
    Column(
        "zero_window_ms",
        "float64",
        "ms",
        "time for which the receive window of this side was 0",
        "as duplicate_acks",
    ),
    Column(
        "rounds",
        "uint64",
        "",
        "rounds of data: from an acknowledgement to that of the highest number sent then, or from the first "
        "data after silence to its acknowledgement",
        "as max_flight_bytes",
    ),
    Column(
        "slow_start_exit_ms",
        "float64",
        "ms",
        "from the first data until the flight stopped growing by half or more in a round, or something was "
        "sent again",
        "it did not, or the application or the receiver limited every round",
    ),
    Column("slow_start_exit_bytes", "uint64", "bytes", "the flight then", "as slow_start_exit_ms"),
    Column(
        "recovery_episodes",
        "uint64",
        "",
        "stretches in which data was sent again without a timeout, each until all that was outstanding when "
        "it began is acknowledged (RFC 6582)",
        "captured at the receiver, or as max_flight_bytes",
    ),
    Column("recovery_ms", "float64", "ms", "time in those that are over", "as recovery_episodes"),
    Column("rto_episodes", "uint64", "", "the same after retransmission timeouts", "as recovery_episodes"),
    Column("rto_ms", "float64", "ms", "time in those that are over", "as recovery_episodes"),
    Column(
        "app_limited_share",
        "float64",
        "",
        "of the time from the first data to the end of the last round: nothing outstanding, or rounds whose "
        "newest segment was not full, so that nothing waited behind it (RFC 4898 SndLimTimeSnd)",
        "no round is over, captured away from the sender, or as max_flight_bytes",
    ),
    Column(
        "receiver_limited_share",
        "float64",
        "",
        "rounds in which the receive window had no room for another full segment or a tenth of it, and "
        "silence with a closed window (SndLimTimeRwin)",
        "as app_limited_share",
    ),
    Column(
        "network_limited_share",
        "float64",
        "",
        "all other rounds, those in which data was sent again among them (SndLimTimeCwnd)",
        "as app_limited_share",
    ),
    Column(
        "idle_max_ms",
        "float64",
        "ms",
        "longest time between data in which nothing was outstanding",
        "as max_flight_bytes",
    ),
    Column(
        "delayed_ack_ratio",
        "float64",
        "",
        "data packets for each pure acknowledgement of the other side; 2 where it acknowledges every second "
        "(RFC 5681 section 4.2)",
        "no data or no pure acknowledgement, or as payload_bytes",
    ),
    Column(
        "delayed_ack_samples",
        "uint64",
        "",
        "of rtt_samples those that seem to have waited for a delayed-acknowledgement timer: less than two "
        "full segments, nothing else outstanding, a pure acknowledgement, 40 ms or more above the smallest "
        "RTT until then",
        "as max_flight_bytes",
    ),
    Column(
        "sent_packets",
        "uint64",
        "",
        "packets that left the sender, each counted once; every retransmission is one of its own",
        "the trace shows one end only",
    ),
    Column(
        "received_packets", "uint64", "", "packets that reached the receiver, each once", "as sent_packets"
    ),
    Column("received_bytes", "uint64", "bytes", "their sizes, as they were sent", "as sent_packets"),
    Column(
        "dropped_packets",
        "uint64",
        "",
        "packets that the trace shows being dropped and that never arrived",
        "as sent_packets",
    ),
    Column(
        "lost_packets",
        "uint64",
        "",
        "packets that never arrived, with or without a drop in the trace, without in_flight_packets",
        "as sent_packets",
    ),
    Column(
        "in_flight_packets",
        "uint64",
        "",
        "packets without a known end that were sent less than delay_max_ms before the trace ended, or while "
        "the other one of two captures was not running",
        "as sent_packets",
    ),
    Column(
        "duplicate_packets", "uint64", "", "arrivals of packets that had arrived before", "as sent_packets"
    ),
    Column(
        "lost_before_packets",
        "uint64",
        "",
        "TCP segments that were sent again before the capture nearer to the sender had seen them, as their "
        "timestamps tell",
        "not TCP between two captures, or it has no timestamps",
    ),
    Column(
        "lost_behind_packets",
        "uint64",
        "",
        "TCP segments that passed both captures and that the receiver asked for again",
        "not TCP between two captures",
    ),
    Column(
        "pdr",
        "float64",
        "",
        "packet delivery ratio: received of those sent, without in_flight_packets on either side",
        "as sent_packets, or nothing was sent",
    ),
    Column("plr", "float64", "", "packet loss ratio: 1 - pdr", "as pdr"),
    Column("delay_min_ms", "float64", "ms", "smallest one-way delay", "as sent_packets, or nothing arrived"),
    Column(
        "delay_mean_ms", "float64", "ms", "mean one-way delay of the packets that arrived", "as delay_min_ms"
    ),
    Column("delay_p50_ms", "float64", "ms", "median one-way delay, within 0.8 %", "as delay_min_ms"),
    Column(
        "delay_p95_ms", "float64", "ms", "95th percentile (nearest rank), within 0.8 %", "as delay_min_ms"
    ),
    Column("delay_p99_ms", "float64", "ms", "99th percentile, likewise", "as delay_min_ms"),
    Column("delay_max_ms", "float64", "ms", "largest one-way delay", "as delay_min_ms"),
    Column(
        "jitter_ms", "float64", "ms", "interarrival jitter at the end (RFC 3550)", "fewer than two arrivals"
    ),
    Column(
        "delay_variation_ms",
        "float64",
        "ms",
        "mean change of the delay from one arrival to the next (RFC 3393 section 4.6)",
        "fewer than two arrivals",
    ),
    Column(
        "drop_reasons",
        "string",
        "",
        "drops by place and reason as the trace names it, most frequent first; also of packets that arrived "
        "in the end",
        "no drop in the trace",
    ),
    Column("flow_id", "uint32", "", "the simulator's own flow id; flows may share one", "the trace has none"),
    Column(
        "agent",
        "string",
        "",
        "what ns-2 calls the packets of this direction's agent, as `tcp`, `cbr`, `pareto`",
        "not of ns-2, or of an agent that ns-2.35 does not have",
    ),
    Column(
        "dscp",
        "uint32",
        "",
        "differentiated services codepoint (RFC 2474) of the first packet of this direction that has another "
        "than 0; 0 if none has",
        "no packet this way, or the source does not show it",
    ),
    Column(
        "loss_events",
        "uint64",
        "",
        "losses, of which those within a round-trip time of the first are one event (RFC 5348 section 5.2): "
        "of TFRC what its receiver found, of TCP those before and after the capture",
        "TCP: as retransmitted_packets, or no round-trip time is known; TFRC: without the flow's beginning "
        "or any report, or by `--layer` not where its agents are",
    ),
    Column(
        "loss_event_rate",
        "float64",
        "",
        "of TFRC p in the last report of its receiver; of TCP loss_events of all data segments sent",
        "as loss_events, or without data or reports",
    ),
    Column(
        "feedback_packets",
        "uint64",
        "",
        "reports about this direction's data",
        "not TFRC, or by `--layer`",
    ),
    Column(
        "x_recv_bps",
        "float64",
        "bit/s",
        "receive rate in the last report of TFRC's receiver: payload",
        "as loss_event_rate",
    ),
    Column("srtt_ms", "float64", "ms", "R: smoothed round-trip time of TFRC's sender", "no report arrived"),
    Column("ip_fragments", "uint64", "", "packets that were fragments of a larger datagram"),
    Column("icmp_errors", "uint64", "", "ICMP errors that quote a packet of this direction"),
    Column("notes", "string", "", "why values are null or uncertain, separated by `; `", "nothing to say"),
)
