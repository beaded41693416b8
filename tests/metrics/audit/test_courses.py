"""How incidents went on."""

from random import Random

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.courses import Course, courses
from tfrctrace.metrics.audit.incidents import Incident, RaisedStretch
from tfrctrace.metrics.objectives import ObjectiveResult

HOUR_NS = 3_600 * 10**9


def incident(begin_h: float, end_h: float, *, group: str = "a", ended: str = "recovered") -> Incident:
    times = (int(begin_h * HOUR_NS), int(end_h * HOUR_NS))
    stretch = RaisedStretch(
        0,
        group,
        times[0],
        times[1],
        times[0],
        times[1],
        2,
        severe=0,
        value=1.0,
        n=30,
        at_ns=times[0],
        ended=ended,
    )
    return Incident("link", *times, [stretch])


def trend(values: list[float]) -> Course:
    """Return the course of an incident whose violated intervals of an hour had these values."""
    objective = parse_objective({"require": "p95(rtt_ms) < 80 ms", "by": "host", "every": "1h"})
    rows = [
        {"group": "a", "start_ns": place * HOUR_NS, "end_ns": (place + 1) * HOUR_NS, "value": value}
        for place, value in enumerate(values)
    ]
    empty = pl.DataFrame()
    result = ObjectiveResult(objective, 0, HOUR_NS, pl.DataFrame(rows), empty, empty, None)
    (found,) = courses([incident(0, len(values), ended="end of data")], [result])
    return found


@pytest.mark.parametrize("seed", range(5))
def test_what_grows_until_the_end_worsens_and_what_only_varies_does_not(seed):
    chance = Random(seed)
    assert trend([100 + 3 * place + chance.gauss(0, 20) for place in range(72)]).kind == "worsens"
    assert trend([200 + chance.gauss(0, 20) for _ in range(72)]).kind == "changed for good"
    assert trend([100.0 + 50 * place for place in range(5)]).kind == "not over"


def test_what_begins_at_the_same_hour_on_several_days_recurs():
    evenings = [incident(24 * day + 18 + day / 10, 24 * day + 22) for day in range(5)]
    other = incident(30, 31, group="b")
    assert [(one.kind, one.days) for one in courses([*evenings, other])] == [("recurs daily", 5)] * 5 + [
        ("over", 1)
    ]


def test_also_around_midnight():
    nights = [incident(24 * day + 23.8 + 0.1 * day, 24 * day + 26) for day in range(1, 5)]
    assert {(one.kind, one.days) for one in courses(nights)} == {("recurs daily", 4)}


def test_what_happens_at_any_hour_does_not_recur_daily():
    often = [incident(7 * place, 7 * place + 1) for place in range(40)]
    assert {one.kind for one in courses(often)} == {"over"}


@pytest.mark.parametrize(
    ("end_h", "ended", "kind"),
    [
        (100, "end of data", "changed for good"),
        (15, "end of data", "not over"),
        (100, "recovered", "over"),
        (100, "no data", "over"),
    ],
)
def test_what_lasts_until_the_end_of_the_captures_is_not_over(end_h, ended, kind):
    (one,) = courses([incident(10, end_h, ended=ended)])
    assert one.kind == kind
