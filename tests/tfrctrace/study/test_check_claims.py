"""From values of runs to cells, tests and verdicts: no trace is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.runs.quantity import Quantity, Term, parse_quantity
from tfrctrace.study.definition import NO_FLOW, ComparisonPlan, Expectation, Reference
from tfrctrace.study.file.claims import parse_claim
from tfrctrace.study.find_runs import Run
from tfrctrace.study.results.cells import sorted_values, summarise
from tfrctrace.study.results.check_claims import check_claim
from tfrctrace.study.results.differences import differences_between
from tfrctrace.study.results.pivot import pivot
from tfrctrace.study.results.run_quantities import RunValue, run_values

SCENARIO = ("queue", "n")


def values_of(queue, n, group, *values, quantity="rate"):
    for number, value in enumerate(values):
        run = Run("", f"{queue}-{n}-{number}", {"queue": queue, "n": n, "run": number})
        reason = None if value is not None else "no flow"
        yield (
            run,
            RunValue(quantity=quantity, group=group, value=value, unit="bit/s", made_of=1, reason=reason),
        )


def cells(*parts):
    return summarise([one for part in parts for one in part], SCENARIO, 0.95)


FOUR = cells(
    values_of("red", 2, "tcp", 10, 12), values_of("red", 2, "tfrc", 8, 9),
    values_of("red", 10, "tcp", 6, 7), values_of("red", 10, "tfrc", 7, 8),
    values_of("fifo", 2, "tcp", 20, 22), values_of("fifo", 2, "tfrc", 1, None),
)  # fmt: skip


def verdict(claim, found=FOUR, **where):
    wanted = {name: (value,) for name, value in where.items()}
    expectation = Expectation(claim=parse_claim(claim), says="", where=wanted)
    return check_claim(found, expectation, SCENARIO)


@pytest.mark.parametrize(
    ("quantity", "values", "low", "high"),
    [
        # Student's t of two values, 12.706 standard errors: 0.95 +- 0.635, 5 +- 50.8
        ("jain", (0.9, 1.0), 0.31469, 1),
        ("mean(plr)", (0.0, 0.1), 0, 0.68531),
        ("mean(delay_mean_ms)", (1.0, 9.0), 0, 55.8248),
        ("count(plr)", (1, 9), 0, 55.8248),
        ("sum(lost_packets) / sum(sent_packets)", (1.0, 9.0), 0, 55.8248),
    ],
)
def test_intervals_have_no_value_that_cannot_be(quantity, values, low, high):
    bounds = parse_quantity(quantity).bounds
    runs = [(run, replace(one, bounds=bounds)) for run, one in values_of("red", 2, None, *values)]
    (cell,) = summarise(runs, SCENARIO, 0.95)
    assert (cell.student.low, cell.student.high) == pytest.approx((low, high), abs=1e-4)
    assert low <= cell.bootstrap.low <= cell.mean <= cell.bootstrap.high <= high


@pytest.mark.parametrize(
    ("claim", "where", "finding", "looks"),
    [
        ("rate[tcp] > rate[tfrc]", {}, "fails", 3),
        ("rate[tcp] > rate[tfrc]", {"n": 2}, "holds", 2),
        ("rate[tcp] > 5", {}, "holds", 3),
        ("5 < rate[tcp]", {}, "holds", 3),
        # for n = 10 there is no fifo, so nothing is compared there
        ("rate[tcp, queue=fifo] > rate[tcp, queue=red]", {}, "holds", 1),
        ("rate[tcp, queue=fifo] > rate[tcp, queue=red]", {"n": 2}, "holds", 1),
        ("rate[tcp] falling in n", {"queue": "red"}, "holds", 1),
        ("rate[tcp] rising in n", {"queue": "red"}, "fails", 1),
        ("rate[tcp] falling in n", {"queue": "fifo"}, "unknown", 0),
        ("rate > 5", {}, "unknown", 0),
        ("rate > 5", {"group": "tcp"}, "holds", 3),
        ("rate[sctp] > 5", {}, "unknown", 0),
        ("rate[tcp] > rate[sctp]", {}, "unknown", 0),
    ],
)
def test_a_claim_is_looked_at_in_every_scenario(claim, where, finding, looks):
    found = verdict(claim, **where)
    assert (found.finding, len(found.looks)) == (finding, looks)
    assert (found.reason is not None) == (not found.looks)


def test_a_claim_about_a_scenario_without_a_value_is_unknown():
    found = verdict("rate[tfrc] > 0", cells(values_of("red", 2, "tfrc", None)))
    assert (found.finding, found.is_as_expected) == ("unknown", False)


def test_a_claim_that_is_known_to_fail_is_as_expected():
    failing = verdict("rate[tcp] > 100")
    assert not failing.is_as_expected
    assert replace(failing, expectation=replace(failing.expectation, holds=False)).is_as_expected


def test_a_test_is_made_for_each_combination_of_the_rest():
    plan = ComparisonPlan(quantity="rate", between="group", where={}, holm=True)
    found = {
        (dict(one.scenario)["queue"], dict(one.scenario)["n"]): one
        for one in differences_between(FOUR, plan, SCENARIO, 0.95)
    }
    assert set(found) == {("red", 2), ("red", 10), ("fifo", 2)}
    red = found["red", 2]
    assert (red.levels, red.runs, red.means, red.difference) == (("tcp", "tfrc"), (2, 2), (11, 8.5), 2.5)
    assert red.low < 2.5 < red.high
    assert red.p_holm == pytest.approx(2 * red.p_value)
    fifo = found["fifo", 2]
    assert (fifo.difference, fifo.p_value, fifo.reason) == (
        20,
        None,
        "a single run does not show how much runs vary",
    )


def test_more_than_two_levels_are_tested_by_their_ranks():
    three = cells(*(values_of("red", n, "tcp", n, n + 1, n + 2) for n in (2, 10, 20)))
    (found,) = differences_between(
        three, ComparisonPlan(quantity="rate", between="n", where={}), SCENARIO, 0.95
    )
    assert (found.levels, found.test, found.degrees) == ((2, 10, 20), "Kruskal and Wallis", 2)
    # scipy.stats.kruskal([2, 3, 4], [10, 11, 12], [20, 21, 22])
    assert (found.statistic, found.p_value) == pytest.approx((7.2, 0.02732372244729257))
    assert found.effect == pytest.approx(0.9)


def test_a_group_that_no_run_has_a_flow_of_is_not_compared():
    plan = ComparisonPlan(quantity="rate", between="n", where={})

    def without_flows(n):
        for run, one in values_of("red", n, "tfrc", None):
            yield run, replace(one, reason=NO_FLOW)

    tcp = [values_of("red", n, "tcp", n, n + 1) for n in (2, 3)]
    tested = differences_between(cells(*tcp, without_flows(2), without_flows(3)), plan, SCENARIO, 0.95)
    assert [one.scenario for one in tested] == [(("queue", "red"), ("group", "tcp"))]


def test_a_level_alone_and_levels_without_values_have_a_reason():
    plan = ComparisonPlan(quantity="rate", between="n", where={})
    (alone,) = differences_between(cells(values_of("red", 2, "tcp", 1, 2)), plan, SCENARIO, 0.95)
    assert alone.reason == "nothing to compare it with"
    (missing,) = differences_between(
        cells(values_of("red", 2, "tcp", 1, 2), values_of("red", 3, "tcp", None)), plan, SCENARIO, 0.95
    )
    assert missing.reason == "one of them has no value"
    (same,) = differences_between(
        cells(values_of("red", 2, "tcp", 1, 1), values_of("red", 3, "tcp", 2, 2)), plan, SCENARIO, 0.95
    )
    assert (same.difference, same.reason) == (-1, "neither varies")


def test_missing_values_are_counted_with_their_reason():
    (cell,) = cells(values_of("red", 2, "tcp", 1.0, None, None))
    assert (cell.values, cell.missing, cell.reason, cell.mean) == ((1.0,), 2, "no flow", 1.0)
    (nothing,) = cells(values_of("red", 2, "tcp", None))
    assert (nothing.mean, nothing.student, nothing.bootstrap) == (None, None, None)


def test_what_is_no_axis_is_put_together_but_groups_never_are():
    placed = pivot(FOUR, "rate", ["queue"], where={}, references=[], level=0.95)
    assert [(one.at, one.rest, one.cell.values) for one in placed] == [
        (("red",), "tcp", (10, 12, 6, 7)),
        (("red",), "tfrc", (8, 9, 7, 8)),
        (("fifo",), "tcp", (20, 22)),
        (("fifo",), "tfrc", (1,)),
    ]


def test_a_group_without_flows_has_a_place_only_where_no_run_has_any():
    ghost = replace(
        FOUR[0], group="ghost", values=(), missing=1, reason=NO_FLOW, student=None, bootstrap=None
    )

    def shown(found):
        placed = pivot(found, "rate", ["queue", "group"], where={}, references=(), level=0.95)
        return [one.at for one in placed]

    assert shown([*FOUR, ghost]) == shown(FOUR)
    assert shown([ghost]) == [("red", "ghost")]


@given(
    st.lists(
        st.tuples(st.sampled_from(["red", "fifo"]), st.integers(1, 3), st.floats(-1e6, 1e6)), min_size=1
    ),
    st.randoms(use_true_random=True),
)
def test_shards_of_runs_put_together_are_the_whole(rows, random):
    parts = [values_of(queue, n, "tcp", value) for queue, n, value in rows]
    whole = [one for part in parts for one in part]
    shuffled = list(whole)
    random.shuffle(shuffled)
    one, other = (
        {
            tuple(cell.scenario.items()): (sorted(cell.values), cell.mean, cell.bootstrap)
            for cell in summarise(some, SCENARIO, 0.95)
        }
        for some in (whole, shuffled)
    )
    assert one.keys() == other.keys()
    for key, (values, mean, bootstrap) in one.items():
        # means are of exact sums, so that not even their last digit depends on the order
        assert other[key] == (values, mean, bootstrap)
    merged = pivot(summarise(whole, SCENARIO, 0.95), "rate", [], where={}, references=[], level=0.95)
    assert sorted(merged[0].cell.values) == sorted(value for _, _, value in rows)


def test_a_whole_number_in_a_claim_is_that_among_fractions():
    found = cells(
        values_of("red", 0.5, "tcp", 10), values_of("red", 1.0, "tcp", 20), values_of("red", 2.0, "tcp", 5)
    )
    assert verdict("rate[tcp, n=1] > rate[tcp, n=0.5]", found).finding == "holds"
    assert verdict("rate[tcp, n=1.0] > rate[tcp, n=2]", found).finding == "holds"


def test_numbers_come_in_order_of_size_and_texts_as_they_are():
    assert sorted_values([10, 2, 2.5, 10]) == [2, 2.5, 10]
    assert sorted_values(["b", "a", None, "b"]) == ["b", "a"]


def metric(name, group, value, n, *flows, window_s=1.0):
    reason = None if value is not None else "never"
    return {
        "name": name,
        "group": group,
        "value": value,
        "n": n,
        "flows": flows,
        "window_s": window_s,
        "reason": reason,
    }


RECORD = {
    "flows": [
        {"group": "tcp", "flow": 1, "sent_packets": 10, "rtt_mean_ms": None},
        {"group": "tcp", "flow": 2, "sent_packets": 30, "rtt_mean_ms": 5.0},
    ],
    "metrics": [
        metric("pdr", "tcp", 0.5, 10, 1),
        metric("pdr", "tcp", 0.9, 30, 2),
        metric("jain", None, 0.8, 2, 1, 2),
        metric("cov", "tcp", 0.1, 9, 1, window_s=1.0),
        metric("cov", "tcp", 0.2, 9, 1, window_s=2.0),
        metric("rise_s", "tcp", None, 9, 1),
        metric("burstiness", "tcp", float("inf"), 9, 1),
    ],
}


@pytest.mark.parametrize(
    ("quantity", "value", "made_of"),
    [
        (Quantity("q", Term("pdr", "mean", "metric")), 0.7, 40),
        # (5 + 27) of 40 packets
        (Quantity("q", Term("pdr", "weighted", "metric")), 0.8, 40),
        (Quantity("q", Term("pdr", "min", "metric")), 0.5, 40),
        (Quantity("q", Term("pdr", "median", "metric")), 0.7, 40),
        (Quantity("q", Term("sent_packets", "sum", "column")), 40, 2),
        (Quantity("q", Term("rtt_mean_ms", "mean", "column")), 5.0, 1),
        (Quantity("q", Term("jain", "mean", "metric")), 0.8, 2),
        (Quantity("q", Term("cov", "mean", "metric", timescale_s=2.0)), 0.2, 9),
        (Quantity("q", Term("rise_s", "mean", "metric")), None, 0),
        (Quantity("q", Term("burstiness", "mean", "metric")), None, 0),
        (Quantity("q", Term("pdr", "mean", "metric", "tfrc")), None, 0),
        (Quantity("q", Term("pdr", "mean", "metric", "tcp"), Term("pdr", "mean", "metric", "tcp")), 1.0, 80),
        (
            Quantity("q", Term("pdr", "mean", "metric", "tcp"), Term("pdr", "mean", "metric", "tfrc")),
            None,
            40,
        ),
    ],
)
def test_flows_of_a_group_become_one_value(quantity, value, made_of):
    (one,) = run_values(RECORD, quantity, [])
    assert (one.value, one.made_of) == (pytest.approx(value), made_of)
    assert (one.reason is None) == (value is not None)


def test_each_flow_may_keep_its_value():
    found = list(run_values(RECORD, Quantity("q", Term("pdr", "", "metric")), ["tcp", "tfrc"]))
    assert [(one.group, one.flow, one.value) for one in found] == [
        ("tcp", 1, 0.5),
        ("tcp", 2, 0.9),
        ("tfrc", None, None),
    ]


def test_a_run_without_flows_says_so():
    (one,) = run_values({"flows": [], "metrics": []}, Quantity("q", Term("jain", "mean", "metric")), [])
    assert (one.value, one.reason) == (
        None,
        "the flows do not show it: too short, never together, or an option is missing",
    )


def test_a_group_whose_flows_did_not_compete_is_distinguished_from_one_without_flows():
    record = {"metrics": [], "flows": [{"flow": 1, "group": "tcp"}]}
    rate = Quantity("rate", Term("rate_bps", "mean", "metric"))
    found = {one.group: one.reason for one in run_values(record, rate, ["tcp", "tfrc"])}
    assert found == {
        "tcp": "the flows do not show it: too short, never together, or an option is missing",
        "tfrc": NO_FLOW,
    }


def test_a_reference_stands_at_the_place_of_all_scenarios_that_it_is_about():
    def shown(axes, **where):
        about = Reference(quantity="rate", source="", where=where, group="tcp", value=1.0)
        places = pivot(FOUR, "rate", axes, where={}, references=[about], level=0.95)
        return [(*one.at, one.rest) for one in places if one.reference]

    assert shown(["queue", "n"], queue=("red",), n=(2,)) == [("red", 2, "tcp")]
    assert shown(["queue"], queue=("red",)) == [("red", "tcp")]
    # not at each of the scenarios that it is about together, nor where others are among them
    assert shown(["queue", "n"], queue=("red",)) == []
    assert shown(["group"], queue=("red",)) == []
