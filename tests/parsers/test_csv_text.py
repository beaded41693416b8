"""Text in CSV: what a spreadsheet would run or a terminal obey is made harmless, unless it is asked for."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.parsers._native import safe_csv_cell
from tfrctrace.parsers.csv_text import frame_csv
from tfrctrace.reports.safe_text import plain_text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-a", "'-a"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-70", "-70"),
        ("+1e3", "+1e3"),
        ("10.0.0.1", "10.0.0.1"),
        ("a=b", "a=b"),
        ("", ""),
        ("\t=1", "\\x09=1"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_a_cell_is_what_it_shows(text, cell):
    assert safe_csv_cell(text) == cell


def test_what_is_escaped_is_what_pages_and_terminals_escape():
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        # lone surrogates are no text of the core; new versions of Unicode assign more
        if unicodedata.category(letter) not in {"Cs", "Cn"}:
            assert safe_csv_cell(f"a{letter}") == plain_text(f"a{letter}"), hex(code)


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=1))
def test_frames_have_safe_cells_or_the_very_text(texts):
    frame = pl.DataFrame({"n": range(len(texts)), "text": texts})

    def read(content: bytes) -> list[str]:
        return [row["text"] for row in csv.DictReader(io.StringIO(content.decode(), newline=""))]

    assert read(frame_csv(frame, raw=False)) == [safe_csv_cell(text) for text in texts]
    assert read(frame_csv(frame, raw=True)) == texts


def test_numbers_are_no_text():
    frame = pl.DataFrame({"n": [-70, 1], "x": [-0.5, None]})
    assert frame_csv(frame, raw=False) == frame_csv(frame, raw=True) == b"n,x\n-70,-0.5\n1,\n"
