"""Groups of what is no TCP: paths of simulations and pairs, `ping`, 802.11, RTT by reports."""

import io
import json
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, PcapWriter

import tfrctrace
from tfrctrace.base.grouping import KINDS
from tfrctrace.metrics.loaded_delay import delays_under_load, link_load

ROOT = Path(__file__).parents[3]
TWO_FLOWS = ROOT / "sample_traces" / "two-flows.pcapng.gz"
DUMBBELL = ROOT / "sample_traces" / "dumbbell.tr.xz"
CCID3 = ROOT / "sample_traces" / "dccp-ccid3.pcap.gz"
PAIR = ROOT / "tests" / "data" / "pair"
TUNNELS = ROOT / "tests" / "data" / "tunnels"
BY_TSHARK = json.loads((TUNNELS / "expected.json").read_text())
RADIOTAP = ROOT / "tests" / "data" / "wifi" / "ns3-wifi-radiotap-veno-udp-2-1.pcap.gz"

S_NS = 10**9
START_S = 1_795_000_000
THERE, BACK = ("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1")


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_core_groups_by_every_kind_in_the_directions_that_it_is_said_to_have(kind, tmp_path):
    inventory = tmp_path / "sites.toml"
    inventory.write_text('[all]\nnetworks = ["0.0.0.0/0", "::/0"]\n')
    trace = tfrctrace.open(RADIOTAP if kind.name in {"station", "bssid", "channel"} else TWO_FLOWS)
    rows = trace.groups(kind.name, inventory=inventory if kind.name == "site" else None).rows
    assert set(rows["direction"]) <= ({"sent", "received"} if kind.is_end else {"fwd", "rev"})
    assert not rows.is_empty()


def losses_by_hand(path, width_ns):
    """Return the lost packets of a simulation (never received) by flow, direction and interval of sending."""
    packets = pl.concat(tfrctrace.open(path).packets())
    key = ["flow", "direction", "uid"]
    received = packets.filter(event="received", point="destination").select(key).unique()
    sent = packets.filter(point="source").group_by(key).agg(pl.col("time_ns").min())
    lost = sent.join(received, on=key, how="anti").with_columns(
        start_ns=pl.col("time_ns") // width_ns * width_ns
    )
    counts = lost.group_by("flow", "direction", "start_ns").len()
    return {(str(flow), way, start): count for flow, way, start, count in counts.iter_rows()}


def test_losses_of_a_simulation_count_when_their_packets_were_sent():
    rows = tfrctrace.open(DUMBBELL).groups("flow", "1s").rows
    found = rows.filter(pl.col("path_lost_packets") > 0)
    expected = losses_by_hand(DUMBBELL, S_NS)
    key = ("group", "direction", "start_ns")
    assert dict(zip(found.select(key).iter_rows(), found["path_lost_packets"], strict=True)) == expected
    tcp = rows.filter((pl.col("tcp_data_packets") > 0) & (pl.col("direction") == "fwd"))
    assert tcp["lost_behind_capture"].to_list() == tcp["path_lost_packets"].to_list()


@pytest.mark.parametrize("by", ["flow", "link", "host"])
def test_outcomes_add_up_to_those_of_the_flows(by):
    pair = [PAIR / f"ns3-p2p-randloss-nosack-{end}.pcap.gz" for end in ("0-1", "1-1")]
    for trace in (tfrctrace.open(DUMBBELL), tfrctrace.open(pair, pair=True, clock_offset="0s")):
        flows = trace.flows
        rows = trace.groups(by, "1s").in_total().rows
        sent = flows["sent_packets"].sum() - (flows["in_flight_packets"].sum() or 0)
        assert rows["path_packets"].sum() == sent
        assert rows["path_lost_packets"].sum() == flows["lost_packets"].sum() > 0
        arrived = sent - flows["lost_packets"].sum()
        assert rows["delay_samples"].sum() == arrived


