"""From values of runs to cells, tests and verdicts: no trace is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.metrics.results.metrics import Metric
from tfrctrace.metrics.results.study import StudyFlow, StudyRecord
from tfrctrace.runs.quantity import Quantity, Term, parse_quantity
from tfrctrace.study.definition import NO_FLOW, ComparisonPlan, Expectation, Reference, RunRules
from tfrctrace.study.file.claims import parse_claim
from tfrctrace.study.find_runs import Run
from tfrctrace.study.results.cells import sorted_values, summarise
from tfrctrace.study.results.check_claims import check_claim
from tfrctrace.study.results.differences import differences_between
from tfrctrace.study.results.paper_rows import ours_text, reason_text
from tfrctrace.study.results.pivot import pivot
from tfrctrace.study.results.run_quantities import RunValue, run_values

SCENARIO = ("queue", "n")
RUNS = RunRules(rules=(), parameters=(*SCENARIO, "run"), repetition="run")
PAIRED = replace(RUNS, is_paired=True)


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


def verdict(claim, found=FOUR, runs=RUNS, share="all", **where):
    wanted = {name: (value,) for name, value in where.items()}
    expectation = Expectation(claim=parse_claim(claim), says="", where=wanted, share=share)
    return check_claim(found, expectation, runs, 0.95)


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
    ("claim", "where", "means", "checks"),
    [
        ("rate[tcp] > rate[tfrc]", {}, False, 3),
        ("rate[tcp] > rate[tfrc]", {"n": 2}, True, 2),
        ("rate[tcp] > 5", {}, True, 3),
        ("5 < rate[tcp]", {}, True, 3),
        ("rate[tcp] > 1.2 * rate[tfrc]", {"queue": "red"}, False, 2),
        ("rate[tcp] > half rate[tfrc]", {"queue": "red"}, True, 2),
        ("rate[tcp] within 2.5 of rate[tfrc]", {"queue": "red"}, True, 2),
        ("rate[tcp] within 2.4 of rate[tfrc]", {"queue": "red"}, False, 2),
        ("rate[tcp] within 30 % of rate[tfrc]", {"queue": "red"}, True, 2),
        ("rate[tcp] within 1 bit/s of 11", {"queue": "red", "n": 2}, True, 1),
        ("rate[tcp] about rate[tfrc]", {"queue": "red"}, True, 2),
        ("rate[tfrc, queue=red] about half rate[tcp, queue=fifo]", {}, True, 1),
        ("rate[tcp, queue=fifo] about twice rate[tfrc, queue=red]", {}, True, 1),
        # one label in one scenario, another one in another
        ("rate[tcp, queue=fifo] > rate[tfrc, queue=red]", {}, True, 1),
        # for n = 10 there is no fifo, so nothing is compared there
        ("rate[tcp, queue=fifo] > rate[tcp, queue=red]", {}, True, 1),
        ("rate[tcp, queue=fifo] > rate[tcp, queue=red]", {"n": 2}, True, 1),
        ("rate[tcp] falling in n", {"queue": "red"}, True, 1),
        ("rate[tcp] rising in n", {"queue": "red"}, False, 1),
        ("rate[tcp] falling in n", {"queue": "fifo"}, None, 0),
        ("rate > 5", {}, None, 0),
        ("rate > 5", {"group": "tcp"}, True, 3),
        ("rate[sctp] > 5", {}, None, 0),
        ("rate[tcp] > rate[sctp]", {}, None, 0),
    ],
)
def test_a_claim_is_checked_in_every_scenario(claim, where, means, checks):
    found = verdict(claim, **where)
    assert (found.is_in_order, len(found.checks)) == (means, checks)
    if not checks:
        assert (found.finding, found.reason is not None) == ("cannot tell", True)


FIRST = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SECOND = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
"""R's data set `sleep`: of these two Welch's test has p = 0.07939, the paired one 0.002833."""


@pytest.mark.parametrize(
    ("claim", "runs", "finding", "confidence", "test"),
    [
        ("rate[b, queue=y] > rate[a, queue=x]", RUNS, "cannot tell", None, "Welch's t"),
        ("rate[b, queue=y] > rate[a, queue=x]", PAIRED, "holds", 1 - 0.002833, "paired t"),
        ("rate[b, queue=y] < rate[a, queue=x]", PAIRED, "does not hold", 1 - 0.002833, "paired t"),
        # R: t.test(sleep$extra[11:20], mu = 0): p = 0.005076
        ("rate[b, queue=y] > 0", PAIRED, "holds", 1 - 0.005076, "Student's t"),
        # the 95 % interval of the paired difference is 0.7001 to 2.4599
        ("rate[b, queue=y] within 2.45 of rate[a, queue=x]", PAIRED, "cannot tell", None, "paired t"),
        ("rate[b, queue=y] within 2.47 of rate[a, queue=x]", PAIRED, "holds", None, "paired t"),
        ("rate[b, queue=y] within 0.69 of rate[a, queue=x]", PAIRED, "does not hold", None, "paired t"),
    ],
)
def test_a_verdict_is_by_a_test_over_the_runs(claim, runs, finding, confidence, test):
    found = verdict(claim, cells(values_of("x", 2, "a", *FIRST), values_of("y", 2, "b", *SECOND)), runs)
    assert (found.finding, found.checks[0].test) == (finding, test)
    assert found.confidence is None or found.confidence >= 0.95
    if confidence is not None:
        assert found.confidence == pytest.approx(confidence, abs=1e-6)


def both_settings(group, *values):
    """Return cells of two settings, in which the same repetitions have these values."""
    return cells(values_of("red", 2, group, *values[0]), values_of("red", 10, group, *values[1]))


@pytest.mark.parametrize(
    ("runs", "confidence", "clusters"),
    [
        # as in the tests of contrasts: statsmodels' OLS with an error that is robust to clusters, and without
        (PAIRED, 1 - 0.023952942034306517, 10),
        (RUNS, None, 20),
    ],
)
def test_a_claim_on_average_counts_repetitions_and_not_settings(runs, confidence, clusters):
    found = verdict("rate > 0", both_settings("a", FIRST, SECOND), runs, "average")
    (check,) = found.checks
    assert (found.finding, check.runs, check.test) == ("holds", (clusters,), "cluster-robust t")
    if confidence is not None:
        assert found.confidence == pytest.approx(confidence)
        assert verdict("rate > 0", both_settings("a", FIRST, SECOND), runs).finding == "cannot tell"
        assert ours_text(found) == "queue = red: 1.5 ± 1.3 bit/s (20 runs of 10 repetitions)"
    else:
        assert found.confidence > 1 - 0.01


def test_the_average_of_a_difference_is_over_the_settings_that_have_both_sides():
    found = cells(
        values_of("red", 2, "tcp", 3, 5, 4), values_of("red", 2, "tfrc", 1, 2, 2),
        values_of("red", 10, "tcp", 1, 2, 1), values_of("red", 10, "tfrc", 2, 2, 2),
        values_of("fifo", 2, "tcp", 90, 95, 99),
    )  # fmt: skip
    (check,) = verdict("rate[tcp] > rate[tfrc]", found, PAIRED, "average").checks
    # scipy: ttest_1samp([0.5, 1.5, 0.5], 0, alternative="greater"), the means of what repetitions differ by
    assert check.is_in_order
    assert (check.runs, check.p_holds) == ((3, 3), pytest.approx(0.06480586))
    trend = verdict("rate[tcp] falling in n", found, PAIRED, "average", queue="red")
    assert (trend.checks[0].test, trend.is_in_order) == ("cluster-robust t of the trend", True)
    assert verdict("rate[tcp] > rate[sctp]", found, PAIRED, "average").finding == "cannot tell"


def test_a_ratio_of_ratios_is_tested_by_its_logarithm():
    found = cells(
        values_of("red", 2, "tcp", 25.1, 24.0, 27.3, 22.2, 26.0),
        values_of("fifo", 2, "tcp", 280.0, 291.0, 275.0, 288.0, 301.0),
        values_of("red", 2, "tfrc", 94.0, 56.0, 93.0, 107.0, 81.0),
        values_of("fifo", 2, "tfrc", 286.0, 283.0, 290.0, 284.0, 299.0),
    )
    claim = "rate[tcp, queue=red] / rate[tcp, queue=fifo] < rate[tfrc, queue=red] / rate[tfrc, queue=fifo]"
    one = verdict(claim, found, PAIRED)
    assert (one.finding, one.is_in_order) == ("holds", True)
    # statsmodels, as in the tests of contrasts
    assert one.checks[0].p_holds == pytest.approx(0.00016466959637514089)
    assert ours_text(one) == (
        "n = 2: 24.9 ± 2.4 bit/s / 287 ± 13 bit/s against 86 ± 24 bit/s / 288.4 ± 8.1 bit/s (5 runs)"
    )
    assert verdict("rate[tcp, queue=red] / rate[tcp, queue=fifo] < 10 %", found, PAIRED).finding == "holds"
    assert (
        verdict("rate[tcp, queue=red] / rate[tcp, queue=fifo] about 0.2", found, PAIRED).finding
        == "does not hold"
    )
    nothing = cells(values_of("red", 2, "tcp", 0, 0), values_of("fifo", 2, "tcp", 2, 3))
    none = verdict("rate[queue=red] / rate[queue=fifo] < 0.5", nothing, PAIRED)
    assert (none.finding, none.is_in_order) == ("cannot tell", True)
    assert "a mean is 0" in none.reason
    over_zero = verdict("rate[queue=fifo] / rate[queue=red] < 0.5", nothing, PAIRED)
    assert (over_zero.finding, over_zero.is_in_order) == ("cannot tell", None)


def test_a_mean_over_settings_of_paired_runs_has_the_interval_of_their_repetitions():
    settings = both_settings("a", FIRST, SECOND)
    (paired,) = pivot(settings, "rate", [], where={}, references=[], level=0.95, runs=PAIRED)
    # statsmodels, as in the tests of significance
    assert (paired.cell.student.low, paired.cell.student.high) == pytest.approx((0.2550319, 2.8249681))
    assert (len(paired.cell.values), paired.cell.repetitions) == (20, 10)
    (apart,) = pivot(settings, "rate", [], where={}, references=[], level=0.95, runs=RUNS)
    assert apart.cell.repetitions == 20
    assert apart.cell.student.high < 2.5


def test_labels_of_the_same_runs_are_paired_whatever_the_study_says():
    found = verdict(
        "rate[b] > rate[a]", cells(values_of("x", 2, "a", *FIRST), values_of("x", 2, "b", *SECOND))
    )
    assert (found.finding, found.checks[0].test, found.checks[0].runs) == ("holds", "paired t", (10,))


def test_pairs_of_which_one_run_is_missing_are_left_out():
    first = cells(values_of("x", 2, "a", *FIRST), values_of("x", 2, "b", *SECOND[:3], None, *SECOND[4:]))
    assert verdict("rate[b] > rate[a]", first).checks[0].runs == (9,)


def test_of_one_run_nothing_can_be_told_but_its_means():
    found = verdict("rate[a] > 5", cells(values_of("x", 2, "a", 6)))
    assert (found.finding, found.confidence) == ("cannot tell", None)
    assert found.reason == "a single run does not show how much runs vary"
    assert (found.is_in_order, found.is_as_expected) == (True, True)


def test_runs_that_do_not_vary_decide_by_their_values():
    still = cells(values_of("x", 2, "a", 0, 0, 0), values_of("x", 2, "b", 1, 1, 1))
    assert verdict("rate[a] <= 0", still).finding == "holds"
    assert verdict("rate[a] > 0", still).finding == "does not hold"
    assert verdict("rate[b] > rate[a]", still).confidence == 1


def test_a_trend_needs_all_levels_and_no_step_the_other_way():
    rising = [list(values_of("x", n, "a", 10 * n, 10 * n + 1, 10 * n + 2)) for n in (1, 2, 3)]
    assert verdict("rate[a] rising in n", cells(*rising)).finding == "holds"
    assert verdict("rate[a] falling in n", cells(*rising)).finding == "does not hold"
    back = cells(*rising, values_of("x", 4, "a", 15, 16, 17))
    found = verdict("rate[a] rising in n", back)
    assert (found.finding, found.is_in_order) == ("does not hold", False)
    alone = cells(*rising, values_of("x", 4, "a", 50))
    assert verdict("rate[a] rising in n", alone).finding == "cannot tell"
    # paired runs that move together show a trend that their spread alone would hide
    together = cells(values_of("x", 1, "a", 10, 20, 30), values_of("x", 2, "a", 11, 21.1, 30.9))
    assert verdict("rate[a] rising in n", together).finding == "cannot tell"
    assert verdict("rate[a] rising in n", together, PAIRED).finding == "holds"


def test_most_scenarios_are_enough_where_the_claim_says_so():
    many = [list(values_of("x", n, "a", 10, 10.1, 10.2)) for n in (1, 2, 3)]
    odd = cells(*many, values_of("x", 4, "a", 1, 1.1, 1.2))
    assert verdict("rate[a] > 5", odd).finding == "does not hold"
    most = verdict("rate[a] > 5", odd, share="most")
    assert (most.finding, most.is_in_order) == ("holds", True)
    assert verdict("rate[a] < 5", odd, share="most").finding == "does not hold"


def test_one_scenario_of_many_fails_by_chance_now_and_then():
    """Of ten scenarios one is contrary with p = 0.018: alone that is evidence, ten times as much is not."""
    doubtful = list(values_of("x", 9, "a", 3, 4.5, 4.2, 3.9))
    alone = verdict("rate[a] > 5", cells(doubtful))
    assert alone.finding == "does not hold"
    fine = (values_of("x", n, "a", 10, 10.1, 10.2) for n in range(9))
    assert verdict("rate[a] > 5", cells(*fine, doubtful)).finding == "cannot tell"


def test_a_claim_about_a_scenario_without_a_value_cannot_be_values_of():
    found = verdict("rate[tfrc] > 0", cells(values_of("red", 2, "tfrc", None)))
    assert (found.finding, found.is_in_order, found.is_as_expected) == ("cannot tell", None, False)


def test_a_label_that_some_scenarios_lack_is_checked_in_the_others():
    some = cells(
        values_of("red", 2, "tcp", 6, 7),
        values_of("fifo", 2, "tcp", None),
        values_of("fifo", 2, "tfrc", 1, 2),
    )
    ghost = [replace(cell, reason=NO_FLOW) if cell.missing else cell for cell in some]
    assert len(verdict("rate[tcp] > 5", ghost).checks) == 1
    # nor need it be named where it is the only one
    assert verdict("rate > 5", ghost, queue="red").is_in_order
    assert len(verdict("rate[queue=fifo] < rate[queue=red]", ghost).checks) == 1


def test_a_claim_that_is_known_to_fail_is_as_expected():
    failing = verdict("rate[tcp] > 100")
    assert not failing.is_as_expected
    assert replace(failing, expectation=replace(failing.expectation, holds=False)).is_as_expected


@pytest.mark.parametrize(
    ("stated", "claim", "agrees"),
    [
        (True, "rate[a] > 5", True),
        (False, "rate[a] > 5", False),
        (True, "rate[a] < 5", False),
        (False, "rate[a] < 5", True),
        (None, "rate[a] > 5", None),
        (True, "rate[a] > 10.1", None),
    ],
)
def test_a_finding_is_beside_what_the_paper_states(stated, claim, agrees):
    found = verdict(claim, cells(values_of("x", 1, "a", 10, 10.1, 10.2)))
    said = replace(found.expectation, holds_in_paper=stated, reason="other radios")
    verdict_of_paper = replace(found, expectation=said)
    assert verdict_of_paper.agrees_with_paper is agrees
    assert ("other radios" in reason_text(verdict_of_paper)) is (agrees is False)


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
    placed = pivot(FOUR, "rate", ["queue"], where={}, references=[], level=0.95, runs=RUNS)
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
        placed = pivot(found, "rate", ["queue", "group"], where={}, references=(), level=0.95, runs=RUNS)
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
    merged = pivot(
        summarise(whole, SCENARIO, 0.95), "rate", [], where={}, references=[], level=0.95, runs=RUNS
    )
    assert sorted(merged[0].cell.values) == sorted(value for _, _, value in rows)


def test_a_whole_number_in_a_claim_is_that_among_fractions():
    found = cells(
        values_of("red", 0.5, "tcp", 10), values_of("red", 1.0, "tcp", 20), values_of("red", 2.0, "tcp", 5)
    )
    assert verdict("rate[tcp, n=1] > rate[tcp, n=0.5]", found).is_in_order
    assert verdict("rate[tcp, n=1.0] > rate[tcp, n=2]", found).is_in_order


def test_numbers_come_in_order_of_size_and_texts_as_they_are():
    assert sorted_values([10, 2, 2.5, 10]) == [2, 2.5, 10]
    assert sorted_values(["b", "a", None, "b"]) == ["b", "a"]


def metric(name, group, value, n, *flows, window_s=1.0):
    return Metric(
        name=name,
        group=group,
        value=value,
        unit="",
        n=n,
        flows=flows,
        window_s=window_s,
        warmup_s=0.0,
        reason=None if value is not None else "never",
    )


def record_of(flows=(), metrics=()):
    return StudyRecord(
        failed=False,
        problems=[],
        sets=1,
        set=None,
        least_packets=20,
        flows_left_out=0,
        metrics=list(metrics),
        flows=[StudyFlow(number, "tcp", numbers, {}) for number, numbers in enumerate(flows, 1)],
        series={},
    )


RECORD = record_of(
    flows=[{"sent_packets": 10, "rtt_mean_ms": None}, {"sent_packets": 30, "rtt_mean_ms": 5.0}],
    metrics=[
        metric("pdr", "tcp", 0.5, 10, 1),
        metric("pdr", "tcp", 0.9, 30, 2),
        metric("jain", None, 0.8, 2, 1, 2),
        metric("cov", "tcp", 0.1, 9, 1, window_s=1.0),
        metric("cov", "tcp", 0.2, 9, 1, window_s=2.0),
        metric("rise_s", "tcp", None, 9, 1),
        metric("burstiness", "tcp", float("inf"), 9, 1),
    ],
)


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
    (one,) = run_values(record_of(), Quantity("q", Term("jain", "mean", "metric")), [])
    assert (one.value, one.reason) == (
        None,
        "the flows do not show it: too short, never together, or an option is missing",
    )


def test_a_group_whose_flows_did_not_compete_is_distinguished_from_one_without_flows():
    record = record_of(flows=[{}])
    rate = Quantity("rate", Term("rate_bps", "mean", "metric"))
    found = {one.group: one.reason for one in run_values(record, rate, ["tcp", "tfrc"])}
    assert found == {
        "tcp": "the flows do not show it: too short, never together, or an option is missing",
        "tfrc": NO_FLOW,
    }


def test_a_reference_stands_at_the_place_of_all_scenarios_that_it_is_about():
    def shown(axes, **where):
        about = Reference(quantity="rate", source="", where=where, group="tcp", value=1.0)
        places = pivot(FOUR, "rate", axes, where={}, references=[about], level=0.95, runs=RUNS)
        return [(*one.at, one.rest) for one in places if one.reference]

    assert shown(["queue", "n"], queue=("red",), n=(2,)) == [("red", 2, "tcp")]
    assert shown(["queue"], queue=("red",)) == [("red", "tcp")]
    # not at each of the scenarios that it is about together, nor where others are among them
    assert shown(["queue", "n"], queue=("red",)) == []
    assert shown(["group"], queue=("red",)) == []
