"""Objectives by interval: which were met, violated or without data, and the stretches that broke them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tfrctrace.base.errors import UsageError
from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.groups import Groups, sum_groups
from tfrctrace.metrics.objectives import Extent, judge_objective
from tfrctrace.parsers.schema import TABLES, polars_schema

MINUTE_NS = 60 * 10**9
DAY = 1_767_571_200 * 10**9

ROW = {column.name: None if column.type in {"string", "float64"} else 0 for column in TABLES["groups"]}


def objective(require="p95(rtt_ms) < 80 ms", **keys):
    return parse_objective({"require": require, "by": "host", "every": "1min", "least": 5, **keys})


def table(grouping, cells):
    """Return groups of `cells`: group, direction, minute, RTT samples in ms, packets, retransmissions."""
    rows, buckets = [], []
    for group, direction, minute, rtts_ms, packets, retransmitted in cells:
        start_ns = DAY + minute * MINUTE_NS
        key = {"group": group, "direction": direction, "start_ns": start_ns}
        counts = {"packets": packets, "tcp_packets": packets, "tcp_data_packets": packets}
        counts |= {"retransmitted_packets": retransmitted, "retransmitted_segments": retransmitted}
        counts["tcp_data_segments"] = packets
        times = {"end_ns": start_ns + MINUTE_NS, "rtt_samples": len(rtts_ms)}
        goodput = {"goodput_bytes": packets * 1000}
        rows.append({**ROW, **key, **counts, **times, **goodput})
        for rtt_ms in sorted(set(rtts_ms)):
            edges = {"measure": "rtt", "from_ns": rtt_ms * 10**6, "to_ns": rtt_ms * 10**6}
            buckets.append({**key, **edges, "samples": rtts_ms.count(rtt_ms)})
    return Groups(
        grouping,
        pl.DataFrame(rows, schema=polars_schema("groups")),
        pl.DataFrame(buckets, schema=polars_schema("group_buckets")),
    )


def judged(asked, cells, minutes):
    first_ns = DAY
    extent = Extent(first_ns, first_ns + minutes * MINUTE_NS - 1)
    return judge_objective(asked, table(asked.grouping, cells), extent)


def cell(minute, rtt_ms, n=10, group="a", direction="sent"):
    return (group, direction, minute, [rtt_ms] * n, max(n, 1), 0)


def test_each_minute_is_met_violated_severe_or_without_data():
    asked = objective(severe="p95(rtt_ms) < 200 ms")
    found = judged(
        asked, [cell(0, 20), cell(1, 100), cell(2, 300), cell(3, 90), cell(4, 300, n=4), cell(6, 100)], 10
    )
    verdicts = ["met", "violated", "severe", "violated", "no_data", "violated"]
    assert found.intervals["verdict"].to_list() == verdicts
    total = found.total
    assert (total.intervals, total.met, total.violated, total.severe, total.without_data) == (10, 1, 3, 1, 5)
    assert total.share_met == 1 / 5
    assert (total.first_ns, total.last_ns) == (DAY + MINUTE_NS, DAY + 7 * MINUTE_NS)
    first, second = found.stretches.to_dicts()
    assert (first["begin_ns"], first["end_ns"]) == (DAY + MINUTE_NS, DAY + 4 * MINUTE_NS)
    assert (first["intervals"], first["severe"], first["value"], first["n"]) == (3, 1, 300, 10)
    assert first["at_ns"] == DAY + 2 * MINUTE_NS
    assert second["begin_ns"] == DAY + 6 * MINUTE_NS
    outcome = found.outcome("a")
    assert outcome == replace(total, group="a")
    assert outcome.worst is not None
    assert (outcome.worst.begin_ns, outcome.stretches) == (first["begin_ns"], 2)
    with pytest.raises(KeyError):
        found.outcome("b")


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, [(1, 2), (4, 5), (6, 8), (20, 21)]),
        ({"raise": 2}, [(6, 8)]),
        ({"clear": 2}, [(1, 2), (4, 8), (20, 21)]),
        ({"raise": 2, "clear": 3}, [(1, 8)]),
        ({"raise": 3}, []),
    ],
)
def test_stretches_begin_after_some_violations_and_end_after_some_others(keys, expected):
    bad = {1, 4, 6, 7, 20}
    cells = [cell(minute, 100 if minute in bad else 20) for minute in range(30) if minute not in {2, 12}]
    found = judged(objective(**keys), [*cells, cell(7, 100, group="b")], 30)
    stretches = found.stretches.filter(group="a").sort("begin_ns")
    minutes = [
        ((begin - DAY) // MINUTE_NS, (end - DAY) // MINUTE_NS)
        for begin, end in stretches.select("begin_ns", "end_ns").iter_rows()
    ]
    assert minutes == expected
    # what is counted does not depend on it
    assert found.outcome("a").violated == len(bad)


def test_nothing_is_met_for_want_of_data():
    asked = objective(least=20)
    found = judged(asked, [cell(0, 20, n=19)], 3)
    assert (found.total.met, found.total.without_data, found.total.share_met) == (0, 3, None)
    assert found.total.meets(0.01) is None
    assert found.failing.is_empty()
    empty = judged(asked, [], 3)
    assert (empty.total.intervals, empty.total.share_met, empty.groups.height) == (0, None, 0)


def test_the_side_of_the_capture_with_few_samples_is_not_hidden_by_the_other():
    asked = objective()
    cells = [cell(0, 20, n=1000), cell(0, 300, n=6, direction="received"), cell(1, 20, n=1000)]
    found = judged(asked, cells, 2)
    assert found.intervals["verdict"].to_list() == ["violated", "met"]
    assert found.intervals["direction"].to_list() == ["received", "sent"]
    assert found.intervals["n"].to_list() == [6, 1000]
    # a side with too few samples says nothing
    found = judged(asked, [cell(0, 20), cell(0, 300, n=2, direction="received")], 1)
    assert found.intervals.select("verdict", "n").row(0) == ("met", 10)
    one = objective("p95(rtt_ms) < 80 ms where direction sent")
    assert judged(one, cells, 2).total.violated == 0


def test_ratios_are_those_of_both_directions_together():
    asked = objective("sum(retransmitted_packets) / sum(tcp_data_packets) < 2 %", least=100)
    cells = [("a", "sent", 0, [], 90, 3), ("a", "received", 0, [], 110, 0), ("a", "sent", 1, [], 99, 0)]
    found = judged(asked, cells, 2)
    assert found.intervals.select("value", "n", "verdict").rows() == [
        (3 / 200, 200, "met"),
        (0.0, 99, "no_data"),
    ]
    assert found.objective.unit == "%"
    same = objective("retransmission_ratio < 2 %", least=100)
    assert_frame_equal(judged(same, cells, 2).intervals, found.intervals)


def test_a_ratio_leaves_out_the_direction_in_which_losses_cannot_be_seen():
    asked = objective("sum(lost_behind_capture) / sum(tcp_data_packets) < 2 %")
    cells = [("a", "sent", 0, [], 100, 0), ("a", "received", 0, [], 900, 0)]
    groups = table(asked.grouping, cells)
    known = pl.when(pl.col("direction") == "sent").then(3).cast(pl.UInt64)
    groups = replace(groups, rows=groups.rows.with_columns(lost_behind_capture=known))
    found = judge_objective(asked, groups, Extent(DAY, DAY + MINUTE_NS - 1))
    assert found.intervals.select("value", "n", "verdict").row(0) == (0.03, 100, "violated")


@pytest.mark.parametrize(
    ("require", "verdicts"),
    [
        # 10 packets of 1000 bytes in a minute are 1333 bit/s
        ("goodput_bps > 1 kbit/s", ["met", "met", "met"]),
        ("goodput_bps > 2 kbit/s", ["no_data", "violated", "no_data"]),
        ("goodput_bps < 1 kbit/s", ["violated", "violated", "violated"]),
        ("goodput_bps < 2 kbit/s", ["no_data", "met", "no_data"]),
        ("sum(packets) == 10", ["no_data", "met", "no_data"]),
        ("packets == 9", ["violated", "violated", "violated"]),
    ],
)
def test_an_amount_is_not_judged_by_a_part_of_an_interval_unless_the_rest_cannot_change_it(require, verdicts):
    asked = objective(require)
    extent = Extent(DAY + 30 * 10**9, DAY + 2 * MINUTE_NS + 30 * 10**9)
    groups = table(asked.grouping, [cell(minute, 20) for minute in range(3)])
    assert judge_objective(asked, groups, extent).intervals["verdict"].to_list() == verdicts


def test_years_between_packets_are_counted_and_not_made():
    asked = objective(every="1ms", least=1)
    groups = table(asked.grouping, [cell(0, 20), cell(60 * 24 * 365 * 100, 90)])
    rows = groups.rows.with_columns(end_ns=pl.col("start_ns") + 10**6)
    last_ns = DAY + 100 * 365 * 86_400 * 10**9
    found = judge_objective(asked, replace(groups, rows=rows), Extent(DAY, last_ns))
    assert found.total.intervals == 100 * 365 * 86_400 * 1000 + 1
    assert (found.total.met, found.total.violated) == (1, 1)
    assert found.intervals.height == 2


def test_packets_outside_of_what_their_file_claims_widen_the_trace():
    asked = objective()
    groups = table(asked.grouping, [cell(-600, 20), cell(0, 20), cell(5, 20)])
    found = judge_objective(asked, groups, Extent(DAY, DAY + MINUTE_NS))
    assert found.begin_ns == DAY - 600 * MINUTE_NS
    assert found.total.intervals == 606


CELLS = st.lists(
    st.tuples(
        st.sampled_from(["10.0.0.1", "10.0.0.2", "2001:db8::1", None]),
        st.sampled_from(["sent", "received"]),
        st.integers(0, 12),
        st.lists(st.sampled_from([10, 79, 80, 81, 150, 200, 900]), max_size=30),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=40,
)
RATIO = "sum(retransmitted_packets) / sum(packets)"
ASKED = st.sampled_from(
    [
        objective(severe="p95(rtt_ms) < 200 ms"),
        objective("median(rtt_ms) >= 80"),
        objective("retransmission_ratio < 20 %"),
        objective(f"{RATIO} <= 0.5", severe=f"{RATIO} <= 0.9"),
        objective("goodput_bps > 4 kbit/s", severe="goodput_bps > 1 kbit/s"),
        objective("sum(retransmitted_packets) == 0"),
    ]
)


def unique(cells):
    return list({cell[:3]: cell for cell in cells}.values())


@settings(max_examples=60, deadline=None)
@given(CELLS, ASKED)
def test_counts_of_verdicts_add_up_and_stretches_are_the_violated_intervals(cells, asked):
    found = judged(asked, unique(cells), 13)
    for one in [found.total, *found.outcomes(found.groups)]:
        assert one.met + one.violated + one.severe + one.without_data == one.intervals
    assert found.total.intervals == 13 * found.groups.height
    outcomes = list(found.outcomes(found.groups))
    for name in ("met", "violated", "severe", "without_data", "stretches"):
        assert sum(getattr(one, name) for one in outcomes) == getattr(found.total, name)
    shares = [one.share_met for one in outcomes if one.share_met is not None]
    assert shares == sorted(shares)
    # by hand: runs of consecutive minutes
    expected = []
    for group, rows in groupby(found.intervals.iter_rows(named=True), key=lambda row: row["group"]):
        minutes = [row for row in rows if row["verdict"] in {"violated", "severe"}]
        numbered = enumerate(minutes)
        for _, part in groupby(numbered, key=lambda one: one[1]["start_ns"] // MINUTE_NS - one[0]):
            own = [row for _, row in part]
            severe = sum(row["verdict"] == "severe" for row in own)
            expected.append((group, own[0]["start_ns"], own[-1]["end_ns"], len(own), severe))
    columns = found.stretches.select("group", "begin_ns", "end_ns", "intervals", "severe")
    assert sorted(map(repr, columns.rows())) == sorted(map(repr, expected))


@settings(max_examples=40, deadline=None)
@given(CELLS, ASKED, st.randoms())
def test_the_order_of_rows_changes_nothing(cells, asked, random):
    cells = unique(cells)
    found = judged(asked, cells, 13)
    random.shuffle(cells)
    again = judged(asked, cells, 13)
    assert_frame_equal(found.intervals, again.intervals)
    assert_frame_equal(found.groups, again.groups)
    assert_frame_equal(found.stretches, again.stretches)
    assert found.total == again.total


@settings(max_examples=40, deadline=None)
@given(CELLS, CELLS, ASKED)
def test_parts_that_are_summed_are_judged_as_the_whole(first, second, asked):
    parts = [table(asked.grouping, unique(cells)) for cells in (first, second)]
    extent = Extent(DAY, DAY + 13 * MINUTE_NS - 1)
    # the same packets in one table, whose rows are not summed yet
    rows, buckets = (pl.concat([getattr(one, name) for one in parts]) for name in ("rows", "buckets"))
    whole = Groups(asked.grouping, rows, buckets)
    found, expected = (judge_objective(asked, one, extent) for one in (sum_groups(parts), whole))
    assert_frame_equal(found.intervals, expected.intervals)
    assert found.total == expected.total


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "`require` must be a non-empty string"),
        ({"require": "p95(rtt_ms) < 80", "evry": "1min"}, "unknown key `evry`"),
        ({"require": "p95(rtt_ms) < 0"}, "never met: no value is below 0"),
        ({"require": "p95(rtt_ms) >= 0"}, "always met"),
        ({"require": "retransmission_ratio > 100 %"}, "never met: no value is above 1"),
        ({"require": "retransmission_ratio <= 1"}, "always met"),
        ({"require": "sum(packets) < 2 %"}, "no share"),
        ({"require": "p95(rtt_ms) < 80 kB"}, "has a limit in `kB`"),
        ({"require": "min(jain) > 0.9"}, "it is a metric, for `[[limit]]`"),
        ({"require": "sum(timeouts) == 0"}, "it is a column of flows"),
        ({"require": "sum(group) == 0"}, "no `group`"),
        ({"require": "max(goodput_bps) > 1"}, "one value of `goodput_bps`"),
        ({"require": "rtt_ms < 80"}, "all samples"),
        ({"require": "sum(rtt_ms) < 80"}, "is not known of a group"),
        ({"require": "p95(rtt_ms) < 80 where port 80"}, "expected `direction` or `group`"),
        ({"require": "p95(rtt_ms) < 80 where direction fwd", "by": "host"}, "no direction `fwd`"),
        ({"require": "p95(rtt_ms) < 80 where group a and group b"}, "condition twice"),
        ({"require": "p95(rtt_ms) < 80", "severe": "p99(rtt_ms) < 200"}, "is about"),
        ({"require": "p95(rtt_ms) < 80", "severe": "p95(rtt_ms) < 40"}, "not a wider limit"),
        ({"require": "p95(rtt_ms) < 80", "severe": "p95(rtt_ms) > 200"}, "not a wider limit"),
        ({"require": "goodput_bps > 5M", "severe": "goodput_bps > 6M"}, "not a wider limit"),
        ({"require": "p95(rtt_ms) < 80", "every": "soon"}, "is not a duration"),
        ({"require": "p95(rtt_ms) < 80", "every": 60}, "`every` must be a non-empty string"),
        ({"require": "p95(rtt_ms) < 80", "by": "mood"}, "cannot be grouped by"),
        ({"require": "p95(rtt_ms) < 80", "least": 0}, "must be at least 1"),
        ({"require": "p95(rtt_ms) < 80", "target": "101 %"}, "`target` must be a share"),
        ({"require": "p95(rtt_ms) < 80", "target": 99.5}, "`target` must be a share"),
        ({"require": "p95(rtt_ms) < 80", "target": 0}, "`target` must be a share"),
        ({"require": "p95(rtt_ms) < 80", "level": "panic"}, "`level` cannot be"),
    ],
)
def test_what_an_objective_may_not_be_is_said(keys, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_objective(keys)
