"""The bottleneck that a trace shows, against the scripts of ns-2's runs, and what others did there."""

import json
import lzma
import warnings
from pathlib import Path

import polars as pl
import pytest
from scripted_sender import Bottleneck, Connection, Sender, write

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.replay.closed_loop import infer_path
from tfrctrace.replay.closed_loop.infer_path import least_rto
from tfrctrace.replay.closed_loop.observed_path import MOST_STEPS, ObservedPath, PathTables, observe_path
from tfrctrace.replay.closed_loop.overrides import BottleneckOverrides, parse_overrides
from tfrctrace.replay.controller import Report, Start
from tfrctrace.replay.from_trace import FlowRecordings, RecordingOptions
from tfrctrace.replay.tcp.newreno import NewReno
from tfrctrace.replay.tfrc import TfrcVariant

DATA = Path(__file__).parents[3] / "data" / "ns2"
RUNS = [entry for entry in json.loads((DATA / "dumbbells.json").read_text()) if entry["dumbbell"] == "long"]

HEADERS = 1040 / 1000
"""Bytes on the wire for each of payload, of ns-2's TCP segments here."""


@pytest.fixture(scope="module")
def dumbbell():
    """NewReno on 800 kbit/s and 60 ms, 15 packets of buffer, 0.4 % random loss: 25 s of a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tfrctrace.open(DATA / "dumbbell-newreno.tr.xz").closed_loops(
            "newreno", "sack", "vegas", "veno", "westwood", "cubic", "tfrc"
        )


@pytest.fixture(scope="module")
def mix():
    """TFRC, Sack1, Veno, Vegas and CBR share 1.5 Mbit/s and 30 packets of buffer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tfrctrace.open(DATA / "wired-mix.tr.xz").closed_loops("tfrc", "sack", "veno", "vegas")


def received_bps(loops, flow, algorithm):
    rounds = loops.frame.filter(pl.col("flow") == flow, pl.col("algorithm") == algorithm)
    return (rounds["received_bps"] * rounds["duration_ms"]).sum() / rounds["duration_ms"].sum()


def test_a_lone_flow_shows_its_bottleneck(dumbbell):
    [flow] = dumbbell.flows
    found = flow.bottleneck
    assert found.capacity_bps.value == pytest.approx(800e3 / HEADERS, rel=0.02)
    # four access links of 5 ms, 10 Mbit/s, and the segment's own time on the way
    segment_ms = 8 * 1040 * (1 / 800 + 2 / 10e3)
    assert found.base_rtt_ms.value == pytest.approx(2 * (60 + 10) + segment_ms, rel=0.01)
    # DropTail drops what would fill the last of 15 places
    assert found.buffer_bytes.value == pytest.approx(14 * 1000, rel=0.1)
    assert found.random_loss.value == pytest.approx(0.004, rel=0.3)
    assert sum(found.background.rates) == 0


@pytest.mark.parametrize("entry", RUNS, ids=lambda entry: entry["algorithm"])
def test_the_trace_of_one_tcp_shows_what_others_received_there(dumbbell, entry):
    # ns-2's packets of other agents have other headers, and the bottleneck carries bits
    header = (1000 + entry["header_bytes"]) / 1040
    ns2_bps = entry["received_packets"] * 8000 / entry["duration_s"] * header
    assert received_bps(dumbbell, 1, entry["algorithm"]) == pytest.approx(ns2_bps, rel=0.15)


def test_flows_that_share_a_bottleneck_show_all_of_it(mix):
    # ns-2's Vegas sends no headers
    for flow, headers in zip(mix.flows, (HEADERS, HEADERS, HEADERS, 1), strict=True):
        found = flow.bottleneck
        assert "all flows" in found.capacity_bps.evidence
        assert found.capacity_bps.value == pytest.approx(1.5e6 / headers, rel=0.02)


