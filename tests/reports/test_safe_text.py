"""Nothing from a capture may act on the place where it is shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.reports.safe_text import markdown_text, plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("eth0", "eth0"),
        ("Büro → 東京 שלום", "Büro → 東京 שלום"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("two\nlines\r", r"two\x0alines\x0d"),
        ("gnp\u202egpj.pcap", r"gnp\u202egpj.pcap"),
        ("not\udcffutf8", r"not\udcffutf8"),
        ("\u2028\u200b\ufeff", r"\u2028\u200b\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_what_cannot_be_seen_becomes_visible(text, shown):
    assert plain_text(text) == shown


@given(st.text(st.characters()))
def test_the_result_holds_no_control_or_format_character_and_can_be_written(text):
    shown = plain_text(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


def test_markdown_shows_a_text_literally_and_in_one_cell():
    assert markdown_text(r"a\|b") == r"a\\\|b"
    assert markdown_text("<b>*_`&amp;[x](y)") == r"&lt;b&gt;\*\_\`&amp;amp;\[x\](y)"
    assert markdown_text("this & that") == "this & that"
    assert markdown_text("http://a.b www.a.b a@b") == r"http\://a.b www\.a.b a\@b"


@given(st.text(st.characters()))
def test_a_second_time_changes_nothing(text):
    assert plain_text(plain_text(text)) == plain_text(text)
