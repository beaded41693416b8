"""What programs call the packets of the corpus, and whether that is true."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import totals
import words
from labels import ORDINARY, Case, Labelled
from peers import PROGRAMS, Answer
from words import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peers import Answers

HOSTS = ("snd", "rcv")
NOTHING = Answer(ORDINARY)


@dataclass
class Measured:
    """What the programs call the packets of the corpus."""

    programs: list[str]
    """We are the first."""
    counts: Counter[tuple[Labelled, str, Answer]] = field(default_factory=Counter)
    """Packets by label, program and answer."""
    wrong: list[list[object]] = field(default_factory=list)
    """Packets that we call by a wrong name: case, capture, number, truth, and what each program says."""
    resent: list[list[object]] = field(default_factory=list)
    """Segments sent again: case and host, by the sender's own count, and by each program's."""

    def add(self, case: Case, tap: str, capture: Path) -> None:
        """Ask all programs about one capture."""
        answers = {program: PROGRAMS[program](capture) for program in self.programs}
        labelled = case.labelled(tap, capture)
        if tap in HOSTS:
            self._count_resent(case, tap, capture, labelled, answers)
        for packet in labelled:
            said = {program: answers[program].get(packet.number, NOTHING) for program in self.programs}
            self.counts.update((packet, program, answer) for program, answer in said.items())
            if not words.names(OURS, packet, said[OURS].name):
                truth = packet.kind + " (spurious)" * packet.spurious
                names = (answer.name for answer in said.values())
                self.wrong.append([case.folder.name, tap, packet.number, truth, *names])

    def _count_resent(
        self, case: Case, host: str, capture: Path, labelled: list[Labelled], answers: dict[str, Answers]
    ) -> None:
        sent = [packet for packet in labelled if packet.place == "sender"]
        if by_sender := totals.by_sender(case, host, sent):
            ours = totals.by_us(case, host, capture)
            theirs = (totals.by_peer(answers[program], sent) for program in self.programs if program != OURS)
            self.resent.append([f"{case.folder.name} {host}", by_sender, ours, *theirs])

    def of(self, program: str, place: str) -> Iterator[tuple[Labelled, Answer, int]]:
        """Give label, answer and number of packets of one program at one place."""
        for (label, by, answer), count in self.counts.items():
            if by == program and label.place == place:
                yield label, answer, count


def measure(of: Iterable[Case], programs: list[str]) -> Measured:
    """Ask the programs about all captures of the cases."""
    measured = Measured(programs)
    with tempfile.TemporaryDirectory() as scratch:
        for case in of:
            for tap in case.taps:
                measured.add(case, tap, case.unpack(tap, Path(scratch)))
    return measured
