"""Columns of a flow that count its TCP segments by class, and what goes with them."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

_UNSEEN_AT_RECEIVER: Final = "not TCP, as payload_bytes, or captured at the receiver"

CLASSES: Final = (
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
        "not a capture",
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
