"""Sizes of report pages and the time until a browser paints them: the table of docs/reports.md.

`python benchmarks/pages.py [FOLDER]` makes captures as `captures.py` does, with their times stretched to the
length in the table, and their reports. It needs chromium and the test requirements.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from typing import Final

import captures
from playwright.sync_api import sync_playwright

import tfrctrace

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLE: Final = ROOT / "sample_traces" / "two-flows.pcapng.gz"
MADE: Final = (("10 flows, 10 minutes", 725_717, 10, 600), ("1,000 flows, 1 minute", 298_063, 1_000, 60))
TRIES: Final = 5

DELAY: Final = {
    "name": "delay",
    "require": "p95(rtt_ms) < 100 ms",
    "by": "host",
    "every": "15min",
    "target": "99 %",
}
"""The objective of the link."""

FIRST_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def stretch(path: Path, lasts_s: int) -> None:
    """Stretch the times of a pcap file, so that it lasts `lasts_s` seconds."""
    content = bytearray(path.read_bytes())
    places, times = [], []
    at = 24
    while at < len(content):
        seconds, fraction, captured = struct.unpack_from("<III", content, at)
        places.append(at)
        times.append(seconds * 1_000_000 + fraction)
        at += 16 + captured
    span = max(times[-1] - times[0], 1)
    for place, time in zip(places, times, strict=True):
        stretched = times[0] + (time - times[0]) * lasts_s * 1_000_000 // span
        struct.pack_into("<II", content, place, *divmod(stretched, 1_000_000))
    path.write_bytes(content)


def first_paints_ms(page: Path) -> list[float]:
    """Return when a browser that has just started first shows something of `page`, several times."""
    found = []
    with sync_playwright() as playwright:
        for _ in range(TRIES):
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            tab = browser.new_page(viewport={"width": 1200, "height": 900})
            tab.goto(page.as_uri())
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
            found.append(float(tab.evaluate(FIRST_PAINT)))
            browser.close()
    return found


def link_of_a_day(folder: Path) -> list[str]:
    """Make the files of a link that has deep queues and an outage, one for half an hour."""
    sys.path.insert(0, str(ROOT / "evaluation" / "links"))
    from link import draw_link
    from link_files import write_link

    folder.mkdir(exist_ok=True)
    write_link(
        draw_link(11, ["bufferbloat", "outage"], days=1.0, connections_per_s=0.024), folder, file_s=1_800
    )
    return sorted(map(str, folder.glob("*.pcap")))


def main(folder: Path) -> None:
    """Print a row of the table for each capture."""
    traces: list[tuple[str, list[str]]] = [("2 flows, 23 s", [str(SAMPLE)])]
    for name, packets, flows, lasts_s in MADE:
        path = folder / f"{flows}.pcap"
        captures.main(str(path), str(flows), str(packets))
        stretch(path, lasts_s)
        traces.append((name, [str(path)]))
    traces.append(("48 files of a day, 2,661 flows", link_of_a_day(folder / "link")))
    for name, paths in traces:
        trace = tfrctrace.open(paths, join=len(paths) > 1)
        objectives = [DELAY] if len(paths) > 1 else []
        page = trace.report(folder / f"{Path(paths[0]).name}.html", objectives=objectives)
        packets = sum(source["packets"] for source in trace.sources)
        paint_s = min(first_paints_ms(page)) / 1e3
        print(f"| {name}, {packets:,} packets | {page.stat().st_size / 1e6:.2g} MB | {paint_s:.2g} s |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.makedirs(sys.argv[1], exist_ok=True)
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
