"""Rules that colour packets in Wireshark by what their comments say (View, Coloring Rules, Import)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_RULES: Final = (
    ("spurious", "spurious", (65535, 65535, 49151)),
    ("timeout", "rto_retransmission", (65535, 32768, 32768)),
    ("fast retransmission", "fast_retransmission", (65535, 49151, 32768)),
    ("retransmission with SACK", "sack_retransmission", (65535, 49151, 32768)),
    ("tail loss probe", "tail_loss_probe", (65535, 57343, 40959)),
    ("other retransmission", "_retransmission", (65535, 57343, 49151)),
    ("reordering", "reordering", (49151, 65535, 65535)),
    ("probe or duplicate", "evidence", (57343, 57343, 57343)),
    ("policer", "held back by policer", (57343, 49151, 65535)),
    ("outage", "held back by outage", (49151, 49151, 49151)),
)
"""Name, words of the comment, and background in red, green and blue; the first that fits counts."""


def colour_rules() -> Iterator[str]:
    """Give the lines of a file of coloring rules, all of which are in use."""
    yield "# tfrctrace: colours by the comments of packets\n"
    for name, words, background in _RULES:
        colours = ",".join(map(str, background))
        yield f'@{name}@frame.comment contains "{words}"@[{colours}][0,0,0]\n'
