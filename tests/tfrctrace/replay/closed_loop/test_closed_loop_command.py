"""`tfrctrace replay --loop closed` as a user runs it."""

import csv
import gzip
import io
import json
import struct
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.parsers.schema import TABLES

TWO_FLOWS = Path(__file__).parents[4] / "sample_traces" / "two-flows.pcapng.gz"
DUMBBELL = Path(__file__).parents[3] / "data" / "ns2" / "dumbbell-newreno.tr.xz"
CLOSED = ["--loop", "closed"]
CAPTURES = Path(__file__).parents[3] / "data" / "captures"
COLUMNS = [column.name for column in TABLES["closed_loop"]]


def test_the_screen_names_what_the_bottleneck_is_inferred_from_and_which_loop_it_is(run):
    done = run("replay", *CLOSED, "-a", "newreno,tfrc", DUMBBELL)
    assert (done.status, done.err) == (0, "")
    lines = {line.split("  ")[1]: line for line in done.out.splitlines() if line.startswith("  ")}
    assert "s in closed loop" in done.out
    assert "windows with a standing queue" in lines["capacity"]
    assert "round-trip times" in lines["base RTT"]
    assert {"newreno", "tfrc (rfc5348)"} <= set(lines)
    assert "note: closed loop: each algorithm drives a fluid model" in done.out
    assert "does not react" in done.out


def test_json_has_the_bottleneck_with_its_evidence_and_every_round(run):
    done = run("replay", *CLOSED, "-a", "cubic", "--bottleneck", "loss=0", "--format", "json", DUMBBELL)
    document = json.loads(done.out)
    assert document["loop"] == "closed"
    [flow] = document["flows"]
    assert flow["bottleneck"]["random_loss"] == {
        "value": 0,
        "evidence": "as given",
        "low": None,
        "high": None,
    }
    [cubic] = document["replays"]
    assert cubic["rounds"] == len(cubic["time_ns"])
    assert cubic["received_mean_bps"] <= flow["bottleneck"]["capacity_bps"]["value"] * 1.05


def test_csv_has_the_columns_of_the_table(run):
    done = run("replay", *CLOSED, "-a", "vegas", "--format", "csv", DUMBBELL)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == COLUMNS
    frame = tfrctrace.open(DUMBBELL).closed_loop("vegas")
    assert frame.columns == COLUMNS
    assert frame.height == len(rows)


def test_algorithms_that_share_the_bottleneck_receive_less_each():
    trace = tfrctrace.open(DUMBBELL)

    def received(**how):
        frame = trace.closed_loop("sack", "tfrc", **how)
        weighted = (pl.col("received_bps") * pl.col("duration_ms")).sum() / pl.col("duration_ms").sum()
        return dict(frame.group_by("algorithm").agg(weighted).iter_rows())

    alone, together = received(), received(together=True)
    assert sum(together.values()) == pytest.approx(770e3, rel=0.05)
    assert all(together[name] < 0.8 * alone[name] for name in alone)


def test_ns2_s_rules_run_in_closed_loop_too():
    loops = tfrctrace.open(DUMBBELL).closed_loops("tfrc", profile="ns2")
    received = loops.frame["received_bps"] * loops.frame["duration_ms"]
    assert received.sum() / loops.frame["duration_ms"].sum() > 600e3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CLOSED, "-a", "tfrc", "--rtt", "40ms"], "`--rtt` has no effect with `--loop closed`"),
        ([*CLOSED, "-a", "tfrc", "--sensitivity"], "`--sensitivity` has no effect with `--loop closed`"),
        ([*CLOSED, "-a", "mtfrc"], "`mtfrc` needs a MAC"),
        ([*CLOSED, "-a", "tfrc", "--bottleneck", "colour=3"], "a bottleneck has no `colour`"),
        (["-a", "tfrc", "--together"], "`--together` has no effect with `--loop open`"),
        (["-a", "tfrc", "--bottleneck", "loss=0"], "`--bottleneck` has no effect with `--loop open`"),
        (["-a", "tfrc", "--sweep", "buffer=1x,2x"], "`--sweep` has no effect with `--loop open`"),
        ([*CLOSED, "--sweep", "queue=red,pie"], "no sweep over `queue`"),
        ([*CLOSED, "--sweep", "buffer=20000"], "a sweep has 2 to 100 different values"),
        ([*CLOSED, "--sweep", "buffer=1x,1x"], "a sweep has 2 to 100 different values"),
        ([*CLOSED, "--sweep", "buffer=1x,20000"], "multiples beside values"),
        ([*CLOSED, "--sweep", "buffer=0x,1x"], "a multiple must be above 0"),
        ([*CLOSED, "--sweep", "loss=0,2"], "`2` is not a share"),
    ],
)
def test_what_has_no_effect_is_refused(run, arguments, message):
    done = run("replay", *arguments, DUMBBELL)
    assert done.status == 2
    assert message in done.err


