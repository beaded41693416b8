"""The first screen of a report on a link of 48 files and 2,000 flows, in a browser."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace import cli

ROOT = Path(__file__).resolve().parents[3]
FIRST_SCREEN = {"width": 1300, "height": 900}
MOST_BYTES = 5_000_000

DELAY = {"name": "delay", "require": "p95(rtt_ms) < 100 ms", "by": "host", "every": "15min", "target": "99 %"}


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "evaluation/links"))
    try:
        from link import draw_link
        from link_files import write_link
    finally:
        sys.path.remove(str(ROOT / "evaluation/links"))
    folder = tmp_path_factory.mktemp("link")
    write_link(
        draw_link(11, ["bufferbloat", "outage"], days=1.0, connections_per_s=0.024), folder, file_s=1_800
    )
    trace = tfrctrace.open(sorted(map(str, folder.glob("*.pcap"))), join=True)
    assert trace.flows["flow"].n_unique() >= 2_000
    path = folder / "report.html"
    trace.report(path, objectives=[DELAY])
    return path


@pytest.fixture
def show(watch, link):
    """Return a function that opens a page."""
    with ExitStack() as pages:

        def opened(address="", path=link, **options):
            page, _ = pages.enter_context(watch(**({"viewport": FIRST_SCREEN} | options)))
            page.goto(path.as_uri() + address)
            return page

        yield opened


@pytest.fixture(scope="module")
def opened_once(watch, link):
    with watch(viewport=FIRST_SCREEN, color_scheme="light") as (page, complaints):
        page.goto(link.as_uri())
        yield page, complaints


@pytest.fixture
def page(opened_once):
    """The page, which 2,000 flows make slow to open: tests leave it as it was."""
    page, complaints = opened_once
    yield page
    assert complaints == []
    page.evaluate("scrollTo(0, 0)")


def test_the_page_is_small(link):
    assert link.stat().st_size < MOST_BYTES


def test_verdict_key_figures_and_picture_are_on_the_first_screen(page):
    for selector in (".headline p", ".facts", ".overview svg.wide"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= FIRST_SCREEN["height"], selector
    assert page.locator(".headline p").first.inner_text().startswith("delay missed: ")
    # caveats are counted there, and listed further down
    assert page.locator("#caveats").bounding_box()["y"] > FIRST_SCREEN["height"]
    assert page.locator(".headline a[href='#caveats']").count() == 1


@pytest.mark.parametrize("width", [1300, 400])
def test_nothing_is_wider_than_the_window(show, width):
    page = show(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_that_keeps_people_out(show, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = show(color_scheme=scheme)
    # axe looks at each cell, and one flow is as another
    looked_at = {"exclude": ["#flows tbody tr:nth-child(n+6)"]}
    assert (
        axe.Axe()
        .run(page, context=looked_at)
        .generate_report()
        .startswith("Found 0 accessibility violations")
    )


def test_the_contents_stay_in_view(page):
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    box = page.get_by_role("navigation", name="Sections").bounding_box()
    assert 0 <= box["y"] < 10


def test_the_picture_says_what_it_shows_below_the_pointer(page):
    drawn = page.locator(".overview .drawn")
    box = drawn.bounding_box()
    page.wait_for_selector(".overview .tip", state="attached")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    tip = page.locator(".overview .tip")
    tip.wait_for(state="visible")
    assert "UTC" in tip.inner_text()
    assert "throughput" in tip.inner_text()


def test_data_and_drawings_are_saved_from_the_page(page):
    figure = page.locator("#link-overview")
    contents = {}
    for form in ("CSV", "SVG", "PNG"):
        with page.expect_download() as waiting:
            figure.get_by_role("button", name=f"Save as {form}").click()
        assert waiting.value.suggested_filename == f"link-overview.{form.lower()}"
        contents[form] = Path(waiting.value.path()).read_bytes()
    rows = list(csv.reader(io.StringIO(contents["CSV"].decode())))
    assert "throughput (bit/s)" in rows[0]
    assert len({len(row) for row in rows}) == 1
    assert b"xmlns=" in contents["SVG"]
    assert b"class=" not in contents["SVG"]
    assert contents["PNG"].startswith(b"\x89PNG")


def test_what_a_reader_chose_stands_in_the_address(page, show):
    page.locator("#table-flows").get_by_role("button", name="Packets").click()
    page.get_by_role("searchbox").first.fill("10.20.0.1")
    page.wait_for_function("location.hash.includes('filter')")
    address = page.evaluate("location.hash")
    shown = page.locator("#table-flows tbody tr:visible th").all_inner_texts()
    again = show(address)
    assert again.locator("#table-flows th[aria-sort]").inner_text() == "Packets"
    assert again.locator("#table-flows tbody tr:visible th").all_inner_texts() == shown
    # no other test asks how rows are sorted
    page.get_by_role("searchbox").first.fill("")


def test_colours_are_switched(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    switch = page.get_by_role("button", name="Colours")
    for name, is_dark in (("light", False), ("dark", True), ("system", False)):
        switch.click()
        assert switch.inner_text() == f"Colours: {name}"
        assert (page.evaluate(paper) != light) == is_dark


@pytest.fixture(scope="module")
def audited(link):
    folder = link.parent / "audit"
    assert cli.run(["audit", str(link.parent), "-o", str(folder), "--quiet", "--jobs", "1"]) == 0
    return folder / "index.html"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_audit_that_keeps_people_out(show, audited, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = show(path=audited, color_scheme=scheme)
    # all groups of an objective are alike
    looked_at = {"exclude": ["tbody tr:nth-child(n+6)"]}
    report = axe.Axe().run(page, context=looked_at).generate_report()
    assert report.startswith("Found 0 accessibility violations")


def test_an_audit_begins_with_verdict_and_incidents_and_fits_into_narrow_windows(show, audited):
    page = show(path=audited)
    box = page.locator("#incidents table tbody tr").first.bounding_box()
    assert box["y"] + box["height"] <= FIRST_SCREEN["height"]
    page.locator("#incidents tbody td a").first.click()
    assert page.locator(":target caption").inner_text().startswith("Incident ")
    narrow = show(path=audited, viewport={"width": 500, "height": 900})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 500
