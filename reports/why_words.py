"""Why a flow was no faster, in words: what held it back, the evidence, and what would have helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.units import (
    counted,
    format_bytes,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.metrics.results.why import Cause, FlowCauses

BLOAT_MS: Final = 100.0
"""A queue that delays packets by so much is too long: conversation suffers from 150 ms one way (G.114)."""

CAUSE_WORDS: Final[Mapping[Cause, str]] = {
    "handshake": "the connection was not set up, or had no data yet",
    "application": "its application had no data to send",
    "server": "it waited for the answer of the other side",
    "receiver": "the receive window was full",
    "send_buffer": "its send buffer was full: all of it was in flight",
    "slow_start": "its congestion window was still growing from the start",
    "bottleneck": "it had the rate of the path for itself, and took all of it",
    "shared_bottleneck": "it shared the rate of the path with others",
    "policer": "a policer dropped what was above its rate",
    "loss": "losses that no queue explains kept its congestion window small",
    "mark": "congestion marks (ECN) kept its congestion window small",
    "recovery": "it repaired losses",
    "timeout": "it waited for a retransmission timer, or repaired losses after one",
    "unknown": "the capture does not show what held it back",
}
"""What the sender waited for, of which a sentence is made."""

OF_THE_PATH: Final[tuple[Cause, ...]] = ("bottleneck", "shared_bottleneck", "policer", "loss", "mark")
"""Causes in which the congestion window limits the sender; round-trip times and losses tell them apart."""

SIGN_WORDS: Final[Mapping[str, str]] = {
    "no_data_yet": "no data were sent before",
    "nothing_in_flight": "all data were acknowledged, both windows were open, and nothing was sent",
    "write": "data left without an acknowledgement that could have released them, after the end of a write",
    "unused_room": "acknowledgements made room that was not used",
    "flight_below_earlier": "the flight stayed below an earlier one, though nothing had reduced the window",
    "request": "one side had sent a request, and the other had not answered",
    "window_edge": "the newest data reached the edge of the receive window",
    "closed_window": "the receiver announced a window without room for a segment",
    "refills": "the flight fell and was refilled in steps, each time when an acknowledgement came",
    "no_cut_yet": "there was no loss and no mark yet, and the rate still grew",
    "loss_with_queue": "losses came when the round-trip time had risen",
    "queue": "the round-trip time had risen, and the rate was that of the path",
    "steady_rate": "the rate was steady, at the highest that the flow reached",
    "rate_below_capacity": "the round-trip time had risen, but the rate was below that of the path",
    "equal_rates_between_losses": "losses came without a queue, and always at the same rate",
    "loss_without_queue": "losses came while the round-trip time was at its lowest",
    "echoed_mark": "the receiver echoed marks, and the sender reduced its window",
    "retransmission": "data were retransmitted until all that was outstanding had been acknowledged",
    "retransmission_timer": "nothing was sent until a retransmission timer ran out",
    "away_from_sender": "it was, or may have been, captured away from the sender; if not, give --vantage",
    "missing_data": "the capture lacks data that the receiver got",
    "clock_step": "the clock of the capture went back",
    "no_acknowledgements": "the capture has no packets of the other direction",
    "unknown_window": "the scale of the receive window is not known: the capture has no SYN",
    "no_sign": "neither round-trip times nor losses tell what limited its window",
}
"""The evidence behind a sign of the core's table."""

_HELP: Final[Mapping[Cause, str]] = {
    "application": "An application that writes earlier, or more at a time; a faster path changes nothing.",
    "server": "A faster answer, or requests that do not wait for one another.",
    "send_buffer": "A larger send buffer (SO_SNDBUF, on Linux net.ipv4.tcp_wmem).",
    "slow_start": "A connection that is used again, or a larger initial window.",
    "bottleneck": "Only a faster path.",
    "shared_bottleneck": "A faster path, or less of the other traffic.",
    "policer": "A higher rate of the policer, a shaper in its place, or a sender that paces below its rate.",
    "loss": "A path with fewer losses, or a congestion control that does not take them for congestion.",
    "mark": "A faster path, or a queue that marks later.",
    "recovery": "Fewer losses.",
    "timeout": "Fewer losses at the end of what is sent.",
    "handshake": "A connection that is used again.",
}


def sentences(flow: FlowCauses) -> list[str]:
    """Return what held a flow back, the evidence, and what would have helped."""
    share = format_share(flow.main_cause_share)
    lasted = format_duration_s(flow.duration_s)
    found = [f"For {share} of {lasted} {CAUSE_WORDS[flow.main_cause]}."]
    sign = SIGN_WORDS[flow.main_sign]
    if flow.main_cause == "unknown":
        return [*found, f"Reason: {sign}."]
    found.append(f"Evidence: {sign} ({', '.join(_facts(flow))}).")
    if flow.second_cause is not None and flow.main_cause not in {"recovery", "timeout"}:
        found.append(f"If not that, {CAUSE_WORDS[flow.second_cause]}.")
    found += _what_helps(flow)
    found += _bloat(flow)
    return found


def _facts(flow: FlowCauses) -> list[str]:
    facts = [
        f"in {counted(flow.changes, 'part')} of that time",
        f"at most {format_bytes(flow.flight_bytes)} in flight",
    ]
    if flow.window_bytes is not None:
        facts.append(f"a receive window of up to {format_bytes(flow.window_bytes)}")
    if flow.base_rtt_ms is not None:
        facts.append(f"a base round-trip time of {format_ms(flow.base_rtt_ms)}")
    return facts


def _what_helps(flow: FlowCauses) -> list[str]:
    if flow.main_cause == "receiver":
        return [_window_holds(flow)]
    helps = _HELP.get(flow.main_cause)
    return [] if helps is None else [f"What would have helped: {helps[0].lower()}{helps[1:]}"]


def _window_holds(flow: FlowCauses) -> str:
    """Return to which rate a receive window holds a path: a window in each round-trip time."""
    if flow.main_sign == "closed_window" or not flow.window_bytes or not flow.base_rtt_ms:
        return "What would have helped: a receiver that reads faster."
    rate = format_rate_bps(flow.window_bytes * 8e3 / flow.base_rtt_ms)
    return (
        f"A receive window of {format_bytes(flow.window_bytes)} holds a path of "
        f"{format_ms(flow.base_rtt_ms)} at {rate}. What would have helped: a larger receive buffer "
        "(SO_RCVBUF, on Linux net.ipv4.tcp_rmem), or a receiver that reads faster."
    )


def _bloat(flow: FlowCauses) -> list[str]:
    """Return a sentence on a queue that is too long."""
    if flow.base_rtt_ms is None or flow.rtt_p95_ms is None or flow.rtt_p95_ms - flow.base_rtt_ms < BLOAT_MS:
        return []
    fills = flow.bottleneck_share + flow.slow_start_share > flow.shared_bottleneck_share
    whose = "which this flow filled" if fills else "which others filled too"
    return [
        f"Round-trip times rose from {format_ms(flow.base_rtt_ms)} to {format_ms(flow.rtt_p95_ms)} "
        f"(95th percentile): a long queue, {whose} (bufferbloat)."
    ]
