"""The page in a browser: nothing is asked of the network, no complaint, and plots and tables that work."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

import tfrctrace
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.page.captures_index import CaptureEntry, capture_entry, index_report
from tfrctrace.reports.page.html import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

SAMPLE = "sample_traces/two-flows.pcapng.gz"

VISIBLE_RANGE = "key => { const {min, max} = document.getElementById(key).plot.scales.x; return [min, max]; }"


@pytest.fixture(scope="module")
def sample(request, tmp_path_factory) -> Path:
    """The report on a capture of two TCP flows with losses, sections of every kind in it."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    tfrctrace.open(request.config.rootpath / SAMPLE).report(path)
    return path


@pytest.fixture
def show(watch) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page, which may ask for nothing but itself."""
    with ExitStack() as pages:

        def opened(path: Path, **options: object) -> Page:
            page, complaints = pages.enter_context(watch(**options))
            page.on("dialog", lambda dialog: complaints.append(dialog.message))

            def answer(route) -> None:
                if route.request.url == path.as_uri():
                    route.continue_()
                else:
                    complaints.append(f"asked for {route.request.url}")
                    route.abort()

            page.route("**/*", answer)
            page.goto(path.as_uri())
            return page

        yield opened


def written(trace, folder: Path, title: str = "a trace") -> Path:
    path = folder / "report.html"
    path.write_text(render(build_report(trace.results(), title=title)), encoding="utf-8")
    return path


def look_at(page: Page, *figures: str) -> None:
    """Bring plots into view and wait until they are drawn."""
    for selector in figures:
        for figure in page.locator(selector).all():
            figure.scroll_into_view_if_needed()
            figure.locator(".u-over, .graph canvas").first.wait_for()


def look_at_everything(page: Page) -> None:
    look_at(page, "figure[data-plot]")


def test_every_figure_of_curves_becomes_a_plot_when_it_is_looked_at(show, sample):
    page = show(sample)
    assert page.locator(".u-over").count() < page.locator("figure[data-plot]").count()
    look_at_everything(page)
    assert page.locator("figure[data-plot]:not(.live)").count() == 0
    assert page.locator(".live svg.chart:visible").count() == 0


def test_dragging_zooms_this_plot_and_all_on_the_same_time_axis(show, sample):
    page = show(sample)
    look_at(page, "#throughput-1", "#rtt-1", "#rtt-cdf-1")
    whole = page.evaluate(VISIBLE_RANGE, "rtt-1")
    over = page.locator("#throughput-1 .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=5)
    page.mouse.up()
    lasted = page.evaluate("document.getElementById('throughput-1').plot.scales.x.max") * 2
    assert page.evaluate(VISIBLE_RANGE, "throughput-1") == pytest.approx([lasted / 4, lasted / 2], rel=0.03)
    assert page.evaluate(VISIBLE_RANGE, "rtt-1") == page.evaluate(VISIBLE_RANGE, "throughput-1")
    # another quantity than time stands on its own
    assert page.evaluate("document.getElementById('rtt-cdf-1').classList.contains('zoomed')") is False
    page.locator("#throughput-1").get_by_role("button", name="Show all").click()
    assert page.evaluate(VISIBLE_RANGE, "rtt-1") == whole


def test_closer_up_there_are_more_points(show, sample):
    page = show(sample)
    look_at(page, "#throughput-1")
    points = "document.getElementById('throughput-1').plot.data[0].length"
    before = page.evaluate(points)
    for _ in range(3):
        page.locator("#throughput-1").get_by_role("button", name="Zoom in").click()
    assert page.evaluate(points) > 2 * before


def test_a_plot_is_used_with_the_keyboard(show, sample):
    page = show(sample)
    look_at(page, "#throughput-1")
    plot = page.locator("#throughput-1 .plot")
    plot.focus()
    low, high = page.evaluate(VISIBLE_RANGE, "throughput-1")
    page.keyboard.press("+")
    closer = page.evaluate(VISIBLE_RANGE, "throughput-1")
    assert closer[1] - closer[0] == pytest.approx((high - low) / 2, rel=1e-3)
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate(VISIBLE_RANGE, "throughput-1")[0] > closer[0]
    page.keyboard.press("0")
    assert page.evaluate(VISIBLE_RANGE, "throughput-1") == [low, high]
    page.keyboard.press("ArrowRight")
    assert "Mbit/s" in plot.locator(".tip").inner_text()


def test_a_click_on_its_name_hides_a_curve_with_its_band_and_rings(show, sample):
    page = show(sample)
    look_at(page, "#throughput-1")
    shown = "document.getElementById('throughput-1').plot.series.slice(1).filter((one) => one.show).length"
    before = page.evaluate(shown)
    name = page.locator("#throughput-1 .legend button").first
    name.click()
    assert page.evaluate(shown) == before - 4
    assert name.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("options", [{"java_script_enabled": False}, {}], ids=["no script", "print"])
def test_without_script_and_in_print_the_drawings_stand_there(show, sample, options):
    page = show(sample, **options)
    if not options:
        look_at_everything(page)
        page.emulate_media(media="print")
    figures = page.locator("figure").count()
    assert page.locator("figure svg.wide:visible").count() == figures
    assert page.locator(".plot:visible, .tools:visible").count() == 0


def test_an_audit_of_a_link_prints_on_two_pages(show, run, request, tmp_path):
    capture = request.config.rootpath / "sample_traces" / "mixed.pcap.zst"
    assert run("audit", capture, "-o", "audit").status == 0
    page = show(tmp_path / "audit" / "index.html")
    looked_up = page.locator("#objectives:visible, #hosts:visible, #evidence:visible, #method:visible")
    assert looked_up.count() == 4
    page.emulate_media(media="print")
    assert looked_up.count() == 0
    assert (
        page.locator("#summary:visible, #incidents:visible, #link-1:visible, #quality:visible").count() == 4
    )
    assert len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(format="A4"))) <= 2


def test_nothing_moves_while_plots_are_drawn(show, sample):
    page = show(sample)
    page.evaluate(
        """() => {
            window.moved = 0;
            const add = (list) => { for (const one of list.getEntries()) window.moved += one.value; };
            new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
        }"""
    )
    look_at_everything(page)
    assert page.evaluate("window.moved") == 0


def test_the_page_is_no_wider_than_a_telephone(show, sample):
    page = show(sample, viewport={"width": 390, "height": 844})
    look_at_everything(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}],
    ids=["light", "dark", "narrow"],
)
def test_axe_finds_nothing_that_keeps_people_out(show, sample, options):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = show(sample, **options)
    look_at_everything(page)
    page.locator("button.open").first.click()
    page.locator("tr.details .u-over").first.wait_for()
    assert axe.Axe().run(page).generate_report().startswith("Found 0 accessibility violations")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_index_and_a_page_that_leads_back_to_it(show, two_flows, tmp_path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    results = two_flows.results()
    two_flows.problem(severity="error")
    unread = CaptureEntry(name="broken <b>.pcap", page="", problems=tuple(two_flows.problems))
    entries = [
        capture_entry(results, name=name, path=name, page=f"{name}.html") for name in ("a.pcap", "b.pcap")
    ]
    written = {
        "index.html": index_report([*entries, unread], title="3 captures"),
        "a.pcap.html": build_report(results, title="a.pcap", index="index.html"),
    }
    for name, report in written.items():
        (tmp_path / name).write_text(render(report), encoding="utf-8")
        page = show(tmp_path / name, color_scheme=scheme)
        look_at_everything(page)
        assert axe.Axe().run(page).generate_report().startswith("Found 0 accessibility violations"), name
    page = show(tmp_path / "index.html")
    page.locator("#captures").get_by_role("columnheader", name="Packets").get_by_role("button").click()
    assert page.locator("#captures th[aria-sort]").inner_text() == "Packets"


def test_the_table_sorts_and_filters_with_unknown_values_last(show, small_trace, tmp_path):
    trace = small_trace().source()
    for flow, again in ((1, 3), (2, 20), (3, 0), (4, 100), (5, 5), (6, 6), (7, 7)):
        trace.flow(flow, wire_bytes=1000 - flow, src=f"10.0.0.{10 - flow}", retransmitted_segments=again)
    trace.flow(8, wire_bytes=1, transport="udp", src="10.0.0.10", retransmitted_segments=None)
    page = show(written(trace, tmp_path))
    table = page.locator("#flows table")

    def sorted_by(name: str) -> tuple[str | None, str]:
        head = table.get_by_role("columnheader", name=name, exact=True)
        head.get_by_role("button").click()
        return head.get_attribute("aria-sort"), shown()

    def shown() -> str:
        rows = table.locator("tbody tr:visible").all()
        return "".join((row.get_attribute("id") or "").removeprefix("flow-") for row in rows)

    assert sorted_by("Retransmitted") == ("descending", "42765138")
    assert sorted_by("Retransmitted") == ("ascending", "31567248")
    # addresses by their numbers, not letter by letter
    assert sorted_by("From → to") == ("ascending", "76543218")
    assert sorted_by("Flow") == ("descending", "87654321")
    page.locator("#flows").get_by_role("searchbox").fill(" UDP ")
    assert (shown(), page.locator("#flows output").inner_text().strip()) == ("8", "1 of 8")


def test_a_row_opens_and_goes_where_its_flow_goes(show, two_flows, tmp_path):
    page = show(written(two_flows, tmp_path))
    row = page.locator("#flow-2")
    button = row.get_by_role("button")
    button.click()
    details = page.locator("tr.details")
    details.locator(".u-over").first.wait_for()
    assert button.get_attribute("aria-expanded") == "true"
    assert "retransmitted_packets" in details.inner_text()
    page.locator("#flows th[scope=col] button").first.click()
    assert page.evaluate("document.getElementById('flow-2').nextElementSibling.className") == "details"
    button.click()
    assert details.is_hidden()


def test_causes_are_read_by_name_where_one_points_and_in_the_saved_data(show, request, tmp_path):
    capture = request.config.rootpath / "tests/data/causes/0002-receiver-vegas/sender.pcap.gz"
    tfrctrace.open(capture).report(tmp_path / "report.html")
    page = show(tmp_path / "report.html")
    look_at(page, "#causes-1")
    plot = page.locator("#causes-1 .u-over")
    plot.scroll_into_view_if_needed()
    plot.hover()
    assert page.locator("#causes-1 .tip").inner_text().endswith(" receiver")
    with page.expect_download() as saved:
        page.locator("#causes-1").get_by_role("button", name="Save as CSV").click()
    assert ",receiver," in saved.value.path().read_text()
    page.locator("#flow-1").get_by_role("button").click()
    details = page.locator("tr.details")
    details.locator(".u-over").first.wait_for()
    assert details.locator("h3").all_inner_texts()[:2] == ["Causes of flow 1", "Throughput of flow 1"]
    assert "receiver_share" in details.inner_text()


def test_clicking_twice_at_once_opens_one_row_and_closes_it(show, two_flows, tmp_path):
    page = show(written(two_flows, tmp_path))
    button = page.locator("#flow-2").get_by_role("button")
    button.evaluate("button => { button.click(); button.click(); }")
    page.locator("tr.details").first.wait_for(state="attached")
    button.click()
    page.locator("tr.details .u-over").first.wait_for()
    assert page.locator("tr.details").count() == 1
    assert button.get_attribute("aria-expanded") == "true"


def test_a_row_of_the_losses_leads_to_its_flow(show, sample):
    page = show(sample)
    link = page.locator("#losses tbody a").first
    flow = link.inner_text()
    link.click()
    page.locator(f"#flow-{flow}:target").wait_for()


def test_a_thousand_flows_open(show, small_trace, tmp_path):
    trace = small_trace().source()
    for flow in range(1, 1101):
        trace.flow(flow, wire_bytes=10_000 + flow)
        trace.bin(flow, flow % 10)
    path = written(trace, tmp_path)
    assert path.stat().st_size < 10_000_000
    page = show(path)
    assert page.locator("#flows tbody > tr").count() == 1000
    page.locator("#flow-150").get_by_role("button").click()
    page.locator("tr.details .u-over").wait_for()


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>"])
def test_a_hostile_name_does_nothing_wherever_it_is_shown(show, two_flows, tmp_path, name):
    for row in two_flows.flow_rows:
        row.update(src=name, label=name)
    page = show(written(two_flows, tmp_path, title=name))
    look_at_everything(page)
    page.locator("button.open").first.click()
    page.locator("tr.details .u-over").first.wait_for()
    page.locator("#throughput-1 .u-over").hover()
    assert name in page.locator("#throughput-1 .tip").inner_text()
    assert page.locator("h1").inner_text() == name