# stop - start in s, received packets of 1000 bytes: the run's script, and ns-2's sinks
@pytest.mark.parametrize(
    ("source", "algorithm", "seconds", "packets"),
    [("2", "tfrc", 12.8, 691), ("4", "sack", 12.4, 495), ("6", "veno", 12.2, 829), ("8", "vegas", 11.8, 218)],
)
def test_in_its_own_place_an_algorithm_receives_what_it_did(mix, source, algorithm, seconds, packets):
    flows = tfrctrace.open(DATA / "wired-mix.tr.xz").flows
    number = flows.filter(pl.col("src") == source)["flow"][0]
    assert received_bps(mix, number, algorithm) == pytest.approx(packets * 8000 / seconds, rel=0.15)


def test_losses_that_are_repaired_once_the_queue_has_drained_are_no_losses_by_chance(tmp_path):
    """Of 63 losses to a queue of 30 segments the sender repairs five when few segments wait."""
    connection = Connection(Sender(), Bottleneck(rate_bps=4e6, rtt_s=0.04, buffer=30)).run(12)
    capture = write(tmp_path / "sender.pcap", connection.frames)
    [flow] = tfrctrace.open(capture).closed_loops("newreno", flows=[1]).flows
    assert flow.bottleneck.random_loss.value == 0
    assert flow.bottleneck.buffer_bytes.value == pytest.approx(30_000, rel=0.05)


def test_what_sends_no_acknowledgements_shows_no_bottleneck(mix):
    [cbr] = mix.lacking
    assert cbr.transport == "udp"
    assert "base RTT" in cbr.what
    assert "base_rtt=40ms" in cbr.hint


def observed(**what):
    """Return a flow that fills 1 Mbit/s and waits up to 100 ms, in 40 windows of 0.5 s."""
    times = [index * 10_000_000 for index in range(2000)]
    delays = [100.0 + 100.0 * ((index % 100) / 99) for index in range(2000)]
    windows = [index * 500_000_000 for index in range(40)]
    known = {
        "start_ns": 0,
        "end_ns": 20_000_000_000,
        "segment_bytes": 1000.0,
        "packets": 2500,
        "vantage": "sender",
        "rtts": pl.DataFrame({"time_ns": times, "rtt_ms": delays}),
        "losses": pl.DataFrame({"packets": [1, 1], "rtt_ms": [200.0, 198.0]}, schema_overrides=COUNTS),
        "windows": pl.DataFrame(
            {"time_ns": windows, "own_bps": [1e6] * 40, "others_bps": [0.0] * 40}
        ).with_columns(is_repairing=False),
        "width_ns": 500_000_000,
        "others": pl.DataFrame({"time_ns": [0], "bps": [0.0]}),
        "receive_window_bytes": None,
    }
    return ObservedPath(**{**known, **what})


COUNTS = {"packets": pl.UInt32}
NO_LOSSES = pl.DataFrame({"packets": [], "rtt_ms": []}, schema={"packets": pl.UInt32, "rtt_ms": pl.Float64})
NO_RTTS = pl.DataFrame({"time_ns": [], "rtt_ms": []}, schema={"time_ns": pl.Int64, "rtt_ms": pl.Float64})


def test_each_number_has_its_evidence():
    found = infer_path.infer(observed(), BottleneckOverrides())
    assert found.capacity_bps.value == 1e6
    assert found.base_rtt_ms == infer_path.Inferred(100.0, "smallest of 2000 round-trip times")
    assert found.buffer_bytes.value == pytest.approx(12_500, rel=0.02)
    assert (found.random_loss.value, "0 of 2 losses") == (0.0, found.random_loss.evidence[:13])


def test_without_losses_the_buffer_is_not_known():
    found = infer_path.infer(observed(losses=NO_LOSSES), BottleneckOverrides())
    assert found.buffer_bytes.value is None
    assert "nothing was lost to a full queue; at least 12" in found.buffer_bytes.evidence


