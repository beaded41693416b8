"""Stacked bars of a page are as high as their values, and told apart as on paper."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from tfrctrace.reports.figures.charts import REST, Chart, Series, draw
from tfrctrace.reports.figures.page_stacks import stacks_svg
from tfrctrace.reports.figures.svg import PAGE, Place

VALUES = ((0.2, 0.5, None), (0.3, 0.5, 0.9), (0.1, 0.0, 0.1))


def stacks(colours: tuple[int, ...] = (0, 7, REST), names: tuple[str, ...] = ("1", "2", "3 rev")) -> Chart:
    series = tuple(
        Series(label=f"s{number} <&>", x=(0.0, 1.0, 2.0), values=values, colour=colour)
        for number, (values, colour) in enumerate(zip(VALUES, colours, strict=True))
    )
    return Chart(
        key="c",
        title="t",
        description="d",
        caption="c",
        kind="stacks",
        x_label="flow",
        y_label="share",
        unit="",
        series=series,
        categories=names,
    )


def drawn(chart: Chart, width_px: int = 1000) -> ElementTree.Element:
    return ElementTree.fromstring(stacks_svg(chart, Place(width_px=width_px, height_px=300, key="k")))


def bars(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of each bar without a clip or the legend."""
    found = [rect for rect in root.iter("rect") if rect.get("class")]
    sizes = [[float(rect.get(name, "nan")) for name in ("x", "y", "width", "height")] for rect in found]
    return [(left, top, width, height) for left, top, width, height in sizes if width > 20]


@pytest.mark.parametrize("width_px", [1000, 350])
def test_bars_are_as_high_and_as_wide_as_those_of_matplotlib(width_px: int) -> None:
    root = drawn(stacks(), width_px)
    canvas = Canvas()
    axes = canvas.add_subplot()
    draw(axes, stacks(), PAGE)
    theirs = [bar for bar in axes.patches if isinstance(bar, Rectangle) and bar.get_height()]
    own = bars(root)
    assert len(own) == len(theirs)
    per_share = own[0][3] / theirs[0].get_height()
    per_flow = own[0][2] / theirs[0].get_width()
    foot = own[0][1] + own[0][3]
    for (left, top, width, height), bar in zip(own, theirs, strict=True):
        assert height == pytest.approx(bar.get_height() * per_share, abs=0.05)
        assert foot - top - height == pytest.approx(bar.get_y() * per_share, abs=0.05)
        assert width == pytest.approx(bar.get_width() * per_flow, abs=0.05)
        assert left - own[0][0] == pytest.approx((bar.get_x() - theirs[0].get_x()) * per_flow, abs=0.05)
    # the highest reaches the end of the axis, as there
    (area,) = root.findall(".//clipPath/rect")
    axis = float(area.get("y", "nan"))
    assert (foot - axis) / per_share == pytest.approx(axes.get_ylim()[1], rel=1e-3)


def test_a_colour_that_comes_again_has_a_hatch_and_what_is_left_its_own_colour() -> None:
    root = drawn(stacks())
    assert {rect.get("class") for rect in root.iter("rect") if rect.get("class")} == {
        "f-c1 s-paper",
        "f-c2 s-paper",
        "f-other s-paper",
    }
    (pattern,) = root.iter("pattern")
    assert {rect.get("fill") for rect in root.iter("rect") if rect.get("fill")} == {
        f"url(#{pattern.get('id')})"
    }


def test_names_that_have_no_room_beside_each_other_are_turned() -> None:
    long = stacks(names=("1" * 30, "2" * 30, "3" * 30))
    turned = [text for text in drawn(long, 350).iter("text") if "rotate(-30" in text.get("transform", "")]
    assert [text.text for text in turned] == list(long.categories)
    assert not [text for text in drawn(stacks()).iter("text") if "rotate(-30" in text.get("transform", "")]


def test_every_series_is_named() -> None:
    assert {"s0 <&>", "s1 <&>", "s2 <&>"} < {text.text for text in drawn(stacks()).iter("text")}
