"""Plots: the numbers that a page's script draws from, and no peak lost on the way."""

import base64
import gzip
import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.reports.elements import TIME, Axis, Curve, Figure
from tfrctrace.reports.figures.thinning import thinned
from tfrctrace.reports.page.plot_data import library, packed, plot_data

VALUES = st.one_of(st.none(), st.floats(-1e9, 1e9))


@st.composite
def curves(draw):
    values = draw(st.lists(VALUES, min_size=1, max_size=400))
    marked = draw(st.sets(st.integers(0, len(values) - 1), max_size=5))
    band = draw(st.booleans())
    return Curve(
        "c",
        1,
        tuple(map(float, range(len(values)))),
        tuple(values),
        low=tuple(None if value is None else value - 1 for value in values) if band else (),
        high=tuple(None if value is None else value + 1 for value in values) if band else (),
        marked=tuple(sorted(marked)),
    )


def lowest(values):
    return min(value for value in values if value is not None)


def highest(values):
    return max(value for value in values if value is not None)


@given(curves(), st.integers(5, 100))
def test_thinning_keeps_every_extreme_ring_and_end(curve, most):
    thin = thinned(curve, most)
    assert len(thin.x) <= most + len(curve.marked)
    known = [value for value in curve.values if value is not None]
    if known:
        kept = [value for value in thin.values if value is not None]
        assert (min(kept), max(kept)) == (min(known), max(known))
        # of a curve with a band it is the band's edges that must not be lost
        assert lowest(thin.low or thin.values) == lowest(curve.low or curve.values)
        assert highest(thin.high or thin.values) == highest(curve.high or curve.values)
    assert (thin.x[0], thin.x[-1]) == (curve.x[0], curve.x[-1])
    assert [thin.x[i] for i in thin.marked] == [curve.x[i] for i in curve.marked]


@given(curves(), st.integers(5, 100))
def test_thinning_moves_nothing(curve, most):
    thin = thinned(curve, most)
    before = dict(zip(curve.x, zip(curve.values, curve.low or curve.values, strict=True), strict=True))
    after = dict(zip(thin.x, zip(thin.values, thin.low or thin.values, strict=True), strict=True))
    assert after.items() <= before.items()
    assert list(after) == sorted(after)


def test_of_two_edges_that_rounding_made_equal_the_more_extreme_value_stays():
    # doubles near 2^53 are 2 apart, so one more is the same edge
    values = (0.0, 2.0**53 + 2, 2.0**53, 0.0, 0.0, 0.0, 0.0)
    highs = tuple(2.0**53 + 2 if value else 1.0 for value in values)
    thin = thinned(Curve("c", 1, tuple(map(float, range(7))), values, low=values, high=highs), 5)
    assert highest(thin.values) == 2.0**53 + 2


def test_a_spike_of_one_among_a_million_points_stays():
    values = [1.0] * 1_000_000
    values[777_777] = 9.0
    curve = thinned(Curve("c", 1, tuple(map(float, range(len(values)))), tuple(values)), 1000)
    assert len(curve.x) <= 1000
    assert curve.x[curve.values.index(9.0)] == 777_777


def test_numbers_come_back_from_the_page_as_they_were():
    curve = Curve("1 <b>", 1, (0.05, 0.15, 0.25), (2e6, None, 8.1234567e6), marked=(2,))
    figure = Figure("f", "t", "d", "c", "bit/s", curves=(curve,), lasted_s=0.3)
    data = json.loads(gzip.decompress(base64.b64decode(packed(plot_data(figure)))))
    (back,) = data["curves"]
    assert [ticks / 1e6 for ticks in accumulate(back["x"])] == [0.05, 0.15, 0.25]
    assert (back["y"], data["unit"], back["marked"]) == ([2.0, None, 8.1235], "Mbit/s", [2])
    assert (data["from"], data["to"], data["axisLabel"]) == (0.0, 0.3, TIME.label)


def test_packing_twice_gives_the_same_text():
    assert packed({"a": [1, 2]}) == packed({"a": [1, 2]})


def test_a_value_that_json_cannot_have_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        packed({"a": float("nan")})


def test_another_axis_than_time_begins_and_ends_with_its_values():
    curve = Curve("c", 1, (0.1, 1.0, 10.0), (0.5, 0.3, 0.2))
    data = plot_data(Figure("f", "t", "d", "c", "", curves=(curve,), axis=Axis("width", logarithmic=True)))
    assert (data["from"], data["to"], data["axisIsLogarithmic"]) == (0.1, 10.0, True)


def test_packets_of_one_moment_have_an_axis_with_a_width():
    curve = Curve("c", 1, (0.0,), (1.0,), form="dots")
    data = plot_data(Figure("f", "t", "d", "c", "B", curves=(curve,), lasted_s=0.0))
    assert (data["from"], data["to"]) == (0.0, 1.0)


def test_the_library_is_uplot_with_its_notice_and_closes_no_element():
    script, style = library()
    assert "MIT Licensed" in script.split("*/")[0]
    assert "</" not in script + style
    assert "Function(" not in script.replace("isFunction(", "")
