"""The table of flows agrees with what ns-2's own agents and monitors counted while the trace was written."""

import gzip
import json
import lzma
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tfrctrace
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "ns2"

Row = dict[str, Any]

TRUTH: dict[str, list[Row]] = json.loads((DATA / "truth.json").read_text())
FLOWS = [(trace, flow) for trace, flows in TRUTH.items() for flow in flows]
ROUTED = sorted(trace for trace in TRUTH if trace.startswith("routed-"))
PROBED = sorted(trace for trace, flows in TRUTH.items() if "delays_ms" in flows[0])

# a link prints microseconds, and the first and the last line of a packet are both rounded
PRINTED_MS = 0.001


def analyse(trace: Path, *options: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "tfrctrace",
        "flows",
        "--quiet",
        "--format",
        "json",
        *options,
        str(trace),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def analysed() -> dict[str, dict[str, Any]]:
    return {trace: analyse(DATA / trace) for trace in TRUTH}


def row_of(analysis: dict[str, Any], flow: Row) -> Row:
    transport = {"TFRC": "tfrc", "MessagePassing": "udp", "LossMonitor": "udp"}.get(flow["agent"], "tcp")
    expected = {key: flow[key] for key in ("src", "src_port", "dst", "dst_port")} | {"transport": transport}
    [row] = [row for row in analysis["flows"] if expected.items() <= row.items()]
    found: Row = row
    return found


@pytest.mark.parametrize(("trace", "flow"), FLOWS)
def test_packets_are_those_that_the_agents_counted(
    analysed: dict[str, dict[str, Any]], trace: str, flow: Row
) -> None:
    row = row_of(analysed[trace], flow)
    assert row["sent_packets"] == flow["sent_packets"]
    # ndatapack_ has the SYN, which has a number and no payload
    assert row["data_segments"] in {None, flow["sent_packets"]}
    assert (row["data_segments"] is None) == (row["transport"] != "tcp")
    # a sink of TCP counts what is new, the trace also what was sent again for nothing
    twice = row["received_packets"] - flow["received_once"]
    assert 0 <= twice <= (row["retransmitted_packets"] or 0)
    assert row["sent_packets"] == row["received_packets"] + row["lost_packets"] + row["in_flight_packets"]
    columns = {"dropped_packets", "retransmitted_packets", "payload_bytes", "received_bytes"}
    for column in columns & flow.keys():
        assert row[column] == flow[column], column


@pytest.mark.parametrize("trace", PROBED)
def test_delays_and_jitter_are_those_of_the_probes(analysed: dict[str, dict[str, Any]], trace: str) -> None:
    [flow] = TRUTH[trace]
    delays = flow["delays_ms"]
    row = row_of(analysed[trace], flow)
    # wireless nodes print nanoseconds, links microseconds
    tolerance = 1e-6 if trace == "probes-wireless.tr.gz" else PRINTED_MS
    assert row["delay_mean_ms"] == pytest.approx(sum(delays) / len(delays), abs=tolerance)
    assert row["delay_min_ms"] == pytest.approx(min(delays), abs=tolerance)
    assert row["delay_max_ms"] == pytest.approx(max(delays), abs=tolerance)
    changes = [abs(later - earlier) for earlier, later in pairwise(delays)]
    jitter_ms = 0.0
    for change in changes:
        # RFC 3550 section 6.4.1
        jitter_ms += (change - jitter_ms) / 16
    assert row["jitter_ms"] == pytest.approx(jitter_ms, abs=2 * tolerance)
    assert row["delay_variation_ms"] == pytest.approx(sum(changes) / len(changes), abs=2 * tolerance)


@pytest.mark.parametrize("trace", ROUTED)
def test_arrivals_have_the_bytes_that_the_sink_received(trace: str) -> None:
    [flow] = [flow for flow in TRUTH[trace] if "received_bytes" in flow]
    opened = tfrctrace.open(DATA / trace)
    own = opened.flows.filter(pl.col("src_port") == flow["src_port"])["flow"].to_list()
    arrivals = opened.counted("received", 10**9).filter(pl.col("flow").is_in(own))
    assert arrivals["received_bytes"].sum() == flow["received_bytes"]


@pytest.mark.parametrize("trace", PROBED)
def test_delays_and_losses_in_bins_are_those_of_probes_and_agents(trace: str) -> None:
    [flow] = TRUTH[trace]
    found = _native.analyse([str(DATA / trace)], ReadSettings(), collect={"bins"})
    rows = [row for row in found.table("bins").rows() if row["delay_samples"] or row["lost_packets"]]
    own = [row for row in rows if (row["flow"], row["direction"]) == (rows[0]["flow"], rows[0]["direction"])]
    assert sum(row["delay_samples"] for row in own) == len(flow["delays_ms"])
    total_ms = sum(row["delay_samples"] * (row["delay_mean_ms"] or 0.0) for row in own)
    assert total_ms == pytest.approx(sum(flow["delays_ms"]), abs=PRINTED_MS * len(flow["delays_ms"]))
    [row] = [
        row for row in found.table("flows").rows() if row["sent_packets"] and row["delay_p50_ms"] is not None
    ]
    assert sum(row["lost_packets"] for row in own) == row["lost_packets"]


@pytest.mark.parametrize("trace", TRUTH)
def test_every_line_is_understood(analysed: dict[str, dict[str, Any]], trace: str) -> None:
    [source] = analysed[trace]["sources"]
    assert source["format"] == "ns2"
    assert source["bad_lines"] == 0
    assert source["lines"] == source["packets"] + source["other_lines"]
    # a node on wires writes its times with six digits
    assert [one for one in analysed[trace]["warnings"] if one["severity"] != "note"] == []


OLD_LINE = re.compile(
    r"(?P<event>[srfD]) (?P<time>[\d.]+) _(?P<node>\d+)_ (?P<layer>\w+) +(?P<reason>\S+) (?P<uid>\d+) "
    r"(?P<type>\w+) (?P<size>\d+) \[\w+ \w+ \w+ \w+\] ------- "
    r"\[(?P<src>-?\d+):(?P<sport>\d+) (?P<dst>-?\d+):(?P<dport>\d+) "
    r"(?P<ttl>\d+) \d+\] (\[(?P<sequence>\d+) (?P<ack>\d+)\] \d+ \d+)?"
)


def in_new_form(line: str) -> str:
    """A line of the old form of wireless traces as `use-newtrace` would have written it."""
    match = OLD_LINE.match(line)
    assert match, line
    field = match.groupdict()
    event = field["event"].replace("D", "d")
    tcp = ""
    if field["sequence"]:
        tcp = f"-Pn tcp -Ps {field['sequence']} -Pa {field['ack']} -Pf 0 -Po 0 "
    return (
        f"{event} -t {field['time']} -Hs {field['node']} -Hd -2 -Ni {field['node']} "
        f"-Nx 50.00 -Ny 50.00 -Nz 0.00 -Ne -1.000000 -Nl {field['layer']} -Nw {field['reason']} "
        "-Ma 0 -Md 0 -Ms 0 -Mt 0 "
        f"-Is {field['src']}.{field['sport']} -Id {field['dst']}.{field['dport']} -It {field['type']} "
        f"-Il {field['size']} -If 0 -Ii {field['uid']} -Iv {field['ttl']} {tcp}\n"
    )


def test_old_and_new_form_of_one_run_are_the_same_flows(
    analysed: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    new = tmp_path / "new.tr"
    with gzip.open(DATA / "wireless-old.tr.gz", "rt") as old:
        new.write_text("".join(in_new_form(line) for line in old))
    # the old form has no flow ids, and each its own file
    differing = dict.fromkeys(("flow_id", "source"))
    expected = [row | differing for row in analysed["wireless-old.tr.gz"]["flows"]]
    assert [row | differing for row in analyse(new)["flows"]] == expected


def test_a_nam_trace_is_refused_by_name(tmp_path: Path) -> None:
    nam = tmp_path / "out.nam"
    nam.write_text(
        "V -t * -v 1.0a5 -a 0\nn -t * -a 0 -s 0 -S UP\n+ -t 0.1 -s 0 -d 1 -p tcp -e 40 -c 0 -i 0 -a 0\n"
    )
    command = [sys.executable, "-m", "tfrctrace", "flows", str(nam)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "nam trace" in done.stderr


def messages_of(trace: Path) -> list[str]:
    analysis = analyse(trace)
    assert analysis["sources"][0]["bad_lines"] == 0
    return [one["message"] for one in analysis["warnings"]]


def test_events_of_the_medium_access_are_no_nam_trace(
    analysed: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """Mac/Simple writes them with `eventtrace-all`, an energy model its `N` lines."""
    trace = tmp_path / "events.tr"
    events = "E -t 0.500025 SENSING_CARRIER 0 -1\nN -t 0.500536 -n 1 -e 49.999746\n"
    with gzip.open(DATA / "wireless-old.tr.gz", "rt") as old:
        trace.write_text(events + old.read())
    source = dict.fromkeys(("source",))
    expected = [row | source for row in analysed["wireless-old.tr.gz"]["flows"]]
    assert [row | source for row in analyse(trace)["flows"]] == expected
    assert messages_of(trace) == []


def test_values_of_an_agent_before_it_is_connected_are_no_bad_lines(tmp_path: Path) -> None:
    """The first lines of a `trace cwnd_` set before `connect`, as ns-2 writes them."""
    trace = tmp_path / "variables.tr"
    trace.write_text(
        "0.00000  -1 -1 -1 -1 cwnd_ 1.000 \n0.00000  -1 -1 -1 -1 ssthresh_ 20\n"
        "0.00000  0  0  2  0  cwnd_ 1.000 \n0.17100  0  0  2  0  cwnd_ 2.000 \n"
    )
    assert analyse(trace)["sources"][0]["format"] == "ns2"
    assert not any("unreadable" in message for message in messages_of(trace))


def test_lines_of_a_queue_monitor_are_named(tmp_path: Path) -> None:
    trace = tmp_path / "queue.tr"
    trace.write_text(
        "0 1 2 0 0 0 0 0 0 0 0\n0.10000000000000001 1 2 0.0 0.0 0 0 0 0 0 0\n"
        "0.20000000000000001 1 2 77.875199999999936 0.074879999999999947 3 3 0 2120 2120 0\n"
    )
    expected = "3 lines of a queue monitor were left out: they name a link and no flow"
    assert any(expected in message for message in messages_of(trace))


def test_the_address_of_all_nodes_is_printed_as_ns2_does(tmp_path: Path) -> None:
    trace = tmp_path / "broadcast.tr"
    line = "0.600000000 _{}_ AGT  --- 24 cbr 210 [0 0 0 0] ------- [1:0 -1:99 32 0] [0] 0 0\n"
    trace.write_text("s " + line.format(1) + "r " + line.format(2))
    rows = [row for row in analyse(trace)["flows"] if row["packets"]]
    assert [(row["src"], row["dst"], row["dst_port"]) for row in rows] == [("1", "-1", 99)]


MARKED_ON_ITS_WAY = """\
+ 1.0 0 1 tcp 1040 ------N 2 0.0 2.0 1 10
- 1.0 0 1 tcp 1040 ------N 2 0.0 2.0 1 10
r 1.1 0 1 tcp 1040 ------N 2 0.0 2.0 1 10
+ 1.1 1 2 tcp 1040 ------N 2 0.0 2.0 1 10
- 1.1 1 2 tcp 1040 {flags} 2 0.0 2.0 1 10
r 1.2 1 2 tcp 1040 {flags} 2 0.0 2.0 1 10
+ 1.2 2 1 ack 40 {echo} 2 2.0 0.0 1 11
- 1.2 2 1 ack 40 {echo} 2 2.0 0.0 1 11
r 1.3 2 1 ack 40 {echo} 2 2.0 0.0 1 11
+ 1.3 1 0 ack 40 {echo} 2 2.0 0.0 1 11
- 1.3 1 0 ack 40 {echo} 2 2.0 0.0 1 11
r 1.4 1 0 ack 40 {echo} 2 2.0 0.0 1 11
+ 1.5 0 1 tcp 1040 ------N 2 0.0 2.0 2 12
- 1.5 0 1 tcp 1040 ------N 2 0.0 2.0 2 12
r 1.6 0 1 tcp 1040 ------N 2 0.0 2.0 2 12
"""
"""A queue of RED marks what it forwards: `E` stands where the packet leaves it, `C` in the answer."""


@pytest.mark.parametrize(("flags", "echo", "marked"), [("----E-N", "C------", 1), ("------N", "-------", 0)])
def test_packets_that_a_queue_marked_are_counted_where_they_arrive(
    tmp_path: Path, flags: str, echo: str, marked: int
) -> None:
    (tmp_path / "red.tr").write_text(MARKED_ON_ITS_WAY.format(flags=flags, echo=echo))
    forward, back = tfrctrace.open(tmp_path / "red.tr").flows.to_dicts()
    assert (forward["ect_packets"], forward["ect0_packets"], forward["ce_packets"]) == (2, 2 - marked, marked)
    assert back["ece_packets"] == marked


def test_packets_of_tfrc_that_a_queue_marked_are_counted_too() -> None:
    text = lzma.decompress((DATA / "tfrc" / "ecn.tr.xz").read_bytes()).decode()
    lines = [line.split() for line in text.splitlines()]
    arrived = [line[6] for line in lines if line[0] == "r" and line[4] == "tcpFriend"]
    (forward,) = tfrctrace.open(DATA / "tfrc" / "ecn.tr.xz").flows.filter(direction="fwd").to_dicts()
    assert forward["ce_packets"] == arrived.count("----E-N") == 6
    assert forward["ect_packets"] == forward["sent_packets"]
