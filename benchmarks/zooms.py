"""How long a time-sequence graph takes to zoom: the figures of docs/validation.md#reports.

`python benchmarks/zooms.py [PACKETS]` makes a capture of one connection of the kind `loss`, with times that
jitter, draws its graph, and shows 200 stretches of each layer of it (bytes, flight, RTT), at random places
and of random lengths. It needs chromium and the test requirements.
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import captures
from plan import KINDS, Plan
from playwright.sync_api import sync_playwright

import tfrctrace

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

FILE_HEADER: Final = 24
RECORD: Final = struct.Struct("<IIII")
US_PER_S: Final = 1_000_000
JITTER_US: Final = 30
VIEWS: Final = 200
NARROWEST: Final = 6.5
"""Power of ten by which the narrowest view is narrower than the whole."""

GRAPH: Final = "document.getElementById('sequence-1').graph"
LAYERS: Final = ("Bytes", "Flight", "RTT")
IS_DRAWN: Final = f"Boolean({GRAPH}?.seen())"
ZOOM: Final = f"""async (range) => {{
    const [graph, begin] = [{GRAPH}, performance.now()];
    graph.view.show(range);
    await graph.drawn;
    await new Promise((done) => requestAnimationFrame(() => {{
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
    }}));
    return performance.now() - begin;
}}"""


def jitter(path: Path, drawn: random.Random) -> None:
    """Delay each packet by a random time; regular times would pack better than those of a network."""
    jittered = path.with_suffix(".jittered")
    with path.open("rb") as source, jittered.open("wb") as target:
        target.write(source.read(FILE_HEADER))
        last_us = 0
        while header := source.read(RECORD.size):
            seconds, microseconds, captured, length = RECORD.unpack(header)
            time_us = seconds * US_PER_S + microseconds + int(drawn.expovariate(1 / JITTER_US))
            last_us = max(time_us, last_us + 1)
            target.write(RECORD.pack(*divmod(last_us, US_PER_S), captured, length) + source.read(captured))
    jittered.replace(path)


def thread_time_ms(session: CDPSession) -> float:
    """Return the processor time of the page's main thread, which also paints the canvas."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))


def measure(page_path: Path, drawn: random.Random) -> None:
    """Print when the page is first painted, and the times that zooms take."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(page_path.as_uri())
        paint_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"first paint after {paint_ms:.0f} ms")
        while not page.evaluate(IS_DRAWN):
            page.wait_for_timeout(20)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        for layer in LAYERS:
            page.locator(".layers button").filter(has_text=layer).click()
            page.evaluate(f"{GRAPH}.view.show(null)")
            for name, own in times_of_zooms(page, session, drawn).items():
                middle, most = own[len(own) // 2], own[int(0.95 * len(own))]
                print(f"{layer}, {name} time: median {middle:.1f} ms, 95th percentile {most:.1f} ms")
        browser.close()


def times_of_zooms(page: Page, session: CDPSession, drawn: random.Random) -> dict[str, list[float]]:
    """Return how long views of a layer took in ms, in order."""
    low, high = page.evaluate(f"{GRAPH}.view.range()")
    times: dict[str, list[float]] = {"processor": [], "wall": []}
    for _ in range(VIEWS):
        width = (high - low) * 10 ** -drawn.uniform(0, NARROWEST)
        begin = drawn.uniform(low, high - width)
        before_ms = thread_time_ms(session)
        times["wall"].append(page.evaluate(ZOOM, [begin, begin + width]))
        times["processor"].append(thread_time_ms(session) - before_ms)
    return {name: sorted(own) for name, own in times.items()}


def main(packets: str = "10000000") -> None:
    """Make the capture and its page, and measure."""
    drawn = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        capture, page = Path(folder, "loss.pcap"), Path(folder, "graph.html")
        with capture.open("wb") as file:
            captures.write(Plan(replace(KINDS["loss"], flows=1), int(packets)), file)
        jitter(capture, drawn)
        tfrctrace.open(capture).plot("sequence", page)
        print(f"{page.stat().st_size / 1e6:.1f} MB")
        measure(page, drawn)


if __name__ == "__main__":
    main(*sys.argv[1:])
