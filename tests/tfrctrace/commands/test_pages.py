"""`tfrctrace report --pages`: an index that leads to a page for each capture."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

SAMPLES = Path(__file__).parents[3] / "sample_traces"


@pytest.fixture
def captures(write_capture, conversation, tmp_path):
    """Captures of 2 and of 3 data packets, two of them of one name, and a file that is none."""
    write_capture("in/a/link.pcap", conversation(data_packets=2))
    write_capture("in/b/link.pcap", conversation(data_packets=3))
    write_capture("in/b/50% <b> #1.pcap", conversation(data_packets=3))
    (tmp_path / "in" / "broken.pcap").write_text("no capture, whatever its name says")
    return tmp_path / "in"


def links_of(page: Path) -> list[str]:
    return [unquote(unescape(found)) for found in re.findall(r'<a href="\./([^"]+)"', page.read_text())]


def test_every_capture_has_a_page_and_the_index_leads_there_and_back(run, captures, conversation, tmp_path):
    done = run("report", captures, "--pages", "out")
    assert done.status == 3  # one could not be read
    assert "pages written to `out`" in done.err
    pages = {"link.html", "link-2.html", "50% <b> #1.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == pages | {"index.html"}
    index = tmp_path / "out" / "index.html"
    assert set(links_of(index)) == pages
    assert "broken.pcap" in index.read_text()
    for page in pages:
        assert links_of(tmp_path / "out" / page) == ["index.html"]
    rows = re.findall(r"<tr id=\"capture-\d+\">(.*?)</tr>", index.read_text(), re.DOTALL)
    assert len(rows) == 4
    # what distinguishes captures of one name
    assert sum("a/link.pcap" in row for row in rows) == sum("b/link.pcap" in row for row in rows) == 1
    assert sum(f'data-sort="{len(conversation(data_packets=3))}"' in row for row in rows) == 2


def test_pages_twice_are_the_same_bytes(run, captures, tmp_path):
    for folder in ("one", "two"):
        run("report", captures, "--pages", folder, "-q")
    for page in (tmp_path / "one").iterdir():
        assert page.read_bytes() == (tmp_path / "two" / page.name).read_bytes(), page.name


def test_pages_of_two_processes_are_those_of_one(run, captures, tmp_path):
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    more = ["--anonymize-key", "key"]
    one = run("report", captures, "--pages", "one", "-j", "1", *more)
    two = run("report", captures, "--pages", "two", "-j", "2", *more)
    assert (two.status, two.err) == (one.status, one.err.replace("`one`", "`two`"))
    for page in (tmp_path / "one").iterdir():
        assert page.read_bytes() == (tmp_path / "two" / page.name).read_bytes(), page.name


def test_anonymous_pages_have_numbers_for_names_and_one_key_for_all(run, captures, tmp_path):
    assert run("report", captures, "--pages", "out", "--anonymize", "-q").status == 3
    pages = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in pages] == ["index.html", "trace-1.html", "trace-2.html", "trace-3.html"]
    text = [path.read_text() for path in pages]
    assert not any(name in page for page in text for name in ("link.pcap", "192.0.2.1", "broken.pcap"))
    ends = {match for page in text for match in re.findall(r"(?:\d{1,3}\.){3}\d{1,3}", page)}
    assert len(ends) == 2


@pytest.mark.parametrize(
    "arguments", [("--join",), ("--pair",), ("-o", "x.html"), ("--results", "r"), ("--from", "r")]
)
def test_what_has_no_meaning_for_pages_is_refused_before_anything_is_made(run, captures, tmp_path, arguments):
    done = run("report", captures, "--pages", "out", *arguments)
    assert (done.status, f"`{arguments[0]}` cannot be used with `--pages`" in done.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_without_one_capture_there_is_no_index(run, tmp_path):
    (tmp_path / "broken.pcap").write_text("no capture")
    assert run("report", "broken.pcap", "--pages", "out").status == 3
    assert not (tmp_path / "out" / "index.html").exists()
