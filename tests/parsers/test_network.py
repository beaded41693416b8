"""More than two captures of one clock: where each packet was lost, against what a simulator dropped.

`tests/data/network` has captures at all devices of two runs of ns-3 (`network.cc`), and how many packets of
each flow each queue and each link dropped.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import InputError, TfrctraceWarning, UsageError
from tfrctrace.reports.files.saved_results import load

NETWORK = Path(__file__).parents[1] / "data" / "network"
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
TOPOLOGIES = ("chain", "tree")


def captures(topology):
    return sorted((NETWORK / topology).glob("*.pcap.xz"))


def opened(topology):
    return tfrctrace.open(captures(topology), pair=True)


def place(name):
    """Return node and device of a capture."""
    node, device = Path(name).name.split(".")[0].split("-")[1:]
    return int(node), int(device)


def dropped(topology):
    """Return the packets that each queue and link of the simulation dropped, by its flow."""
    lines = (line.split() for line in (NETWORK / topology / "drops.txt").read_text().splitlines())
    return {(kind, int(node), int(device), *flow): int(count) for kind, node, device, *flow, count in lines}


def hops_with_ends(trace):
    ends = trace.flows.select("flow", "direction", "src", "src_port", "dst", "dst_port")
    return trace.hops.join(ends, on=["flow", "direction"]).iter_rows(named=True)


def lost_by_place(trace):
    """Return the losses in the same form: between devices of a node is its queue, else a link."""
    found = Counter()
    for row in hops_with_ends(trace):
        (from_node, _), (node, device) = place(row["from"]), place(row["to"])
        flow = (str(row[name]) for name in ("src", "src_port", "dst", "dst_port"))
        found["queue" if from_node == node else "link", node, device, *flow] += row["lost_packets"]
    return {key: count for key, count in found.items() if count}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_hop_lost_what_the_simulator_dropped_there(topology):
    assert lost_by_place(opened(topology)) == dropped(topology)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_order_of_the_captures_does_not_matter(topology):
    turned = tfrctrace.open(captures(topology)[::-1], pair=True)
    assert lost_by_place(turned) == dropped(topology)
    ends = ("transport", "src", "src_port", "dst", "dst_port")
    columns = pl.exclude("flow", "direction", "source", "notes")
    ours, theirs = (trace.flows.sort(ends).select(columns) for trace in (turned, opened(topology)))
    assert ours.equals(theirs)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_hops_add_up_to_the_flow(topology):
    trace = opened(topology)
    sums = trace.hops.group_by("flow", "direction").agg(
        pl.col("lost_packets", "in_flight_packets", "missed_packets", "unsent_packets").sum(),
        pl.col("packets").sort_by("hop").first(),
        pl.col("arrived_packets").sort_by("hop").last(),
    )
    both = trace.flows.filter(pl.col("sent_packets") > 0).join(
        sums, on=["flow", "direction"], suffix="_of_hops"
    )
    assert both.height == sums.height
    for column, of_hops in (("sent_packets", "packets_of_hops"), ("received_packets", "arrived_packets")):
        assert both[column].to_list() == both[of_hops].to_list()
    # a hop may show that a packet was lost where the last capture ended too early to tell
    assert (both["lost_packets"] <= both["lost_packets_of_hops"]).all()
    gone, gone_on_hops = (
        both[f"lost_packets{end}"] + both[f"in_flight_packets{end}"] for end in ("", "_of_hops")
    )
    assert gone.to_list() == gone_on_hops.to_list()
    assert sums["missed_packets"].sum() == sums["unsent_packets"].sum() == 0


def test_a_route_holds_the_captures_that_its_packets_pass_and_no_others():
    trace = opened("tree")
    routes = {}
    for row in hops_with_ends(trace):
        ends = (row["src"], row["dst"])
        routes.setdefault(ends, {})[row["hop"]] = (place(row["from"]), place(row["to"]))
    there = [(0, 1), (3, 1), (3, 4), (7, 1), (7, 2), (8, 1), (8, 2), (4, 1)]
    assert list(routes["10.1.1.1", "10.1.6.2"].values()) == list(itertools.pairwise(there))
    back = there[::-1]
    assert list(routes["10.1.6.2", "10.1.1.1"].values()) == list(itertools.pairwise(back))
    # both are at one router
    assert list(routes["10.1.1.1", "10.1.2.1"].values()) == [
        ((0, 1), (3, 1)),
        ((3, 1), (3, 2)),
        ((3, 2), (1, 1)),
    ]


def test_delays_of_hops_are_those_of_the_links():
    # 10 ms and 1 Mbit/s from node 1 to node 2: a packet of 400 bytes of payload is on the wire for 3.44 ms
    rows = [
        row
        for row in hops_with_ends(opened("chain"))
        if (row["dst_port"], place(row["from"]), place(row["to"])) == (6001, (1, 2), (2, 1))
    ]
    (row,) = rows
    assert row["delay_min_ms"] == pytest.approx(13.44, abs=0.002)
    assert row["delay_max_ms"] == pytest.approx(13.44, abs=0.002)


def test_fewer_captures_give_longer_hops():
    few = [name for name in captures("chain") if place(name) in {(0, 1), (2, 1), (3, 1)}]
    found = Counter()
    for row in hops_with_ends(tfrctrace.open(few, pair=True)):
        found[place(row["from"]), place(row["to"])] += row["lost_packets"]
    expected = Counter()
    for (kind, node, device, src, *_), count in dropped("chain").items():
        forward = src == "10.1.1.1"
        first = (kind, node, device) in {("queue", 1, 2), ("link", 2, 1), ("link", 1, 2)}
        ends = ((0, 1), (2, 1)) if first else ((2, 1), (3, 1))
        expected[ends if forward else ends[::-1]] += count
    assert found == expected


def test_a_pair_has_no_hops_and_hops_need_a_pair():
    pair = tfrctrace.open([captures("chain")[0], captures("chain")[-1]], pair=True)
    assert pair.hops.is_empty()
    assert pair.clock is not None
    assert opened("chain").clock is None
    with pytest.raises(UsageError, match="between two captures or more"):
        _ = tfrctrace.open(captures("chain")[0]).hops


def test_captures_that_share_nothing_are_refused():
    others = [CAPTURES / f"linux-{case}.pcap.gz" for case in ("seq-wrap-snd", "small-flows-snd")]
    with pytest.raises(InputError, match=r"is in two of the 3 captures"):
        _ = tfrctrace.open([*others, captures("chain")[0]], pair=True).flows


def test_no_capture_may_be_given_twice_under_any_name(tmp_path):
    link = tmp_path / "again.pcap.xz"
    link.symlink_to(captures("chain")[1])
    with pytest.raises(UsageError, match="given twice"):
        tfrctrace.open([*captures("chain"), link], pair=True)


def test_more_than_two_clocks_cannot_be_compared():
    with pytest.raises(UsageError, match="between two captures"):
        tfrctrace.open(captures("chain"), pair=True, clock_offset="2s")
    assert lost_by_place(tfrctrace.open(captures("chain"), pair=True, clock_offset="0s")) == dropped("chain")


PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)


def udp(number, ttl):
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 32, number, 0, ttl, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    return ip + struct.pack(">HHHH", 1000, 2000, 12, 0) + struct.pack(">I", number)


def capture(path, packets):
    """Write packets of (time in ns, bytes)."""
    with path.open("wb") as file:
        file.write(PCAP_HEADER)
        for time_ns, packet in packets:
            seconds, rest = divmod(time_ns, 10**9)
            file.write(struct.pack("<IIII", seconds, rest // 1000, len(packet), len(packet)) + packet)
    return path


def test_two_hundred_captures_of_one_path(tmp_path):
    places = 200
    # packet n is lost behind place n - 10; the first ten and the last ten arrive
    last_place = [places] * 10 + list(range(places)) + [places] * 10
    names = [
        capture(
            tmp_path / f"{place:03}.pcap",
            [
                (number * 10**8 + place * 10**6, udp(number, 255 - place))
                for number, last in enumerate(last_place)
                if place <= last
            ],
        )
        for place in range(places)
    ]
    hops = tfrctrace.open(names, pair=True).hops
    assert hops["lost_packets"].to_list() == [1] * (places - 1)
    assert hops["packets"].to_list() == [places + 20 - hop for hop in range(places - 1)]
    assert set(hops["delay_p50_ms"].round(2)) == {1.0}
    with pytest.raises(UsageError, match="past at most 250 captures"):
        tfrctrace.open([names[0]] * 251, pair=True)


def test_captures_of_other_times_are_reported(tmp_path):
    names = [
        capture(
            tmp_path / f"{place}.pcap", [((n * 10**8) + place * 3600 * 10**9, udp(n, 64)) for n in range(30)]
        )
        for place in range(3)
    ]
    with pytest.warns(TfrctraceWarning, match="more than two captures need one clock"):
        _ = tfrctrace.open(names, pair=True).flows


def test_a_copy_at_another_interface_or_a_missed_packet_is_no_loss(tmp_path):
    names = [
        capture(
            tmp_path / f"{place}.pcap",
            [(n * 10**8 + place, udp(n, 64)) for n in range(50) if (place, n) != (1, 20)],
        )
        for place in (0, 1, 2)
    ]
    first, second = tfrctrace.open(names, pair=True).hops.rows(named=True)
    assert (first["lost_packets"], first["missed_packets"], first["arrived_packets"]) == (0, 1, 50)
    assert (second["lost_packets"], second["missed_packets"], second["arrived_packets"]) == (0, 0, 50)


def test_every_output_has_the_hops(run, tmp_path):
    names = captures("chain")
    text = run("flows", "--pair", *names).out
    assert "hop from" in text
    assert len([line for line in text.splitlines() if " ms / " in line and "net-" in line]) == 10
    document = json.loads(run("flows", "--pair", *names, "--format", "json").out)
    assert sum(row["lost_packets"] for row in document["hops"]) == sum(dropped("chain").values())
    assert json.loads(run("flows", names[0], "--format", "json").out)["hops"] == []
    done = run("convert", "--pair", *names, "--what", "hops", "-o", "hops.csv")
    assert done.status == 0, done.err
    assert pl.read_csv(tmp_path / "hops.csv").columns == opened("chain").hops.columns
    done = run("report", "--pair", *names, "-o", "page.html", "--results", "kept")
    assert done.status == 0, done.err
    page = (tmp_path / "page.html").read_text()
    assert "Hops between the captures" in page
    assert str(NETWORK) not in page
    kept, _ = load(str(tmp_path / "kept"))
    assert kept.table("hops").height == opened("chain").hops.height
    hidden = run("flows", "--pair", *names, "--format", "json", "--anonymize").out
    assert "net-1-2" not in hidden
