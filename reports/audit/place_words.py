"""Places in words: what signals are called, why an incident was at a place, and how places are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.reports.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfrctrace.metrics.audit.attribution import Reason
    from tfrctrace.metrics.audit.held_back import Lacking
    from tfrctrace.metrics.audit.queue_fillers import NotRead
    from tfrctrace.metrics.audit.signals import SignalKey
    from tfrctrace.metrics.audit.silence_proofs import SilenceFacts, SilenceProof

SIGNAL_NAMES: Final[Mapping[SignalKey, str]] = {
    "near_loss": "loss on the client side",
    "far_loss": "loss on the server side",
    "unanswered": "connections without an answer",
    "refused": "connections refused",
    "incomplete": "handshakes not completed",
    "near_stalls": "data to clients that stalled",
    "far_stalls": "data to servers that stalled",
    "near_holes": "large segments of clients that vanished",
    "far_holes": "large segments of servers that vanished",
    "unserved": "requests that servers did not answer",
    "dns_unanswered": "DNS queries without an answer",
    "dns_failures": "DNS queries that failed",
    "echo_unanswered": "pings without a reply",
    "capture_gaps": "data that the capture missed",
    "radio_retries": "frames repeated on the radio",
    "near_rtt": "RTT on the client side",
    "far_rtt": "RTT on the server side",
    "server_time": "time of servers",
    "dns_time": "time of name servers",
    "echo_time": "time of replies to pings",
    "rate": "rate",
    "radio_signal": "signal",
}

LIMITS_OF_PLACES: Final[Mapping[str, str]] = {
    "Client side, server side": (
        "the path between the capture and the hosts that open connections, or those that accept them: its "
        "round-trip time or its losses got worse, those of the other side less or not"
    ),
    "Got worse": (
        "the limits of 95 % before and during the incident do not overlap (Wilson's, of a share, or on "
        "ranks, of the median of intervals), and the difference matters: 0.5 % of packets, 5 % of "
        "connections, 20 % and 2 ms of round-trip times, 50 % and 20 ms of the time of servers"
    ),
    "Confidence": (
        "high if the place has nine tenths of the increase and the other places were measured, medium from "
        "two thirds, or if only single hosts changed; low where no side is known"
    ),
    "Unknown": "nothing changed by more than chance, several places did, or there is nothing to compare with",
    "Held back by": (
        "the time of TCP flows from the first packet of each to its last, by what its sender waited for, "
        "where the capture shows that; it is evidence beside the place, and does not decide about it"
    ),
    "Queue filled by": (
        "of incidents under load, flows (or pairs of hosts) with most of the bytes in the direction "
        "whose rate had risen, in the first hour, and the congestion control that they behave like, with the "
        "share of round trips that it predicts"
    ),
    "Limits": (
        "what happens at one time on one link is taken for one incident; a silence of all hosts may be a "
        "capture that stood still or a dead link: only empty files, other packets, missing files, "
        "statistics of the capturing program, or other links of the same capture point tell which"
    ),
}
"""How places and causes are found, for the page."""


_PROOFS: Final[Mapping[SilenceProof, str]] = {
    "empty files": "the capture ran, and wrote files without packets",
    "other packets": "the capture ran, and has packets of no host, such as ARP",
    "capture running": "the capture ran all the time, by its own statistics",
    "nothing received": "the interface received nothing, by the statistics of the capture",
    "filtered packets": "the interface received packets that the capture's filter refused, by its statistics",
    "capture filter": "the capture had a filter, as it says itself: what that refused may have passed",
    "capture ended": "no capture ran most of the time, by the statistics of the files before and after",
    "dropped packets": "the capture dropped more packets than it kept, by its statistics",
    "missing files": "files of the capture are missing by their numbers",
    "all links silent": "all other links of this capture point were silent, too",
    "other links": "other links of this capture point had packets",
    "one file": "the capture was not restarted, because one file has the packets before and after",
}

LACKING_WORDS: Final[Mapping[Lacking, str]] = {
    "not collected": "the captures were read without `--causes`",
    "no data": "no TCP flow had data in this time",
}
"""Why it is not known what held flows back."""

NOT_READ_WORDS: Final[Mapping[NotRead, str]] = {
    "captures gone": "its captures are gone, or only their results were named",
    "left out": "captures of the ten longest incidents under load are read again, and it is shorter",
    "not hosts": "the results are not by host",
    "not readable": "its captures could not be read again",
    "no bytes": "no packet of these hosts was captured in the direction with the load",
}
"""Why it is not known who filled the queue."""


def reason_text(reason: Reason) -> str:
    """Return why the place of an incident is what it is, without a full stop."""
    match reason.kind:
        case "worse":
            worse, unchanged = (
                ", ".join(SIGNAL_NAMES[signal.key] for signal in signals)
                for signals in (reason.worse, reason.unchanged)
            )
            others = f", and {unchanged} did not" if unchanged else ""
            return f"{worse} got worse{others}{_drop_words(reason.dropped)}"
        case "several places":
            places = " and ".join(sorted({signal.place for signal in reason.worse}))
            return f"it got worse at several places: {places}"
        case "own objective":
            missed = "data were acknowledged that the capture does not have"
            return f"{missed}{_drop_words(reason.dropped)}"
        case "no change":
            return "no signal of this kind got worse by more than chance"
        case "no baseline":
            return "there is no time without incidents to compare with"
        case "silence":
            return _silence_text(reason.silence)


def _drop_words(dropped: int | None) -> str:
    """Return what the capture says that it dropped; nothing if it does not say."""
    if dropped is None:
        return ""
    if dropped == 0:
        return "; the capture counted no dropped packet in these files, so they did not reach it"
    return f"; the capture counted {counted(dropped, 'dropped packet')} in these files"


def _silence_text(facts: SilenceFacts | None) -> str:
    nothing = "no packet of any host in either direction, not even a request without an answer"
    return f"{nothing}; {proof_words(facts)}"


def proof_words(facts: SilenceFacts | None) -> str:
    """Return what proves what a silence was."""
    if facts is None or not facts.proofs:
        return "the capture stood still, or nothing reached it: nothing shows which"
    return ", ".join(_PROOFS[proof] for proof in facts.proofs)
