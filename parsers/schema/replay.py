"""Columns of `replay` and `closed_loop`: what an algorithm would have done."""

from __future__ import annotations

from typing import Final

from tfrctrace.parsers.schema.column import Column

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
        "`x_t` and `x_fair`; of windows `slow_start`, `congestion_avoidance`, `recovery` and `timeout`",
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
        "x_recv_set_bps",
        "float64",
        "bit/s",
        "the highest rate of X_recv_set, which may be a report's before (RFC 5348); elsewhere X_recv of the "
        "latest report",
        "it sets no limit yet, or no TFRC",
    ),
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
