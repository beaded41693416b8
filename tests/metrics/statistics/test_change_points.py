"""Where a series changes: a series that others have studied, steps and noise."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.statistics.change_points import LEAST, change_points

NILE = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100
1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824
702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010
771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975 815 1020 906
901 1170 912 746 919 718 714 740
"""
"""Annual flow of the Nile at Aswan, 1871 to 1970, in 10^8 m3 (Cobb, Biometrika 65, 1978; public domain)."""


def noise(seed: int, count: int, mean: float = 100.0) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, 3) for _ in range(count)]


def test_the_flow_of_the_nile_changed_once_after_1898():
    (change,) = change_points([float(value) for value in NILE.split()])
    assert 1871 + change.index == 1899
    # the means that Cobb gives
    assert (round(change.before), round(change.after)) == (1098, 850)
    assert change.p_value < 1e-6


@pytest.mark.parametrize("at", [3, 10, 17])
def test_a_step_is_found_where_it_is(at):
    (change,) = change_points([*noise(1, at), *noise(2, 20 - at, 120)])
    assert change.index == at
    assert change.after - change.before == pytest.approx(20, abs=4)


@pytest.mark.parametrize("few", [1, 2])
def test_a_change_of_fewer_than_three_values_waits_and_borrows_none_from_beside_it(few):
    for seed in range(100):
        long, short = noise(seed, 12), noise(seed + 200, few)
        middle = noise(seed + 100, 6, 130)
        after = {change.index for change in change_points([*long, *middle, *short])}
        assert 12 in after
        assert not after & set(range(14, 21))
        before = {change.index for change in change_points([*short, *middle, *long])}
        assert not before & set(range(1, few + 5))


@pytest.mark.parametrize(
    ("deviations", "later", "found"), [(3, 3, 132), (3, 5, 192), (2, 3, 37), (2, 5, 95), (2, 10, 168)]
)
def test_steps_are_found_as_often_as_the_page_on_checks_says(deviations, later, found):
    def has_change(seed):
        step = noise(seed + 5_000, later, 100 + 3 * deviations)
        return bool(change_points([*noise(seed, 20), *step]))

    assert sum(map(has_change, range(200))) == found


def test_a_series_may_change_twice():
    found = change_points([*noise(1, 10), *noise(2, 10, 130), *noise(3, 10)])
    assert [change.index for change in found] == [10, 20]
    assert found[0].after == found[1].before


def test_constants_need_no_variation():
    (change,) = change_points([5.0] * 4 + [6.0] * 4)
    assert (change.index, change.p_value) == (4, 0.0)
    assert change_points([5.0] * 50) == []


def test_one_outlier_and_few_values_are_no_change():
    assert change_points([*noise(1, 10), 200.0, *noise(2, 10)]) == []
    assert change_points([1.0, 1.0, 1.0, 9.0, 9.0]) == []


def test_noise_changes_rarely():
    false = sum(bool(change_points(noise(seed, 30))) for seed in range(400))
    assert false <= 8  # 400 at 1 % make 4; 9 or more would have a chance of 2 %


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_parts_of_any_series_are_long_enough_and_have_their_means(values):
    found = change_points(values)
    bounds = [0, *(change.index for change in found), len(values)]
    if found:
        assert min(after - before for before, after in pairwise(bounds)) >= LEAST
    for change, start, end in zip(found, bounds, bounds[2:], strict=False):
        assert change.before == pytest.approx(sum(values[start : change.index]) / (change.index - start))
        assert change.after == pytest.approx(sum(values[change.index : end]) / (end - change.index))
