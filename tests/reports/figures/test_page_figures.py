"""Figures of a page are drawn as matplotlib draws them, which is the witness of each place and number."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

from tfrctrace.reports.elements import Axis, Curve, Figure, Span, TimeOfDay
from tfrctrace.reports.figures.drawing import draw_figure
from tfrctrace.reports.figures.page_figures import figure_svgs
from tfrctrace.reports.figures.svg import PAGE, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

TENTH_PT = 0.1
SVG = "{http://www.w3.org/2000/svg}"

UP = tuple(1.3**place for place in range(40))
PLACES_S = tuple(place / 10 for place in range(40))
BROKEN = tuple(None if place % 11 == 7 else value for place, value in enumerate(UP))


def of(*curves: Curve, unit: str = "ms", **others: Any) -> Figure:
    return Figure("f", "t", "d", "c", unit, curves=curves, lasted_s=3.9, **others)


def linear(most: float, *, form: Literal["line", "steps", "dots"] = "line") -> Curve:
    values = tuple(most * (1 + place % 7) / 8 for place in range(40))
    return Curve("1", 1, PLACES_S, values, form=form)


FIGURES = {
    "rates": of(linear(7.3e6), linear(2e6), unit="bit/s"),
    "small values": of(linear(0.004)),
    "steps": of(linear(90, form="steps")),
    "dots": of(linear(9_000, form="dots"), unit=""),
    "one value": of(Curve("1", 1, (0.05,), (7.0,))),
    "nothing but 0": of(Curve("1", 2, (0.0, 1.0), (0.0, 0.0))),
    "breaks": of(Curve("1", 3, PLACES_S, BROKEN, BROKEN, tuple(v and 2 * v for v in BROKEN))),
    "logarithmic": of(Curve("1", 3, PLACES_S, UP, tuple(v / 2 for v in UP), UP)),
    "shares": of(linear(0.7), unit="", is_share=True),
    "dBm": of(Curve("1", 4, (0.0, 1.0, 3.0), (-70.0, -55.0, -60.0)), unit="dBm"),
    "levels": of(
        Curve("1", 1, (0.0, 1.0, 3.0), (1.0, 3.0, 3.0), form="steps"), unit="", levels=("a", "b", "c")
    ),
    "logarithmic x": of(Curve("1", 5, UP, UP), unit="B", axis=Axis("seconds", logarithmic=True)),
    "time of day": of(
        linear(5.0),
        axis=Axis("time", is_time=True, clock=TimeOfDay("2026-01-05", 3_600.0)),
        bad_s=((1.0, 2.0),),
    ),
    "spans": Figure(
        "f", "t", "d", "c", "ms", spans=(Span("1", 2, 10, 20, 40, 80), Span("2", 1, 1, 20, 40, 90))
    ),
    "wide spans": Figure(
        "f", "t", "d", "c", "ms", spans=(Span("1", 2, 1, 2, 400, 800), Span("2", 1, None, 3, 5, None))
    ),
    "equal spans": Figure("f", "t", "d", "c", "ms", spans=(Span("1", 2, 5, 5, 5, 5),)),
}

Drawn = tuple[list[tuple[str, float, float]], list[list[tuple[float, float]]]]


def as_drawn(root: ElementTree.Element) -> Drawn:
    """The words with their places, and the longest lines."""
    texts = [
        (text.text or "", float(text.get("x", "nan")), float(text.get("y", "nan")))
        for text in root.iter()
        if text.tag.endswith("text")
    ]
    courses = [
        [(float(x), float(y)) for x, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path.get("d", ""))]
        for path in root.iter()
        if path.tag.endswith("path") and not path.get("id") and "z" not in path.get("d", "")
    ]
    return sorted(texts), sorted(course for course in courses if len(course) > 1)


def by_matplotlib(figure: Figure, place: Place, margins_px: Sequence[float]) -> Drawn:
    with mpl.rc_context({"svg.fonttype": "none", "path.simplify": False, "axes.formatter.useoffset": False}):
        canvas = Canvas(figsize=(place.width_px / 96, place.height_px / 96))
        FigureCanvasSVG(canvas)
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0))
        draw_figure(axes, figure, PAGE)
        left, right, top, bottom = margins_px
        wide, high = place.width_px - left - right, place.height_px - top - bottom
        shares = (
            left / place.width_px,
            bottom / place.height_px,
            wide / place.width_px,
            high / place.height_px,
        )
        axes.set_position(shares)
        half_px = PAGE.text_pt / 0.75 / 2
        axes.xaxis.set_label_coords(0.5, (2 * half_px - bottom) / high)
        axes.yaxis.set_label_coords((2 * half_px - left) / wide, 0.5)
        axes.patch.set_visible(False)
        canvas.patch.set_visible(False)
        written = io.BytesIO()
        canvas.savefig(written, format="svg")
    return as_drawn(ElementTree.fromstring(written.getvalue()))


@pytest.mark.parametrize("width_px", [1000, 350])
@pytest.mark.parametrize("name", FIGURES)
def test_words_and_lines_are_where_matplotlib_draws_them(name: str, width_px: int) -> None:
    figure = FIGURES[name]
    place = Place(width_px=width_px, height_px=300 if figure.curves else 120, key="k")
    margins = (62, 24, 8, 42) if figure.curves else (16, 24, 4, 42)
    (svg,) = figure_svgs(figure, [place])
    words, lines = as_drawn(ElementTree.fromstring(svg))
    their_words, their_lines = by_matplotlib(figure, place, margins)
    assert [word for word, _, _ in words] == [word for word, _, _ in their_words]
    for (_, *own), (_, *their) in zip(words, their_words, strict=True):
        assert own == pytest.approx(their, abs=TENTH_PT)
    assert len(lines) == len(their_lines)
    for course, theirs in zip(lines, their_lines, strict=True):
        assert len(course) == len(theirs)
        for point, their in zip(course, theirs, strict=True):
            assert point == pytest.approx(their, abs=TENTH_PT)


ANY = st.none() | st.sampled_from([0.0, 5e-324, 1e-12, 1e15, 1e306, -5.0]) | st.floats(-1e6, 1e6)


@given(st.lists(ANY, min_size=1, max_size=6), st.sampled_from(["ms", "B", "dBm", ""]), st.booleans())
def test_any_values_of_a_log_are_drawn(values: list[float | None], unit: str, has_band: bool) -> None:
    assume(unit != "dBm" or any(value is not None for value in values))
    band = tuple(values) if has_band else ()
    curve = Curve("1", 1, tuple(map(float, range(len(values)))), tuple(values), band, band)
    known = sorted(value for value in values if value is not None and value >= 0)
    spans = (Span("1", 1, known[0], known[0], known[-1], known[-1]),) if known else ()
    for figure in (of(curve, unit=unit), *([Figure("f", "t", "d", "c", "ms", spans=spans)] if spans else ())):
        (svg,) = figure_svgs(figure, [Place(width_px=350, height_px=120, key="k")])
        ElementTree.fromstring(svg)
        assert not {"nan", "inf"} & set(re.findall("[a-z]+", svg.split("</desc>")[1]))
