"""Charts as files for a paper and as parts of a page."""

from __future__ import annotations

import struct
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from tfrctrace.base.errors import TfrctraceWarning
from tfrctrace.reports.figures.charts import Chart, ChartStyle, Series, draw
from tfrctrace.reports.figures.drawing import chart_svg
from tfrctrace.reports.figures.publication import COLUMN_IN, chart_file
from tfrctrace.reports.figures.svg import Place

LOOK = ChartStyle(
    ink="#111111",
    grid="#222222",
    paper="#333333",
    colours=("#aa0000", "#00aa00"),
    rest="#444444",
    text_pt=8,
    line_pt=1,
)

LINES = Chart(
    key="c",
    title="Rates <of> flows",
    description="what it shows",
    caption="",
    kind="line",
    x_label="flows",
    y_label="rate",
    unit="bit/s",
    series=(
        Series(label="tcp", x=(1, 2), values=(1e6, 2e6), low=(0.5e6, None), high=(1.5e6, None)),
        Series(label="$x^2$", x=(1, 2), values=(None, 3e6)),
        Series(label="reported", x=(2,), values=(2.5e6,), reference_of=0),
    ),
)
BARS = replace(
    LINES,
    kind="bars",
    categories=("red", "fifo"),
    series=tuple(replace(one, x=tuple(range(len(one.x)))) for one in LINES.series),
)
BOXES = replace(
    BARS,
    kind="box",
    series=(Series(label="tcp", x=(0, 1), values=(2, None), samples=((1, 2, 3, 4, 100), ())),),
    unit="",
)
SHARES = replace(
    LINES, kind="cdf", series=(Series(label="tcp", x=(3.0, 1.0, 2.0, 2.0), values=()),), unit="ms"
)
TIMES = replace(LINES, kind="time series", x_label="time (s)")
ALL = [LINES, BARS, BOXES, SHARES, TIMES]


def drawn(chart):
    axes = Figure().add_subplot()
    draw(axes, chart, LOOK)
    return axes


def test_lines_have_the_prefix_that_fits_and_intervals_where_they_are_known():
    axes = drawn(LINES)
    assert axes.get_ylabel() == "rate (Mbit/s)"
    tcp = axes.lines[0]
    assert list(tcp.get_ydata()) == [1.0, 2.0]
    (segments, *_) = axes.containers[0].lines[2][0].get_segments()
    assert [point[1] for point in segments] == [0.5, 1.5]
    assert axes.get_ylim()[0] == 0


def test_what_is_reported_is_hollow_and_has_the_colour_of_what_it_is_about():
    axes = drawn(LINES)
    reported = axes.containers[2].lines[0]
    assert (reported.get_color(), reported.get_markerfacecolor()) == ("#aa0000", "#333333")
    assert reported.get_linestyle() == "None"


def test_bars_of_one_category_stand_beside_each_other():
    axes = drawn(BARS)
    places = [
        bar.get_x() + bar.get_width() / 2
        for container in axes.containers
        if hasattr(container, "patches")
        for bar in container
    ]
    assert places == pytest.approx([-0.2, 0.8, 0.2, 1.2])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["red", "fifo"]


def test_boxes_have_quartiles_by_nearest_rank():
    axes = drawn(BOXES)
    heights = {round(float(y), 6) for line in axes.lines for y in line.get_ydata()}
    # of 1, 2, 3, 4, 100 the quartiles are the 2nd, 3rd and 4th; 100 is beyond the whiskers
    assert {1, 2, 3, 4, 100} >= heights - {2.0, 4.0}
    box = axes.patches[0].get_path().vertices
    assert {float(y) for _, y in box} == {2.0, 4.0}


def test_shares_rise_by_one_for_each_value():
    (line,) = drawn(SHARES).lines
    assert list(line.get_xdata()) == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert list(line.get_ydata()) == [0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.kind)
def test_series_differ_in_more_than_colour(chart):
    twice = replace(chart, series=(chart.series[0], replace(chart.series[0], label="other")))
    axes = drawn(twice)
    seen = [
        *((line.get_linestyle(), line.get_marker()) for line in axes.lines),
        *(patch.get_hatch() for patch in axes.patches),
    ]
    assert len(set(seen)) > 1


def test_long_names_are_turned():
    names = ("a long name of a queue", "another long name of a queue")
    assert {label.get_rotation() for label in drawn(BARS).get_xticklabels()} == {0}
    turned = drawn(replace(BARS, categories=names * 3))
    assert {label.get_rotation() for label in turned.get_xticklabels()} == {30}


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.kind)
@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_files_repeat_themselves_and_are_as_wide_as_a_column(chart, form):
    content = chart_file(chart, form)
    assert chart_file(chart, form) == content
    if form == "svg":
        assert ElementTree.fromstring(content).get("width") == f"{COLUMN_IN * 72:g}pt"
    elif form == "png":
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">I", content[16:20]) == (round(COLUMN_IN * 300),)
    else:
        assert content[:5] == b"%PDF-"


def test_fonts_in_a_pdf_are_no_type_3():
    content = chart_file(LINES, "pdf")
    assert b"/Type3" not in content
    assert b"/Type0" in content or b"/TrueType" in content


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.kind)
def test_on_a_page_every_colour_is_a_class(chart):
    svg = chart_svg(chart, Place(width_px=1000, height_px=320, key="k", css="chart"))
    assert "#0000" not in svg
    assert "style=" not in svg
    assert "Rates &lt;of&gt; flows" in svg
    assert 'class="chart"' in svg


def test_any_name_of_a_study_can_be_drawn_and_stands_in_the_legend():
    series = (Series(label="_a\x01<b>", x=(0.0,), values=(1.0,)), Series(label="b", x=(0.0,), values=(2.0,)))
    chart = replace(BARS, x_label="x\x02", y_label="\x1b", series=series, categories=("\ufffe",))
    root = ElementTree.fromstring(chart_svg(chart, Place(width_px=500, height_px=300, key="k")))
    shown = "".join(root.itertext())
    assert all(name in shown for name in (r"_a\x01<b>", r"x\x02", r"\x1b", r"\ufffe"))


def test_what_holds_until_it_changes_is_drawn_in_steps():
    assert {line.get_drawstyle() for line in drawn(replace(TIMES, is_stepped=True)).lines} == {"steps-post"}
    assert {line.get_drawstyle() for line in drawn(TIMES).lines} == {"default"}


def test_characters_that_the_font_lacks_are_one_warning_of_a_file_and_none_of_a_page():
    chart = replace(LINES, title="title", x_label="中文中")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chart_file(chart, "pdf")
    (warning,) = caught
    assert isinstance(warning.message, TfrctraceWarning)
    assert "`中文`" in warning.message.problem["message"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart_svg(chart, Place(width_px=600, height_px=300, key="k"))
