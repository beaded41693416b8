"""Every column of every table: name, type, unit, meaning, and when it is null.

This is the one place in Python that names columns. The Rust core builds the same tables in the
same order (`native/src/columns.rs`); a test holds the two together. The page `docs/columns.md`
is made from here.

Rows of flows are tidy: one row for each flow and direction. Times are integer nanoseconds,
counts are integers, rates are bits per second, shares go from 0 to 1. Null means "cannot be known
from this trace" (the column `notes` says why); zero means measured zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import polars as pl

ColumnType = Literal["uint32", "uint64", "int64", "float64", "string"]

SCHEMA_VERSION: Final = 1
"""Version of the JSON form; it changes when a name or a meaning does."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `null_when` is empty when the value is always known."""

    name: str
    type: ColumnType
    unit: str
    meaning: str
    null_when: str = ""


_UNSEEN_AT_RECEIVER: Final = "not TCP, as payload_bytes, or captured at the receiver"

_CLASSES: Final = (
    Column(
        "fast_retransmissions",
        "uint64",
        "",
        "segments sent again because of acknowledgements: the first of each recovery, and without SACK all "
        "of it (RFC 5681, RFC 6582); as all counts of segments here, packets as the wire carried them",
        _UNSEEN_AT_RECEIVER,
    ),
    Column(
        "sack_retransmissions",
        "uint64",
        "",
        "further segments sent again in a recovery with SACK (RFC 6675, RFC 8985)",
        "as fast_retransmissions",
    ),
    Column(
        "rto_retransmissions",
        "uint64",
        "",
        "segments sent again by a timeout and in the recovery after it (RFC 6298)",
        "as fast_retransmissions",
    ),
    Column(
        "tail_loss_probes",
        "uint64",
        "",
        "last segments sent again to provoke an acknowledgement (RFC 8985 section 7); probes with new data "
        "look like any data",
        "as fast_retransmissions",
    ),
    Column(
        "unexplained_retransmissions",
        "uint64",
        "",
        "segments sent again for a reason that the capture does not show",
        "as fast_retransmissions",
    ),
    Column("timeouts", "uint64", "", "retransmission timeouts, of data", "as fast_retransmissions"),
    Column(
        "rto_backoff_max",
        "uint64",
        "",
        "the most timeouts in a row: each doubles the next (RFC 6298 section 5.5)",
        "as fast_retransmissions",
    ),
    Column("syn_retransmissions", "uint64", "", "SYN sent again", "as retransmitted_packets"),
    Column("fin_retransmissions", "uint64", "", "FIN without data sent again", "as retransmitted_packets"),
    Column(
        "spurious_retransmissions",
        "uint64",
        "",
        "retransmissions of any class that were not needed: acknowledged already, reported as doubled "
        "(D-SACK, RFC 2883), overtaken by the acknowledgement of the original (Eifel, RFC 3522; F-RTO, "
        "RFC 5682)",
        "as retransmitted_packets",
    ),
    Column(
        "keep_alives",
        "uint64",
        "",
        "segments with the last number acknowledged, to hear whether the other side lives",
        "as retransmitted_packets",
    ),
    Column(
        "zero_window_probes",
        "uint64",
        "",
        "segments sent into a closed window (RFC 9293 section 3.8.6.1)",
        "as retransmitted_packets",
    ),
    Column(
        "window_full",
        "uint64",
        "",
        "data packets that fill the other side's window",
        "as retransmitted_packets, or the window scale is not known",
    ),
    Column(
        "reordered_packets",
        "uint64",
        "",
        "packets that others overtook on their way to the capture",
        "as retransmitted_packets, or captured at the sender",
    ),
    Column(
        "reordering_max_packets",
        "uint64",
        "",
        "the most packets that overtook one (RFC 4737 section 4.2)",
        "as reordered_packets",
    ),
    Column(
        "reordering_max_ms",
        "float64",
        "ms",
        "the longest that one came after the first that overtook it",
        "as reordered_packets, or there was none",
    ),
    Column(
        "network_duplicates",
        "uint64",
        "",
        "packets with bytes seen before that the network doubled and nobody sent again",
        "as retransmitted_packets",
    ),
    Column(
        "capture_duplicates",
        "uint64",
        "",
        "packets that a capture shows again at another interface, as `-i any` does on a router; they were on "
        "the wire once, and nothing else counts them",
        "as retransmitted_packets, unless of a pair",
    ),
    Column(
        "ect_packets",
        "uint64",
        "",
        "packets whose IP header says that the transport understands congestion marks (RFC 3168)",
        "as retransmitted_packets",
    ),
    Column("ce_packets", "uint64", "", "of them, those that arrived here marked", "as retransmitted_packets"),
    Column("ece_packets", "uint64", "", "packets that echo a mark", "as retransmitted_packets"),
    Column(
        "cwr_packets",
        "uint64",
        "",
        "packets that say that the congestion window was reduced",
        "as retransmitted_packets",
    ),
    Column(
        "super_segments",
        "uint64",
        "",
        "packets longer than the wire carries: the capture took them before segmentation offload cut them, "
        "or after it joined them",
        "as retransmitted_packets, or neither a SYN nor long segments told how long packets are",
    ),
    Column(
        "wire_segments",
        "uint64",
        "",
        "data packets as the wire carried them: a super-segment counts as often as the longest packet goes "
        "into it",
        "as super_segments",
    ),
    Column(
        "capture_gap_bytes",
        "uint64",
        "bytes",
        "sequence numbers that were acknowledged and never seen: the capture lost them, not the network",
        "as retransmitted_packets",
    ),
    Column(
        "lost_before_tap",
        "uint64",
        "",
        "segments lost before they came to the capture: sent again later, or never seen",
        "as retransmitted_packets, or captured at the sender",
    ),
    Column(
        "lost_after_tap",
        "uint64",
        "",
        "segments seen and sent again, without those that were not needed",
        "as retransmitted_packets, or captured at the receiver",
    ),
)

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
    *_CLASSES,
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
        "drop_reasons",
        "string",
        "",
        "drops by place and reason as the trace names it, most frequent first; also of packets that arrived "
        "in the end",
        "no drop in the trace",
    ),
    Column("flow_id", "uint32", "", "the simulator's own flow id; flows may share one", "the trace has none"),
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