def test_losses_without_a_queue_are_by_chance():
    losses = pl.DataFrame({"packets": [1, 1, 1], "rtt_ms": [101.0, 102.0, 200.0]}, schema_overrides=COUNTS)
    found = infer_path.infer(observed(losses=losses), BottleneckOverrides())
    assert found.random_loss.evidence.startswith("2 of 3 losses")
    assert found.random_loss.value == pytest.approx(2 / 1250, rel=0.1)


def test_many_losses_at_once_are_of_a_queue():
    losses = pl.DataFrame({"packets": [20], "rtt_ms": [101.0]}, schema_overrides=COUNTS)
    assert infer_path.infer(observed(losses=losses), BottleneckOverrides()).random_loss.value == 0


def test_a_rate_that_varies_while_a_queue_stands_is_of_somebody_unseen():
    windows = observed().windows.with_columns(own_bps=pl.Series([2e5, 2e5, 8e5, 8e5] * 10))
    found = infer_path.infer(observed(windows=windows), BottleneckOverrides()).capacity_bps
    assert found.value is None
    assert "does not show" in found.evidence


def test_a_rate_that_varies_only_while_losses_are_repaired_is_that_of_the_path():
    """What arrives meanwhile is acknowledged once the gap is filled: too little first, then too much."""
    rates, repairing = [0.6e6, 1.5e6, *[1e6] * 6] * 5, [True, True, *[False] * 6] * 5
    windows = observed().windows.with_columns(own_bps=pl.Series(rates), is_repairing=pl.Series(repairing))
    found, _ = infer_path.capacity(observed(windows=windows))
    assert found.value == found.low == found.high == 1e6
    # where most of the time is repair, what is left may be chance
    windows = windows.with_columns(is_repairing=pl.Series([*[True] * 5, *[False] * 3] * 5))
    found, _ = infer_path.capacity(observed(windows=windows))
    assert found.value is None


def test_others_that_pass_elsewhere_are_no_background():
    windows = observed().windows.with_columns(others_bps=pl.Series([1e5, 1e5, 9e5, 9e5] * 10))
    found = infer_path.infer(observed(windows=windows), BottleneckOverrides())
    assert found.capacity_bps.value == 1e6
    assert "of this flow" in found.capacity_bps.evidence
    assert found.background.rates == ()


def test_without_a_queue_only_a_lower_bound_of_the_capacity_is_known():
    rtts = observed().rtts.with_columns(
        rtt_ms=pl.when(pl.int_range(2000) % 40 == 0).then(100.0).otherwise(101.0)
    )
    found = infer_path.infer(observed(rtts=rtts), BottleneckOverrides()).capacity_bps
    assert found.value is None
    assert "1000000 bit/s at most" in found.evidence


def test_without_round_trip_times_nothing_is_known():
    nothing = observed(rtts=NO_RTTS, windows=observed().windows.clear())
    found = infer_path.infer(nothing, BottleneckOverrides())
    for finding in (found.capacity_bps, found.base_rtt_ms, found.buffer_bytes, found.random_loss):
        assert finding.value is None
        assert finding.evidence


def test_a_round_trip_time_of_nothing_is_none():
    found = infer_path.infer(
        observed(rtts=observed().rtts.with_columns(rtt_ms=pl.lit(0.0))), BottleneckOverrides()
    )
    assert found.base_rtt_ms.value is None
    assert "clock of the trace is coarse" in found.base_rtt_ms.evidence


def test_a_packet_years_later_does_not_take_all_memory(tmp_path):
    lines = lzma.decompress((DATA / "dumbbell-newreno.tr.xz").read_bytes()).decode().splitlines()
    late = [f"{event} 1000000000 2 0 tcp 1040 ------- 1 2.0 3.0 9999 9999999" for event in "+-"]
    (tmp_path / "late.tr").write_text("\n".join([*lines[:4000], *late, ""]))
    trace = tfrctrace.open(tmp_path / "late.tr")
    with pytest.warns(tfrctrace.TfrctraceWarning, match="jumps ahead by up to 31.7 years"):
        trace.read("flows")
    (recorded,) = FlowRecordings(trace).recordings(RecordingOptions(), [TfrcVariant()])
    found = observe_path(PathTables(trace), recorded[TfrcVariant()])
    assert found.end_ns - found.start_ns > 9e17
    assert found.others.height <= MOST_STEPS + 2


