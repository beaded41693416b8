"""A report as Markdown: the numbers of the page, and names that a reader of Markdown shows as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.files.markdown import markdown, write_markdown
from tfrctrace.reports.formats import write_report
from tfrctrace.reports.page.html import render

DUMBBELL = Path(__file__).parents[3] / "sample_traces" / "dumbbell.tr.xz"
ONE_FLOW = Path(__file__).parents[2] / "data" / "captures" / "linux-relay-loss-snd.pcap.gz"

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "a|b",
    "![x](http://evil.example/x.png)",
    "[x](javascript:alert(1))",
    "`*_~#",
    "http://evil.example www.evil.example a@evil.example",
    "line\nbreak\u202e",
    "&lt;b&gt;",
    "\\|",
)


@pytest.fixture(scope="module")
def report():
    return build_report(tfrctrace.open(DUMBBELL).results(), title="a dumbbell")


def read_as_markdown(text: str) -> str:
    """What CommonMark's own implementation makes of it, with tables and bare links as GitHub has them."""
    parser = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")
    try:
        import linkify_it  # noqa: F401  needed for bare links
    except ImportError:
        return str(parser.MarkdownIt("commonmark").enable("table").render(text))
    return str(parser.MarkdownIt("gfm-like").render(text))


def cells_of(html: str) -> list[str]:
    return [
        unescape(re.sub(r"<.*?>", " ", cell)).strip()
        for cell in re.findall(r"<td[^>]*>(.*?)</td>", html, re.DOTALL)
    ]


def test_tables_have_the_cells_of_the_page(report):
    page = render(replace(report, sections=tuple(replace(part, figures=()) for part in report.sections)))
    read = cells_of(read_as_markdown(markdown(report, {})))
    for value in ("834 kbit/s", "808 kbit/s", "98.4 %", "61 (4.15 %)"):
        assert any(value in cell for cell in read), value
        assert value in page


@pytest.fixture(scope="module")
def of_one_flow():
    return build_report(tfrctrace.open(ONE_FLOW).results(), title="a flow")


@pytest.fixture(scope="module")
def written(of_one_flow, tmp_path_factory):
    """The folder of a report `link a.md`."""
    folder = tmp_path_factory.mktemp("written")
    write_report(str(folder / "link a.md"), of_one_flow)
    return folder


def test_every_figure_is_a_file_beside_it_that_needs_nothing_else(of_one_flow, written):
    text = (written / "link a.md").read_text()
    named = {place.replace("%20", " ") for place in re.findall(r"!\[.*?\]\((.*?)\)", text)}
    figures = list((written / "link a-figures").iterdir())
    assert named == {str(path.relative_to(written)) for path in figures}
    drawn = sum(
        len(section.figures) + len(section.charts) + bool(section.overview)
        for section in of_one_flow.sections
    )
    assert len(figures) == drawn > 5
    for path in figures:
        assert "class=" not in path.read_text()


def test_the_same_report_gives_the_same_bytes(of_one_flow, written, tmp_path):
    write_markdown(str(tmp_path / "link a.md"), of_one_flow)
    files = list(written.rglob("*.*"))
    assert len(files) > 5
    for path in files:
        assert path.read_bytes() == (tmp_path / path.relative_to(written)).read_bytes()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_shown_as_it_is(small_trace, name):
    trace = small_trace().source(source=name).flow(1, label=name, src=name, source=name)
    trace.problem(source=name, message=name, hint=name)
    text = markdown(build_report(trace.results(), title=name), {})
    html = read_as_markdown(text)
    allowed = "h1|h2|p|ul|li|strong|code|table|thead|tbody|tr|th|td|blockquote|br"
    assert not re.findall(rf"<(?!/?(?:{allowed})\b)[^>]*>", html)
    shown = name.replace("\n", "\\x0a").replace("\u202e", "\\u202e")
    assert unescape(re.search(r"<h1>(.*?)</h1>", html).group(1)) == shown
    assert any(shown in cell for cell in cells_of(html))
