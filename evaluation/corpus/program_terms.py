"""What the programs' words mean, in the classes of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labels import CLASSES, ORDINARY, RETRANSMISSIONS, UNSEEN

if TYPE_CHECKING:
    from labels import Labelled

OURS = "tfrctrace"
UNEXPLAINED = "unexplained_retransmission"

NAMES: dict[str, dict[str, str]] = {
    OURS: {name: name for name in CLASSES},
    "tshark": {
        "fast_retransmission": "fast_retransmission",
        "out_of_order": "reordering",
        "keep_alive": "keep_alive",
        "zero_window_probe": "zero_window_probe",
        ORDINARY: ORDINARY,
    },
    "tcptrace": {
        "out_of_order": "reordering",
        "hardware_duplicate": "network_duplicate",
        "zero_window_probe": "zero_window_probe",
        ORDINARY: ORDINARY,
    },
}
"""The class that a word of a program names; other words name none."""

SENT_AGAIN, LATE, COPIED, PROBE = "sent_again", "late", "copied", "probe"

KINDS = {
    **dict.fromkeys((*RETRANSMISSIONS, "syn_retransmission", "fin_retransmission", UNSEEN), SENT_AGAIN),
    **dict.fromkeys((UNEXPLAINED, "retransmission", "spurious_retransmission", "retransmitted"), SENT_AGAIN),
    **dict.fromkeys(("reordering", "out_of_order"), LATE),
    **dict.fromkeys(("network_duplicate", "capture_duplicate", "hardware_duplicate"), COPIED),
    **dict.fromkeys(("keep_alive", "zero_window_probe"), PROBE),
    ORDINARY: ORDINARY,
}
"""The kind that a class or any program's word is of."""


def has_name_for(program: str, truth: str) -> bool:
    """Say whether a program has a word of its own for a class."""
    return truth in NAMES[program].values()


def names(program: str, packet: Labelled, word: str) -> bool:
    """Say whether a word is the packet's class; where the cause cannot be seen, it is right to say so."""
    if word == UNEXPLAINED and packet.kind in RETRANSMISSIONS:
        return not packet.shows_cause
    return NAMES[program].get(word) == packet.kind


def is_of_kind(packet: Labelled, word: str) -> bool:
    """Say whether a word is at least of the right kind; what fills a hole is late besides."""
    kind = KINDS.get(word)
    return kind == KINDS[packet.kind] or (packet.kind == UNSEEN and kind == LATE)


def takes_for_sent_again(packet: Labelled, word: str) -> bool:
    """Say whether a word calls a packet a retransmission that was sent only once."""
    return KINDS.get(word) == SENT_AGAIN and KINDS[packet.kind] in (ORDINARY, LATE, COPIED)
