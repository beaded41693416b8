"""Times by cause of groups against what the sending kernel counted of the same connections."""

from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.flow.causes import CAUSE_SUMS, CAUSES
from tfrctrace.metrics.groups import SUMS

ROOT = Path(__file__).parents[3]
RUNS = ROOT / "tests" / "data" / "causes"
MIXED = ROOT / "sample_traces" / "mixed.pcap.zst"
RECEIVER = RUNS / "0002-receiver-vegas"
S_NS = 10**9


def test_every_cause_is_a_sum_of_groups():
    assert set(CAUSE_SUMS) <= set(SUMS)
    assert len(CAUSE_SUMS) == len(CAUSES)


@pytest.mark.parametrize("run", ["0002-receiver-vegas", "0004-send_buffer-westwood", "0005-bursts-veno"])
def test_intervals_of_the_sending_host_have_the_time_that_the_kernel_counted(run, truth):
    _, known = truth.read(RUNS / run)
    trace = tfrctrace.open(RUNS / run / "sender.pcap.gz")
    rows = trace.groups("host", "1s", causes=True).rows
    flow = trace.flows.row(0, named=True)
    own = rows.filter(pl.col("group") == flow["src"], pl.col("direction") == "sent")
    found = {cause: own[name].sum() / S_NS for cause, name in zip(CAUSES, CAUSE_SUMS, strict=True)}
    leeway_s = 0.05 * known.life_s
    assert found["receiver"] == pytest.approx(known.receiver_s, abs=leeway_s)
    assert found["send_buffer"] == pytest.approx(known.send_buffer_s, abs=leeway_s)
    # one flow has one cause at a time: no interval has more than its width
    whole = own.select(pl.sum_horizontal(CAUSE_SUMS))
    assert whole.max().item() <= S_NS
    assert (whole.to_series()[1:-1] == S_NS).all()


def test_what_one_host_sends_the_other_receives():
    rows = tfrctrace.open(RECEIVER / "sender.pcap.gz").groups("host", "1s", causes=True).rows
    sides = [rows.filter(direction=way).select(pl.col(CAUSE_SUMS).sum()) for way in ("sent", "received")]
    assert sides[0].equals(sides[1])


@pytest.mark.parametrize("every_ns", [S_NS // 1_000, S_NS // 50, S_NS, 60 * S_NS])
def test_intervals_have_the_time_that_they_share_with_each_stretch(every_ns):
    trace = tfrctrace.open(MIXED)
    rows = trace.groups("flow", f"{every_ns // 1_000}us", causes=True).rows
    stretches = trace.causes.rename({"start_ns": "from_ns", "end_ns": "until_ns", "direction": "way"})
    of_rows = rows.with_columns(flow=pl.col("group").cast(pl.UInt32), way=pl.col("direction"))
    shared = pl.min_horizontal("end_ns", "until_ns") - pl.max_horizontal("start_ns", "from_ns")
    joined = of_rows.join(stretches, on=["flow", "way"])
    for cause, name in zip(CAUSES, CAUSE_SUMS, strict=True):
        expected = joined.filter(pl.col("cause") == cause).select(shared.clip(0).sum()).item()
        assert rows[name].sum() == expected, cause
    held = joined.group_by("flow", "way", "start_ns").agg(shared.clip(0).sum().alias("ns"))
    found = of_rows.with_columns(ns=pl.sum_horizontal(CAUSE_SUMS))
    both = found.join(held, on=["flow", "way", "start_ns"], how="inner")
    assert (both["ns"] == both["ns_right"]).all()
    assert both.height > 0


@pytest.mark.parametrize("by", ["link", "host", "port", "flow", "label"])
def test_without_intervals_groups_have_the_whole_table_of_causes(by):
    trace = tfrctrace.open(MIXED)
    rows = trace.groups(by, causes=True).rows
    held = trace.causes.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    both = 2 if by == "host" else 1
    for cause, name in zip(CAUSES, CAUSE_SUMS, strict=True):
        assert rows[name].sum() == both * held.filter(cause=cause)["ns"].sum(), (by, cause)


def test_causes_are_unknown_where_nobody_asked_or_nothing_is_tcp():
    assert tfrctrace.open(MIXED).groups("host").rows.select(CAUSE_SUMS).null_count().row(0) == (
        (tfrctrace.open(MIXED).groups("host").rows.height,) * len(CAUSE_SUMS)
    )
    rows = tfrctrace.open(ROOT / "sample_traces" / "dumbbell.tr.xz").groups("flow", causes=True).rows
    udp = rows.filter(tcp_packets=0)
    assert not udp.is_empty()
    assert udp.select(CAUSE_SUMS).null_count().row(0) == (udp.height,) * len(CAUSE_SUMS)


@pytest.mark.parametrize("capture", ["linux-midstream-snd", "linux-small-flows-rcv"])
@pytest.mark.parametrize("every", ["20ms", "1s"])
def test_losses_are_the_same_whether_causes_are_collected_or_not(capture, every):
    path = ROOT / "tests" / "data" / "captures" / f"{capture}.pcap.gz"
    alone, beside = (
        tfrctrace.open(path).groups("link", every, causes=causes).rows.drop(CAUSE_SUMS)
        for causes in (False, True)
    )
    assert alone.equals(beside)


def test_causes_after_groups_without_them_are_read_again():
    trace = tfrctrace.open(RECEIVER / "sender.pcap.gz")
    assert trace.groups("host").rows["receiver_ns"].null_count() > 0
    assert trace.groups("host", causes=True).rows["receiver_ns"].max() > 20 * S_NS


def test_the_text_table_names_what_held_most_and_sorts_by_it(run):
    done = run("groups", RECEIVER / "sender.pcap.gz", "--causes", "--sort", "receiver")
    assert "held back by" in done.out
    assert "receiver (94.9 %)" in done.out
    assert "by receiver, largest first" in done.out
    assert run("groups", MIXED, "--sort", "receiver").err.startswith(
        "error: `--sort receiver` needs `--causes`"
    )
    assert run("groups", MIXED, "--under-load", "--causes").status == 2
