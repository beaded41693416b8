"""What is a change of a group, and what is always so: by draws of known shares and values."""

from random import Random

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.incidents import raised_stretches
from tfrctrace.metrics.audit.states import split_stretches

STEP_NS = 600 * 10**9
DAY = 144
LOSS = {"require": "sum(lost_behind_capture) / sum(losses_shown) < 1 %", "by": "host", "every": "10min"}
DELAY = {"require": "p95(rtt_ms) < 250 ms", "by": "host", "every": "10min", "raise": 2, "clear": 3}


def split(
    facts: dict, values: list[tuple[float, int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return changes as first and last interval, and of states the violated intervals of all."""
    objective = parse_objective(facts)
    rows = [
        {
            "group": "a",
            "start_ns": place * STEP_NS,
            "end_ns": (place + 1) * STEP_NS,
            "direction": "received",
            "value": float(value),
            "n": n,
            "verdict": "met" if value < objective.bound else "violated",
        }
        for place, (value, n) in enumerate(values)
        if n
    ]
    intervals = pl.DataFrame(rows)
    raised = raised_stretches(objective, intervals, 0, len(values) * STEP_NS)
    is_change, states = split_stretches(objective, 0, raised, intervals, len(values))
    spans = raised.filter(is_change).sort("begin_ns").select("begin_ns", "end_ns").rows()
    changes = [(begin_ns // STEP_NS, end_ns // STEP_NS) for begin_ns, end_ns in spans]
    return changes, [(one.violated, one.intervals) for one in states]


def losses(chance: Random, share: float, n: int) -> tuple[float, int]:
    return sum(chance.random() < share for _ in range(n)) / n, n


def delays(chance: Random, usual_ms: float, spread_ms: float) -> tuple[float, int]:
    return usual_ms + chance.gauss(0, spread_ms), 30


@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_always_loses_some_packets_has_a_state_and_no_change(seed):
    chance = Random(seed)
    changes, ((violated, intervals),) = split(LOSS, [losses(chance, 0.02, 100) for _ in range(7 * DAY)])
    assert changes == []
    assert intervals == 7 * DAY
    assert violated > intervals / 2


@pytest.mark.parametrize("seed", range(5))
def test_single_losses_of_a_thin_host_are_neither_a_change_nor_a_state(seed):
    chance = Random(seed)
    assert split(LOSS, [losses(chance, 0.0003, 100) for _ in range(7 * DAY)]) == ([], [])


@pytest.mark.parametrize("seed", range(5))
def test_more_losses_than_usual_are_a_change(seed):
    chance = Random(seed)
    values = [losses(chance, 0.1 if 300 <= place < 312 else 0.001, 200) for place in range(4 * DAY)]
    ((begin, end),) = [one for one in split(LOSS, values)[0] if one[1] - one[0] > 1]
    assert (begin, end) == (300, 312)


def test_evening_after_evening_is_a_change_each_time():
    chance = Random(1)
    values = [delays(chance, 400 if place % DAY >= 120 else 40, 10) for place in range(6 * DAY)]
    assert split(DELAY, values) == ([(day * DAY + 120, (day + 1) * DAY) for day in range(6)], [])


def test_losses_of_many_thin_intervals_add_up():
    """20 of 484 segments in eight hours, of a host that usually loses one of a thousand."""
    chance = Random(4)
    usual = [losses(chance, 0.001, 40) for _ in range(10 * DAY)]
    bad = [(2 / 44, 44)] + [(1 / 44 if place % 2 else 2 / 44, 44) for place in range(10)]
    assert sum(round(value * n) for value, n in bad[:11]) >= 16
    values = [*usual[: 5 * DAY], *bad, *usual[5 * DAY :]]
    (change,) = split(LOSS, values)[0]
    assert change[0] == 5 * DAY


def test_groups_do_not_change_what_is_found_of_each_other():
    """Of long stretches the usual values are those of all other time of the same group."""
    objective = parse_objective(DELAY)
    chance = Random(5)
    rows = []
    for group in range(40):
        level_ms = 300 if group % 2 else 600
        for place in range(60):
            value = chance.gauss(level_ms if place >= 20 + group % 3 else 40 * (1 + group % 2 * 6), 5)
            rows.append({"group": f"h{group}", "start_ns": place * STEP_NS, "end_ns": (place + 1) * STEP_NS})
            rows[-1] |= {"direction": "received", "value": value, "n": 30}
            rows[-1]["verdict"] = "met" if value < objective.bound else "violated"
    every = pl.DataFrame(rows)

    def changed(intervals: pl.DataFrame) -> list[bool]:
        raised = raised_stretches(objective, intervals, 0, 60 * STEP_NS).sort("group", "begin_ns")
        return split_stretches(objective, 0, raised, intervals, 60)[0].to_list()

    alone = [changed(own) for own in every.sort("group").partition_by("group", maintain_order=True)]
    assert changed(every) == [one for own in alone for one in own]
    assert True in changed(every)
    assert False in changed(every)


@pytest.mark.parametrize("usual_ms", [245, 255, 320])
def test_the_time_to_a_far_host_is_a_state_however_it_crosses_the_limit(usual_ms):
    chance = Random(usual_ms)
    changes, states = split(DELAY, [delays(chance, usual_ms, 10) for _ in range(3 * DAY)])
    assert changes == []
    assert len(states) == 1


def test_what_gets_worse_for_good_is_a_change_though_it_lasts_longer_than_it_was_good():
    chance = Random(2)
    values = [delays(chance, 40 if place < DAY else 300, 10) for place in range(5 * DAY)]
    assert split(DELAY, values) == ([(DAY, 5 * DAY)], [])


def test_what_is_bad_as_far_as_is_known_is_a_state():
    chance = Random(3)
    bad = [delays(chance, 400, 10) for _ in range(4)]
    assert split(DELAY, [*bad, *[(0.0, 0)] * DAY]) == ([], [(4, 4)])
    # a short capture does not show what is usual
    assert split(DELAY, bad) == ([(0, 4)], [])
