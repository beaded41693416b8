"""Figures: the drawing holds the numbers, nothing of the machine, and nothing that could act."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from tfrctrace.reports.elements import OTHER, STYLES, Curve, Figure, Span
from tfrctrace.reports.figures.drawing import value_range
from tfrctrace.reports.figures.page_figures import figure_svgs, swatch_svg
from tfrctrace.reports.figures.svg import Place
from tfrctrace.reports.page.plot_data import plot_data

HUNDREDTH_PT = 0.0101
"""Places are written to a hundredth of a point."""

RATES = Curve("1", 1, (0.5, 1.5, 2.5, 3.5), (2e6, 8e6, 4e6, 0.0), marked=(2,))
RTTS = Curve("1", 1, (0.0, 1.0, 2.0), (20.0, 30.0, 25.0), (18.0, 20.0, 19.0), (22.0, 40.0, 31.0))
SPAN = Span("1", 2, 10.0, 20.0, 40.0, 80.0)


def of_rates(*curves: Curve) -> Figure:
    return Figure("f", "Rate & <more>", 'about "it"', "c", "bit/s", curves=curves or (RATES,), lasted_s=4.0)


def of_rtts(*curves: Curve) -> Figure:
    return Figure("f", "RTT", "d", "c", "ms", curves=curves or (RTTS,), lasted_s=4.0)


def of_spans(*spans: Span) -> Figure:
    return Figure("f", "Spread", "d", "c", "ms", spans=spans or (SPAN,))


FIGURES = [of_rates(), of_rtts(), of_spans()]


def svg_of(figure: Figure, key: str = "k") -> str:
    (svg,) = figure_svgs(figure, [Place(width_px=800, height_px=300, key=key)])
    return svg


def drawn(figure: Figure, key: str = "k") -> ElementTree.Element:
    return ElementTree.fromstring(svg_of(figure, key))


def lines(root: ElementTree.Element, css: str) -> list[list[tuple[float, float]]]:
    """The points of each path that is stroked with `css`; one with an identifier is the shape of a marker."""
    paths = [p.get("d") for p in root.iter("path") if p.get("class") == css and not p.get("id")]
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML] ([\d.]+) ([\d.]+)", path)] for path in paths]


def axis_labels(root: ElementTree.Element) -> list[str]:
    return [text.text for text in root.iter("text")]


def test_a_curve_is_drawn_to_scale():
    (points,) = lines(drawn(of_rates()), "s-c1")
    assert len(points) == 4
    heights = [points[3][1] - y for _, y in points]  # the last value is 0
    assert [height / heights[1] for height in heights] == pytest.approx([0.25, 1.0, 0.5, 0.0], abs=1e-4)
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    assert steps == pytest.approx([steps[0]] * 3, abs=HUNDREDTH_PT)


def test_rates_are_drawn_with_the_prefix_that_fits():
    assert "Mbit/s" in axis_labels(drawn(of_rates()))
    assert "bit/s" in axis_labels(drawn(of_rates(Curve("1", 1, (0.0, 1.0), (0.0, 0.0)))))
    assert "Gbit/s" in axis_labels(drawn(of_rates(Curve("1", 1, (0.0, 1.0), (1e9, 2e10)))))


def test_shares_are_drawn_between_0_and_1_however_small_they_are():
    curve = Curve("1", 1, (0.0, 1.0), (0.2, 0.3))
    figure = Figure("f", "t", "d", "c", "", curves=(curve,), lasted_s=1.0, is_share=True)
    assert {"0.0", "1.0"} <= set(axis_labels(drawn(figure)))
    assert plot_data(figure)["valueRange"] == value_range(figure)


def test_a_break_splits_the_line():
    curve = Curve("1", 1, (0.0, 1.0, 2.0, 3.0, 4.0), (1e6, 1e6, None, 2e6, 2e6))
    shapes = [p for p in drawn(of_rates(curve)).iter("path") if p.get("class") == "s-c1" and not p.get("id")]
    assert [path.get("d").count("M ") for path in shapes] == [2]


def test_a_value_between_two_breaks_is_a_dot():
    curve = Curve("1", 1, (0.0, 1.0, 2.0, 3.0, 4.0), (1e6, None, 2e6, None, None))
    assert len(list(drawn(of_rates(curve)).iter("circle"))) == len(list(drawn(of_rates()).iter("circle"))) + 1


def test_a_marked_point_has_a_ring_on_the_line():
    root = drawn(of_rates())
    (points,) = lines(root, "s-c1")
    (rings,) = (group for group in root.iter("g") if group.get("class") == "f-paper s-c1")
    dots = [(float(ring.get("cx")), float(ring.get("cy"))) for ring in rings]
    assert dots == [pytest.approx(points[2], abs=1e-3)]


def test_a_wide_range_of_rtt_is_drawn_on_a_logarithmic_axis():
    curve = Curve("1", 1, (0.0, 1.0, 2.0), (1.0, 10.0, 100.0))
    (points,) = lines(drawn(of_rtts(curve)), "s-c1")
    first, second = (before[1] - after[1] for before, after in pairwise(points))
    assert first == pytest.approx(second, rel=1e-3)


def test_one_odd_sample_does_not_squeeze_the_rest_onto_a_logarithmic_axis():
    values = (0.01, *([40.0, 50.0] * 20))
    curve = Curve("1", 1, tuple(map(float, range(len(values)))), values)
    (points,) = lines(drawn(of_rtts(curve)), "s-c1")
    assert (points[0][1] - points[1][1]) / (points[0][1] - points[2][1]) == pytest.approx(0.8, rel=1e-3)


def test_a_spread_is_drawn_to_scale():
    thin, thick = (path for path in lines(drawn(of_spans()), "s-c2") if len(path) == 2)
    low, top = (x for x, _ in thin)
    median, high = (x for x, _ in thick)
    per_ms = (top - low) / 70
    assert [(median - low) / per_ms, (high - low) / per_ms] == pytest.approx([10.0, 30.0], rel=1e-4)


@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_figure_gives_the_same_bytes(figure):
    first = svg_of(figure)
    assert svg_of(figure) == first


def test_settings_of_the_user_neither_show_nor_change():
    before = svg_of(of_rates())
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert svg_of(of_rates()) == before
        assert mpl.rcParams["lines.linewidth"] == 9
        assert mpl.rcParams["svg.fonttype"] == "path"


@pytest.mark.parametrize("figure", FIGURES)
def test_colours_are_left_to_the_style_sheet(figure):
    text = svg_of(figure)
    assert "#000" not in text
    assert "style" not in text
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', text)) <= {"none"}


@pytest.mark.parametrize("figure", FIGURES)
def test_every_shape_has_a_role_so_that_none_stays_black(figure):
    for element in drawn(figure).iter():
        if element.tag in {"path", "text"} and element.get("fill") != "none":
            # markers are defined once, and painted where they are used
            assert "f-" in element.get("class", "") or element.get("id"), ElementTree.tostring(element)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_has_a_name_and_a_description(figure):
    root = drawn(figure)
    assert root.get("role") == "img"
    named = {element.get("id"): element.text for element in root.iter() if element.tag in {"title", "desc"}}
    assert [named[key] for key in root.get("aria-labelledby").split()] == [figure.title, figure.description]


def test_identifiers_of_two_figures_do_not_meet():
    def identifiers(key: str) -> set[str]:
        return {element.get("id") for element in drawn(of_rates(), key).iter() if element.get("id")}

    assert not identifiers("a") & identifiers("b")


@pytest.mark.parametrize("figure", FIGURES)
def test_every_reference_points_into_the_figure(figure):
    text = svg_of(figure)
    referred = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    identifiers = set(re.findall(r' id="([^"]+)"', text))
    assert {a or b for a, b in referred} <= identifiers
    assert text.count("http") == 0


def test_control_characters_in_a_title_do_not_break_the_drawing():
    figure = Figure("f", "a\x00b\x1b$x^2$</svg>", "d", "c", "ms", spans=(SPAN,))
    assert drawn(figure).find("title").text == r"a\x00b\x1b$x^2$</svg>"


@pytest.mark.parametrize(
    "figure", [of_rates(Curve("1", 1, (0.05,), (1e6,))), of_spans(Span("1", 1, 5, 5, 5, 5))]
)
def test_a_single_value_can_be_drawn(figure):
    text = svg_of(figure)
    assert "nan" not in text.lower()
    assert "inf" not in text.lower()


def test_styles_are_distinguishable():
    assert len({swatch_svg(style) for style in range(STYLES + 1)}) == STYLES + 1
    assert "s-other" in swatch_svg(OTHER)


def test_more_points_than_pixels_stay_inside_the_axes():
    count = 5000
    curve = Curve(
        "1",
        1,
        tuple(i / count * 4 for i in range(count)),
        tuple(1e6 * (1 + math.sin(i)) for i in range(count)),
    )
    (points,) = lines(drawn(of_rates(curve)), "s-c1")
    assert all(0 <= x <= 600 and 0 <= y <= 225 for x, y in points)


def test_drawing_a_page_needs_no_matplotlib():
    program = (
        "import sys\n"
        "from tfrctrace.reports.figures.page_figures import figure_svgs\n"
        "from tfrctrace.reports.elements import Figure, Span\n"
        "from tfrctrace.reports.figures.svg import Place\n"
        "figure_svgs(Figure('f', 't', 'd', 'c', 'ms', spans=(Span('1', 1, 1, 2, 3, 4),)),"
        " [Place(width_px=300, height_px=100, key='k')])\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_axis_of_many_decades_has_numbers():
    times_ms = tuple(10.0 ** (place / 3) for place in range(40))
    labels = axis_labels(drawn(of_rtts(Curve("1", 1, tuple(map(float, range(40))), times_ms))))
    assert len({"1", "100", "1e+06", "1,000,000", "1e+08", "1e+10"} & set(labels)) > 2
