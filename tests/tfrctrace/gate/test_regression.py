"""Runs against a baseline: what is noise, what is a regression, and how sure that is."""

from __future__ import annotations

import random

import polars as pl
import pytest

from tfrctrace.gate.baseline import Baseline
from tfrctrace.gate.regression import Rules, judge_baseline
from tfrctrace.gate.requirement import parse_comparison, parse_requirement
from tfrctrace.gate.values import CheckedRun
from tfrctrace.gate.verdict import effect_of, judge_limit
from tfrctrace.metrics.results.quantities import QuantityValues
from tfrctrace.metrics.statistics.significance import student_test, welch_test

RATE, LOSS, SIZE = "mean(goodput_bps)", "mean(plr)", "mean(mss)"


def runs(text, values):
    return [
        CheckedRun(
            f"run {number}", {text: QuantityValues(() if value is None else (value,), 1, 1, "none is known")}
        )
        for number, value in enumerate(values)
    ]


def judge(text, before, now, *, test="welch", tolerance=0.05, unknown="fail", **more):
    baseline = Baseline("baseline.json", {}, {text: tuple(before)})
    rules = Rules(tolerance, 0.01, test, unknown)
    (verdict,) = judge_baseline(baseline, [parse_comparison(text, **more)], runs(text, now), rules)
    return verdict


BEFORE = [10.0, 10.2, 9.9, 10.1, 9.8]


