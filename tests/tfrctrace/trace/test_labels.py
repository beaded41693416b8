"""Rules that give flows their labels."""

from __future__ import annotations

import polars as pl
import pytest

from tfrctrace.base.errors import UsageError, wording
from tfrctrace.trace.labels import parse_rule, with_labels

EPOCH_NS = 1_700_000_000_000_000_000
FLOWS = pl.DataFrame(
    {
        "flow": [1, 2, 3],
        "label": [None, None, None],
        "transport": ["tcp", "tcp", "tfrc"],
        "src": ["10.0.0.1", "10.0.0.2", "4"],
        "src_port": [40_000, 5201, 0],
        "dst": ["10.0.0.9", "10.0.0.1", "5"],
        "dst_port": [5201, 40_001, 0],
        "source": ["a/one.pcap", "a/one.pcap", "two.tr"],
        "flow_id": [None, None, 7],
        "dscp": [46, 0, None],
        "agent": [None, None, "tcpFriend"],
        # a capture of this year, and a simulation
        "start_ns": [EPOCH_NS, EPOCH_NS + 5_000_000_000, 5_000_000_000],
    },
    schema_overrides={"label": pl.String, "flow_id": pl.UInt32, "dscp": pl.UInt32},
)


def labels(*rules):
    flows, problems = with_labels(FLOWS, [parse_rule(rule) for rule in rules])
    return flows["label"].to_list(), [wording(problem) for problem in problems]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("x=port 5201", ["x", "x", None]),
        ("x=src port 5201", [None, "x", None]),
        ("x=dst port 5201", ["x", None, None]),
        ("x=host 10.0.0.1", ["x", "x", None]),
        ("x=src host 10.0.0.1 and port 5201", ["x", None, None]),
        ("x=flow 2", [None, "x", None]),
        ("x = flow_id 7", [None, None, "x"]),
        ("x=dscp 46", ["x", None, None]),
        ("x=dscp 0", [None, "x", None]),
        ("x=agent tcpFriend", [None, None, "x"]),
        ("two words=transport tfrc", [None, None, "two words"]),
        ("x=source one.pcap", ["x", "x", None]),
        ("x=source two.tr and transport tfrc", [None, None, "x"]),
        ("x=starts after 5s", [None, "x", "x"]),
        ("x=starts before 5s", ["x", None, None]),
        ("x=starts before 1h and source two.tr", [None, None, "x"]),
    ],
)
def test_a_rule_labels_the_flows_that_it_fits(rule, expected):
    assert labels(rule) == (expected, [])


def test_the_first_rule_that_fits_counts_and_the_other_is_reported():
    found, problems = labels("a=port 5201", "b=transport tcp")
    assert found == ["a", "a", None]
    assert problems == ["fits flows that have a label already, which keep it (flows 1, 2)"]


def test_a_rule_that_fits_nothing_is_reported_and_the_rest_is_done():
    assert labels("a=port 1", "b=flow 3") == ([None, None, "b"], ["fits no flow"])


def test_who_asks_ns_2_for_a_variant_of_tcp_gets_a_hint():
    _, problems = with_labels(FLOWS, [parse_rule("veno=agent veno"), parse_rule("x=port 1")])
    hints = [problem["hint"] for problem in problems]
    assert "`flow_id N` or `port N` separates them" in hints[0]
    assert hints[1] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "x=",
        "=port 3",
        "x=port",
        "x=port 3 4",
        "x=port http",
        "x=port -1",
        "x=port 99999999999",
        # Python refuses to make a number of so many digits
        f"x=port {'9' * 5000}",
        "x=src flow 3",
        "x=colour red",
        "x=port 3 or port 4",
        "x=port 3 and",
        "x=starts 5s",
        "x=starts during 5s",
    ],
)
def test_what_is_no_rule_is_refused_with_the_syntax(text):
    with pytest.raises(UsageError, match="is not a rule for a label") as raised:
        parse_rule(text)
    assert "`port N`" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x", "expected `=` at the end"),
        ("x=port http", "expected a number at character 8, before `http`"),
        ("x=src flow 3", "expected `port` or `host` at character 7, before `flow 3`"),
        ("x=flow 3 or port 4", "expected `and` or the end at character 10, before `or port 4`"),
        ("x=flow 4294967296", "expected a number below 2^32 at character 8, before `4294967296`"),
        ("x=label y", "expected a condition at character 3, before `label y`"),
    ],
)
def test_an_error_in_a_rule_has_its_place(text, place):
    with pytest.raises(UsageError) as raised:
        parse_rule(text)
    assert str(raised.value) == f"`{text}` is not a rule for a label: {place}"


def test_both_directions_of_a_flow_start_with_the_first_of_them():
    rows = FLOWS.head(1).with_columns(flow=2, start_ns=FLOWS["start_ns"][0] + 6_000_000_000)
    flows, _ = with_labels(
        pl.concat([FLOWS, rows], how="vertical_relaxed"), [parse_rule("x=starts before 6s")]
    )
    assert flows["label"].to_list() == ["x", "x", "x", "x"]


@pytest.mark.parametrize("time", ["5", "0s", "-1s", "soon"])
def test_a_time_without_a_unit_is_refused_with_an_example(time):
    with pytest.raises(UsageError, match="is not a duration"):
        parse_rule(f"x=starts after {time}")
