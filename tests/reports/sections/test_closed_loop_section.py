"""Closed loops in a report: what ns-2's own agents received in the same place, and why others are missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.base.errors import UsageError

DATA = Path(__file__).parents[2] / "data"
NS2 = DATA / "ns2"
SAMPLES = Path(__file__).parents[3] / "sample_traces"


def rows_of(page: str) -> dict[tuple[str, str], list[str]]:
    """Return the cells of the table by flow and algorithm, in Markdown."""
    section = page.partition("## Closed loops")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {(cells[0], cells[2]): cells for cells in rows}


def test_a_report_shows_what_other_agents_of_ns_2_received_in_place_of_the_flow(run, tmp_path):
    done = run(
        *("report", NS2 / "dumbbell-newreno.tr.xz", "--loop", "closed", "-a", "newreno,cubic,tfrc"),
        *("-o", "page.md"),
    )
    assert done.status == 0, done.err
    page = (tmp_path / "page.md").read_text()
    assert "**Rate of tfrc, newreno and cubic in place of flow 1**" in page
    assert (tmp_path / "page-figures" / "closed-loop-1-fwd.svg").exists()
    runs = {one["algorithm"]: one for one in json.loads((NS2 / "dumbbells.json").read_text())
            if one["dumbbell"] == "long"}  # fmt: skip
    rows = rows_of(page)
    for name, label in (("newreno", "newreno"), ("cubic", "cubic"), ("tfrc", "tfrc (rfc5348)")):
        known = runs[name]
        kbps = 8 * 1000 * known["received_packets"] / known["duration_s"] / 1e3
        received, between = rows["1", label][3:5]
        assert float(received.removesuffix(" kbit/s")) == pytest.approx(kbps, rel=0.15)
        low, high = map(float, re.findall(r"[\d.]+", between))
        assert low <= kbps <= high


def test_a_flow_without_a_closed_loop_has_the_reason(run, tmp_path):
    done = run("report", SAMPLES / "mixed.pcap.zst", "--loop", "closed", "-a", "vegas", "-o", "page.md")
    assert done.status == 0, done.err
    rows = rows_of((tmp_path / "page.md").read_text())
    assert rows["6", "vegas"][3].endswith("bit/s")
    assert "at the receiver, where round trips do not show" in rows["14", ""][-1]
    # flows of a few packets have no row
    assert ("1", "") not in rows


def test_a_report_without_them_has_no_closed_loops(page_of_two_flows):
    assert "Closed loops" not in page_of_two_flows


def test_a_report_in_python_has_the_closed_loops_of_the_command(run, tmp_path):
    trace, closed = NS2 / "dumbbell-newreno.tr.xz", ("--loop", "closed", "-a", "newreno,cubic")
    done = run("report", trace, *closed, "--bottleneck", "buffer=30000", "-o", "page.md")
    assert done.status == 0, done.err
    options = {"algorithms": ["newreno", "cubic"], "bottleneck": ["buffer=30000"]}
    opened = tfrctrace.open(trace)
    opened.report(tmp_path / "own.md", loop="closed", **options)
    page, own = ((tmp_path / name).read_text() for name in ("page.md", "own.md"))
    assert own.replace("own-figures", "page-figures") == page
    assert "Closed loops" in opened.report_html(loop="closed", **options)
    assert "Closed loops" not in opened.report_html()
    with pytest.raises(UsageError, match='need `loop="closed"`'):
        opened.report(tmp_path / "own.md", **options)
    with pytest.raises(UsageError, match="no loop `open`"):
        opened.report(tmp_path / "own.md", loop="open", **options)


def test_a_report_shows_a_sweep(run, tmp_path):
    done = run(
        *("report", NS2 / "dumbbell-newreno.tr.xz", "--loop", "closed", "-a", "newreno,cubic"),
        *("--sweep", "base_rtt=1x,2x", "-o", "page.md"),
    )
    assert done.status == 0, done.err
    page = (tmp_path / "page.md").read_text()
    assert "**Rate of newreno and cubic in place of flow 1, by base RTT**" in page
    assert (tmp_path / "page-figures" / "sweep-rtt-1-fwd.svg").exists()
    heads = next(line for line in page.splitlines() if line.startswith("| Flow | Direction | Algorithm"))
    assert heads.split(" | ")[3] == "Base RTT"
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 1 | ") and "cubic" in line]
    near, far = (float(row[3].removesuffix(" ms")) for row in rows[-2:])
    assert far == pytest.approx(2 * near, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sweep", "loss=0,0.1"), "`--sweep` needs `--loop closed`"),
        (("--loop", "closed", "--sweep", "others=0,1"), "no sweep over `others`"),
        (("-a", "cubic"), "`--algorithm` needs `--loop closed`"),
        (("--bottleneck", "loss=0"), "`--bottleneck` needs `--loop closed`"),
        (("--loop", "closed", "-a", "cubi"), "unknown algorithm `cubi`"),
        (("--loop", "closed", "--bottleneck", "los=0"), "a bottleneck has no `los`"),
        (("--loop", "closed", "--results", "saved"), "`--results` cannot be used with `--loop`"),
        (("--loop", "closed", "--pages", "pages"), "`--pages` cannot be used with `--loop`"),
        (("--loop", "open"), "'open' is not one of 'closed'"),
    ],
)
def test_options_without_effect_are_refused_before_the_trace_is_read(run, arguments, words):
    done = run("report", SAMPLES / "two-flows.pcapng.gz", *arguments)
    assert (done.status, words in done.err) == (2, True), done.err
