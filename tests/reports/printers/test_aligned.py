"""Tables that fit a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.reports.printers.aligned import fitted, noted

CELLS = st.text("abc1.%", min_size=1, max_size=12)


@st.composite
def tables(draw):
    columns = draw(st.integers(2, 8))
    return draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=4))


@given(tables(), st.integers(30, 80))
def test_blocks_fit_and_have_every_cell_behind_its_key(rows, width):
    lines = fitted(rows, left={0}, keys=1, width=width)
    assert all(len(line) <= width for line in lines)
    blocks = "\n".join(lines).split("\n\n")
    assert all(len(block.splitlines()) == len(rows) for block in blocks)
    lines_of = [[block.splitlines()[at].split() for block in blocks] for at in range(len(rows))]
    assert [[cell for _, *cells in lines for cell in cells] for lines in lines_of] == [
        row[1:] for row in rows
    ]
    assert all(line[0] == row[0] for row, lines in zip(rows, lines_of, strict=True) for line in lines)


@given(tables())
def test_without_a_width_there_is_one_block(rows):
    assert len(fitted(rows, left={0}, keys=1, width=None)) == len(rows)


def test_a_column_wider_than_the_terminal_stands_alone():
    rows = [("flow", "rate", "name", "loss"), ("1", "3 Mbit/s", "n" * 40, "0 %")]
    lines = fitted(rows, left=(), keys=1, width=30)
    assert [line.split() for line in lines if line] == [
        *(["flow", "rate"], ["1", "3", "Mbit/s"]),
        *(["flow", "name"], ["1", "n" * 40]),
        *(["flow", "loss"], ["1", "0", "%"]),
    ]


def test_the_text_of_a_last_cell_continues_below_its_column():
    rows = [("jain", "–", "one group only, or all rates are 0"), ("max_min", "1", "")]
    assert noted(rows, left={0}, width=35) == [
        "jain     –  one group only, or all",
        "            rates are 0",
        "max_min  1",
    ]
