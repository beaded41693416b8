"""Groups by interval: sums by hand from the table of packets, and parts that add up to the whole."""

from collections import Counter
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.metrics.groups import PERCENTILES, RATIOS, SUMS, Groups, sum_groups
from tfrctrace.parsers.schema import TABLES

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_traces"
MIXED = SAMPLES / "mixed.pcap.zst"
TWO_FLOWS = SAMPLES / "two-flows.pcapng.gz"
LOSSY = ROOT / "tests/data/captures/linux-relay-loss-snd.pcap.gz"

WIDTHS = (None, "10ms", "1s", "1min")

OF_FLOWS = (
    *("packets", "wire_bytes", "data_packets", "retransmitted_packets", "retransmitted_bytes"),
    *("spurious_retransmissions", "duplicate_acks", "zero_windows", "capture_gap_bytes", "ect_packets"),
    *("ce_packets", "syn_retransmissions", "lost_before_capture", "lost_behind_capture"),
    *("reordered_packets", "rtt_samples", "fast_retransmissions", "sack_retransmissions"),
    *("rto_retransmissions", "tail_loss_probes", "unexplained_retransmissions"),
)
"""Columns that the table of flows has, too."""


@cache
def groups_of(path, by="host", every=None):
    return tfrctrace.open(path).groups(by, every)


@cache
def packets_of(path):
    packets = pl.concat(tfrctrace.open(path).packets())
    return packets.filter(pl.col("flow").is_not_null() & pl.col("payload_bytes").is_not_null())


