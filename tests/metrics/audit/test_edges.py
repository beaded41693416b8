"""When a change began, by events: where it was drawn, and as far as they show it."""

from __future__ import annotations

from random import Random

import pytest

from tfrctrace.metrics.audit.edges import change_between, share_of

S = 10**9
LENGTH = 1_200 * S


def drawn(random: Random, rate_s: float, shares: tuple[float, float]) -> tuple[list[int], list[bool], int]:
    """Draw events of a Poisson process, and when their share of bad ones changes."""
    change_ns = random.randrange(LENGTH // 3, 2 * LENGTH // 3)
    times, at_s = [], 0.0
    while (at_s := at_s + random.expovariate(rate_s)) < LENGTH / S:
        times.append(round(at_s * S))
    return times, [random.random() < shares[time >= change_ns] for time in times], change_ns


@pytest.mark.parametrize("shares", [(0.02, 0.98), (0.9, 0.05), (0.1, 0.6)])
@pytest.mark.parametrize("rate_s", [0.03, 0.3])
def test_nine_of_ten_changes_are_within_what_is_said(rate_s: float, shares: tuple[float, float]) -> None:
    random = Random(7)
    found, offs = [], []
    for _ in range(400):
        times, bad, change_ns = drawn(random, rate_s, shares)
        edge = change_between(times, bad, *shares)
        if edge is not None:
            first_ns, last_ns = edge.span_ns
            assert first_ns <= edge.at_ns <= last_ns
            found.append(first_ns <= change_ns <= last_ns)
            offs.append(abs(edge.at_ns - change_ns))
    assert len(found) > 360
    assert sum(found) > 0.9 * len(found)
    # ten events a minute, of which nearly each tells
    if rate_s == 0.3 and shares == (0.02, 0.98):
        assert sorted(offs)[int(0.95 * len(offs))] < 60 * S


def test_a_change_outside_of_the_events_or_none_is_not_said() -> None:
    times = [S * one for one in range(100)]
    assert change_between(times, [True] * 100, 0.1, 0.9) is None
    assert change_between(times, [False] * 100, 0.1, 0.9) is None
    assert change_between(times, [one % 2 == 0 for one in range(100)], 0.5, 0.6) is None
    assert change_between([], [], 0.1, 0.9) is None


def test_no_share_is_certain() -> None:
    assert (share_of([]), share_of([False] * 8), share_of([True] * 8)) == (0.5, 0.1, 0.9)
