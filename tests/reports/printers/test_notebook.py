"""What notebooks show: a trace, its results, drawings, and tables as pandas' Styler."""

from __future__ import annotations

import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pytest
from IPython.core.formatters import DisplayFormatter

import tfrctrace
from tfrctrace.parsers.schema import TABLES
from tfrctrace.reports.printers.notebook import MOST_ROWS
from tfrctrace.reports.printers.pandas_style import FLOW_COLUMNS, leading_columns, styled

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "sample_traces"
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[2J\u202e{{7*7}}$\\frac{1}{0}$"


class Cells(HTMLParser):
    """The text of cells, row by row, and every tag and attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in {"td", "th"}

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def shown(value: object) -> dict[str, str]:
    """Return what Jupyter is given of `value`."""
    data, _ = DisplayFormatter().format(value)
    return data


@pytest.fixture(scope="module")
def two_flows() -> tfrctrace.Trace:
    return tfrctrace.open(SAMPLES / "two-flows.pcapng.gz")


@pytest.fixture(scope="module")
def hostile(two_flows: tfrctrace.Trace) -> pl.DataFrame:
    return two_flows.flows.with_columns(
        pl.lit(HOSTILE).alias(name) for name in ("source", "label", "src", "dst", "state")
    )


def test_a_trace_shows_its_summary_and_its_flows(two_flows: tfrctrace.Trace) -> None:
    html = shown(two_flows)["text/html"]
    cells = Cells(html)
    assert "holds 13,910 packets in 4 flows" in html
    heads, *rows = cells.rows
    assert [row[0] for row in rows] == ["2", "4", "3", "1"]  # largest first
    assert rows[0][heads.index("Packets")] == "6,4093,710"  # there and back, as in README.md
    assert len(html) < 8_000
    assert html == two_flows._repr_html_()
    assert {"script", "link", "a"}.isdisjoint(cells.tags)
    assert "id" not in cells.attributes  # another cell may show the same trace


def test_results_show_the_same_and_the_causes(two_flows: tfrctrace.Trace) -> None:
    rows = Cells(shown(two_flows.results())["text/html"]).rows
    *same, causes = zip(*rows, strict=True)
    assert list(zip(*same, strict=True)) == [tuple(row) for row in Cells(two_flows._repr_html_()).rows]
    assert causes[0] == "Held back by"


def test_showing_a_trace_reads_it_once() -> None:
    trace = tfrctrace.open(SAMPLES / "dumbbell.tr.xz")
    assert "not read yet" in repr(trace)
    trace._repr_html_()
    assert [sorted(collected) for collected, _ in trace._readings] == [["flows"]]


def test_many_flows_are_cut_with_a_note() -> None:
    trace = tfrctrace.open(SAMPLES / "mixed.pcap.zst")
    html = trace._repr_html_()
    assert len(Cells(html).rows) == 1 + MOST_ROWS
    assert "and 16 smaller flows: the report has all of them" in html  # of 36, as `tfrctrace flows` counts


def test_an_empty_trace_shows_itself(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    with pytest.warns(tfrctrace.TfrctraceWarning, match="no packets"):
        assert "holds 0 packets in 0 flows" in tfrctrace.open(path)._repr_html_()


def test_what_comes_from_a_capture_is_text(
    two_flows: tfrctrace.Trace, hostile: pl.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "<b>&\u202e\x1b.pcapng.gz"
    path.write_bytes((SAMPLES / "two-flows.pcapng.gz").read_bytes())
    results = two_flows.results()
    named = tfrctrace.open(path)._repr_html_()
    for html in (
        named,
        type(results)(flows=hostile, bins=results.bins, sources=(), problems=())._repr_html_(),
        styled(hostile).to_html(),
        styled(hostile.rename({"label": HOSTILE})).to_html(),
        styled(tfrctrace.to_pandas(hostile)).to_html(),
    ):
        cells = Cells(html)
        assert {"img", "b"}.isdisjoint(cells.tags)
        assert "onerror" not in cells.attributes
        assert "\x1b" not in html
        assert "\u202e" not in html


def test_colours_are_those_of_the_page() -> None:
    source = (ROOT / "reports" / "printers" / "notebook.py").read_text()
    page = (ROOT / "reports" / "page" / "style.css").read_text()
    colours = set(re.findall(r"#[0-9a-f]{6}", source))
    assert len(colours) == 3
    assert colours <= set(re.findall(r"#[0-9a-f]{6}", page))


def test_a_drawing_is_shown_as_it_is_written(two_flows: tfrctrace.Trace, tmp_path: Path) -> None:
    drawing = two_flows.plot("rtt", flow=2, style="plain")
    svg = shown(drawing)["image/svg+xml"]
    assert ElementTree.fromstring(svg).get("width") == "360pt"  # 5 inch
    drawing.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == svg
    assert two_flows.plot("rtt", tmp_path / "b.svg", flow=2, style="plain") == drawing
    assert (tmp_path / "b.svg").read_text() == svg
    assert shown(drawing)["text/plain"] == "<Drawing of RTT over time>"


def test_flows_as_a_styler_have_units_and_dashes(two_flows: tfrctrace.Trace) -> None:
    heads, *rows = Cells(two_flows.styled().to_html()).rows
    assert heads == [name for name in FLOW_COLUMNS if name not in {"pdr", "delay_mean_ms"}]
    second = dict(zip(heads, rows[2], strict=True))
    # as the README's first output has them
    assert (second["src_port"], second["packets"], second["wire_bytes"]) == ("35250", "6,409", "9.70 MB")
    assert (second["goodput_bps"], second["rtt_p50_ms"]) == ("3.63 Mbit/s", "94.9 ms")
    assert len(Cells(two_flows.styled(rows=1).to_html()).rows) == 1 + 2
    assert two_flows.styled().to_html() == two_flows.styled().to_html()


def test_what_is_not_known_is_a_dash(two_flows: tfrctrace.Trace) -> None:
    frame = two_flows.flows.select("flow", "pdr", "rtt_p50_ms", "missing_bytes", "label")
    rows = Cells(styled(frame.with_columns(pl.lit(None).alias("rtt_p50_ms"))).to_html()).rows
    assert rows[1][1:3] == ["–", "–"]
    assert rows[1][4] == "–"


def test_a_table_of_metrics_has_the_unit_of_each_row(two_flows: tfrctrace.Trace) -> None:
    metrics = two_flows.metrics("jain", "rate_bps")
    heads, *rows = Cells(styled(metrics).to_html()).rows
    assert "unit" not in heads
    values = [row[heads.index("value")] for row in rows]
    assert re.fullmatch(r"0\.\d+", values[0])
    assert all(value.endswith("bit/s") for value in values[1:])


def test_every_table_can_be_styled() -> None:
    trace = tfrctrace.open(SAMPLES / "dumbbell.tr.xz")
    for name in ("flows", "bins", "rtt", "losses", "rounds", "feedback", "loss_events", "loss_intervals"):
        frame = getattr(trace, name)
        assert len(Cells(styled(frame.head(3)).to_html()).rows) == 1 + min(3, frame.height)
    assert len(Cells(styled(trace.flows.clear()).to_html()).rows) == 1


def test_a_column_has_one_unit_in_all_tables() -> None:
    units: dict[str, set[str]] = defaultdict(set)
    for columns in TABLES.values():
        for column in columns:
            units[column.name].add(column.unit)
    assert [name for name, found in units.items() if len(found) > 1] == []


def test_a_trace_becomes_a_frame_of_pandas(two_flows: tfrctrace.Trace) -> None:
    frame = two_flows.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == two_flows.flows.columns
    assert frame["wire_bytes"].sum() == two_flows.flows["wire_bytes"].sum()


def test_the_largest_flows_are_listed_in_their_order(two_flows: tfrctrace.Trace) -> None:
    assert leading_columns(two_flows.flows, 2)["flow"].to_list() == [2, 2, 4, 4]
    assert leading_columns(two_flows.flows, None).height == 8