def test_a_flow_that_shows_no_bottleneck_is_named_with_what_would_supply_it(run, write_capture, conversation):
    write_capture("a.pcap", conversation())
    done = run("replay", *CLOSED, "-a", "newreno", "--least-packets", "2", "a.pcap")
    assert done.status == 0
    assert "cannot be replayed" in done.out
    assert "hint:" in done.out


def test_what_is_given_needs_no_queue_in_the_trace(run):
    given = ["capacity=3M", "base_rtt=40ms", "buffer=30000", "loss=0"]
    options = [part for text in given for part in ("--bottleneck", text)]
    done = run("replay", *CLOSED, "-a", "vegas", *options, "--format", "json", DUMBBELL)
    [vegas] = json.loads(done.out)["replays"]
    assert vegas["received_mean_bps"] == pytest.approx(3e6, rel=0.05)
    assert vegas["losses"] == sum(vegas["lost_packets"]) == 0


def test_a_tcp_header_that_was_cut_changes_no_more_than_its_packet(run, tmp_path):
    capture = gzip.decompress((CAPTURES / "variant-truncated-last-record.pcap.gz").read_bytes())
    before, times, kept = capture[:-64], capture[-64:-56], capture[-48:]
    (tmp_path / "cut.pcap").write_bytes(before + times + struct.pack("<II", len(kept), 1514) + kept)
    (tmp_path / "without.pcap").write_bytes(before)
    found = []
    for name in ("cut.pcap", "without.pcap"):
        done = run("replay", *CLOSED, "-a", "cubic", "--format", "json", name)
        assert done.status == 0
        [flow] = json.loads(done.out)["flows"]
        found.append(flow["bottleneck"]["capacity_bps"]["value"])
    assert found[0] == pytest.approx(found[1], rel=0.01)


def test_each_value_of_a_sweep_is_the_loop_with_that_value_given():
    trace = tfrctrace.open(DUMBBELL)
    swept = trace.closed_loop("newreno", "cubic", sweep="buffer=9000,36000")
    assert swept["swept"].unique().sort().to_list() == [9e3, 36e3]
    for size in (9e3, 36e3):
        alone = trace.closed_loop("newreno", "cubic", bottleneck=[f"buffer={size:.0f}"])
        assert swept.filter(swept["swept"] == size).drop("swept").equals(alone.drop("swept"))


def test_what_is_not_swept_stays_as_the_trace_shows_it():
    loops = tfrctrace.open(DUMBBELL).closed_loops("cubic", sweep="capacity=0.5x,4x", flows=[1])
    [flow] = loops.flows
    (_, slow), (_, fast) = flow.swept
    assert slow.capacity_bps.value * 8 == pytest.approx(fast.capacity_bps.value)
    # a given capacity would make another size of the delay that the queue was seen to have
    assert slow.buffer_bytes == fast.buffer_bytes == flow.bottleneck.buffer_bytes
    assert loops.frame["queued_bytes"].max() <= flow.bottleneck.buffer_bytes.value * 1.001


