"""Why a flow was no faster, in words: what held it back, the evidence, and what would have helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.units import (
    counted,
    enumerated,
    format_bytes,
    format_count,
    format_duration_s,
    format_ms,
    format_rate_bps,
    format_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tfrctrace.metrics.results.why import Cause, Discipline, FlowCauses, UntoldFlow

BLOAT_MS: Final = 100.0
"""A queue that delays packets by so much is too long: conversation suffers from 150 ms one way (G.114)."""

_LEAST_FILLING: Final = 0.1
"""Share of its time for which a flow that fills a queue had data to send."""

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
    "outage": "nothing passed",
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
    "steady_rate": "the rate was steady without a queue",
    "rate_below_capacity": "the round-trip time had risen, but the rate was below that of the path",
    "rate_grows_with_flight": "a queue stood, and the rate grew with the flow's part of it",
    "beside_others": "another flow between the same hosts stood in a queue at the same time",
    "equal_rates_between_losses": "losses came without a queue, and always at the same rate",
    "loss_without_queue": "losses came while the round-trip time was at its lowest",
    "echoed_mark": "the receiver echoed marks, and the sender reduced its window",
    "retransmission": "data were retransmitted until all that was outstanding had been acknowledged",
    "retransmission_timer": "nothing was sent until a retransmission timer ran out",
    "no_answer": "data were retransmitted by timer again and again, and nothing answered",
    "away_from_sender": "it was, or may have been, captured away from the sender, at a distance that neither "
    "a handshake nor timestamps tell; if it was at the sender, give --vantage",
    "missing_data": "the capture lacks data that the receiver got",
    "clock_step": "the clock of the capture went back",
    "no_acknowledgements": "the capture has no packets of the other direction",
    "unknown_window": "the scale of the receive window is not known: the capture has no SYN",
    "no_sign": "neither round-trip times nor losses tell what limited its window",
}
"""The evidence behind a sign of the core's table."""

CONTROL_REASONS: Final[Mapping[str, str]] = {
    "not_limited_by_path": "application, receiver or send buffer limited it for more than 10 % of the time",
    "marks": "counted congestion marks (accurate ECN) reduced its window, which is not modelled yet",
    "not_at_sender": "it was captured away from the sender, or may have been, where its windows do not show",
    "few_rounds": "fewer than three losses and thirty round trips show how its window changed",
    "not_predicted": "none of those known predicts its window well, and better than a smooth curve does",
    "alike": "too many are alike in what was seen",
}
"""Why the congestion control of a direction is not known; signs of unknown causes are reasons, too."""

DISCIPLINE_WORDS: Final[Mapping[Discipline, str]] = {
    "tail_drop": "drops at its tail, when it is full",
    "aqm": "drops or marks before it is full, as CoDel, PIE and RED do",
}
"""How a queue chooses what it drops."""

BOTTLENECK_REASONS: Final[Mapping[str, str]] = {
    "no_queue": "no queue stood for long while the path limited it",
    "few_rounds": "a queue stood for too short a time",
    "rate_varies": "the rate varied while a queue stood: others took part of it, or it changed",
    "few_losses": "fewer than four losses or marks show it",
    "delays_vary": "the delays at losses fit no discipline that is known",
    "early_drops": "losses come before it is full",
    "no_policer": "losses came with a queue, rates between them differ, or no more was sent before them",
}
"""Why a fact of the bottleneck is not known; signs of unknown causes are reasons, too."""

_HELP: Final[Mapping[Cause, str]] = {
    "application": "An application that writes earlier or more at a time, or is asked earlier; a faster path "
    "changes nothing.",
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
    "outage": "A path that is not interrupted.",
    "handshake": "A connection that is used again.",
}


_UNTOLD: Final[Mapping[str, str]] = {
    "tcp": "the trace has no whole TCP headers (it is of a simulator or a log, or the capture cut them)",
    "quic": "QUIC encrypts acknowledgements and windows; of a qlog, `convert --what variables` has them",
    "udp": "UDP has no window and no acknowledgements, so that its application alone decides when to send",
    "rtp": "RTP sends at the rate of its media (`flows` has losses, jitter and what its receiver reports)",
    "rtcp": "RTCP only reports on media, which the trace does not have",
    "dccp": "DCCP's congestion control sets the rate (`tfrctrace replay` shows what it allowed)",
    "tfrc": "TFRC sets the rate by reports of the receiver (`tfrctrace replay` shows what it allowed)",
}
"""Why the causes of flows of a transport are unknown, or what shows them instead."""

