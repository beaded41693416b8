"""`tfrctrace metrics` and `Trace.metrics` on sample traces."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.catalogue import BY_NAME

SAMPLES = Path(__file__).parents[3] / "sample_traces"
TWO_FLOWS, DUMBBELL = SAMPLES / "two-flows.pcapng.gz", SAMPLES / "dumbbell.tr.xz"
CONTROL = "left out: 2 flows with few data packets"


def printed(run, *arguments, **more):
    done = run("metrics", *arguments, "--format", "json", **more)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_two_flows_that_overlap_are_one_competing_set(run):
    document = printed(run, TWO_FLOWS)
    (one,) = document["competing_sets"]
    assert (one["flows"], document["flows"], document["flows_left_out"]) == ([2, 4], 2, 2)
    assert document["schema_version"] == 1
    assert {metric["name"] for metric in document["metrics"]} == {
        name for name, described in BY_NAME.items() if described.needs is None
    }
    jain = next(metric for metric in document["metrics"] if metric["name"] == "jain")
    # the flows' goodputs over their own lives are 3.63 and 1.75 Mbit/s, while both were there 3.2 and 1.6
    assert 0.85 < jain["value"] < 0.95
    assert (jain["n"], jain["flows"], jain["window_s"]) == (2, [2, 4], 1.0)


def test_rates_in_the_common_windows_are_those_of_the_bins(run):
    document = printed(run, TWO_FLOWS, "--metric", "rate_bps")
    (one,) = document["competing_sets"]
    trace = tfrctrace.open(TWO_FLOWS, bin_width="100ms")
    inside = pl.col("time_ns").is_between(one["start_ns"], one["end_ns"], closed="left")
    total = (
        trace.bins.filter(inside & (pl.col("direction") == "fwd"))
        .group_by("flow")
        .agg(pl.col("unique_bytes").sum())
    )
    expected = {flow: 8e9 * size / (one["end_ns"] - one["start_ns"]) for flow, size in total.iter_rows()}
    assert {m["flows"][0]: m["value"] for m in document["metrics"]} == {
        flow: pytest.approx(expected[flow]) for flow in one["flows"]
    }


def test_delivery_is_what_the_simulator_s_agents_counted(run):
    truth = json.loads((SAMPLES / "dumbbell.truth.json").read_text())
    document = printed(run, DUMBBELL, "--basis", "received")
    sent = {m["group"]: m["n"] for m in document["metrics"] if m["name"] == "pdr"}
    assert sent["tfrc"] == truth["tfrc"]["sent_packets"]
    assert sent["udp"] == truth["probe"]["sent_packets"]
    delay = next(m for m in document["metrics"] if m["name"] == "delay_mean_ms" and m["group"] == "udp")
    assert delay["value"] == pytest.approx(1000 * truth["probe"]["delay_mean_s"], rel=1e-6)


def test_round_trips_and_drops_are_those_of_the_flows(run):
    document = printed(run, DUMBBELL, "--basis", "received")
    flows = tfrctrace.open(DUMBBELL).flows
    truth = json.loads((SAMPLES / "dumbbell.truth.json").read_text())
    of_tcp = {m["name"]: m for m in document["metrics"] if m["group"] == "tcp" and m["competing_set"] is None}
    row = flows.filter((pl.col("transport") == "tcp") & (pl.col("payload_bytes") > 0)).row(0, named=True)
    for name in ("rtt_min_ms", "rtt_mean_ms", "rtt_p50_ms", "rtt_p95_ms", "rtt_max_ms", "rtt_std_ms"):
        assert (of_tcp[name]["value"], of_tcp[name]["n"]) == (row[name], row["rtt_samples"])
    # without a queue there and back take 50 ms and the time to send a packet
    assert 50 < of_tcp["rtt_min_ms"]["value"] < of_tcp["rtt_mean_ms"]["value"]
    dropped = {
        m["group"]: m["value"] * m["n"]
        for m in document["metrics"]
        if m["name"] == "drop_ratio" and m["value"]
    }
    assert round(sum(dropped.values())) == truth["bottleneck"]["drops"]


def test_labels_name_the_groups(run):
    document = printed(run, TWO_FLOWS, "--label", "cubic=port 5201", "--label", "reno=port 5202")
    groups = {m["group"] for m in document["metrics"] if m["name"] == "inter_protocol_normalized"}
    assert groups == {"cubic", "reno"}


def test_flows_are_distinguished_by_the_time_at_which_the_simulation_s_script_starts_them(run):
    # dumbbell.tcl: TFRC at 0.2 s, the probe at 1 s, FTP at 2.0 s
    labels = ("--label", "late=starts after 2s", "--label", "early=starts before 201ms")
    document = printed(run, DUMBBELL, *labels, "-m", "goodput_share")
    assert [m["group"] for m in document["metrics"]] == ["early", "udp", "late"]


def test_a_capacity_that_was_exceeded_is_a_warning(run):
    # the flows had 4.8 Mbit/s together
    done = run("metrics", TWO_FLOWS, "--capacity", "4M", "-m", "link_utilisation")
    assert done.status == 0
    assert "times what the capacity allows" in done.err


def test_weights_are_those_of_groups(run):
    labels = ("--label", "cubic=port 5201", "--label", "reno=port 5202")
    names = ("-m", "jain", "-m", "jain_weighted", "-m", "rate_bps")
    document = printed(run, TWO_FLOWS, *labels, *names, "--weight", "cubic=2")
    by_name = {m["name"]: m["value"] for m in document["metrics"] if m["competing_set"] is not None}
    cubic, reno = (m["value"] for m in document["metrics"] if m["name"] == "rate_bps")
    # Jain's definition written out for two flows
    assert by_name["jain"] == pytest.approx((cubic + reno) ** 2 / (2 * (cubic**2 + reno**2)))
    half = cubic / 2
    assert by_name["jain_weighted"] == pytest.approx((half + reno) ** 2 / (2 * (half**2 + reno**2)))
    equal = printed(run, TWO_FLOWS, *labels, *names, "--weight", "cubic=3", "--weight", "reno=3")
    assert [m["value"] for m in equal["metrics"] if m["name"] == "jain_weighted"] == [by_name["jain"]]


def test_only_labelled_flows_compete_if_that_is_asked_for(run):
    document = printed(
        run, DUMBBELL, "--label", "x=transport tfrc", "--label", "y=transport tcp", "--only-labelled"
    )
    assert [one["flows"] for one in document["competing_sets"]] == [[1, 3]]


def test_a_rule_that_fits_nothing_is_a_warning(run):
    done = run("metrics", TWO_FLOWS, "--label", "x=port 1")
    assert done.status == 0
    assert done.err == "warning: `x=port 1`: fits no flow\n"
    assert run("metrics", TWO_FLOWS, "--label", "x=port 1", "--strict").status == 3


def test_a_warm_up_moves_the_common_windows(run):
    plain, warm = (printed(run, TWO_FLOWS, *more)["competing_sets"][0] for more in ([], ["--warmup", "5s"]))
    assert warm["start_ns"] - plain["start_ns"] == 5_000_000_000
    assert (plain["windows"], warm["windows"]) == (14, 9)


def test_a_warm_up_longer_than_all_flows_leaves_no_set(run):
    document = printed(run, TWO_FLOWS, "--warmup", "1h")
    assert document["competing_sets"] == []
    assert {BY_NAME[metric["name"]].subject for metric in document["metrics"]} == {"life"}


def test_the_text_shows_sets_flows_and_what_was_left_out(run):
    out = run("metrics", TWO_FLOWS).out
    assert "set 1: flows 2, 4 of" in out
    assert "whole flows" in out
    assert CONTROL in out


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_have_a_row_for_each_metric(run, tmp_path, form):
    assert run("metrics", TWO_FLOWS, "-o", f"metrics.{form}").status == 0
    read = pl.read_csv if form == "csv" else pl.read_parquet
    frame = read(tmp_path / f"metrics.{form}")
    assert frame.columns == [
        "name",
        "value",
        "unit",
        "n",
        "window_s",
        "warmup_s",
        "flows",
        "group",
        "competing_set",
        "reason",
    ]
    flows = frame.filter(pl.col("name") == "jain")["flows"].to_list()
    assert flows == (["2 4"] if form == "csv" else [[2, 4]])


def test_python_gives_the_same_as_the_command(run):
    trace = tfrctrace.open(TWO_FLOWS)
    frame = trace.metrics("jain", "burstiness", window="500ms", labels=["cubic=port 5201"])
    document = printed(
        run, TWO_FLOWS, "-m", "jain", "-m", "burstiness", "--window", "500ms", "--label", "cubic=port 5201"
    )
    assert frame["value"].to_list() == [metric["value"] for metric in document["metrics"]]
    assert frame["flows"].to_list() == [metric["flows"] for metric in document["metrics"]]


def test_standard_input_gives_the_same_as_the_file(run):
    from_file = printed(run, TWO_FLOWS)
    piped = printed(run, "-", stdin=TWO_FLOWS.read_bytes())
    assert piped["metrics"] == from_file["metrics"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--metric", "beauty"], "there is no metric `beauty`"),
        (["--label", "x"], "`x` is not a rule for a label"),
        (["--window", "soon"], "`soon` is not a duration"),
        (["--basis", "received"], "is shown at its destination"),
        (["-m", "link_utilisation"], "the metric `link_utilisation` needs a `capacity`"),
        (["--capacity", "0"], "capacity must be above 0"),
        (["-m", "responsiveness_s"], "needs a `step`"),
        (["--step", "4"], "`4` is not a duration"),
        (["--weight", "cubic"], "`cubic` is not a weight of a label"),
        (["--weight", "cubic=-1"], "`cubic=-1` is not a weight of a label"),
        (["--weight", "cubic=0"], "the weight of `cubic` is not above 0"),
    ],
)
def test_what_cannot_be_is_reported(run, arguments, error):
    done = run("metrics", TWO_FLOWS, *arguments)
    assert (done.status, done.out) == (2, "")
    assert error in done.err


def test_what_was_received_is_known_of_joined_traces(run):
    alone = run("metrics", DUMBBELL, "--basis", "received", "--format", "json")
    joined = run("metrics", DUMBBELL, "--basis", "received", "--join", "--format", "json")
    assert (joined.status, joined.out) == (0, alone.out)


def test_a_trace_without_flows_has_no_metrics(run, write_capture):
    empty = write_capture("empty.pcap", [])
    document = printed(run, empty)
    assert (document["flows"], document["competing_sets"], document["metrics"]) == (0, [], [])


def test_what_arrived_is_counted_once(monkeypatch):
    trace = tfrctrace.open(DUMBBELL)
    counted = trace.counted("received", 10**8)
    monkeypatch.setattr(tfrctrace.Trace, "packets", None)
    assert trace.counted("received", 10**8) is counted


SHARES = Path(__file__).parents[2] / "data" / "ns2"


def test_a_sparse_flow_is_named_and_every_index_is_there_with_and_without_it(run):
    (small,) = printed(run, SHARES / "shares-probe.tr.xz")["competing_sets"][0]["small_flows"]
    assert (small["flow"], small["is_sparse"]) == (3, True)
    text = run("metrics", SHARES / "shares-probe.tr.xz").out
    assert "sparse: flow 3, 1.06 % of the mean rate; it sent at a constant rate" in text
    assert "all flows of the group are sparse" in text
    off = run("metrics", SHARES / "shares-probe.tr.xz", "--sparse-share", "0").out
    assert "sparse:" not in off
    assert "without_sparse" not in off
    assert run("metrics", SHARES / "shares-probe.tr.xz", "--sparse-share", "1").status == 2


def test_a_starved_flow_is_listed_and_counted(run):
    text = run("metrics", SHARES / "shares-far.tr.xz").out
    assert "small, not sparse: flow 3, 5.97 % of the mean rate; 1.00 packets outstanding on average" in text


def test_rows_have_the_numbers_of_sparse_flows(run):
    document = run("metrics", SHARES / "shares-probe.tr.xz", "--format", "csv", "-m", "sparse_flows")
    assert document.out.splitlines()[1].split(",")[:7] == [
        "sparse_flows",
        "1.0",
        '""',
        "3",
        "1.0",
        "0.0",
        "3",
    ]


def test_csv_says_on_stderr_what_it_leaves_out(run):
    assert CONTROL in run("metrics", TWO_FLOWS, "--format", "csv").err
    assert CONTROL not in run("metrics", TWO_FLOWS, "--format", "csv", "--quiet").err


def test_a_step_counts_from_the_first_packet_of_the_trace(run):
    def responses(*more):
        metrics = printed(run, TWO_FLOWS, "--step", "8s", "-m", "aggressiveness_bps", *more)["metrics"]
        return {metric["flows"][0]: (metric["value"], metric["n"]) for metric in metrics}

    every = responses()
    # the flow that began later, alone
    late = responses("--label", "late=port 5202", "--only-labelled")
    assert late == {4: every[4]}


def test_compare_says_what_its_metrics_leave_out(run):
    done = run("compare", TWO_FLOWS, SHARES / "shares-probe.tr.xz", "-m", "jain")
    assert "metrics leave out 2 flows with fewer than 20 data packets" in done.err
    assert "`jain` count 1 flow that asked for little" in done.err
    assert "`jain_without_sparse` leave such flows out" in done.err


def test_a_warm_up_that_no_flow_outlasts_is_told(run):
    outcome = run("metrics", "--warmup", "1h", TWO_FLOWS)
    assert outcome.status == 0
    assert "`warmup=1 h`: no flow lasts longer than 20.157 s, so none is compared" in outcome.err
    assert "no flow lasts longer" not in run("metrics", "--warmup", "5s", TWO_FLOWS).err
