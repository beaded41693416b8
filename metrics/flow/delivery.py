"""Delivery and loss, as shares of counted packets. Counts are whole numbers; the results have no unit."""

from __future__ import annotations


def packet_delivery_ratio(received: int, sent: int) -> float | None:
    """Return received/sent, each packet counted once and none that was still on its way at the end.

    For several flows give the sums. None if nothing was sent.
    """
    return received / sent if sent else None


def packet_loss_ratio(lost: int, received: int) -> float | None:
    """Return lost/(received + lost) (Sreenivasa Rao et al.); 1 - PDR if what was not received was lost.

    None if both are 0.
    """
    return lost / (received + lost) if received + lost else None


def drop_ratio(dropped: int, transmitted: int) -> float | None:
    """Return dropped/TX, from 0 to 1 (Lillis et al., tables 1 to 3); TX counts retransmissions too.

    None if nothing was transmitted.
    """
    return dropped / transmitted if transmitted else None


def drop_ratio_percent(dropped: int, transmitted: int) -> float | None:
    """Return the drop ratio in percent, as their tables print it. None if nothing was transmitted."""
    return 100 * dropped / transmitted if transmitted else None


def timeout_share(rto_ms: float, duration_s: float) -> float | None:
    """Return the share of a flow's `duration_s` that episodes after retransmission timeouts took.

    None if the flow lasted no time.
    """
    return rto_ms / (1000 * duration_s) if duration_s else None
