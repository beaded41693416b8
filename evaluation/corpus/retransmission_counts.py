"""How many segments a sender sent again: by its kernel, and by programs that saw the capture at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from corpus_case import CorpusCase
    from labels import Labelled
    from programs import Answers

OUR_COLUMNS = (
    "fast_retransmissions", "sack_retransmissions", "rto_retransmissions", "tail_loss_probes",
    "unexplained_retransmissions", "syn_retransmissions", "fin_retransmissions",
)  # fmt: skip
"""Of the table of flows: all that is sent again, as the wire carried it."""

THEIR_NAMES = {
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "retransmitted",
}
"""What peers call packets that are sent again; at the sender nothing comes out of order by itself."""


def by_sender(case: CorpusCase, host: str, sent: Iterable[Labelled]) -> int:
    """Return the kernel's count; of a simulated sender, what it sent to repair or after a timeout."""
    counters = case.counters
    if host in counters:
        return int(counters[host].get("TcpRetransSegs", 0))
    return sum("retransmission" in packet.kind for packet in sent)


def by_us(case: CorpusCase, host: str, capture: Path) -> int:
    """Return our count of what the host sent; a column that cannot be known counts nothing."""
    rows = [
        row
        for row in tfrctrace.open(capture).flows.rows(named=True)
        if (row["src_port"] == case.about["server_port"]) == (host == "rcv")
    ]
    return sum(row[column] or 0 for row in rows for column in OUR_COLUMNS)


def by_peer(answers: Answers, sent: Iterable[Labelled]) -> int:
    """Return how many of the host's packets a peer takes for sent again."""
    return sum(packet.number in answers and answers[packet.number].name in THEIR_NAMES for packet in sent)
