"""Confidence limits of shares and medians."""

import pytest

from tfrctrace.metrics.statistics.confidence import median_limits, share_limits


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3 (score without correction)
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_limits_of_shares_are_those_that_newcombe_prints(part, whole, low, high):
    assert share_limits(part, whole) == pytest.approx((low, high), abs=5e-5)


def test_limits_contain_the_share_and_nothing_is_known_of_no_trials():
    assert share_limits(0, 0) == (0.0, 1.0)
    for whole in (1, 7, 10**9):
        low, high = share_limits(whole, whole)
        assert 0 < low < high == 1.0


def test_limits_of_a_median_are_values_around_it():
    assert median_limits([5.0]) == (5.0, 5.0)
    low, high = median_limits([float(one) for one in range(1, 101)])
    # ranks 40 and 61 have 95 % of the binomial distribution of 100 fair tosses between them
    assert (low, high) == (41.0, 60.0)
