"""The true class of each packet, as seen from the place of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from frames import packets
from spurious_signs import find_signs

if TYPE_CHECKING:
    from pathlib import Path

    from corpus_case import CorpusCase

PLACES = ("sender", "middle", "receiver")
"""Where on the way of a packet a capture stood."""

ORDINARY = "ordinary"
UNSEEN = "retransmission_of_unseen"
RETRANSMISSIONS = ("fast_retransmission", "sack_retransmission", "rto_retransmission", "tail_loss_probe")
CLASSES = (
    *RETRANSMISSIONS, "syn_retransmission", "fin_retransmission", UNSEEN, "reordering", "network_duplicate",
    "capture_duplicate", "keep_alive", "zero_window_probe", ORDINARY,
)  # fmt: skip
"""By the names of our table of losses, and `ordinary` for what is none of them."""


@dataclass(frozen=True)
class Labelled:
    """A packet of a capture, and what is true of it; two of which the same is true are equal."""

    number: int = field(compare=False)
    place: str
    kind: str
    spurious: bool
    shows_cause: bool = True
    """Whether the capture saw the acknowledgements about as the sender did, if at all."""
    shows_spurious: bool = False
    """Whether the capture, at the sender, shows that it was not needed."""


def labelled(case: CorpusCase, tap: str, capture: Path) -> list[Labelled]:
    """Give each packet of an unpacked capture its true class."""
    rows = {(row["tap"], int(row["frame"])): row for row in case.truth}
    server = case.about["server_port"]
    seen = list(packets(capture))
    found = []
    for number, _, header in seen:
        row = rows.get((tap, number), {})
        place = place_of(tap, from_server=header.sport == server)
        shows_cause = place != "receiver" and not tap.endswith("one-way")
        found.append(Labelled(number, place, _kind(row), row.get("spurious") == "1", shows_cause))
    needless = {
        packet.number: rows[tap, packet.number]["cause"]
        for packet in found
        if packet.spurious and packet.place == "sender"
    }
    signs = find_signs(seen, needless)
    return [replace(packet, shows_spurious=True) if packet.number in signs else packet for packet in found]


def place_of(tap: str, *, from_server: bool) -> str:
    """Say where a capture stood on the way of a packet; the host `snd` connects to the one that listens."""
    if tap.startswith("mid"):
        return "middle"
    return "receiver" if tap.startswith("snd") == from_server else "sender"


def _kind(row: dict[str, str]) -> str:
    if not row:
        return ORDINARY
    if row["cause"] and row["first_here"] == "1":
        # what it repeats never came here; if nothing overtook it, it is simply the next
        return UNSEEN if row["late"] == "1" else ORDINARY
    return row["kind"]
