"""`docs/classes-measured.md` says what we make of the corpus today, and we are not behind our peers there."""

from pathlib import Path
from typing import Any

import pytest
from confusion_matrix import false_losses, sections
from corpus_case import all_cases
from judged_packets import evaluate
from program_terms import OURS

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
PLACES = ("sender", "middle", "receiver")
PAGE = HERE.parent / "docs" / "classes-measured.md"


def rows_of(title: str) -> list[list[str]]:
    """The cells of a table of the page, without its head."""
    section = PAGE.read_text().split(f"\n{title}\n")[1].split("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_shows_what_we_say_today() -> None:
    shown = PAGE.read_text().splitlines()
    evaluation = evaluate(all_cases(), [OURS])
    lines = [line for _, body in sections(evaluation) for line in body.splitlines()]
    # our column is the first; where peers were asked, theirs follow
    missing = [line for line in lines if not any(there.startswith(line) for there in shown)]
    assert not missing, "run `make corpus`"


@pytest.mark.parametrize("place", PLACES)
def test_we_name_each_class_at_least_as_well_as_each_peer(place: str) -> None:
    for name, _, ours, *theirs in rows_of(f"## At the {place}: called by its name"):
        assert all(int(ours) >= int(their) for their in theirs if their != "-"), name


@pytest.mark.parametrize("place", PLACES)
def test_we_know_the_kind_of_each_class_at_least_as_well_as_each_peer(place: str) -> None:
    for name, _, ours, *theirs in rows_of(f"## At the {place}: taken for its kind")[:-1]:
        assert all(int(ours) >= int(their) for their in theirs), name


def test_no_retransmission_that_was_needed_is_called_spurious() -> None:
    (_, shown, found, *_), (_, hidden, guessed, *_), (_, needed, wrong, *_) = rows_of("## Called spurious")
    assert int(wrong) == 0 < int(needed)
    # each that leaves a sign is found, and none without (evaluation/corpus/spurious_signs.py)
    assert int(found) == int(shown) >= 0.75 * (int(shown) + int(hidden))
    assert int(guessed) == 0


@pytest.mark.parametrize("place", PLACES)
def test_we_take_no_more_packets_for_retransmissions_than_a_peer(place: str) -> None:
    _, _, ours, *theirs = rows_of(f"## At the {place}: taken for its kind")[-1]
    assert all(int(ours) <= int(their) for their in theirs)


def test_where_nothing_was_lost_no_packet_is_taken_for_a_retransmission() -> None:
    whole = [case for case in all_cases() if nothing_was_lost(case.counters)]
    assert len(whole) > 15
    evaluation = evaluate(whole, [OURS])
    assert [false_losses(evaluation, OURS, place) for place in PLACES] == [0, 0, 0]


def nothing_was_lost(counters: dict[str, Any]) -> bool:
    harmed = counters.get("relay", {"drop": 1})
    return not harmed.get("drop", 0) and not harmed.get("outage", 0)


def test_we_count_what_each_sender_sent_again() -> None:
    for sender, itself, ours, *_ in rows_of("## Segments sent again"):
        assert ours == itself, sender
