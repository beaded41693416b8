"""Columns of `tcp`: what tcptrace counts of a direction, and what else the headers tell."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

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
