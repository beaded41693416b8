"""Stretches with hysteresis, what belongs to one incident, and silences."""

import polars as pl
import pytest

from tfrctrace.base.hours_of_use import parse_hours
from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.incidents import RaisedStretch, incidents_of, raised_stretches, silences

MINUTE_NS = 60 * 10**9
VERDICTS = {"m": "met", "v": "violated", "s": "severe", ".": "no_data"}


def stretches(verdicts: str, *, raise_after: int = 2, clear_after: int = 3, group: str = "a") -> list[dict]:
    """Return the stretches of minutes: m met, v violated, s severe, . too few samples, blank no packets."""
    objective = parse_objective(
        {"require": "p95(rtt_ms) < 80 ms", "raise": raise_after, "clear": clear_after, "by": "host"}
    )
    rows = [
        {
            "group": group,
            "start_ns": place * MINUTE_NS,
            "end_ns": (place + 1) * MINUTE_NS,
            "direction": "sent",
            "value": 100.0 + place,
            "n": 30,
            "verdict": VERDICTS[one],
        }
        for place, one in enumerate(verdicts)
        if one != " "
    ]
    found = raised_stretches(objective, pl.DataFrame(rows), 0, len(verdicts) * MINUTE_NS)
    return sorted(found.to_dicts(), key=lambda one: one["begin_ns"])


@pytest.mark.parametrize(
    ("verdicts", "minutes"),
    [
        ("mmvmm", []),  # one violated interval raises nothing
        ("mvvmm", [(1, 3)]),
        ("mvvmmvmmm", [(1, 6)]),  # two that met it do not clear
        ("mvvmmmvvm", [(1, 3), (6, 8)]),  # three do
        ("mvvmmmvm", [(1, 3)]),
        ("mvmvvm", [(1, 5)]),  # it began with the first
        ("mv..vm", [(1, 5)]),  # without data it is neither raised nor cleared
        ("mv  vvmmm", [(1, 6)]),
        ("mvv      vvm", [(1, 3), (9, 11)]),  # six intervals of silence end it
        ("vvvv", [(0, 4)]),
        ("....", []),
    ],
)
def test_stretches_are_raised_and_cleared_by_intervals_in_a_row(verdicts, minutes):
    found = [(one["begin_ns"] // MINUTE_NS, one["end_ns"] // MINUTE_NS) for one in stretches(verdicts)]
    assert found == minutes


def test_a_stretch_has_its_worst_value_and_why_it_ended():
    (one,) = stretches("mvsvmmmm")
    assert (one["value"], one["n"], one["intervals"], one["severe"]) == (103.0, 30, 3, 1)
    assert one["ended"] == "recovered"
    assert stretches("mvv")[0]["ended"] == "end of data"
    assert stretches("mvv" + " " * 20 + "mmm")[0]["ended"] == "no data"


def one_stretch(
    group: str, begin: float, end: float, objective: int = 0, *, width: float = 1
) -> RaisedStretch:
    times = [int(minutes * MINUTE_NS) for minutes in (begin, begin + width, end - width, end)]
    return RaisedStretch(
        objective, group, *times, 2, severe=0, value=100.0, n=30, at_ns=times[0], ended="recovered"
    )


def spans(*given: RaisedStretch) -> list[tuple[int, int, int]]:
    found = incidents_of("link", given)
    return [(one.begin_ns // MINUTE_NS, one.end_ns // MINUTE_NS, len(one.stretches)) for one in found]


def test_stretches_at_one_time_are_one_incident():
    assert spans(one_stretch("link", 10, 60), one_stretch("a", 12, 30), one_stretch("b", 40, 55)) == [
        (10, 60, 3)
    ]
    assert spans(one_stretch("a", 10, 20), one_stretch("a", 30, 40)) == [(10, 20, 1), (30, 40, 1)]
    assert spans(one_stretch("a", 10, 20), one_stretch("a", 12, 22, objective=1)) == [(10, 22, 2)]


def test_an_incident_begins_and_ends_by_the_narrowest_intervals():
    half_hours, tens, fives = (
        one_stretch("link", begin, end, objective, width=width)
        for objective, (begin, end, width) in enumerate(((0, 120, 30), (20, 110, 10), (25, 105, 5)))
    )
    assert spans(half_hours, tens, fives) == [(25, 105, 3)]
    # what begins after the first interval of the others tells nothing of the begin
    assert spans(half_hours, one_stretch("link", 40, 60, 1, width=5)) == [(0, 120, 2)]


def test_what_lasts_all_day_does_not_take_in_the_troubles_of_others():
    day = one_stretch("chronic", 0, 1440)
    assert spans(day, one_stretch("b", 600, 630)) == [(0, 1440, 1), (600, 630, 1)]
    assert spans(day, one_stretch("chronic", 600, 630, objective=1)) == [(0, 1440, 2)]


def test_a_silence_is_one_where_packets_are_usual():
    busy = [place * MINUTE_NS for place in range(600) if not 300 <= place < 310]
    (one,) = silences("link", busy, MINUTE_NS)
    assert (one.begin_ns // MINUTE_NS, one.end_ns // MINUTE_NS) == (300, 310)
    sparse = [place * MINUTE_NS for place in range(0, 600, 7)]
    assert list(silences("link", sparse, MINUTE_NS)) == []
    assert list(silences("link", [0, MINUTE_NS], MINUTE_NS)) == []


HOUR = 12
"""Intervals of five minutes."""


def office(
    days: int, *, awake: range = range(8, 18), silent: range = range(0), use: tuple[str, ...] = ()
) -> list[tuple[int, int]]:
    """Return the hours since a Monday in which an office was silent; it had no packet in `silent` hours."""
    step_ns, monday_ns = 5 * MINUTE_NS, 4 * 86_400 * 10**9
    starts_ns = [
        monday_ns + place * step_ns
        for place in range(days * 24 * HOUR)
        if place // HOUR not in silent and place // HOUR % 24 in awake and place // HOUR // 24 % 7 < 5
    ]
    hour_ns = HOUR * step_ns
    found = silences("link", starts_ns, step_ns, parse_hours(use))
    return [((one.begin_ns - monday_ns) // hour_ns, (one.end_ns - monday_ns) // hour_ns) for one in found]


@pytest.mark.parametrize("days", [1, 2, 5, 19])
def test_nights_and_weekends_without_anybody_are_no_silences(days):
    assert office(days) == []


def test_an_hour_of_work_without_packets_is_one_also_at_the_end_of_work():
    assert office(5, silent=range(58, 59)) == [(58, 59)]
    assert office(12, silent=range(24, 48)) == [(18, 56)]


def test_declared_hours_of_use_are_judged_from_the_first_day_and_no_others():
    use = ("Mon-Fri 08:00-18:00",)
    assert office(3, use=use) == []
    # of a morning on the second day nobody could know that it is no night
    assert office(2, silent=range(24, 38), use=use) == [(32, 38)]
    assert office(2, silent=range(24, 38)) == []
    # in the night there is nobody, whatever other nights had
    assert office(5, awake=range(24), silent=range(48, 54), use=use) == []


def test_a_link_that_never_sleeps_may_not_be_silent_for_long():
    assert office(5, awake=range(24), silent=range(50, 70)) == [(50, 70)]