@pytest.mark.parametrize("every", WIDTHS)
@pytest.mark.parametrize("path", [MIXED, TWO_FLOWS, LOSSY], ids=lambda path: path.name.split(".")[0])
def test_volumes_are_those_of_the_packets(path, every):
    grouping = parse_grouping("host", every)
    packets = packets_of(path)
    width_ns = grouping.every_ns
    start = (
        pl.col("time_ns").min() if width_ns is None else (pl.col("time_ns") // width_ns * width_ns).first()
    )
    key = [] if width_ns is None else [(pl.col("time_ns") // width_ns).alias("interval")]
    sides = []
    for end, direction in (("src", "sent"), ("dst", "received")):
        counted = packets.group_by(pl.col(end).alias("group"), *key).agg(
            start.alias("start_ns"),
            pl.len().cast(pl.UInt64).alias("packets"),
            *(pl.col(name).sum().cast(pl.UInt64) for name in ("wire_bytes", "payload_bytes")),
            (pl.col("payload_bytes") > 0).sum().cast(pl.UInt64).alias("data_packets"),
        )
        sides.append(counted.with_columns(pl.lit(direction).alias("direction")))
    columns = ["group", "direction", "start_ns", "packets", "wire_bytes", "payload_bytes", "data_packets"]
    by_hand = pl.concat(sides).select(columns)
    ours = groups_of(path, "host", every).rows.filter(pl.col("packets") > 0).select(columns)
    assert_frame_equal(ours, by_hand, check_row_order=False)


@pytest.mark.parametrize("by", ["flow", "host", "link", "port", "prefix/16", "dscp"])
@pytest.mark.parametrize("every", WIDTHS)
@pytest.mark.parametrize("path", [MIXED, TWO_FLOWS, LOSSY], ids=lambda path: path.name.split(".")[0])
def test_sums_over_groups_and_intervals_are_those_of_the_flows(path, by, every):
    rows = groups_of(path, by, every).rows.filter(pl.col("direction") != "received" if by != "port" else True)
    flows = tfrctrace.open(path).flows
    for name in OF_FLOWS:
        assert rows[name].sum() == flows[name].sum(), name
    assert (
        rows["goodput_bytes"].sum() == flows.select(pl.coalesce("unique_bytes", "payload_bytes").sum()).item()
    )


def test_attempts_to_connect_are_those_of_the_flows():
    rows = groups_of(MIXED, "host").rows.filter(direction="sent")
    states = tfrctrace.open(MIXED).flows.filter(pl.col("direction") == "fwd")["state"]
    states = states.drop_nulls().to_list()
    assert rows["connection_attempts"].sum() == len([state for state in states if state != "midstream"])
    assert rows["connections_refused"].sum() == states.count("refused") == 1
    assert rows["connections_unanswered"].sum() == states.count("attempted")
    known = tfrctrace.open(MIXED).flows.filter(direction="fwd")["handshake_rtt_ms"].drop_nulls()
    assert rows["connect_samples"].sum() == len(known) > 0


def test_round_trip_times_of_an_interval_are_those_of_its_acknowledgements():
    samples = tfrctrace.open(MIXED).rtt
    width_ns = 1_000_000_000
    by_hand = samples.group_by(
        pl.col("flow").cast(pl.String).alias("group"),
        "direction",
        start_ns=pl.col("time_ns") // width_ns * width_ns,
    ).agg(
        n=pl.len().cast(pl.UInt64),
        sum_ns=pl.col("rtt_ns").sum().cast(pl.UInt64),
        p95=pl.col("rtt_ns").sort().gather((0.95 * pl.len()).ceil().cast(pl.Int64) - 1).first() / 1e6,
    )
    rows = by_flow("1s").rows.filter(pl.col("rtt_samples") > 0)
    joined = rows.join(by_hand, on=["group", "direction", "start_ns"], how="full")
    assert joined["n"].equals(joined["rtt_samples"], check_names=False)
    assert joined["sum_ns"].equals(joined["rtt_sum_ns"], check_names=False)
    assert ((joined["rtt_p95_ms"] - joined["p95"]).abs() <= joined["p95"] / 128).all()


def test_a_single_interval_begins_and_ends_with_its_packets():
    packets = packets_of(TWO_FLOWS)
    row = groups_of(TWO_FLOWS, "host").rows.filter(direction="sent").sort("start_ns").row(0, named=True)
    of_host = packets.filter(src=row["group"])["time_ns"]
    assert (row["start_ns"], row["end_ns"]) == (of_host.min(), of_host.max())


def test_every_column_is_summed_or_follows_from_sums():
    keys = {"group", "direction", "start_ns", "end_ns"}
    assert keys | set(SUMS) | set(PERCENTILES) | set(RATIOS) == {column.name for column in TABLES["groups"]}
    types = {column.name: column.type for column in TABLES["groups"]}
    signed = {"wifi_signal_sum_dbm"}
    assert {types[name] for name in SUMS if name not in signed} == {"uint64"}


@cache
def by_flow(every):
    return groups_of(MIXED, "flow", every)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([None, "1s"]), st.lists(st.integers(0, 3), min_size=60, max_size=60), st.randoms())
def test_any_partition_over_flows_in_any_order_adds_up_to_the_whole(every, places, random):
    whole = by_flow(every)
    hosts = pl.DataFrame({"group": [str(number + 1) for number in range(60)], "name": places}).with_columns(
        pl.col("name").cast(pl.String)
    )
    names = hosts.join(pl.DataFrame({"direction": ["fwd", "rev"]}), how="cross")
    parts = []
    for place in range(4):
        mine = [str(number + 1) for number, at in enumerate(places) if at == place]
        of_place = pl.col("group").is_in(mine)
        parts.append(Groups(whole.grouping, whole.rows.filter(of_place), whole.buckets.filter(of_place)))
    random.shuffle(parts)
    together = sum_groups(parts)
    assert_frame_equal(together.rows, whole.rows)
    assert_frame_equal(together.buckets, whole.buckets)
    renamed = [part.renamed(names) for part in parts]
    assert_frame_equal(sum_groups(renamed).rows, whole.renamed(names).rows)


@pytest.mark.parametrize("every", [None, "1s", "100ms"])
@pytest.mark.parametrize("by", ["link", "host", "port"])
def test_groups_summed_over_flows_are_those_that_the_core_sums(by, every):
    whole = groups_of(TWO_FLOWS, by, every)
    again = sum_groups([whole])
    assert_frame_equal(again.rows, whole.rows)
    assert_frame_equal(again.buckets, whole.buckets)


def test_files_add_up(tmp_path):
    both = tfrctrace.open([MIXED, TWO_FLOWS]).groups("host", "1s")
    one = groups_of(MIXED, "host", "1s") + groups_of(TWO_FLOWS, "host", "1s")
    assert_frame_equal(both.rows, one.rows)
    assert_frame_equal((groups_of(TWO_FLOWS, "host", "1s") + groups_of(MIXED, "host", "1s")).rows, one.rows)


def test_the_total_counts_each_packet_once():
    total = groups_of(MIXED, "host", "1s").in_total().rows
    assert total["packets"].sum() == groups_of(MIXED, "link").rows["packets"].sum()
    assert total["group"].unique().to_list() == ["all"]


def test_labels_are_groups():
    found = tfrctrace.open(TWO_FLOWS).groups("label", labels=["first=port 5201"]).rows
    flows = tfrctrace.open(TWO_FLOWS).labelled_flows(["first=port 5201"])
    for label, rows in found.group_by("group"):
        of_label = flows.filter(pl.coalesce("label", "transport") == label[0])
        assert rows["packets"].sum() == of_label["packets"].sum()
    assert set(found["group"]) == {"first", "tcp"}


def test_tables_of_other_groupings_do_not_add_up():
    with pytest.raises(UsageError, match="grouped alike"):
        groups_of(MIXED, "host") + groups_of(MIXED, "port")


@pytest.mark.parametrize(
    "by", ["hosts", "", "prefix/33", "prefix/x", "prefix/8/129", "prefix/8/8/8", "host/8"]
)
def test_other_groups_are_refused(by):
    with pytest.raises(UsageError, match=r"group|prefix"):
        parse_grouping(by)


def test_labels_without_groups_by_label_are_refused():
    with pytest.raises(UsageError, match="not grouped"):
        tfrctrace.open(MIXED).groups("host", labels=["a=port 1"])


def test_addresses_of_groups_are_replaced():
    key = b"0123456789abcdef"
    trace = tfrctrace.open(MIXED, anonymize=key)
    hosts = set(trace.groups("host").rows["group"])
    assert hosts == set(trace.flows["src"]) | set(trace.flows["dst"])
    assert not hosts & set(groups_of(MIXED, "host").rows["group"])
    assert set(trace.groups("link").rows["group"]) == {"trace-1"}
    networks = set(trace.groups("prefix/16").rows["group"])
    assert all(network.endswith(("/16", "/64")) for network in networks)
    assert not networks & set(groups_of(MIXED, "prefix/16").rows["group"])


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_rows_beyond_the_limit_are_counted_and_reported(monkeypatch):
    whole = groups_of(MIXED, "host", "1s").rows
    monkeypatch.setattr("tfrctrace.base.grouping.MAX_ROWS", 20)
    trace = tfrctrace.open(MIXED)
    kept = trace.groups("host", "1s").rows
    (problem,) = [one for one in trace.read_groups(parse_grouping("host", "1s")).problems if one["hint"]]
    left_out = whole["packets"].sum() - kept["packets"].sum()
    assert len(kept) == 20
    assert problem["message"] == (
        f"more than 20 rows of groups: {left_out} packets of further groups or intervals were left out"
    )


def test_the_first_interval_of_64_bit_times_ends_at_a_multiple_of_its_width(tmp_path):
    """A capture of the year 1677 has a first minute that begins before 64-bit times do."""
    first_ns, width_ns = -(2**63), 60 * 10**9
    times = [first_ns + seconds * 10**9 for seconds in (1, 2, 20, 50, 100, 170)]
    path = tmp_path / "packets.csv"
    lines = (f"{time},udp,192.0.2.1,1000,192.0.2.2,2000\n" for time in times)
    path.write_text("time_ns,transport,src,src_port,dst,dst_port\n" + "".join(lines))
    rows = tfrctrace.open(path).groups("flow", "1min").rows.filter(pl.col("direction") == "fwd")
    expected = Counter(max(time // width_ns * width_ns, first_ns) for time in times)
    assert dict(rows.select("start_ns", "packets").iter_rows()) == expected
