"""What programs call the packets of the corpus, and whether that is true."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import program_terms as terms
import retransmission_counts as counts
from labels import ORDINARY, Labelled, labelled
from program_terms import OURS
from programs import PROGRAMS, Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpus_case import CorpusCase
    from programs import Answers

HOSTS = ("snd", "rcv")
NOTHING = Answer(ORDINARY)


@dataclass
class Evaluation:
    """What the programs call the packets of the corpus."""

    programs: list[str]
    """We are the first."""
    counts: Counter[tuple[Labelled, str, Answer]] = field(default_factory=Counter)
    """Packets by label, program and answer."""
    wrong: list[list[object]] = field(default_factory=list)
    """Packets that we call by a wrong name: case, capture, number, truth, and what each program says."""
    resent: list[list[object]] = field(default_factory=list)
    """Segments sent again: case and host, by the sender's own count, and by each program's."""

    def add(self, case: CorpusCase, tap: str, capture: Path) -> None:
        """Ask all programs about one capture."""
        answers = {program: PROGRAMS[program](capture) for program in self.programs}
        packets = labelled(case, tap, capture)
        if tap in HOSTS:
            self._count_resent(case, tap, capture, packets, answers)
        for packet in packets:
            by_program = {program: answers[program].get(packet.number, NOTHING) for program in self.programs}
            self.counts.update((packet, program, answer) for program, answer in by_program.items())
            if not terms.names(OURS, packet, by_program[OURS].name):
                truth = packet.kind + " (spurious)" * packet.spurious
                names = (answer.name for answer in by_program.values())
                self.wrong.append([case.name, tap, packet.number, truth, *names])

    def _count_resent(
        self, case: CorpusCase, host: str, capture: Path, packets: list[Labelled], answers: dict[str, Answers]
    ) -> None:
        sent = [packet for packet in packets if packet.place == "sender"]
        if by_sender := counts.by_sender(case, host, sent):
            ours = counts.by_us(case, host, capture)
            theirs = (counts.by_peer(answers[program], sent) for program in self.programs if program != OURS)
            self.resent.append([f"{case.name} {host}", by_sender, ours, *theirs])

    def of(self, program: str, place: str) -> Iterator[tuple[Labelled, Answer, int]]:
        """Give label, answer and number of packets of one program at one place."""
        for (label, by, answer), count in self.counts.items():
            if by == program and label.place == place:
                yield label, answer, count


def evaluate(of: Iterable[CorpusCase], programs: list[str]) -> Evaluation:
    """Ask the programs about all captures of the cases."""
    evaluation = Evaluation(programs)
    with tempfile.TemporaryDirectory() as scratch:
        for case in of:
            for tap in case.captures:
                evaluation.add(case, tap, case.unpack(tap, Path(scratch)))
    return evaluation
