"""Quantities and requirements as text, and their values in a run."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.gate.requirement import parse_comparison, parse_requirement, parse_share
from tfrctrace.gate.values import needed_tables, take_quantities
from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.runs.quantity import COLUMNS, aggregate, parse_quantity
from tfrctrace.trace.labels import parse_rule

DATA = Path(__file__).parents[2] / "data" / "gate"
SAMPLES = Path(__file__).parents[3] / "sample_traces"
TWO_FLOWS = Path(__file__).parents[3] / "sample_traces" / "two-flows.pcapng.gz"
TRUTH = list(csv.DictReader((DATA / "truth.csv").read_text().splitlines()))


def take(path, *texts, **measuring):
    quantities = [parse_quantity(text) for text in texts]
    trace = tfrctrace.open(path)
    taken = take_quantities(trace, trace.measure(**measuring), quantities)
    return [taken[one.name] for one in quantities]


@pytest.mark.parametrize("truth", TRUTH[::7], ids=lambda truth: truth["file"])
def test_sums_are_what_the_agents_of_ns2_counted(truth):
    data, again, share = take(
        DATA / "runs" / f"{truth['file']}.xz",
        "sum(data_packets)",
        "sum(retransmitted_packets)",
        "sum(retransmitted_packets) / sum(sent_packets)",
    )
    sent = int(truth["data_packets"])  # the agent counts the packet that opens the connection, too
    assert data.values == (sent - 1,)
    assert again.values == (int(truth["retransmitted_packets"]),)
    assert share.values == pytest.approx((int(truth["retransmitted_packets"]) / sent,))


def test_percentiles_of_samples_are_those_of_all_flows_together():
    samples = tfrctrace.open(TWO_FLOWS).rtt
    own = sorted(samples.filter(direction="fwd").filter(flow=4)["rtt_ns"].to_list())
    low, median, high, least = take(
        TWO_FLOWS,
        "p5(rtt_ms) where src port 43256",
        "median(rtt_ms) where flow 4 and src port 43256",
        "p95(rtt_ms) where src port 43256",
        "min(rtt_ms)",
    )
    # nearest rank: the smallest sample that at least so many percent do not exceed
    for taken, share in ((low, 0.05), (median, 0.5), (high, 0.95)):
        (value,) = taken.values
        at_most = sum(one <= round(value * 1e6) for one in own) / len(own)
        assert at_most >= share > at_most - 2 / len(own) - own.count(round(value * 1e6)) / len(own)
    assert median.of == len(own)
    assert least.of > median.of


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two():
    samples = tfrctrace.open(TWO_FLOWS).rtt.filter(direction="fwd").filter(flow=4)
    rtts_ms = (samples["rtt_ns"] / 1e6).head(samples.height // 2 * 2)
    assert aggregate("median", rtts_ms.to_list()) == pytest.approx(float(np.median(rtts_ms.to_numpy())))
    each, median = take(TWO_FLOWS, "goodput_bps", "median(goodput_bps)", least_packets=20)
    assert median.values == (sum(each.values) / 2,)


def test_a_bare_name_has_the_value_of_each_flow_and_where_chooses():
    every, one, metric, of_set = take(
        TWO_FLOWS,
        "goodput_bps",
        "goodput_bps where port 5202",
        "rate_bps where port 5202",
        "jain where flow 2",
        least_packets=20,
    )
    assert len(every.values) == 2
    assert one.values == every.values[1:]
    assert metric.known == 1
    # the index is of both flows, so there is none of one
    assert (of_set.values, of_set.reason) == ((), "no flows are compared in these windows")


def test_one_timescale_of_burstiness_is_meant():
    cov, burstiness = take(TWO_FLOWS, "mean(cov)", "mean(burstiness)")
    assert cov.values == pytest.approx(burstiness.values)


def test_what_is_not_known_has_a_reason():
    flows, never, ratio, count, partly = take(
        TWO_FLOWS,
        "max(goodput_bps) where port 9",
        "mean(pdr)",
        "sum(goodput_bps) / sum(timeouts) where flow 4",
        "count(flow) where port 9",
        "count(pdr)",
        least_packets=20,
    )
    assert (flows.values, flows.reason) == ((), "no flow fulfils `where port 9`")
    assert never.values == ()
    # what `as pdr` in its words stands for
    assert never.reason.startswith("null if the trace does not show what the sender sends")
    assert " as " not in never.reason
    assert ratio.values or ratio.reason == "sum(timeouts) is 0"
    assert count.values == (0,)
    assert (partly.values, partly.known, partly.of) == ((0,), 0, 2)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("max(rtt_p95_ms) < 80", 80),
        ("max(rtt_p95_ms)<=80 ms", 80),
        ("p95( rtt_ms )  >= 1e-1 where label a and src port 80", 0.1),
        ("mean(goodput_bps) > 5M", 5e6),
        ("mean(goodput_bps) > 5 Mbit/s", 5e6),
        ("mean(plr) < 2%", 0.02),
        ("sum(lost_packets) == 0", 0),
        ("min(jain) > -0.5", -0.5),
        ("min(jain) where port 5201 < 0.5", 0.5),
        ("median(rtt_ms) where flow 4<80 ms", 80),
    ],
)
def test_limits_are_in_the_unit_of_the_quantity(text, bound):
    assert parse_requirement(text).bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is not a requirement"),
        ("rtt_p95_ms", "is not a requirement"),
        ("< 80", "is not a requirement"),
        ("rtt_p95_ms < fast", "expected a number at character 14, before `fast`"),
        ("rtt_p95_ms < 80 s", "a limit in `s`"),
        ("jain > 3 ms", "a limit in `ms`"),
        ("rtt_p59_ms < 80", "no column of flows and no metric `rtt_p59_ms`"),
        ("rtt_ms < 80", "all samples"),
        ("p100(rtt_ms) < 80", "unknown aggregation `p100`"),
        ("best(rtt_ms) < 80", "unknown aggregation `best`"),
        ("plr / pdr < 1", "a ratio needs an aggregated numerator and denominator"),
        ("max(src) < 1", "no column of flows and no metric `src`"),
        ("max(rtt_p95_ms < 80", "expected `\\)` at character 16, before `< 80`"),
        ("jain > 1 where", "is not a requirement: expected a condition at the end"),
        ("jain > 1 where beauty 3", "expected a condition at character 16, before `beauty 3`"),
        ("jain > 1 where port x", "expected a number at character 21, before `x`"),
    ],
)
def test_what_is_no_requirement_is_refused(text, error):
    with pytest.raises(UsageError, match=error):
        parse_requirement(text)


def test_a_misspelt_name_gets_the_nearest_ones():
    with pytest.raises(UsageError) as raised:
        parse_quantity("max(rtt_p59_ms)")
    assert "rtt_p95_ms" in raised.value.hint


def test_a_comparison_needs_one_number_of_a_run():
    with pytest.raises(UsageError, match="a value for each flow"):
        parse_comparison("goodput_bps")


@given(st.text(max_size=40))
def test_any_text_is_a_requirement_or_a_usage_error(text):
    for parse in (parse_requirement, parse_comparison, parse_share):
        try:
            parse(text)
        except UsageError:
            continue


@pytest.mark.parametrize("name", [*COLUMNS, *BY_NAME])
def test_every_column_and_metric_is_a_quantity_with_a_direction(name):
    quantity = parse_quantity(f"mean({name})")
    assert quantity.better in {"higher", "lower", "same"}
    assert quantity.unit == parse_quantity(name).unit


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("mean(goodput_bps)", "higher"),
        ("mean(jain)", "higher"),
        ("mean(pdr)", "higher"),
        ("mean(rtt_p95_ms)", "lower"),
        ("p95(rtt_ms)", "lower"),
        ("max(handshake_rtt_ms)", "lower"),
        ("sum(lost_packets) / sum(sent_packets)", "lower"),
        ("sum(sack_retransmissions)", "lower"),
        ("mean(link_utilisation)", "higher"),
        ("max(timeout_share)", "lower"),
        ("max(convergence_s)", "lower"),
        ("mean(mss)", "same"),
        ("sum(rtt_samples)", "same"),
        ("count(lost_packets)", "same"),
    ],
)
def test_which_way_is_worse_follows_from_the_name(text, better):
    assert parse_quantity(text).better == better


CAUSES = Path(__file__).parents[2] / "data" / "causes"


@pytest.mark.parametrize("run", ["0002-receiver-vegas", "0005-bursts-veno", "0006-interactive-illinois"])
def test_shares_of_causes_are_those_that_the_sending_kernel_counted(truth, run):
    _, known = truth.read(CAUSES / run)
    application, receiver, longest = take(
        CAUSES / run / "sender.pcap.gz",
        "max(application_share)",
        "receiver_share",
        "min(main_cause_share) where transport tcp",
    )
    assert application.values == pytest.approx([known.application_s / known.life_s], abs=0.05)
    assert receiver.values == pytest.approx([known.receiver_s / known.life_s], abs=0.05)
    assert longest.values[0] >= max(*application.values, *receiver.values)


def test_a_share_is_unknown_where_the_capture_does_not_show_causes():
    trace = tfrctrace.open(CAUSES / "0002-receiver-vegas" / "sender.pcap.gz", vantage="receiver")
    texts = ("max(application_share)", "max(unknown_share)")
    taken = take_quantities(trace, trace.measure(), [parse_quantity(text) for text in texts])
    assert taken["max(application_share)"].values == ()
    assert "captured away from the sender" in taken["max(application_share)"].reason
    assert taken["max(unknown_share)"].values == pytest.approx([1], abs=0.01)
    (simulated,) = take(DATA / "runs" / "before-1.tr.xz", "max(loss_share)")
    assert (simulated.values, simulated.reason) == ((), "it is no captured TCP connection with data")


def test_main_cause_is_a_condition_and_chooses_a_label():
    capture = CAUSES / "0002-receiver-vegas" / "sender.pcap.gz"
    count, none, labelled = take(
        capture,
        "count(goodput_bps) where main_cause receiver",
        "count(goodput_bps) where main_cause policer",
        "count(goodput_bps) where label slow",
        labels=["slow=main_cause receiver"],
    )
    assert (count.values, none.values, labelled.values) == ((1.0,), (0.0,), (1.0,))
    flows = tfrctrace.open(capture).labelled_flows(["slow=main_cause receiver and transport tcp"])
    assert flows.sort("payload_bytes")["label"].to_list() == [None, "slow"]
    with pytest.raises(UsageError, match="`receivr` is no cause"):
        parse_quantity("max(loss_share) where main_cause receivr")


def test_congestion_control_is_a_condition_and_labels_flows():
    # Linux 6.18, iperf3 -C cubic to port 5201 and -C reno to 5202 (sample_traces/make.py)
    capture = SAMPLES / "two-flows.pcapng.gz"
    cubic, reno, none = take(
        capture,
        "count(goodput_bps) where congestion_control cubic and dst port 5201",
        "count(goodput_bps) where congestion_control reno and dst port 5202",
        "count(goodput_bps) where congestion_control cubic and dst port 5202",
    )
    assert (cubic.values, reno.values, none.values) == ((1.0,), (1.0,), (0.0,))
    trace = tfrctrace.open(capture)
    labels = {
        row["dst_port"]: row["label"]
        for row in trace.labelled_flows(["congestion_control"]).iter_rows(named=True)
        if row["payload_bytes"]
    }
    assert labels[5201] == "cubic"
    assert "reno" in labels[5202].split("|")
    # fairness between the names, and the bytes of each
    between = trace.measure("inter_protocol_ratio", labels=["congestion_control"])
    assert {metric.group for metric in between.named("inter_protocol_ratio")} == {"cubic", labels[5202]}
    groups = trace.groups("label", labels=["congestion_control"]).rows.filter(direction="fwd")
    assert {"cubic", labels[5202]} <= set(groups["group"])


def test_labels_by_congestion_control_of_what_is_read_once(run):
    capture = gzip.decompress((SAMPLES / "two-flows.pcapng.gz").read_bytes())
    said = run("metrics", "--label", "congestion_control", "-", stdin=capture).out
    assert "inter_protocol_ratio       cubic" in said


@pytest.mark.parametrize(
    ("text", "rule", "tables"),
    [
        ("goodput_bps", "congestion_control", ("flows", "bins", "cause_sums", "causes", "rounds")),
        (
            "goodput_bps where congestion_control reno",
            "a=port 1",
            ("flows", "bins", "cause_sums", "causes", "rounds"),
        ),
        ("goodput_bps", "a=port 1", ("flows", "bins")),
        ("goodput_bps", "a=main_cause receiver", ("flows", "bins", "cause_sums")),
        ("max(loss_share)", "a=port 1", ("flows", "bins", "cause_sums")),
        ("sum(loss_share) / count(rtt_p50_ms)", "a=port 1", ("flows", "bins", "cause_sums")),
        ("p95(rtt_ms) where main_cause loss", "a=port 1", ("flows", "bins", "rtt", "cause_sums")),
    ],
)
def test_causes_are_collected_only_if_a_quantity_or_a_label_names_them(text, rule, tables):
    assert needed_tables([parse_quantity(text)], [parse_rule(rule)]) == tables
