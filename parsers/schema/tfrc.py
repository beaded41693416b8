"""Columns of what TFRC's receiver says and what is rebuilt beside it."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

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
        "what p is made of: `packets` that are missing; where losses are behind the capture what reports "
        "name (`ack_vector`, `loss_intervals`, `rfc8888`, `twcc`), or if they name nothing what follows from "
        "their `receive_rate` (bytes sent less that rate times time)",
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
    Column(
        "lost_packets",
        "uint64",
        "",
        "packets lost or marked since the report before, which ns-2's sink tells its sender",
        "other reports do not tell",
    ),
    Column("rtt_ms", "float64", "ms", "round-trip time that the report gave the sender", "as received_ns"),
    Column("r_ms", "float64", "ms", "R: smoothed round-trip time after it", "as received_ns"),
    Column(
        "r_sqmean",
        "float64",
        "s^0.5",
        "R_sqmean: mean square root of the round-trip times (RFC 5348 section 4.5)",
        "as received_ns, ns-2, or the data tell R itself and no samples of it",
    ),
    Column("t_rto_ms", "float64", "ms", "t_RTO of the throughput equation after it", "as received_ns"),
    Column("x_bps", "float64", "bit/s", "X: allowed sending rate after it, payload", "as received_ns"),
    Column(
        "x_inst_bps",
        "float64",
        "bit/s",
        "X_inst: the same, less while the round-trip time grows (RFC 5348 section 4.5)",
        "as r_sqmean",
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
    Column(
        "packets",
        "uint64",
        "",
        "packets lost or marked in it, as far as known: Loss Intervals name the first one only",
    ),
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