def echo(seconds, ends, kind, sequence, *, identifier=7):
    packet = (
        Ether() / IP(src=ends[0], dst=ends[1]) / ICMP(type=kind, id=identifier, seq=sequence) / (b"x" * 32)
    )
    packet.time = START_S + seconds
    return packet


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_ping_is_timed_and_its_losses_are_counted(tmp_path):
    path = tmp_path / "ping.pcap"
    packets = [echo(0.0, THERE, 8, 1), echo(0.030, BACK, 0, 1)]
    packets += [echo(0.1, THERE, 8, 2)]
    packets += [echo(1.0, THERE, 8, 3), echo(1.5, THERE, 8, 3)]
    packets += [
        echo(1.6, BACK, 0, 3, identifier=8),
        echo(1.7, BACK, 0, 3),
    ]
    six = Ether() / IPv6(src="2001:db8::1", dst="2001:db8::2")
    for seconds, message in ((2.0, ICMPv6EchoRequest(id=1, seq=1)), (2.25, ICMPv6EchoReply(id=1, seq=1))):
        reply = isinstance(message, ICMPv6EchoReply)
        packet = (Ether() / IPv6(src="2001:db8::2", dst="2001:db8::1") if reply else six) / message
        packet.time = START_S + seconds
        packets.append(packet)
    with PcapWriter(str(path)) as writer:
        writer.write(packets)
    rows = tfrctrace.open(path).groups("host", "1s").rows.filter(direction="sent")
    found = rows.select("group", "echo_requests", "echo_unanswered", "echo_samples", "echo_p50_ms").rows()
    assert [row[:4] for row in found] == [
        ("10.0.0.1", 2, 1, 1),
        ("10.0.0.1", 1, 0, 1),
        ("2001:db8::1", 1, 0, 1),
    ]
    assert [row[4] for row in found] == pytest.approx([30, 700, 250], rel=0.008)
    total = tfrctrace.open(path).groups("link").rows
    assert total.select("echo_requests", "echo_unanswered").rows() == [(4, 1)]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_frames_of_stations_are_those_of_tshark():
    fields = (
        "wlan.ta",
        "wlan.ra",
        "wlan.bssid",
        "wlan.fc.retry",
        "radiotap.dbm_antsignal",
        "frame.time_epoch",
    )
    command = ["tshark", "-r", str(RADIOTAP), "-T", "fields", *(f"-e{name}" for name in fields)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    frames, retries, signals = Counter(), Counter(), Counter()
    for line in done.stdout.splitlines():
        sender, receiver, bssid, retry, signal, _ = line.split("\t")
        for key in {("station", sender, "sent"), ("station", receiver, "received"), ("bssid", bssid, "fwd")}:
            if not key[1] and key[0] == "station":
                continue
            frames[key] += 1
            retries[key] += retry in {"1", "True"}
            signals[key] += int(signal or 0)
    for by in ("station", "bssid"):
        for row in tfrctrace.open(RADIOTAP).groups(by).rows.iter_rows(named=True):
            key = (by, row["group"] or "", row["direction"])
            assert (row["wifi_frames"], row["wifi_retry_frames"]) == (frames.pop(key), retries.pop(key)), key
            assert (row["wifi_signal_sum_dbm"] or 0) == signals.pop(key)
    assert not frames
    (channel,) = tfrctrace.open(RADIOTAP).groups("channel", "1s").whole().rows.iter_rows(named=True)
    assert (channel["group"], channel["wifi_frames"]) == ("2412", len(done.stdout.splitlines()))


def test_round_trips_by_reports_are_those_of_the_flow():
    trace = tfrctrace.open(CCID3)
    flow = trace.flows.filter(direction="fwd").row(0, named=True)
    rows = trace.groups("flow", "1s").whole().rows.filter(direction="fwd")
    assert flow["rtt_samples"] > 0
    for name in ("rtt_samples", "rtt_p50_ms", "rtt_p95_ms"):
        assert rows[name].to_list() == pytest.approx([flow[name]], rel=0.008), name
    assert len(trace.groups("flow", "1s").rows.filter(pl.col("rtt_samples") > 0)) > 1


def drawn_load(rates_mbps, rtts_ms):
    """Return groups of a link with such a rate and RTT in each second."""
    from tfrctrace.base.grouping import parse_grouping
    from tfrctrace.metrics.groups import Groups
    from tfrctrace.parsers.schema import polars_schema

    rows, buckets = [], []
    for second, (rate, rtt_ms) in enumerate(zip(rates_mbps, rtts_ms, strict=True)):
        key = {"group": "a", "direction": "fwd", "start_ns": (START_S + second) * S_NS}
        rows.append({**key, "end_ns": key["start_ns"] + S_NS, "wire_bytes": int(rate * 125_000)})
        edge = {"from_ns": int(rtt_ms * 1e6), "to_ns": int(rtt_ms * 1e6)}
        buckets.append({**key, "measure": "rtt", **edge, "samples": 10})
    schemas = (pl.Schema(polars_schema(name)) for name in ("groups", "group_buckets"))
    frames = (pl.DataFrame(part, schema) for part, schema in zip((rows, buckets), schemas, strict=True))
    return Groups(parse_grouping("link", "1s"), *frames)


def test_delay_under_load_is_that_of_loaded_intervals():
    groups = drawn_load(
        [0.1] * 5 + [9, 10, 10, 9.5] + [5] + [0.2] * 5, [20] * 5 + [180] * 4 + [90] + [22] * 5
    )
    load = link_load(groups)
    assert (load.idle_s, load.loaded_s, load.between_s) == (10, 4, 1)
    (row,) = delays_under_load(groups, load)
    assert (row.idle_samples, row.loaded_samples) == (100, 40)
    assert (row.idle_p50_ms, row.loaded_p50_ms, row.increase_ms) == (20, 180, 160)
    # with a capacity that is never reached there is no load, and too few samples are none
    assert delays_under_load(groups, link_load(groups, 100e6))[0].loaded_samples == 0
    (few,) = delays_under_load(groups, load, least=50)
    assert (few.loaded_p50_ms, few.increase_ms) == (None, None)


@pytest.mark.parametrize(("cause", "loaded_s"), [("shared_bottleneck", 5), ("mark", 5), ("loss", 1)])
def test_flows_that_take_what_the_path_has_load_the_link(cause, loaded_s):
    groups = drawn_load([0.1] * 4 + [1] * 4 + [10], [20] * 4 + [80] * 4 + [100])
    held = pl.Series(f"{cause}_ns", [0] * 4 + [900_000_000] * 4 + [0], dtype=pl.UInt64)
    busy = replace(groups, rows=groups.rows.with_columns(held))
    assert (link_load(groups).loaded_s, link_load(busy).loaded_s) == (1, loaded_s)


def test_delay_under_load_in_all_forms(run):
    assert "loaded for 21.0 s" in run("groups", "--under-load", "--by", "link", TWO_FLOWS).out
    rows = json.loads(run("groups", "--under-load", "--format", "json", TWO_FLOWS).out)["delay_under_load"]
    written = pl.read_csv(io.StringIO(run("groups", "--under-load", "--format", "csv", TWO_FLOWS).out))
    assert [row["loaded_samples"] for row in rows] == written["loaded_samples"].to_list()
    assert run("groups", "--capacity", "1M", TWO_FLOWS).err.startswith("error: `--capacity` needs")


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_the_page_of_a_pair_begins_with_its_link_over_time():
    pair = [PAIR / f"ns3-p2p-randloss-nosack-{end}.pcap.gz" for end in ("0-1", "1-1")]
    trace = tfrctrace.open(pair, pair=True, clock_offset="0s")
    report = trace.report_parts(title="pair")
    summary = next(section for section in report.sections if section.key == "summary")
    assert summary.overview is not None
    course = trace.results().link.course.filter(side="all")
    assert course["packets"].sum() == trace.flows["packets"].sum()
    assert len(course) > 20


@pytest.mark.parametrize(
    ("capture", "by", "name"),
    [
        ("vxlan-vlan", "tunnel", lambda flow: f"vxlan {flow['vni']}"),
        ("vxlan-vlan", "vlan", lambda flow: flow["vlans"]),
        ("gtp-u", "tunnel", lambda flow: f"gtp-u {int(flow['teid'], 16)}"),
        ("mpls", "tunnel", lambda flow: f"mpls {flow['mpls_labels']}"),
        ("mpls", "vlan", lambda flow: flow.get("vlans", "untagged")),
        ("mpls", "outer", lambda _: "no tunnel"),
        ("geneve", "tunnel", lambda flow: f"geneve {int(flow['vni'], 0)}"),
    ],
)
def test_bytes_of_vlans_and_tunnels_are_those_of_tshark(capture, by, name):
    expected = Counter()
    for flow in BY_TSHARK[capture].values():
        expected[name(flow)] += flow["wire_bytes"]
    rows = tfrctrace.open(TUNNELS / f"{capture}.pcap").groups(by).rows
    assert dict(rows.group_by("group").agg(pl.col("wire_bytes").sum()).iter_rows()) == expected


def test_flows_belong_to_the_interface_of_their_first_packet(tmp_path):
    path = tmp_path / "two.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for number, interface in enumerate(["eth0", "wan", "eth0", "wan"]):
            packet = (
                IP(src="192.0.2.1", dst="192.0.2.2", id=number)
                / UDP(sport=number // 3, dport=53)
                / bytes(100)
            )
            packet.sniffed_on, packet.time = interface, 1_760_000_000 + number
            writer.write(packet)
    trace = tfrctrace.open(path)
    rows = trace.groups("interface").rows
    # the second packet of the first flow came in by another interface
    assert list(rows.select("group", "packets").iter_rows()) == [("eth0", 3), ("wan", 1)]
    assert trace.flows["interface"].drop_nulls().unique().sort().to_list() == ["eth0", "wan"]