@pytest.mark.parametrize(
    ("text", "now", "outcome"),
    [
        (RATE, [8.0, 8.1, 7.9], "fail"),
        (RATE, [12.0, 12.1, 11.9], "pass"),  # better
        (RATE, [9.8, 9.9, 9.7], "pass"),  # within the tolerance
        (RATE, [5.0, 15.0, 7.0], "pass"),  # noise
        (LOSS, [12.0, 12.1, 11.9], "fail"),
        (LOSS, [8.0, 8.1, 7.9], "pass"),
        (SIZE, [12.0, 12.1, 11.9], "fail"),
        (SIZE, [8.0, 8.1, 7.9], "fail"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_worse_for_sure_and_by_more_than_the_tolerance_fails(text, now, outcome, sign):
    if sign < 0:  # a mirrored quantity has the other direction
        better = {"higher": "lower", "lower": "higher", "same": "same"}[parse_comparison(text).better]
        verdict = judge(text, [-one for one in BEFORE], [-one for one in now], better=better)
    else:
        verdict = judge(text, BEFORE, now)
    assert verdict.outcome == outcome
    welch = welch_test(pl.Series(BEFORE), pl.Series(now))
    assert verdict.p_value == pytest.approx(welch.p_value)


def test_ranks_need_no_normal_distribution():
    before = [10.0, 10.2, 9.9, 10.1, 9.8, 10.3, 9.7, 10.4]
    now = [8.0, 8.1, 1.0, 8.2, 7.8]  # one outlier, which Welch's test takes for noise
    assert judge(RATE, before, now).outcome == "pass"
    assert judge(RATE, before, now, test="rank").outcome == "fail"


def test_one_run_is_tested_against_several():
    assert judge(RATE, BEFORE, [8.0]).outcome == "fail"
    assert judge(RATE, BEFORE, [9.4]).outcome == "pass"  # 6 % less, p = 0.026
    assert "Student, 1 and 5 runs" in judge(RATE, BEFORE, [9.4]).reason


def test_student_s_test_is_scipy_s():
    # scipy 1.17.1, stats.ttest_ind(before, now, equal_var=True)
    for now, t, p_value in (
        ([8.0], 11.547005383792557, 0.00032126632845985546),
        ([9.4], 3.4641016151377655, 0.025721420742506253),
        ([9.0, 10.5, 8.0], 1.546473935329356, 0.172950560607468),
    ):
        test = student_test(pl.Series(BEFORE), pl.Series(now))
        assert (test.statistic, test.p_value) == pytest.approx((t, p_value), rel=1e-9)
    assert student_test(pl.Series([1.0]), pl.Series([2.0])) is None
    assert student_test(pl.Series([1.0, 1.0]), pl.Series([2.0])) is None
    assert student_test(pl.Series([1.0, 2.0]), pl.Series([], dtype=pl.Float64)) is None


@pytest.mark.parametrize(
    ("before", "now"), [([10.0], [9.0]), ([10.0, 10.0], [9.0, 9.0]), ([10.0] * 3, [9.0])]
)
def test_without_noise_to_see_the_tolerance_decides(before, now):
    assert judge(RATE, before, now).outcome == "fail"
    assert judge(RATE, before, now, tolerance=0.2).outcome == "pass"
    assert "the tolerance alone decides" in judge(RATE, before, now).reason


def test_a_baseline_of_zero_has_no_share():
    verdict = judge(LOSS, [0.0, 0.0], [0.1, 0.1])
    assert (verdict.outcome, "the baseline is 0" in verdict.reason) == ("fail", True)
    assert judge(LOSS, [0.0, 0.0], [0.0, 0.0]).outcome == "pass"


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ([], [1.0], "the baseline has no value of it"),
        ([1.0], [1.0, None], "1 of 2 runs have no value: none is known"),
    ],
)
def test_what_cannot_be_compared_is_unknown(before, now, reason):
    verdict = judge(RATE, before, now)
    assert (verdict.outcome, verdict.effect, verdict.reason) == ("unknown", "fail", reason)
    assert judge(RATE, before, now, unknown="warn").effect == "warn"


def test_a_quantity_that_the_baseline_lacks_is_unknown():
    baseline = Baseline("baseline.json", {}, {})
    rules = Rules(0.05, 0.01, "welch", "fail")
    (verdict,) = judge_baseline(baseline, [parse_comparison(RATE)], runs(RATE, [1.0]), rules)
    assert (verdict.outcome, "write the baseline anew" in verdict.reason) == ("unknown", True)


@pytest.mark.slow
def test_noise_fails_the_gate_no_more_often_than_it_says():
    """Six quantities without a difference: all of them together may fail in 1 % of 1,000 builds."""
    draw = random.Random(20)
    texts = [f"p{percent}(rtt_ms)" for percent in (10, 30, 50, 70, 90, 95)]
    comparisons = [parse_comparison(text) for text in texts]
    failed = 0
    for _ in range(1_000):
        baseline = Baseline("b", {}, {text: tuple(draw.gauss(100, 20) for _ in range(10)) for text in texts})
        now = [
            CheckedRun("run", {text: QuantityValues((draw.gauss(100, 20),), 1, 1) for text in texts})
            for _ in range(10)
        ]
        verdicts = judge_baseline(baseline, comparisons, now, Rules(0.0, 0.01, "welch", "fail"))
        failed += any(verdict.outcome == "fail" for verdict in verdicts)
    # the test has two sides and only one of them fails: about 5; above 15 once in 10,000 such experiments
    assert failed <= 15


@pytest.mark.parametrize(
    ("outcome", "level", "unknown", "effect"),
    [
        ("pass", "fail", "fail", "pass"),
        ("fail", "fail", "pass", "fail"),
        ("fail", "warn", "fail", "warn"),
        ("unknown", "fail", "fail", "fail"),
        ("unknown", "warn", "fail", "warn"),
        ("unknown", "fail", "warn", "warn"),
        ("unknown", "fail", "pass", "pass"),
        ("unknown", "warn", "pass", "pass"),
    ],
)
def test_a_level_and_what_is_not_known_decide_the_effect(outcome, level, unknown, effect):
    assert effect_of(outcome, level, unknown) == effect


def test_a_limit_holds_in_every_run_or_fails():
    limit = parse_requirement("mean(plr) < 2%")
    text = limit.quantity.name
    verdict = judge_limit(limit, runs(text, [0.01, 0.03, 0.01]), "fail")
    assert (verdict.outcome, verdict.value, verdict.runs) == ("fail", 0.03, 3)
    assert verdict.reason == "broken by 1 of 3 values in 1 of 3 runs: `run 1`"
    assert judge_limit(limit, runs(text, [0.01, 0.012]), "fail").outcome == "pass"


def test_a_limit_that_is_broken_is_not_unknown():
    limit = parse_requirement("mean(plr) < 2%")
    assert judge_limit(limit, runs(limit.quantity.name, [None, 0.03]), "pass").outcome == "fail"
    assert judge_limit(limit, runs(limit.quantity.name, [None, 0.01]), "pass").outcome == "unknown"


def test_a_bare_name_must_be_known_of_every_flow():
    limit = parse_requirement("rtt_p95_ms < 80")
    run = CheckedRun("run", {"rtt_p95_ms": QuantityValues((10.0, 20.0), 2, 3, "not TCP")})
    verdict = judge_limit(limit, [run], "fail")
    assert (verdict.outcome, verdict.reason) == ("unknown", "known of 2 of 3: not TCP in `run`")


@pytest.mark.parametrize(("sign", "worst"), [("<", 9.0), ("<=", 9.0), (">", 1.0), (">=", 1.0), ("==", 9.0)])
def test_the_worst_value_is_the_one_that_is_reported(sign, worst):
    limit = parse_requirement(f"timeouts {sign} 4")
    assert limit.worst([4.0, 1.0, 9.0]) == worst
    assert limit.holds(4.0) == (sign in {"<=", ">=", "=="})
