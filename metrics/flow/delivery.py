"""Delivery and loss, as shares of counted packets. Counts are whole numbers; the results have no unit."""

from __future__ import annotations


def drop_ratio(dropped: int, transmitted: int) -> float | None:
    """Return dropped/TX, from 0 to 1 (Lillis et al., tables 1 to 3, in percent); TX includes retransmissions.

    None if nothing was transmitted.
    """
    return dropped / transmitted if transmitted else None


def goodput_share(unique_bytes: int, wire_bytes: int) -> float | None:
    """Return goodput over throughput: the share of the bytes on the wire that is payload not seen before.

    None if there were no bytes.
    """
    return unique_bytes / wire_bytes if wire_bytes else None


def timeout_share(rto_ms: float, duration_s: float) -> float | None:
    """Return the share of a flow's `duration_s` that episodes after retransmission timeouts took.

    None if the flow lasted no time.
    """
    return rto_ms / (1000 * duration_s) if duration_s else None
