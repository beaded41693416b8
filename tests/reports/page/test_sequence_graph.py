"""The time-sequence graph of a page in a browser, by mouse, keys, fingers and address."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from patience import PATIENCE_S

import tfrctrace
from tfrctrace.reports.figures.sequence_tiles import points, tiles_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "tests/data/captures/linux-relay-loss-snd.pcap.gz"
TWO_FLOWS = ROOT / "sample_traces/two-flows.pcapng.gz"

SEEN = """async () => {
    const graph = document.getElementById("sequence-1").graph;
    if (!graph) return null;
    await graph.drawn;
    const { level, single, low, high, range } = graph.seen();
    return { level, single, low, high, range };
}"""


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, Any]:
    """The report on a capture with losses, and the results that it shows."""
    path = tmp_path_factory.mktemp("graph") / "report.html"
    trace = tfrctrace.open(CAPTURE)
    trace.report(path)
    return path, trace.results()


@pytest.fixture
def graph(watch, written, request) -> Iterator[Page]:
    """The page with its graph drawn."""
    with watch(**getattr(request, "param", {})) as (page, _):
        opened(page, written[0].as_uri())
        yield page


@pytest.fixture(scope="module")
def shown_whole(watch, written) -> Iterator[tuple[Page, list[str], dict[str, Any]]]:
    """A page that tests open by other addresses, its complaints, and what it shows without one."""
    with watch(has_touch=True) as (page, complaints):
        opened(page, written[0].as_uri())
        yield page, complaints, seen(page)


def opened(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("#sequence-1").scroll_into_view_if_needed()
    page.locator("#sequence-1 .plot canvas").wait_for()


def seen(page: Page) -> dict[str, Any]:
    while (found := page.evaluate(SEEN)) is None:
        page.wait_for_timeout(20)
    return found


def saved(page: Page, form: str) -> bytes:
    with page.expect_download() as download:
        page.locator("#sequence-1").get_by_role("button", name=f"Save as {form}").click()
    return download.value.path().read_bytes()


def closer(page: Page, times: int) -> dict[str, Any]:
    page.locator("#sequence-1 .plot").focus()
    for _ in range(times):
        page.keyboard.press("+")
    return seen(page)


def test_the_page_reads_the_points_that_the_core_wrote(graph, written):
    seen(graph)
    rows = [line.split(",") for line in saved(graph, "CSV").decode().splitlines()]
    assert rows[0] == ["packet", "time_s", "what", "from", "to", "class", "sacked", "flight", "rtt_ms"]
    tiles = [tile for tile in tiles_of(written[1].sequence) if tile.level == 0]
    expected = [point for tile in tiles for point in points(tile)]
    assert len(rows) - 1 == len(expected) > 1_500
    start_ns = written[1].sources[0]["start_ns"]
    for (packet, time_s, what, low, high, _, sacked, *others), point in zip(rows[1:], expected, strict=True):
        rtt_ms = "" if point.rtt_ns is None else f"{point.rtt_ns / 1e6:g}"
        assert others == [str(point.flight_bytes), rtt_ms]
        assert (int(packet), int(low), what == "acknowledgement") == (
            point.packet,
            point.position,
            point.acknowledges,
        )
        assert float(time_s) == pytest.approx((point.time_ns - start_ns) / 1e9, abs=1e-9)
        assert high == ("" if point.end is None else str(point.end))
        assert sacked == " ".join(f"{start}-{end}" for start, end in point.sacked)


def test_keys_zoom_and_move_both_axes_and_show_all_again(graph):
    whole = seen(graph)
    near = closer(graph, 3)
    assert near["high"] - near["low"] == pytest.approx((whole["high"] - whole["low"]) / 8)
    graph.keyboard.press("Shift+ArrowRight")
    assert seen(graph)["low"] == pytest.approx(near["low"] + (near["high"] - near["low"]) / 4)
    tall = seen(graph)["range"]
    graph.keyboard.press("ArrowUp")
    low, high = seen(graph)["range"]
    assert high - low == pytest.approx((tall[1] - tall[0]) / 2)
    graph.keyboard.press("Shift+ArrowUp")
    assert seen(graph)["range"][0] == pytest.approx(low + (high - low) / 4)
    graph.keyboard.press("0")
    assert seen(graph) == whole


def test_a_rectangle_zooms_and_its_address_opens_the_same_view(graph, written):
    seen(graph)
    box = graph.locator("#sequence-1 .plot").bounding_box()
    graph.mouse.move(box["x"] + 300, box["y"] + 250)
    graph.mouse.down()
    graph.mouse.move(box["x"] + 500, box["y"] + 100, steps=4)
    graph.mouse.up()
    near = seen(graph)
    address = graph.evaluate("location.hash")
    assert re.fullmatch(r"#\?sequence-1.s=\d+%2C\d+&time-1=[\d.]+%2C[\d.]+", address)
    graph.goto("about:blank")
    opened(graph, f"{written[0].as_uri()}{address}")
    again = seen(graph)
    assert [again["low"], again["high"]] == pytest.approx([near["low"], near["high"]], rel=1e-6)
    assert again["range"] == pytest.approx(near["range"], abs=1)


@pytest.mark.parametrize(
    "ends",
    ["-1e308,1e308", "NaN,5", "-Infinity,Infinity", "9,1", "7,7", "1e15,1000000000000000.1", "1e300,2e300"],
)
@pytest.mark.parametrize("axis", ["sequence-1.s", "time-1"])
def test_an_address_that_no_view_has_shows_all(shown_whole, written, axis, ends):
    page, complaints, whole = shown_whole
    page.goto("about:blank")
    opened(page, f"{written[0].as_uri()}#?{axis}={ends}")
    assert seen(page) == whole
    assert complaints == []


def test_what_is_beyond_the_end_of_the_axis_is_not_shown(graph, written):
    whole = seen(graph)
    graph.goto("about:blank")
    middle_s = (whole["low"] + whole["high"]) / 2
    opened(graph, f"{written[0].as_uri()}#?time-1={middle_s},1e9")
    assert (seen(graph)["low"], seen(graph)["high"]) == (pytest.approx(middle_s), whole["high"])


def test_a_finger_moves_and_two_zoom(graph):
    near = closer(graph, 2)
    box = graph.locator("#sequence-1 .plot").bounding_box()
    client = graph.context.new_cdp_session(graph)

    def touch(kind: str, *places: int) -> None:
        spots = [{"x": box["x"] + x, "y": box["y"] + 150, "id": n} for n, x in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": spots})

    touch("touchStart", 600)
    touch("touchMove", 500)
    touch("touchEnd")
    moved = seen(graph)
    assert moved["low"] > near["low"]
    assert moved["high"] - moved["low"] == pytest.approx(near["high"] - near["low"])
    touch("touchStart", 500, 600)
    touch("touchMove", 450, 650)
    touch("touchMove", 400, 700)
    touch("touchEnd")
    pinched = seen(graph)
    assert pinched["high"] - pinched["low"] < 0.5 * (moved["high"] - moved["low"])


def test_closest_up_packets_have_their_numbers_and_say_what_they_are(graph, written):
    tiles = [tile for tile in tiles_of(written[1].sequence) if tile.level == 0]
    start_ns = written[1].sources[0]["start_ns"]
    again = next(one for tile in tiles for one in points(tile) if one.class_number == 1)
    time_s = (again.time_ns - start_ns) / 1e9
    graph.goto("about:blank")
    opened(graph, f"{written[0].as_uri()}#?time-1={time_s - 1e-6:.9f},{time_s + 1e-6:.9f}")
    assert seen(graph)["single"]
    graph.locator("#sequence-1 .plot").focus()
    graph.keyboard.press("ArrowRight")
    first, data, kind, *_ = graph.locator("#sequence-1 .tip p").all_inner_texts()
    assert first.startswith(f"packet {again.packet:,}, ")
    assert data == f"data {again.position:,} to {again.end:,}"
    assert kind == "fast retransmission"
    assert f">{again.packet:,}</text>" in saved(graph, "SVG").decode()


def test_what_is_seen_is_saved_as_a_drawing(graph):
    found = closer(graph, 5)
    drawing = saved(graph, "SVG").decode()
    assert drawing.startswith("<svg xmlns=")
    assert "clip-path" in drawing
    # the axis has other numbers than that of the whole
    graph.locator("#sequence-1 .plot").focus()
    graph.keyboard.press("0")
    seen(graph)
    assert saved(graph, "SVG").decode() != drawing
    assert saved(graph, "PNG").startswith(b"\x89PNG")
    assert found["level"] == 0


def test_paper_has_what_is_seen(graph, tmp_path):
    closer(graph, 5)
    # the browser's own printing: emulated media do not tell the page
    content = graph.pdf(path=tmp_path / "p.pdf")
    assert content.startswith(b"%PDF")
    assert graph.locator("#sequence-1 svg.seen").count() == 1
    graph.emulate_media(media="print")
    assert graph.locator("#sequence-1 svg.seen:visible").count() == 1
    assert graph.locator("#sequence-1 svg.chart:visible").count() == 0


@pytest.mark.parametrize("graph", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_a_name_in_the_legend_hides_what_it_names(graph):
    seen(graph)
    pixels = "() => document.querySelector('#sequence-1 .plot canvas').toDataURL()"
    before = graph.evaluate(pixels)
    button = graph.locator("#sequence-1 .legend button").filter(has_text="acknowledged")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert graph.evaluate(pixels) != before
    button.click()
    assert graph.evaluate(pixels) == before


@pytest.mark.parametrize(("layer", "name"), [("Flight", "flight_bytes"), ("RTT", "rtt_ns")])
def test_flight_and_rtt_are_layers_of_the_same_tiles(graph, written, layer, name):
    whole = seen(graph)
    graph.locator("#sequence-1 .layers button").filter(has_text=layer).click()
    points_ = [one for tile in tiles_of(written[1].sequence) if tile.level == 0 for one in points(tile)]
    largest = max(value for one in points_ if (value := getattr(one, name)) is not None)
    drawn = seen(graph)
    assert (drawn["low"], drawn["high"]) == (whole["low"], whole["high"])
    assert drawn["range"] == [0, pytest.approx(1.06 * largest)]
    assert graph.locator("#sequence-1 h3").inner_text() == f"{layer} over time"
    address = graph.evaluate("location.hash")
    assert f"sequence-1.l={layer.lower()}" in address
    # closest up each sample is a mark, and the address opens the same layer
    near = closer(graph, 5)
    assert near["single"]
    graph.goto("about:blank")
    opened(graph, f"{written[0].as_uri()}{address}")
    assert seen(graph)["range"] == drawn["range"]
    graph.locator("#sequence-1 .layers button").filter(has_text="Bytes").click()
    assert seen(graph)["range"] == whole["range"]


def test_each_flow_of_the_table_has_its_graph(browser, tmp_path):
    trace = tfrctrace.open(TWO_FLOWS)
    trace.report(tmp_path / "report.html")
    sequence = trace.results().sequence
    graphed = sequence.select("flow", "direction").unique(maintain_order=True).rows()
    assert graphed == [(2, "fwd"), (4, "fwd")]
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto((tmp_path / "report.html").as_uri())
    for flow, direction in graphed:
        page.locator(f"#flow-{flow} button.open").click()
        figure = f"#flow-{flow}-sequence-{direction}"
        page.locator(f"{figure} .plot canvas").wait_for()
        with page.expect_download() as download:
            page.locator(figure).get_by_role("button", name="Save as CSV").click()
        own = tiles_of(sequence.filter(flow=flow, direction=direction))
        rows = download.value.path().read_text().splitlines()
        assert len(rows) - 1 == sum(tile.count for tile in own if tile.level == 0)
    page.close()


def test_round_trip_times_go_on_from_one_tile_to_the_next(browser, tmp_path):
    capture, path = tmp_path / "c.pcap", tmp_path / "graph.html"
    subprocess.run([sys.executable, ROOT / "benchmarks/captures.py", capture, "1", "25000"], check=True)
    trace = tfrctrace.open(capture)
    trace.plot("sequence", path)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    opened(page, path.as_uri())
    assert seen(page)["level"] == 0
    *_, rtts_ms = zip(
        *(line.split(",") for line in saved(page, "CSV").decode().splitlines()[1:]), strict=True
    )
    page.close()
    tiles = [tile for tile in tiles_of(trace.results().sequence) if tile.level == 0]
    assert len(tiles) > 2
    rtts_ns = [one.rtt_ns for tile in tiles for one in points(tile)]
    assert [float(rtt) * 1e6 if rtt else None for rtt in rtts_ms] == pytest.approx(rtts_ns)


@pytest.mark.parametrize("graph", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True)
def test_causes_differ_without_colours(graph):
    seen(graph)
    luminance = """() => [...document.querySelectorAll("#sequence-1 canvas.cause")].map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const grey = [];
        for (let at = 0; at < data.length; at += 4) {
            const [red, green, blue, opacity] = data.subarray(at, at + 4);
            grey.push(Math.round((0.2126 * red + 0.7152 * green + 0.0722 * blue) * opacity / 255));
        }
        return grey;
    })"""
    swatches = graph.evaluate(luminance)
    assert len(swatches) > 3
    for one, other in combinations(swatches, 2):
        different = sum(abs(a - b) > 40 for a, b in zip(one, other, strict=True))
        assert different > len(one) / 20