_MOST_NAMED: Final = 5


def by_reason(flows: Iterable[UntoldFlow]) -> dict[str, list[UntoldFlow]]:
    """Group flows without causes by the reason, in order."""
    found: dict[str, list[UntoldFlow]] = {}
    for flow in flows:
        found.setdefault(_UNTOLD.get(flow.transport, "its transport is not followed"), []).append(flow)
    return found


def untold(flows: Iterable[UntoldFlow]) -> Iterator[str]:
    """Give a sentence on the flows of each transport that has no causes."""
    for reason, own in by_reason(flows).items():
        names = [str(flow.flow) for flow in own[:_MOST_NAMED]]
        if len(own) > _MOST_NAMED:
            names.append(f"{format_count(len(own) - _MOST_NAMED)} more")
        named = f"Flow{'s' if len(own) > 1 else ''} {enumerated(names)} ({own[0].transport.upper()})"
        yield f"{named}: cause unknown, because {reason}."


def sentences(flow: FlowCauses, beside: Iterable[FlowCauses] = ()) -> list[str]:
    """Return what held a flow back, the evidence, and what would have helped.

    `beside` are all flows, among which is the one that fills a queue.
    """
    share = format_share(flow.main_cause_share)
    lasted = format_duration_s(flow.duration_s)
    found = [f"For {share} of {lasted} {CAUSE_WORDS[flow.main_cause]}."]
    sign = SIGN_WORDS[flow.main_sign]
    if flow.main_cause == "unknown":
        return [*found, f"Reason: {sign}.", *_queued(flow, beside)]
    found.append(f"Evidence: {sign} ({', '.join(_facts(flow))}).")
    if flow.second_cause is not None and flow.main_cause not in {"recovery", "timeout", "outage"}:
        found.append(f"If not that, {_otherwise(flow.main_cause, flow.second_cause)}.")
    found += _what_helps(flow)
    found += _queued(flow, beside)
    if flow.main_cause in (*OF_THE_PATH, "recovery", "timeout"):
        found += bottleneck(flow)
    found += _path_changes(flow)
    found += _congestion_control(flow)
    return found


def _otherwise(main: Cause, second: Cause) -> str:
    """Return what it was if not the main cause: a rate that others do not change changes of itself."""
    if (main, second) == ("shared_bottleneck", "bottleneck"):
        return "the rate of the path itself changed"
    return CAUSE_WORDS[second]


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


def _congestion_control(flow: FlowCauses) -> list[str]:
    """Return a sentence on the congestion control, of what the path limited."""
    reason = flow.congestion_control_reason
    if flow.congestion_control is None:
        if reason is None or flow.main_cause not in OF_THE_PATH:
            return []
        return [f"Its congestion control is not known: {CONTROL_REASONS.get(reason) or SIGN_WORDS[reason]}."]
    seen = ""
    if flow.windows_estimated:
        seen = " (by estimates of its windows, which the capture does not show)"
    if flow.rtt_probes:
        return [
            f"Its congestion control behaves like {flow.congestion_control}{seen}: to measure the round-trip "
            f"time it kept four segments in flight for 200 ms ({counted(flow.rtt_probes, 'time')})."
        ]
    if flow.delay_backoffs:
        return [
            f"Its congestion control behaves like {flow.congestion_control}{seen}: its window fell "
            f"to about 0.7 without a loss or a mark ({counted(flow.delay_backoffs, 'time')})."
        ]
    names = flow.congestion_control.split("|")
    told = names[0] if len(names) == 1 else f"one of {', '.join(names)}, which are alike here"
    left = "" if flow.window_left is None else f"; losses left {format_share(flow.window_left)} of its window"
    predicted, compared = (
        format_count(count or 0) for count in (flow.predicted_rounds, flow.compared_rounds)
    )
    return [
        f"Its congestion control behaves like {told}{seen}: "
        f"{predicted} of {compared} round trips are as predicted{left}."
    ]