TCP: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`"),
    Column("ack_packets", "uint64", "", "packets with the ACK flag"),
    Column("pure_acks", "uint64", "", "of them those with neither payload nor SYN, FIN or RST"),
    Column("sack_packets", "uint64", "", "packets with SACK blocks (RFC 2018)"),
    Column("dsack_packets", "uint64", "", "of them those whose first block had arrived before (RFC 2883)"),
    Column("max_sack_blocks", "uint64", "", "most blocks in one packet"),
    Column("pushed_packets", "uint64", "", "data packets with the PSH flag"),
    Column("syn_packets", "uint64", "", "packets with SYN"),
    Column("fin_packets", "uint64", "", "packets with FIN"),
    Column("rst_packets", "uint64", "", "packets with RST"),
    Column("urgent_packets", "uint64", "", "packets with the URG flag"),
    Column("window_scale", "uint32", "bits", "shift of the windows that the SYN announced", "it had none"),
    Column("offers_timestamps", "uint32", "", "1 if the SYN had timestamps (RFC 7323)", "no SYN"),
    Column("permits_sack", "uint32", "", "1 if the SYN permits SACK (RFC 2018)", "no SYN"),
    Column("min_segment_bytes", "uint32", "bytes", "shortest payload of a data packet", "no data"),
    Column("mean_segment_bytes", "float64", "bytes", "their mean payload", "no data, or as payload_bytes"),
    Column("max_segment_bytes", "uint32", "bytes", "longest", "no data"),
    Column(
        "mean_window_bytes",
        "float64",
        "bytes",
        "mean of the receive windows in packets of this side, scaled; SYN and RST do not count",
        "no such packet, or the scale is not known",
    ),
    Column(
        "initial_window_bytes",
        "uint64",
        "bytes",
        "payload sent before the other side acknowledged any of it (RFC 5681's initial window, if there was "
        "that much to send)",
        "no SYN",
    ),
    Column("initial_window_packets", "uint64", "", "data packets that carried it", "no SYN"),
    Column("stream_bytes", "uint64", "bytes", "sequence numbers from SYN to FIN", "one of them was not seen"),
    Column("missed_bytes", "uint64", "bytes", "of those the ones no packet shows", "as stream_bytes"),
    Column("truncated_packets", "uint64", "", "data packets of which the snap length cut payload"),
    Column("truncated_bytes", "uint64", "bytes", "payload that it cut"),
    Column("data_time_s", "float64", "s", "from the first to the last data packet", "no data"),
    Column("gap_max_ms", "float64", "ms", "longest time between packets of this direction"),
    Column(
        "cumulative_acks",
        "uint64",
        "",
        "segments of this direction acknowledged together with later ones",
    ),
    Column(
        "post_loss_acks",
        "uint64",
        "",
        "acknowledgements of a segment that was seen before an older one was sent again or came late",
    ),
    Column(
        "triple_duplicate_acks",
        "uint64",
        "",
        "times this side repeated an acknowledgement for the third time while data was outstanding "
        "(RFC 5681 section 3.2)",
    ),
    Column("max_retransmissions", "uint64", "", "most times that one segment was sent again"),
    Column(
        "retransmission_min_ms",
        "float64",
        "ms",
        "shortest time from one transmission of a segment to the next",
        "none was sent again before it was acknowledged",
    ),
    Column("retransmission_mean_ms", "float64", "ms", "mean of them", "as retransmission_min_ms"),
    Column("retransmission_max_ms", "float64", "ms", "longest", "as retransmission_min_ms"),
    Column(
        "retransmission_std_ms",
        "float64",
        "ms",
        "sample standard deviation",
        "fewer than two were sent again",
    ),
    Column(
        "ambiguous_acks",
        "uint64",
        "",
        "acknowledgements of segments that were sent more than once, which give no RTT (Karn's rule)",
    ),
    Column(
        "ambiguous_rtt_min_ms",
        "float64",
        "ms",
        "shortest time from the last transmission of such a segment to its acknowledgement",
        "no such acknowledgement",
    ),
    Column("ambiguous_rtt_mean_ms", "float64", "ms", "mean of them", "as ambiguous_rtt_min_ms"),
    Column("ambiguous_rtt_max_ms", "float64", "ms", "longest", "as ambiguous_rtt_min_ms"),
    Column("ambiguous_rtt_std_ms", "float64", "ms", "sample standard deviation", "fewer than two"),
    Column(
        "unwatched_segments",
        "uint64",
        "",
        "segments not followed to their acknowledgement because 65,536 others of the direction were "
        "outstanding, or 1,048,576 of all; and packets that repeat more than 1,024 at once",
    ),
)

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
    Column("flow_id", "uint32", "", "the simulator's own flow id", "the trace has none"),
    Column("decode_stop", "string", "", "layer and reason where decoding ended", "decoded whole"),
)

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
        "delay_samples", "uint64", "", "packets sent in the bin with a one-way delay", "not from two captures"
    ),
    Column("delay_min_ms", "float64", "ms", "smallest one-way delay", "no sample"),
    Column("delay_mean_ms", "float64", "ms", "their mean", "no sample"),
    Column("delay_max_ms", "float64", "ms", "largest of them", "no sample"),
    Column(
        "lost_packets",
        "uint64",
        "",
        "packets sent in the bin that were lost between two captures",
        "as delay_samples",
    ),
)

RTP_SOURCES: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "`fwd` or `rev`"),
    Column("ssrc", "uint32", "", "synchronisation source (RFC 3550)"),
    Column("payload_type", "uint32", "", "of the first packet"),
    Column("clock_rate_hz", "uint32", "1/s", "ticks of the timestamps", "nothing tells it: `--dissect`"),
    Column(
        "clock_rate_by",
        "string",
        "",
        "`payload_type` (RFC 3551), `user`, `reports` (two sender reports) or `arrivals` (measured)",
        "as clock_rate_hz",
    ),
    Column("start_ns", "int64", "ns", "first packet"),
    Column("end_ns", "int64", "ns", "latest packet"),
    Column("sent_packets", "uint64", "", "from the first number captured to the highest"),
    Column("received_packets", "uint64", "", "of them those that came to the place of the capture"),
    Column("lost_packets", "uint64", "", "of them those that did not"),
    Column("duplicate_packets", "uint64", "", "packets that came again"),
    Column("reordered_packets", "uint64", "", "packets that came after one with a higher number"),
    Column("restarts", "uint64", "", "times the numbers began anew"),
    Column(
        "payload_bytes", "uint64", "bytes", "payload of the datagrams of received_packets, RTP header and all"
    ),
    Column("jitter_ms", "float64", "ms", "interarrival jitter here (RFC 3550 A.8)", "as clock_rate_hz"),
    Column("sender_packets", "uint64", "", "packets sent by its last sender report", "no such report"),
    Column("reports", "uint64", "", "reports of receivers on it"),
    Column("reported_fraction_lost", "float64", "", "share lost by the last of them", "no receiver report"),
    Column(
        "reported_lost_packets",
        "int64",
        "",
        "packets lost by it, less duplicates",
        "as reported_fraction_lost",
    ),
    Column(
        "reported_jitter_ms", "float64", "ms", "jitter by it", "as reported_fraction_lost or clock_rate_hz"
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
        "by what it was found that it was not needed: `acknowledged`, `d_sack`, `timestamp` or `f_rto`",
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

_NO_SENDER: Final = "the report never arrived, or no round-trip time is known"

_NO_MEDIA: Final = "TFRC's own report"

_ON_MEDIA: Final = (
    Column(
        "kind",
        "string",
        "",
        "`tfrc`, or of a report on RTP `rtcp` (SR or RR, RFC 3550), `rtcp_xr` (RFC 3611), `rfc8888` or "
        "`twcc` (transport-wide); these name neither p nor X_recv: `x_recv_bps` is made of the packets that "
        "they say arrived, and `sequence` is the number that they name last",
    ),
    Column("ssrc", "uint32", "", "source of the media that the report is about", _NO_MEDIA),
    Column("reporter_ssrc", "uint32", "", "who reports", _NO_MEDIA),
    Column(
        "fraction_lost",
        "float64",
        "",
        "share of the packets that did not arrive since the last report; of `rfc8888` and `twcc` of those "
        "listed",
        "not in the report",
    ),
    Column(
        "cumulative_lost", "int64", "", "packets lost since the source began, less duplicates", "not in it"
    ),
    Column(
        "jitter_ms",
        "float64",
        "ms",
        "interarrival jitter that it names",
        "not in it, or the clock is not known",
    ),
)

FEEDBACK: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data that the report is about"),
    Column("time_ns", "int64", "ns", "when TFRC's receiver sent the report; in a capture when it passed"),
    Column(
        "received_ns",
        "int64",
        "ns",
        "when it arrived, in a capture when it passed; a second row if it arrived twice",
        _NO_SENDER,
    ),
    Column("packet", "uint64", "", "its number in the source, where it was sent"),
    Column("sequence", "uint64", "", "highest sequence number that had arrived", "not in the trace"),
    Column(
        "p",
        "float64",
        "",
        "loss event rate as rebuilt; 0 before the first loss event",
        "no data in the trace, or captured at their sender and the reports name no receive rate",
    ),
    Column(
        "p_from",
        "string",
        "",
        "what p is made of: `packets` that are missing, or `reports` where losses are behind the capture "
        "(bytes sent less receive rate times time)",
        "as p",
    ),
    Column("reported_p", "float64", "", "loss event rate that the report names", "it names none"),
    Column("p_difference", "float64", "", "reported_p - p", "either is not known"),
    Column(
        "x_recv_bps",
        "float64",
        "bit/s",
        "rate at which payload arrived, as rebuilt",
        "captured at the sender of the data",
    ),
    Column("reported_x_recv_bps", "float64", "bit/s", "receive rate that the report names", "it names none"),
    Column(
        "x_recv_difference_bps", "float64", "bit/s", "reported_x_recv_bps - x_recv_bps", "either is not known"
    ),
    Column(
        "elapsed_ms",
        "float64",
        "ms",
        "time that the receiver says it held the packet it acknowledges",
        "the report names none",
    ),
    Column("rtt_ms", "float64", "ms", "round-trip time that the report gave the sender", "as received_ns"),
    Column("r_ms", "float64", "ms", "R: smoothed round-trip time after it", "as received_ns"),
    Column(
        "r_sqmean",
        "float64",
        "s^0.5",
        "R_sqmean: mean square root of the round-trip times (RFC 5348 section 4.5)",
        "as received_ns, or ns-2",
    ),
    Column("t_rto_ms", "float64", "ms", "t_RTO of the throughput equation after it", "as received_ns"),
    Column("x_bps", "float64", "bit/s", "X: allowed sending rate after it, payload", "as received_ns"),
    Column(
        "x_inst_bps",
        "float64",
        "bit/s",
        "X_inst: the same, less while the round-trip time grows (RFC 5348 section 4.5)",
        "as received_ns, or ns-2",
    ),
    Column(
        "sent_bps",
        "float64",
        "bit/s",
        "payload that was sent since the report before",
        "as received_ns, the first report, not captured at the sender of the data, or ns-2",
    ),
    Column(
        "data_limited",
        "uint32",
        "",
        "1 if that was less than nine tenths of X: the application had no more",
        "as received_ns, or ns-2",
    ),
    Column(
        "rtt_method",
        "string",
        "",
        "what rtt_ms is made of: `ack` (acknowledged packet and elapsed time), `timestamp` (echo), `ccval` "
        "(window counter, RFC 4342 section 8.1), `estimate` (RFC 6323)",
        "as received_ns",
    ),
    Column(
        "mode",
        "string",
        "",
        "what X follows: `slow_start`, `equation` or `receive_rate`; of ns-2's agents `slow_start`, "
        "`leaving_slow_start`, `increase` or `decrease` towards the equation's",
        "as received_ns",
    ),
    *_ON_MEDIA,
)

LOSS_EVENTS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
    Column("time_ns", "int64", "ns", "when the receiver learnt of it"),
    Column("packet", "uint64", "", "number in the source of the packet that told it"),
    Column("start_sequence", "int64", "", "sequence number of the first packet lost or marked"),
    Column(
        "lost_ns",
        "int64",
        "ns",
        "when that was sent or would have come, between its neighbours (RFC 5348 section 5.2)",
    ),
    Column("packets", "uint64", "", "packets lost or marked in it"),
)

LOSS_INTERVALS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
    Column("time_ns", "int64", "ns", "when the receiver sent a report"),
    Column("packet", "uint64", "", "number of the report in the source"),
    Column("interval", "uint32", "", "0 for the open one, 1 for the newest that a loss event closed, to 8"),
    Column(
        "packets",
        "float64",
        "",
        "its length as rebuilt; the first of a flow is made of the receive rate",
        "as p, or only the report has it",
    ),
    Column("reported_packets", "float64", "", "its length as the report names it", "it names none"),
    Column(
        "reported_lost",
        "uint32",
        "",
        "packets lost or marked in it as the report names them (CCID 4, RFC 5622 section 8.7)",
        "it names none",
    ),
)

FINDINGS: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data that it is about"),
    Column("time_ns", "int64", "ns", "when it showed"),
    Column("packet", "uint64", "", "number in the source of the packet that showed it"),
    Column("finding", "string", "", "what is wrong, by name; `docs/tfrc.md` has them all"),
    Column("end", "string", "", "who should have done otherwise: `sender`, `receiver`, or `path` if neither"),
    Column("rule", "string", "", "where the rule stands"),
    Column("value", "float64", "", "what was found, in `unit`", "nothing to be measured"),
    Column("limit", "float64", "", "what would have been right, in `unit`", "as value"),
    Column("unit", "string", "", "unit of both", "as value"),
)

REPLAY: Final = (
    Column("flow", "uint32", "", "number of the conversation"),
    Column("direction", "string", "", "direction of the data"),
    Column("algorithm", "string", "", "what decided: `tfrc`, `mtfrc`, ... or `module:Class`"),
    Column("profile", "string", "", "whose TFRC it is: `rfc5348`, `rfc3448`, `ns2` or `linux`", "no TFRC"),
    Column(
        "reports",
        "string",
        "",
        "where the reports are from: `reports` of the receiver, `simulated_reports` of one that is rebuilt "
        "from arrivals, or `tcp`: rounds and losses of a connection",
    ),
    Column("rtt_scale", "float64", "", "what every round-trip time was multiplied with"),
    Column("time_ns", "int64", "ns", "when it decided"),
    Column(
        "event",
        "string",
        "",
        "why it did: a `report` arrived, `no_feedback` for as long as its timer says, or the `population` of "
        "the wireless network changed",
    ),
    Column("x_bps", "float64", "bit/s", "X: allowed sending rate from then on, payload"),
    Column(
        "mode",
        "string",
        "",
        "what governs X: `slow_start`, `equation`, `receive_limited`, `no_feedback`, `idle`; of MTFRC also "
        "`x_t` and `x_fair`",
    ),
    Column(
        "reason",
        "string",
        "",
        "what changed it: `first_report`, `no_rtt`, `doubled`, `held`, `receive_rate`, `leaving_slow_start`, "
        "`loss_event`, `loss_free`, `round_trip_time`, `approaching`, `halved`, `limited_by_x_recv`, "
        "`limited_by_equation`, `idle`, `population`",
    ),
    Column("p", "float64", "", "loss event rate that was reported", "no report"),
    Column("rtt_ms", "float64", "ms", "round-trip time sample of the report", "it gave none, or no report"),
    Column("r_ms", "float64", "ms", "R: smoothed round-trip time", "not known yet"),
    Column("x_calc_bps", "float64", "bit/s", "what the throughput equation gives", "no loss event yet"),
    Column("x_recv_bps", "float64", "bit/s", "X_recv: rate at which payload arrived", "no report"),
    Column(
        "x_limit_bps",
        "float64",
        "bit/s",
        "recv_limit, from what X_recv_set has (RFC 5348), or twice X_recv",
        "no limit yet",
    ),
    Column("sent_bps", "float64", "bit/s", "payload really sent since the row before", "no time passed"),
    Column("x_tfrc_bps", "float64", "bit/s", "what TFRC alone allows", "not MTFRC"),
    Column("x_t_bps", "float64", "bit/s", "X_t: what the MAC carries of each station", "as x_tfrc_bps"),
    Column("x_fair_bps", "float64", "bit/s", "X_fair: fair share of each flow", "not MTFRC, or no downloads"),
    Column("window_bytes", "float64", "bytes", "congestion window", "an algorithm without one"),
)

CLOSED_LOOP: Final = (
    Column("flow", "uint32", "", "number of the conversation in whose place the algorithm ran"),
    Column("direction", "string", "", "direction of the data"),
    Column("algorithm", "string", "", "what decided: `tfrc`, `newreno`, ... or `module:Class`"),
    Column("profile", "string", "", "whose TFRC it is: `rfc5348`, `rfc3448`, `ns2` or `linux`", "no TFRC"),
    Column("time_ns", "int64", "ns", "when a round of the model began"),
    Column(
        "duration_ms", "float64", "ms", "how long it lasted: a round-trip time, or until a loss was known"
    ),
    Column("x_bps", "float64", "bit/s", "rate that the algorithm allowed in it", "the initial window"),
    Column("mode", "string", "", "what governed the rate, as the algorithm calls it"),
    Column("reason", "string", "", "what changed it"),
    Column("window_bytes", "float64", "bytes", "congestion window", "an algorithm without one"),
    Column("sent_bps", "float64", "bit/s", "payload sent in the model", "the round lasted no time"),
    Column("received_bps", "float64", "bit/s", "payload of it that was not lost", "as sent_bps"),
    Column("rtt_ms", "float64", "ms", "round-trip time of what was sent when the round began"),
    Column("queued_bytes", "float64", "bytes", "payload that waited then, of all flows"),
    Column("lost_packets", "uint32", "", "losses that became known at its end"),
    Column("p", "float64", "", "loss event rate at its end, as a receiver of TFRC has it"),
)

LINKS: Final = (
    Column("transmitter", "string", "", "station whose radio sent", "frames of this kind do not say"),
    Column("receiver", "string", "", "station they were for; `ff:ff:ff:ff:ff:ff` is everybody"),
    Column("bssid", "string", "", "the network of the last frame that names one", "none does"),
    Column("start_ns", "int64", "ns", "first frame"),
    Column("end_ns", "int64", "ns", "last frame"),
    Column("frames", "uint64", "", "frames of every kind, repeats included"),
    Column("data_frames", "uint64", "", "data frames among them"),
    Column("retry_frames", "uint64", "", "frames with the retry bit"),
    Column(
        "repeated_frames",
        "uint64",
        "",
        "frames that the capture had already shown: retry bit and sequence number (802.11's rule)",
    ),
    Column("bytes", "uint64", "bytes", "whole frames"),
    Column("signal_min_dbm", "float64", "dBm", "weakest signal at the capturing radio", "not recorded"),
    Column("signal_mean_dbm", "float64", "dBm", "mean of the frames, in dBm", "not recorded"),
    Column("signal_max_dbm", "float64", "dBm", "strongest signal", "not recorded"),
    Column("noise_mean_dbm", "float64", "dBm", "mean noise at the capturing radio", "not recorded"),
    Column("rate_mean_mbps", "float64", "Mbit/s", "mean rate of the frames", "not recorded"),
    Column("channel_mhz", "uint32", "MHz", "centre of the channel of the last frame", "not recorded"),
)

LINK_SAMPLES: Final = (
    Column("time_ns", "int64", "ns", "when the frame was seen"),
    Column("packet", "uint64", "", "its number in the source"),
    Column("transmitter", "string", "", "station whose radio sent", "frames of this kind do not say"),
    Column("receiver", "string", "", "station it was for"),
    Column("bssid", "string", "", "its network", "frames of this kind do not say"),
    Column("kind", "string", "", "type of the frame, such as `data`, `beacon`, `ack`"),
    Column("retry", "uint32", "", "1 if it has the retry bit"),
    Column("repeated", "uint32", "", "1 if the capture had already shown it"),
    Column("bytes", "uint32", "bytes", "the whole frame"),
    Column("rate_mbps", "float64", "Mbit/s", "rate at which it was sent", "not recorded"),
    Column("signal_dbm", "int64", "dBm", "signal at the capturing radio", "not recorded"),
    Column("noise_dbm", "int64", "dBm", "noise there", "not recorded"),
    Column("channel_mhz", "uint32", "MHz", "centre of its channel", "not recorded"),
    Column("antenna", "uint32", "", "antenna of the capturing radio", "not recorded"),
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

TABLES: Final = {
    "flows": FLOWS,
    "tcp": TCP,
    "packets": PACKETS,
    "bins": BINS,
    "rtt": RTT,
    "losses": LOSSES,
    "rounds": ROUNDS,
    "variables": VARIABLES,
    "feedback": FEEDBACK,
    "loss_events": LOSS_EVENTS,
    "loss_intervals": LOSS_INTERVALS,
    "findings": FINDINGS,
    "rtp_sources": RTP_SOURCES,
    "replay": REPLAY,
    "closed_loop": CLOSED_LOOP,
    "links": LINKS,
    "link_samples": LINK_SAMPLES,
    "transits": TRANSITS,
}
"""All tables by name."""


def polars_schema(table: str) -> dict[str, pl.DataType]:
    """Return the Polars schema of `table` (one of `TABLES`)."""
    import polars as pl

    types: dict[str, pl.DataType] = {
        "uint32": pl.UInt32(),
        "uint64": pl.UInt64(),
        "int64": pl.Int64(),
        "float64": pl.Float64(),
        "string": pl.String(),
    }
    return {column.name: types[column.type] for column in TABLES[table]}
