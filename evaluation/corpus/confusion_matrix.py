"""Compare programs on the corpus.

`python evaluation/corpus/confusion_matrix.py [--write | --wrong] [CASE...]`

Each packet of each capture has a true class (`truth.tsv`), and what a program calls it. `--write` puts the
tables into `docs/classes-measured.md`; `--wrong` lists each packet that we call by a wrong name instead.
Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import program_terms as terms
from corpus_case import CORPUS, all_cases
from judged_packets import evaluate
from labels import CLASSES, ORDINARY, PLACES, RETRANSMISSIONS, Labelled
from program_terms import OURS
from programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged_packets import Evaluation

Judge = Callable[[str, Labelled, str], bool]
"""Says of a program, a label and a word whether the word is right."""

PAGE = CORPUS.parents[2] / "docs" / "classes-measured.md"
BEGIN = "<!-- from here on written by `make corpus` -->\n"
FALSE_LOSSES = "*sent once, but called a retransmission*"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table with the numbers to the right."""
    lines: list[Sequence[object]] = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(str(cell).replace('_', ' ') for cell in line)} |\n" for line in lines)


def matrix(evaluation: Evaluation, program: str, place: str) -> str:
    """Return the confusion matrix of one program at one place."""
    counts: Counter[tuple[str, str]] = Counter()
    for label, answer, count in evaluation.of(program, place):
        counts[label.kind, answer.name] += count
    answers = sorted({answer for _, answer in counts}, key=lambda name: (name == ORDINARY, name))
    kinds = [kind for kind in CLASSES if any(kind == true for true, _ in counts)]
    return table(
        ["truth", *answers], ([kind, *(counts[kind, answer] or "" for answer in answers)] for kind in kinds)
    )


def named(evaluation: Evaluation, place: str) -> str:
    """Return how many packets of each class each program calls by its name; - if it has none."""
    rows = by_class(evaluation, place, terms.names)
    for row in rows:
        kind, _, *right = row
        row[2:] = [
            count if terms.has_name_for(program, kind) else "-"
            for program, count in zip(evaluation.programs, right, strict=True)
        ]
    return table(["truth", "packets", *evaluation.programs], rows)


def recognised(evaluation: Evaluation, place: str) -> str:
    """Return how many packets of each class each program takes for their kind; last, the false alarms."""
    rows = by_class(evaluation, place, lambda _, label, word: terms.is_of_kind(label, word))
    rows.append(
        [FALSE_LOSSES, "", *(false_losses(evaluation, program, place) for program in evaluation.programs)]
    )
    return table(["truth", "packets", *evaluation.programs], rows)


def false_losses(evaluation: Evaluation, program: str, place: str) -> int:
    """Return how many packets that were sent once a program takes for retransmissions."""
    answers_given = evaluation.of(program, place)
    return sum(
        count for label, answer, count in answers_given if terms.takes_for_sent_again(label, answer.name)
    )


def by_class(
    evaluation: Evaluation, place: str, is_right: Callable[[str, Labelled, str], bool]
) -> list[list[Any]]:
    """Give for each class its name, its packets, and how many of them each program has right."""
    packets: Counter[str] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for program in evaluation.programs:
        for label, answer, count in evaluation.of(program, place):
            packets[label.kind] += count if program == OURS else 0
            right[label.kind, program] += count if is_right(program, label, answer.name) else 0
    return [
        [kind, packets[kind], *(right[kind, program] for program in evaluation.programs)]
        for kind in CLASSES
        if packets[kind]
    ]


def needless(evaluation: Evaluation) -> str:
    """Return what the programs say of retransmissions that were needed and that were not."""
    titles = {
        (True, True): "not needed, and the capture shows it",
        (True, False): "not needed, and nothing shows it",
        (False, False): "needed",
    }
    counts: Counter[tuple[str, str, bool]] = Counter()
    for (label, program, answer), count in evaluation.counts.items():
        if label.kind in RETRANSMISSIONS and label.place == "sender":
            counts[titles[label.spurious, label.shows_spurious], program, answer.spurious] += count
    rows: list[list[object]] = []
    for title in titles.values():
        of = counts[title, OURS, True] + counts[title, OURS, False]
        answers_given = (counts[title, program, True] for program in evaluation.programs)
        rows.append([title, of, *answers_given])
    return table(["truth", "retransmissions", *evaluation.programs], rows)


def sections(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Give title and table of each part of the page."""
    for place in PLACES:
        yield f"## At the {place}: called by its name", named(evaluation, place)
        yield f"## At the {place}: taken for its kind", recognised(evaluation, place)
        for program in evaluation.programs:
            yield f"### {program} at the {place}", matrix(evaluation, program, place)
    yield "## Called spurious", needless(evaluation)
    yield "## Segments sent again", table(["sender", "itself", *evaluation.programs], evaluation.resent)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    installed = [program for program in PROGRAMS if program == OURS or shutil.which(program)]
    chosen = [case for case in all_cases() if not options.cases or case.name in options.cases]
    if options.wrong:
        for row in evaluate(chosen, [OURS]).wrong:
            print(*row, sep="\t")
        return
    evaluation = evaluate(chosen, installed)
    text = "\n".join(f"{title}\n\n{body}" for title, body in sections(evaluation))
    if options.write:
        PAGE.write_text(PAGE.read_text().partition(BEGIN)[0] + BEGIN + "\n" + text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