def bottleneck(flow: FlowCauses) -> list[str]:
    """Return sentences on what a flow shows of the bottleneck of its path."""
    found = []
    if flow.capacity_bps is not None:
        bounds = _bounds(flow.capacity_low_bps, flow.capacity_high_bps, format_rate_bps)
        rate = f"{format_rate_bps(flow.capacity_bps)} ({bounds}, with IP headers)"
        found.append(
            f"The bottleneck carries {rate}, or this is its part where the queue serves flows in turn."
        )
    if flow.discipline is not None:
        found.append(f"Its queue {DISCIPLINE_WORDS[flow.discipline]}{_full(flow)}.")
    if flow.policer_bps is not None:
        bounds = _bounds(flow.policer_low_bps, flow.policer_high_bps, format_rate_bps)
        found.append(f"The policer lets {format_rate_bps(flow.policer_bps)} pass ({bounds}).")
    return found


def _path_changes(flow: FlowCauses) -> list[str]:
    if not flow.path_changes or flow.path_change_ns is None:
        return []
    after = format_duration_s((flow.path_change_ns - flow.start_ns) / 1e9)
    first = f"after {after}" if flow.path_changes == 1 else f"the first time after {after}"
    return [f"Its path changed {counted(flow.path_changes, 'time')}, {first}: its packets had another TTL."]


def _full(flow: FlowCauses) -> str:
    """Return the delay and the size of a buffer that losses show."""
    if flow.buffer_ms is None:
        return ""
    delay = f", at a delay of {format_ms(flow.buffer_ms)}"
    if flow.buffer_bytes is None:
        return delay
    bounds = _bounds(flow.buffer_low_bytes, flow.buffer_high_bytes, format_bytes)
    return f"{delay}: a buffer of {format_bytes(flow.buffer_bytes)} ({bounds})"


def _bounds(low: float | None, high: float | None, form: Callable[[float | None], str]) -> str:
    return f"{form(low)} to {form(high)}"


def _queued(flow: FlowCauses, beside: Iterable[FlowCauses]) -> list[str]:
    words = bloat(flow, beside)
    return [] if words is None else [f"Bufferbloat: {words}."]


def bloat(flow: FlowCauses, beside: Iterable[FlowCauses]) -> str | None:
    """Return how long a queue is that is too long, and who fills it; None if it is not, or nobody can.

    Acknowledgements of single segments are delayed too (RFC 9293 section 3.8.6.3): round-trip times tell of a
    queue only where a flow kept data in flight.
    """
    if queue_ms(flow) < BLOAT_MS:
        return None
    filling = [one for one in _on_its_way(flow, beside) if _kept_data_in_flight(one)]
    if not filling:
        return None
    return (
        f"round-trip times rose from {format_ms(flow.base_rtt_ms)} to {format_ms(flow.rtt_p95_ms)} "
        f"(95th percentile) in a long queue; {_who_fills(flow, filling)}"
    )


def queue_ms(flow: FlowCauses) -> float:
    """Return by how much round-trip times of a flow rose; 0 where that is not known."""
    if flow.base_rtt_ms is None or flow.rtt_p95_ms is None:
        return 0.0
    return flow.rtt_p95_ms - flow.base_rtt_ms


def _on_its_way(flow: FlowCauses, beside: Iterable[FlowCauses]) -> list[FlowCauses]:
    """Return the flows from or to the same host at the same time, this one among them."""
    return [one for one in beside if (one.src == flow.src or one.dst == flow.dst) and _overlap(one, flow)]


def _kept_data_in_flight(flow: FlowCauses) -> bool:
    """Return whether something else than want of data held a flow back for long enough to build a queue."""
    waited = flow.application_share + flow.server_share + flow.handshake_share + flow.unknown_share
    return waited <= 1 - _LEAST_FILLING


def _who_fills(flow: FlowCauses, filling: Sequence[FlowCauses]) -> str:
    """Return which flow had most data in flight."""
    most = max(filling, key=lambda one: one.flight_bytes)
    if (most.flow, most.direction) == (flow.flow, flow.direction):
        alone = (
            "" if len(filling) > 1 else ", the only one that kept data in flight from or to these hosts then"
        )
        return f"this flow filled it most{alone} (at most {format_bytes(flow.flight_bytes)} in flight)"
    return (
        f"flow {most.flow} filled it most, if it takes the same path (at most "
        f"{format_bytes(most.flight_bytes)} in flight, this one {format_bytes(flow.flight_bytes)})"
    )


def _overlap(one: FlowCauses, other: FlowCauses) -> bool:
    """Return whether two flows were there at one time."""
    first, last = sorted((one, other), key=lambda flow: flow.start_ns)
    return last.start_ns < first.start_ns + first.duration_s * 1e9
