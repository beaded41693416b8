"""Who competed with whom: sets of flows against a search through all of them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.sets.competing import MAX_SETS, FlowLifetime, competing_sets

S = 1_000_000_000

lives = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=7).map(
    lambda spans: [
        FlowLifetime(number, "a", start, start + length) for number, (start, length) in enumerate(spans)
    ]
)


def sets_of(lives, **more):
    found, left_out = competing_sets(lives, {"a": 0, "b": 0}, 1, 2, **more)
    assert left_out == 0
    return found


def in_common(some):
    return min(life.end_ns for life in some) - max(life.start_ns for life in some)


@given(lives)
def test_sets_are_the_largest_ones_that_overlap(some):
    needed = 5  # two windows of 2 ns, and one step of the grid
    overlapping = [
        frozenset(life.flow for life in chosen)
        for size in range(1, len(some) + 1)
        for chosen in combinations(some, size)
        if in_common(chosen) >= needed
    ]
    largest = {one for one in overlapping if not any(one < other for other in overlapping)}
    assert {frozenset(one.flows) for one in sets_of(some)} == largest


@given(lives)
def test_windows_lie_in_what_all_have_in_common(some):
    by_number = {life.flow: life for life in some}
    for one in sets_of(some):
        members = [by_number[flow] for flow in one.flows]
        assert one.windows.count >= 2
        assert one.windows.start_ns >= max(life.start_ns for life in members) == one.last_start_ns
        assert one.windows.end_ns <= min(life.end_ns for life in members)


@given(lives)
def test_the_order_of_flows_changes_nothing(some):
    assert sets_of(some) == sets_of(some[::-1])


def test_flows_that_follow_each_other_do_not_meet():
    first, second, both = (
        FlowLifetime(1, "a", 0, 40),
        FlowLifetime(2, "a", 50, 90),
        FlowLifetime(3, "a", 20, 70),
    )
    assert [one.flows for one in sets_of([first, second])] == [(1,), (2,)]
    assert [one.flows for one in sets_of([first, second, both])] == [(1, 3), (2, 3)]


def test_flows_of_two_traces_do_not_meet():
    here, there = FlowLifetime(1, "a", 0, 40), FlowLifetime(2, "b", 0, 40)
    assert [(one.number, one.source, one.flows) for one in sets_of([here, there])] == [
        (1, "a", (1,)),
        (2, "b", (2,)),
    ]


def test_a_warm_up_is_taken_from_each_flow():
    (one,) = sets_of([FlowLifetime(1, "a", 0, 40), FlowLifetime(2, "a", 10, 50)], warmup_ns=8)
    assert (one.windows.start_ns, one.windows.end_ns, one.last_start_ns) == (18, 40, 10)
    assert sets_of([FlowLifetime(1, "a", 0, 40)], warmup_ns=38) == []


def test_of_very_many_sets_the_weightiest_are_listed():
    # each overlaps its neighbours only
    chain = [FlowLifetime(number, "a", 10 * number, 10 * number + 17) for number in range(100)]
    found, left_out = competing_sets(chain, {"a": 0}, 1, 2)
    assert (len(found), left_out) == (MAX_SETS, 99 - MAX_SETS)