# tcptrace's max_win_adv of the side that receives; that of the sender of the data is 64512
@pytest.mark.parametrize(
    ("capture", "tcptrace_bytes"), [("one-reno-offload-on", 2_051_072), ("relay-loss", 647_168)]
)
def test_the_window_of_a_path_is_that_which_the_receiver_announced(capture, tcptrace_bytes):
    trace = tfrctrace.open(DATA.parent / "captures" / f"linux-{capture}-snd.pcap.gz")
    (recorded,) = [
        one
        for one in FlowRecordings(trace).recordings(RecordingOptions(least_packets=100), [TfrcVariant()])
        if isinstance(one, dict)
    ]
    assert observe_path(PathTables(trace), recorded[TfrcVariant()]).receive_window_bytes == tcptrace_bytes


def test_a_receiver_sees_no_round_trips():
    found = infer_path.infer(observed(vantage="receiver"), BottleneckOverrides()).base_rtt_ms
    assert found.value is None
    assert "at the receiver" in found.evidence


def test_the_others_can_be_left_out():
    shared = {
        "windows": observed().windows.with_columns(own_bps=pl.lit(6e5), others_bps=pl.lit(4e5)),
        "others": pl.DataFrame({"time_ns": [0, 10_000_000_000], "bps": [4e5, 4e5]}),
    }
    for text, rates in (("others=1", (5e4, 5e4)), ("others=0.5", (2.5e4, 2.5e4)), ("others=0", (0, 0))):
        assert infer_path.infer(observed(**shared), parse_overrides([text])).background.rates == rates


def test_what_is_given_goes_before_what_is_shown():
    given = parse_overrides(["capacity=2M", "base_rtt=40ms", "buffer=5000", "loss=0.01", "window=64000"])
    found = infer_path.infer(observed(), given)
    assert found.capacity_bps == infer_path.Inferred(2e6, "as given")
    assert (found.base_rtt_ms.value, found.buffer_bytes.value, found.random_loss.value) == (40, 5000, 0.01)
    assert found.receive_window_bytes == 64_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour=3", "has no `colour`"),
        ("capacity", "is not a bit rate"),
        ("capacity=0", "capacity of a bottleneck must be above 0"),
        ("loss=1.5", "not a share"),
        ("loss=nan", "not a share"),
        ("buffer=-1", "not a number of bytes"),
        ("buffer=much", "not a number of bytes"),
        ("base_rtt=40", "not a duration"),
    ],
)
def test_what_cannot_be_a_bottleneck_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_overrides([text])


def test_the_least_timeout_is_the_shortest_that_the_recorded_sender_had() -> None:
    assert least_rto(observed()).value is None
    assert least_rto(observed(timeouts_s=(0.8, 0.34, 2.0))).value == 0.34
    # RFC 6298 section 2.4 asks for no more than a second
    assert least_rto(observed(timeouts_s=(3.0,))).value == 1.0


def test_a_window_waits_as_long_as_the_sender_whose_place_it_takes() -> None:
    controls = {rto_s: NewReno(Start(segment_bytes=1000, least_rto_s=rto_s)) for rto_s in (None, 0.3)}
    report = Report(time_s=0.1, interval_s=0.1, rtt_s=0.05, p=0.0, x_recv=1e5)
    waits_s = {rto_s: control.on_feedback(report).timer_s - 0.1 for rto_s, control in controls.items()}
    assert waits_s == {None: pytest.approx(1.0), 0.3: pytest.approx(0.3)}
    with_floor = NewReno(Start(segment_bytes=1000, least_rto_s=0.3), min_rto_s=0.5)
    assert with_floor.on_feedback(report).timer_s == pytest.approx(0.6)
