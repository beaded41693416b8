"""Losses that are too few in each interval, and a change in all of them."""

from math import comb
from random import Random

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.incidents import raised_stretches
from tfrctrace.metrics.audit.states import split_stretches
from tfrctrace.metrics.audit.thin_intervals import with_thin_ones_together
from tfrctrace.metrics.objectives import Extent

STEP_NS = 1_800 * 10**9
DAY = 48
OBJECTIVE = parse_objective(
    {
        "require": "sum(lost_behind_capture) / sum(losses_shown) < 1 % where direction received",
        "by": "host",
        "every": "30min",
        "least": 100,
    }
)


def judged(values: list[tuple[int, int]]) -> pl.DataFrame:
    """Return intervals of lost and shown segments, of which each alone is too thin."""
    rows = [
        {
            "group": "a",
            "start_ns": place * STEP_NS,
            "end_ns": (place + 1) * STEP_NS,
            "direction": None,
            "value": lost / shown,
            "n": shown,
            "verdict": "no_data",
        }
        for place, (lost, shown) in enumerate(values)
    ]
    schema = {"direction": pl.String, "n": pl.Int64}
    return pl.DataFrame(rows, schema_overrides=schema)


def changes(values: list[tuple[int, int]]) -> list[tuple[int, int]]:
    end_ns = len(values) * STEP_NS
    intervals = with_thin_ones_together(OBJECTIVE, judged(values), Extent(0, end_ns))
    assert int((intervals["value"] * intervals["n"]).sum() + 0.5) == sum(lost for lost, _ in values)
    raised = raised_stretches(OBJECTIVE, intervals, 0, end_ns)
    is_change, _ = split_stretches(OBJECTIVE, 0, raised, intervals, len(values))
    spans = raised.filter(is_change).sort("begin_ns").select("begin_ns", "end_ns").rows()
    return [(begin_ns // STEP_NS, end_ns // STEP_NS) for begin_ns, end_ns in spans]


def test_twenty_losses_of_484_in_eight_hours_are_found():
    values = [(0, 30)] * (3 * DAY)
    for place in range(60, 76):
        values[place] = (1 + (place % 4 == 0), 30 + (place % 4 == 0))
    ((begin, end),) = changes(values)
    assert sum(lost for lost, _ in values) == 20
    assert sum(shown for _, shown in values[60:76]) == 484
    assert (begin, end) == (60, 76)
    # what the binomial distribution says of it, were one in a thousand usual
    tail = sum(comb(484, lost) * 0.001**lost * 0.999 ** (484 - lost) for lost in range(20, 60))
    assert tail < 1e-20


@pytest.mark.parametrize("seed", range(5))
def test_as_many_losses_as_usual_are_none(seed):
    chance = Random(seed)
    assert changes([(sum(chance.random() < 0.004 for _ in range(30)), 30) for _ in range(7 * DAY)]) == []


def test_percentiles_do_not_add_up():
    objective = parse_objective({"require": "p95(rtt_ms) < 80 ms", "by": "host", "every": "30min"})
    frame = judged([(1, 10)] * 20)
    assert with_thin_ones_together(objective, frame, Extent(0, 1)).equals(frame)
