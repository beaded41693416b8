"""The page: complete in itself, harmless whatever a capture holds, and usable."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.elements import Cell, Heading, Note, Report, Row, Section, TableView, Term
from tfrctrace.reports.files.markdown import markdown
from tfrctrace.reports.page.html import render
from tfrctrace.reports.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = [
    "<script>alert(1)</script>.pcap",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></svg></title><script>alert(1)</script>",
    "\u202egnp.pacp",
    "a\x00b\x1b[31m\n\r\t",
    "not\udcffutf8",
    "${policy} $style `code` &amp; &#60;b&#62;",
    "<!--",
    "]]>",
]


class Page(HTMLParser):
    """What a browser would see: elements with attributes, and the text of each kind of element."""

    VOID = frozenset({"meta", "img", "br", "input", "link"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page_of(trace, title: str = "a trace") -> str:
    return render(build_report(trace.results(), title=title))


@pytest.fixture(scope="module")
def page(page_of_two_flows) -> Page:
    return Page(page_of_two_flows)


def test_elements_are_nested_and_closed(page):
    assert page.open == []


def test_nothing_is_loaded_from_anywhere(page):
    assert {tag for tag, _ in page.elements} & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    } == set()
    for tag, attributes in page.elements:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#"), tag
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
    for style in page.texts["style"]:
        assert "url(" not in style
        assert "@import" not in style


def scripts_of(page: Page) -> list[str]:
    """The scripts that run: a block of numbers is none."""
    kinds = [attributes.get("type") for attributes in page.of("script")]
    return [text for kind, text in zip(kinds, page.texts["script"], strict=True) if kind is None]


def strings_of(page: Page) -> Iterator[str]:
    """Every text that a script shows."""

    def inside(value):
        match value:
            case str():
                yield value
            case dict() | list():
                for part in value.values() if isinstance(value, dict) else value:
                    yield from inside(part)

    kinds = [attributes.get("type") for attributes in page.of("script")]
    for kind, text in zip(kinds, page.texts["script"], strict=True):
        if kind == "application/gzip":
            yield from inside(json.loads(gzip.decompress(base64.b64decode(text, validate=True))))


def test_the_policy_lets_in_these_styles_and_these_scripts_and_nothing_else(page):
    (policy,) = (
        meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    directives = dict(directive.strip().split(" ", 1) for directive in policy.split(";"))
    assert directives.pop("default-src") == "'none'"
    for name, contents in (("style-src", page.texts["style"]), ("script-src", scripts_of(page))):
        digests = (hashlib.sha256(content.encode()).digest() for content in contents)
        assert directives.pop(name).split() == [f"'sha256-{base64.b64encode(d).decode()}'" for d in digests]
    # a drawing becomes a PNG by way of an image that the page makes itself
    assert directives.pop("img-src") == "blob:"
    assert set(directives.values()) == {"'none'"}


def test_every_link_leads_to_something_and_identifiers_are_unique(page):
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    referred = {attributes["href"][1:] for _, attributes in page.elements if "href" in attributes}
    for _, attributes in page.elements:
        referred |= set((attributes.get("aria-labelledby") or "").split())
    assert referred <= set(identifiers)


def test_headings_go_down_one_level_at_a_time(page):
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_has_landmarks_and_its_tables_have_captions(page):
    assert [len(page.of(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert len(page.of("caption")) == len(page.of("table"))
    assert {th.get("scope") for th in page.of("th")} == {"col", "row"}
    assert page.of("html")[0]["lang"] == "en"


def page_that_names(trace, name: str) -> str:
    """A page in which everything that a capture can name is called `name`."""
    interface = {"name": name, "link_type": "", "snap_length_bytes": 96, "packets": 1, "dropped_packets": 1}
    stop = {"layer": name, "reason": name, "packets": 1, "first_packet": 1}
    # a lone surrogate cannot stand in a frame: the core's columns are UTF-8
    utf8 = name.encode("utf-8", "replace").decode()
    trace.source(
        source=utf8, link_types=[name], interfaces=[interface], undecoded_packets=1, decode_stops=[stop]
    )
    trace.problem(source=name, message=name, hint=name)
    # `; ` would separate two notes
    note = utf8.replace(";", "")
    rtts = {"rtt_samples": 1, "rtt_min_ms": 1.0, "rtt_p50_ms": 1.0, "rtt_p95_ms": 1.0, "rtt_max_ms": 1.0}
    trace.flow(1, src=utf8, dst=utf8, label=utf8, notes=note, source=utf8, state=utf8, transport=utf8, **rtts)
    trace.flow(2, src=utf8, source="b.pcap")
    trace.bin(1, 0, rtt_samples=1, rtt_min_ms=1.0, rtt_mean_ms=1.0, rtt_max_ms=1.0).bin(2, 0)
    return page_of(trace, title=name)


def shape(page: str) -> list[tuple[str, list[str]]]:
    """Elements and the names of their attributes, without the `code` that backticks make."""
    return [(tag, list(attributes)) for tag, attributes in Page(page).elements if tag != "code"]


def test_text_from_a_capture_makes_no_element_no_attribute_and_holds_no_control_character(small_trace):
    harmless = shape(page_that_names(small_trace(), "eth0"))
    for hostile in HOSTILE:
        page = page_that_names(small_trace(), hostile)
        page.encode()
        assert shape(page) == harmless, hostile
        shown = page.split("<body>")[1].split("<script")[0]
        for text in (shown, *map(str, strings_of(Page(page)))):
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text), hostile


def test_markup_in_a_title_is_shown_as_it_is(small_trace):
    page = Page(page_of(small_trace().source().flow(1), title="<b>&amp;</b>"))
    assert page.texts["h1"] == ["<b>&amp;</b>"]
    assert page.texts["title"][0] == "<b>&amp;</b>"


def test_placeholders_in_a_title_are_not_filled_in(small_trace):
    page = Page(page_of(small_trace().source().flow(1), title="$script ${style}"))
    assert page.texts["h1"] == ["$script ${style}"]


def test_an_error_is_called_one_and_not_only_coloured():
    notes = tuple(Note(severity, ("it",)) for severity in ("error", "warning", "info"))
    page = Page(render(Report("t", (Section("n", "N", notes=notes),))))
    assert [text.strip() for text in page.texts["p"] if text.endswith("it")] == [
        "Error:it",
        "Warning:it",
        "Note:it",
    ]


def test_a_cell_carries_the_exact_value_to_sort_by():
    headings = (Heading("Name", numeric=False), Heading("Bytes"))
    rows = (
        Row("a", (Cell("x"), Cell("1.23 MB", sort=1_234_567_890_123.0))),
        Row("b", (Cell("y"), Cell("–"))),
    )
    page = Page(render(Report("t", (Section("s", "S", tables=(TableView("k", "c", headings, rows),)),))))
    assert [td.get("data-sort") for td in page.of("td")] == ["1234567890123", None]


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(small_trace, scheme):
    style = Page(page_of(small_trace().source().flow(1))).texts["style"][-1]
    colours = dict(
        re.findall(r"--([\w]+): (#[0-9a-f]{6});", style.split(":root {")[1 + scheme].split("}")[0])
    )
    curves = [*(f"c{n}" for n in range(1, 7)), "other"]
    for least, names in ((4.5, ["ink", "soft", "accent", "error", "warning", "info"]), (3.0, curves)):
        for name in names:
            for ground in ("paper", "raised", "tint"):
                dark, light = sorted(luminance(colours[which]) for which in (name, ground))
                assert (light + 0.05) / (dark + 0.05) >= least, f"{name} on {ground}"


def test_the_same_trace_gives_the_same_bytes(two_flows, page_of_two_flows):
    assert page_of(two_flows) == page_of_two_flows


def test_the_table_of_the_page_is_the_table_of_flows(page):
    rows = [text for text in page.texts["tr"] if "10.0.0.1:40000 → 10.0.0.2:80" in text]
    assert len(rows) == 3
    assert all(
        part in rows[0] for part in ("closed", "40.0 kB", "320 kbit/s", "290 kbit/s", "42.0 ms", "55.0 ms")
    )


def test_a_hundred_thousand_flows_make_a_page_that_opens(small_trace):
    one = small_trace().source().flow(1).bin(1, 0)
    numbers = pl.int_range(1, 100_001, dtype=pl.UInt32, eager=True).alias("flow")
    flows = one.flows.drop("flow").join(numbers.to_frame(), how="cross").select(one.flows.columns)
    bins = one.bins.drop("flow").join(numbers.to_frame(), how="cross").select(one.bins.columns)
    page = render(
        build_report(Results(flows=flows, bins=bins, sources=one.sources, problems=[]), title="many")
    )
    assert len(page.encode()) < 3_000_000
    assert "Shown are the 1,000 largest of 100,000 flows" in page


def test_a_command_is_code_as_a_whole_whatever_its_file_is_called():
    command = "tfrctrace report 'a `b` <i>.pcap'"
    report = Report("t", (Section("s", "S", terms=(Term("Incident 1", "", command),)),))
    assert "".join(Page(render(report)).texts["code"]) == command
    assert command.replace("`", "\\`").replace("<i>", "&lt;i&gt;") in markdown(report, {})