def test_multiples_are_of_what_the_trace_shows_and_of_what_is_given():
    trace = tfrctrace.open(DUMBBELL)
    loops = trace.closed_loops("cubic", sweep="buffer=0.5x,2x", flows=[1])
    [flow] = loops.flows
    shown = flow.bottleneck.buffer_bytes.value
    assert loops.frame["swept"].unique().sort().to_list() == [shown / 2, shown * 2]
    given = trace.closed_loop("cubic", sweep="window=0.5x,2x", bottleneck=["window=64000"], flows=[1])
    assert given["swept"].unique().sort().to_list() == [32_000, 128_000]


def test_multiples_of_what_no_trace_shows_are_refused_with_the_reason(run):
    done = run("replay", *CLOSED, "-a", "cubic", "--sweep", "window=1x,2x", "--format", "csv", DUMBBELL)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert {row["lacking"].split(",")[0] for row in rows if row["flow"] == "1"} == {
        "the trace shows no receive window of its bottleneck"
    }


def test_multiples_of_no_loss_are_refused_and_none_is_beyond_certainty():
    trace = tfrctrace.open(DUMBBELL)
    [none] = trace.closed_loops("cubic", sweep="loss=1x,2x", bottleneck=["loss=0"], flows=[1]).lacking
    assert "shows no loss by chance" in none.what
    frame = trace.closed_loop("cubic", sweep="loss=1x,3x,4x", bottleneck=["loss=0.4"], flows=[1])
    assert frame["swept"].unique().sort().to_list() == [0.4, 1.0]


def test_the_text_has_a_line_for_each_value_and_algorithm(run):
    done = run("replay", *CLOSED, "-a", "newreno,cubic", "--sweep", "buffer=10000,40000", DUMBBELL)
    cells = [line.split() for line in done.out.splitlines()]
    rows = [one[:3] for one in cells if len(one) > 2 and one[2] in {"newreno", "cubic"}]
    wanted = [[size, "kB", name] for size in ("10.0", "40.0") for name in ("newreno", "cubic")]
    assert rows[:4] == wanted


def received_mbps(frame, flow, algorithm):
    own = frame.filter(pl.col("flow") == flow, pl.col("algorithm") == algorithm)
    return (own["received_bps"] * own["duration_ms"]).sum() / own["duration_ms"].sum() / 1e6


def test_flows_that_are_named_react(run):
    # a CUBIC, and a Reno that begins later: each in its own place, over what it sent
    trace = tfrctrace.open(TWO_FLOWS)
    reacting = trace.closed_loops("cubic", "sack", bottleneck=["others=react"])
    as_recorded = trace.closed_loop("cubic", "sack")
    beside = {
        one.recording.flow: [(two.flow, two.algorithm.name) for two in one.competitors]
        for one in reacting.flows
    }
    assert beside == {2: [(4, "reno")], 4: [(2, "cubic")]}
    sent = {
        row["flow"]: 8e3 * row["payload_bytes"] / (row["end_ns"] - row["start_ns"])
        for row in trace.flows.filter(pl.col("direction") == "fwd").iter_rows(named=True)
    }
    assert received_mbps(reacting.frame, 2, "cubic") == pytest.approx(sent[2], rel=0.2)
    assert received_mbps(reacting.frame, 4, "sack") == pytest.approx(sent[4], rel=0.5)
    # what CUBIC takes in Reno's place, the other one yields
    assert received_mbps(reacting.frame, 4, "cubic") > 1.2 * received_mbps(as_recorded, 4, "cubic")
    done = run("replay", *CLOSED, "-a", "cubic", "--bottleneck", "others=react", TWO_FLOWS)
    assert "reacting: flow 4 reno" in done.out
    assert "react as the congestion control" in done.out


def test_a_flow_without_a_name_stays_as_recorded():
    loops = tfrctrace.open(DUMBBELL).closed_loops("cubic", bottleneck=["others=react"])
    assert loops.flows[0].competitors == ()
    assert loops.frame.equals(tfrctrace.open(DUMBBELL).closed_loop("cubic"))
