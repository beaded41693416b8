"""What is true of each packet of a case: why its kernel sent it, and what became of it.

`truth.tsv` has a row for each packet of each capture that is not simply the next one. Packets without a row
are ordinary. The causes are the kernel's own (`kernel.py`); what was lost, doubled and overtaken follows
from the captures at both ends, by what distinguishes a packet from all others (`Header.key`).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from frames import ACK, RST, SYN, Header, packets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Key = tuple[int, ...]
Namer = Callable[["list[Sending]", dict[Key, float]], None]
"""Finds out which sendings repeat, and why; it gets the time at which each was captured."""

Seen = list[tuple[int, float, Header]]

PROBED_BELOW = 1448
"""A window without room for a segment is asked for like a closed one."""


class Row(NamedTuple):
    """A row of `truth.tsv`."""

    tap: str
    frame: int
    sport: int
    seq: int
    """The first sequence number, counted from the first of the direction (of all connections of its port)."""
    payload: int
    kind: str
    cause: str
    """As the kernel or simulator says it: `Sending.cause`."""
    spurious: int
    first_here: int
    """1: some of it had not passed this capture before."""
    late: int
    """1: something behind it had."""


@dataclass
class Sending:
    """One packet as its sender sent it."""

    header: Header
    start: int
    """Its first sequence number, counted from the first of its direction."""
    cause: str = ""
    """Why it repeats: recovery, timer, loss (what follows a timeout) or probe; empty if it does not."""
    begins_recovery: bool = False
    kind: str = ""
    """Empty: an original."""
    delivered: bool = False
    spurious: bool = False
    """All that it carries is carried by earlier packets that arrive in the end and are taken in."""
    answers: bool = False
    """A SYN/ACK behind a SYN of the same side: both open at once (RFC 9293 figure 7), nothing repeats."""

    @property
    def stop(self) -> int:
        """The number behind its last."""
        return self.start + self.header.space


def sendings_of(capture: Seen, sport: int) -> list[Sending]:
    """Return what one end sent, from the capture at that end.

    Another connection by the same ports counts on behind the one before.
    """
    base = opened = next(header.seq for _, _, header in capture if header.sport == sport)
    acked = window = scale = top = 0
    found: list[Sending] = []
    for _, _, header in capture:
        if header.sport != sport:
            acked = header.ack if header.flags & ACK else acked
            scale = header.scale if header.flags & SYN else scale
            window = header.window << (0 if header.flags & SYN else scale)
            continue
        if header.flags & SYN and header.seq != opened:
            base, opened = header.seq - top, header.seq
        start = (header.seq - base + 2**31) % 2**32 - 2**31
        top = max(top, start + header.space)
        probes = header.payload <= 1 and (acked - header.seq) % 2**32 == 1 and not header.flags & (SYN | RST)
        if probes and found:
            # RFC 9293: 3.8.4 keeps alive an idle connection, 3.8.6.1 asks for a window
            kind = "zero_window_probe" if window < PROBED_BELOW else "keep_alive"
            found.append(Sending(header, start, kind=kind))
        else:
            answers = bool(found) and found[-1].header.flags & (SYN | ACK) == SYN and header.flags & SYN > 0
            found.append(Sending(header, start, answers=answers and header.flags & ACK > 0))
    return found


def name_timeouts(sendings: list[Sending], _times: dict[Key, float]) -> None:
    """Name the repetitions of a simulated receiver, which sends nothing but SYN/ACK and FIN."""
    top = 0
    for sending in sendings:
        sending.cause = "timer" if sending.start < top else ""
        top = max(top, sending.stop)


def name_kinds(sendings: list[Sending], *, with_sack: bool) -> None:
    """Give each repetition its class, by the names of `docs/tcp.md`."""
    for sending in sendings:
        if not sending.cause:
            continue
        if sending.header.flags & SYN:
            sending.kind = "syn_retransmission"
        elif not sending.header.payload:
            sending.kind = "fin_retransmission"
        elif sending.cause == "recovery":
            # without SACK all of a recovery is fast retransmission (RFC 6582)
            further = with_sack and not sending.begins_recovery
            sending.kind = "sack_retransmission" if further else "fast_retransmission"
        else:
            sending.kind = "tail_loss_probe" if sending.cause == "probe" else "rto_retransmission"


def thrown_away(capture: Seen, sport: int) -> set[Key]:
    """Return what a receiver lacks and does not take in, because what was sent later came before it.

    RFC 7323 section 5.3, R1; Linux forgives one tick (`TCP_PAWS_WINDOW`). What it saw last, it echoes.
    """
    newest = acked = 0
    found: set[Key] = set()
    for _, _, header in capture:
        if header.sport != sport:
            newest, acked = header.tsecr or newest, header.ack
            continue
        lacks = (acked - header.seq - header.space) % 2**32 >= 2**31
        if lacks and header.tsval and newest and (header.tsval - newest + 2**31) % 2**32 - 2**31 < -1:
            found.add(header.key)
    return found


def name_spurious(sendings: list[Sending], arrived: set[Key], refused: set[Key]) -> None:
    """Find out which repetitions were not needed; of what arrived, the receiver refused some."""
    carried = bytearray(max(sending.stop for sending in sendings))
    for sending in sendings:
        sending.delivered = sending.header.key in arrived
        numbers = slice(max(0, sending.start), sending.stop)
        if sending.cause:
            sending.spurious = all(carried[numbers])
        if sending.delivered and sending.header.key not in refused:
            carried[numbers] = b"\1" * len(carried[numbers])


def rows_of(tap: str, capture: Seen, sendings: list[Sending], copies_by: str) -> Iterator[Row]:
    """Give a row for each packet of one direction of a capture that is not simply the next."""
    sent = {sending.header.key: sending for sending in sendings}
    passed = bytearray(max(sending.stop for sending in sendings))
    top = 0
    known: Counter[Key] = Counter()
    for frame, _, header in capture:
        sending = sent.get(header.key)
        if sending is None:
            continue
        known[header.key] += 1
        numbers = slice(max(0, sending.start), sending.stop)
        first_here = not all(passed[numbers])
        kind = sending.kind
        # IPv6 has no identification: acknowledgements may be equal and no copies
        if known[header.key] > 1 and (header.space or header.ip_id):
            kind = copies_by
        elif not kind and header.space and sending.start < top and not sending.answers:
            kind = "reordering"
        if kind:
            flags = (int(flag) for flag in (sending.spurious, first_here, sending.start < top))
            yield Row(tap, frame, header.sport, sending.start, header.payload, kind, sending.cause, *flags)
        passed[numbers] = b"\1" * len(passed[numbers])
        top = max(top, sending.stop)


def write_truth(folder: Path, namers: dict[int, Namer], port: int, copies_by: str) -> dict[str, int]:
    """Write `truth.tsv` for the captures of a case; return how many packets of each end did not arrive.

    The case's `namers` give the repetitions of each direction (the port that sends) their causes.
    """
    taps: dict[str, Seen] = {path.stem: list(packets(path)) for path in sorted(folder.glob("*.pcap"))}
    # each side says so in its SYN (RFC 2018 section 2)
    with_sack = all(header.sack_permitted for _, _, header in taps["snd"] if header.flags & SYN)
    rows: list[Row] = []
    lost: dict[str, int] = {}
    for sport, name in namers.items():
        home, other = ("rcv", "snd") if sport == port else ("snd", "rcv")
        sendings = sendings_of(taps[home], sport)
        numbered = [sending for sending in sendings if sending.header.space or sending.kind]
        name(numbered, {header.key: time for _, time, header in taps[home]})
        name_kinds(sendings, with_sack=with_sack)
        arrived = {header.key for _, _, header in taps[other]}
        name_spurious(sendings, arrived, thrown_away(taps[other], sport))
        lost[home] = sum(not sending.delivered for sending in numbered)
        for tap, capture in taps.items():
            rows += rows_of(tap, capture, sendings, copies_by)
    with (folder / "truth.tsv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(sorted(rows))
    return lost
