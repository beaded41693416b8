"""Which field of tcptrace and tshark is which column, and where their definitions differ."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

Row = dict[str, Any]
Reason = Callable[[Row, Row, float, float | None], str]
"""Of our row, that of the other direction, the peer's number and ours: why they may differ, or nothing."""

PRINTED_MS = 0.06
"""tcptrace prints tenths of milliseconds."""


SENT_SOON = "one byte of data that is sent again within a second is no keep-alive here"
DOUBLED = "the peer takes what the network or the capture doubled for sent twice"


def _same(_ours: Row, _other: Row, _theirs: float, _number: float | None) -> str:
    return ""


class Definition(NamedTuple):
    """A field of a peer, and the column with its number."""

    field: str
    column: str
    digits: float = 0
    """How far a printed number may be from ours."""
    reason: Reason = _same


def _repeated_control(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    controls = max(ours["syn_packets"] - 1, 0) + max(ours["fin_packets"] - 1, 0)
    if 0 < theirs - (number or 0) <= controls:
        return "tcptrace counts a repeated SYN or FIN as a byte of data"
    return ""


def _again(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    """Return why a packet with bytes that were shown before is no retransmission for one of both."""
    if 0 < theirs - (number or 0) <= ours["network_duplicates"]:
        return DOUBLED
    return SENT_SOON if 0 < (number or 0) - theirs <= ours["peer_keep_alives"] else ""


def _again_to_tcptrace(ours: Row, other: Row, theirs: float, number: float | None) -> str:
    if ours["network_duplicates"] and theirs > (number or 0):
        return DOUBLED
    return _repeated_control(ours, other, theirs, number)


def _keep_alive(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    return SENT_SOON if 0 < theirs - (number or 0) <= ours["retransmitted_packets"] else ""


def _announced_size(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    if theirs >= 1 << 31 and (1 << 32) - theirs == (1 << 16) - (number or 0):
        return "tcptrace takes sizes from 32,768 bytes on for negative"
    if not ours["syn_packets"]:
        return "the peer takes options from packets other than SYN"
    return (
        "SYN packets announce several sizes: the first here, the last in tcptrace"
        if ours["syn_packets"] > 1
        else ""
    )


def _window(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    if number is None:
        if ours["syn_packets"]:
            return "only SYN and RST packets: null here, their window in tcptrace"
        return "the capture has no SYN: null here, the number without scale, or with another one, in the peer"
    if theirs in ours["control_windows"]:
        return "tcptrace takes the window of SYN or RST packets"
    return "tcptrace leaves closed windows out of the smallest" if number == 0 else ""


def _full_window(_ours: Row, other: Row, theirs: float, number: float | None) -> str:
    if number is None and other["receive_window_max_bytes"] is None and not theirs:
        return "null here where no window of the other side is known, 0 in tshark"
    if number is not None and number > theirs:
        return "data beyond the window fill it here, in tshark only what ends at its end"
    return ""


def _initial_window(ours: Row, _other: Row, _theirs: float, number: float | None) -> str:
    return (
        "null here if the capture began after the SYN" if number is None and not ours["syn_packets"] else ""
    )


def _late_packets(ours: Row, _other: Row, _theirs: float, _number: float | None) -> str:
    if ours["out_of_order_packets"]:
        return "no sample here after a late packet (Karn's rule)"
    return DOUBLED if ours["network_duplicates"] else ""


def _handshake(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    if ours["state"] == "refused":
        return "tcptrace takes a refusal for an answer"
    if number is None and ours["handshake_rtt_ms"] is None:
        return "null here if the handshake is not complete, or its packets were sent twice"
    return DOUBLED if ours["network_duplicates"] and not theirs else ""


def _duplicates_of_acknowledger(_ours: Row, other: Row, theirs: float, number: float | None) -> str:
    return _duplicates(other, other, theirs, number)


def _duplicates(ours: Row, _other: Row, theirs: float, number: float | None) -> str:
    if number == ours["rfc_duplicate_acks"]:
        return "RFC 5681 asks for outstanding data and the same window, the peer does not"
    return DOUBLED if ours["network_duplicates"] and theirs > (number or 0) else ""


TCPTRACE = (
    Definition("total_packets", "packets"),
    Definition("actual_data_pkts", "data_packets"),
    Definition("actual_data_bytes", "payload_bytes"),
    Definition("unique_bytes_sent", "unique_bytes"),
    Definition("rexmt_data_pkts", "retransmitted_packets", reason=_again_to_tcptrace),
    Definition("rexmt_data_bytes", "retransmitted_bytes", reason=_again_to_tcptrace),
    Definition("outoforder_pkts", "out_of_order_packets"),
    Definition("max_#_retrans", "max_retransmissions"),
    Definition("duplicate_acks", "duplicate_acks", reason=_duplicates_of_acknowledger),
    Definition("mss_requested", "mss", reason=_announced_size),
    Definition("max_segm_size", "max_segment_bytes"),
    Definition("initial_window_bytes", "initial_window_bytes", reason=_initial_window),
    Definition("initial_window_pkts", "initial_window_packets", reason=_initial_window),
    Definition("max_win_adv", "receive_window_max_bytes", reason=_window),
    Definition("min_win_adv", "receive_window_min_bytes", reason=_window),
    Definition("zero_win_adv", "zero_windows"),
    Definition("RTT_samples", "rtt, method ack", reason=_late_packets),
    Definition("RTT_min", "rtt, method ack", PRINTED_MS, _late_packets),
    Definition("RTT_avg", "rtt, method ack", PRINTED_MS, _late_packets),
    Definition("RTT_max", "rtt, method ack", PRINTED_MS, _late_packets),
    Definition("RTT_stdev", "rtt, method ack", PRINTED_MS, _late_packets),
    Definition("RTT_from_3WHS", "syn_rtt_ms", PRINTED_MS, _handshake),
)
"""Of each direction; `duplicate_acks` is that of the other one."""

TSHARK = (
    Definition(
        "retransmission + out_of_order", "retransmitted_packets + out_of_order_packets", reason=_again
    ),
    Definition("retransmission", "retransmitted_packets", reason=_again),
    Definition("out_of_order", "out_of_order_packets", reason=_again),
    Definition("zero_window_probe + keep_alive", "zero_window_probes + keep_alives", reason=_keep_alive),
    Definition("zero_window_probe", "zero_window_probes"),
    Definition("keep_alive", "keep_alives", reason=_keep_alive),
    Definition("zero_window", "zero_windows"),
    Definition("duplicate_ack", "duplicate_acks", reason=_duplicates),
    Definition("window_full", "window_full", reason=_full_window),
)
"""Of `tcp.analysis`, in each direction; sums before their parts."""

TSHARK_WINDOWS = (
    Definition("window_size (largest)", "receive_window_max_bytes", reason=_window),
    Definition("window_size (smallest)", "receive_window_min_bytes", reason=_window),
)


def tcptrace_value(definition: Definition, ours: Row, other: Row, samples_ms: list[float]) -> float | None:
    """Return our number for a field of tcptrace; None if it is not known."""
    if definition.field in OF_SAMPLES:
        return OF_SAMPLES[definition.field](samples_ms)
    value = (other if definition.field == "duplicate_acks" else ours)[definition.column]
    return None if value is None else float(value)


OF_SAMPLES: dict[str, Callable[[list[float]], float | None]] = {
    "RTT_samples": len,
    "RTT_min": lambda samples: min(samples, default=None),
    "RTT_max": lambda samples: max(samples, default=None),
    "RTT_avg": lambda samples: statistics.fmean(samples) if samples else None,
    # tcptrace has none of two samples
    "RTT_stdev": lambda samples: statistics.stdev(samples) if len(samples) > 2 else None,
}
