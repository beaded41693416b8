"""The table of flows agrees with tcptrace, tshark, the kernel and the simulator.

`tests/data/expected` holds what tcptrace and tshark printed when the captures were taken in; where they are
installed they are asked again. Each place where we count differently from a witness is named below,
with the reason.
"""

import json
import math
import shutil
import statistics
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLES = DATA.parent.parent / "sample_traces"

Ends = tuple[str, int, str, int]
Row = dict[str, Any]

EXPECTATIONS = {
    path.name.removesuffix(".json"): json.loads(path.read_text()) for path in (DATA / "expected").iterdir()
}
# tcptrace cannot read cooked v2, and takes a VLAN tag in a tag for no IP at all
READ_BY_TCPTRACE = sorted(name for name, witnesses in EXPECTATIONS.items() if witnesses["tcptrace"])
# cut headers: tshark shows no payload where it cannot know, and takes that for none
HEADERS_CUT = "variant-snap40-short.pcap.gz"
# of all interfaces: tshark counts a packet as often as it is shown
ALL_INTERFACES = "linux-cooked-any-rtr-sll2.pcap.gz"
# packets overtake one another on their way from the capture
REORDERED_BEHIND = "linux-relay-reorder-noloss-snd.pcap.gz"
# every packet is there twice, or in another order, or the clock goes back: RTT by time means little
TIME_IS_WRONG = {
    "linux-cooked-any-rtr-sll2.pcap.gz",
    "variant-clock-step-back.pcap.gz",
    "variant-every-packet-twice.pcap.gz",
    "variant-swapped-order.pcap.gz",
}


# tcptrace prints one decimal, from times in whole microseconds
PRINTED_MS = 0.052


def analyse(*captures: Path) -> list[Row]:
    command = [sys.executable, "-m", "tfrctrace", "flows", "--quiet", "--format", "json", *map(str, captures)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    flows: list[Row] = json.loads(done.stdout)["flows"]
    return flows


@pytest.fixture(scope="module")
def flows() -> dict[str, list[Row]]:
    by_capture: dict[str, list[Row]] = {name: [] for name in EXPECTATIONS}
    for row in analyse(*(DATA / "captures" / name for name in sorted(EXPECTATIONS))):
        by_capture[Path(row["source"]).name].append(row)
    return by_capture


def ends_of(row: Row) -> Ends:
    return row["src"], row["src_port"], row["dst"], row["dst_port"]


def with_packets(rows: list[Row]) -> list[Row]:
    """A direction without a packet is a row of ours, but not of tshark's."""
    return [row for row in rows if row["packets"]]


def summed(rows: list[Row], column: str) -> Counter[tuple[str, Ends]]:
    total: Counter[tuple[str, Ends]] = Counter()
    for row in rows:
        total[row["transport"], ends_of(row)] += row[column]
    return total


@pytest.mark.parametrize("capture", sorted(set(EXPECTATIONS) - {ALL_INTERFACES}))
@pytest.mark.parametrize("column", ["packets", "wire_bytes"])
def test_packets_and_bytes_of_each_direction_are_tsharks(
    flows: dict[str, list[Row]], capture: str, column: str
) -> None:
    assert summed(with_packets(flows[capture]), column) == summed(EXPECTATIONS[capture]["tshark"], column)


def test_packets_shown_at_two_interfaces_are_tsharks_counted_once(flows: dict[str, list[Row]]) -> None:
    rows = flows[ALL_INTERFACES]
    shown = summed(rows, "packets") + summed(rows, "capture_duplicates")
    assert shown == summed(EXPECTATIONS[ALL_INTERFACES]["tshark"], "packets")


@pytest.mark.parametrize("capture", sorted(set(EXPECTATIONS) - {HEADERS_CUT, ALL_INTERFACES}))
def test_payload_of_each_direction_is_tsharks(flows: dict[str, list[Row]], capture: str) -> None:
    ours = summed(with_packets(flows[capture]), "payload_bytes")
    assert ours == summed(EXPECTATIONS[capture]["tshark"], "payload_bytes")


def test_payload_is_null_where_the_header_was_cut(flows: dict[str, list[Row]]) -> None:
    rows = flows[HEADERS_CUT]
    assert rows
    assert all(row["payload_bytes"] is None and row["unique_bytes"] is None for row in rows)


def pairs(rows: list[Row], capture: str) -> list[tuple[Row, Row]]:
    """Our row beside tcptrace's, for each direction of each TCP connection."""
    ours = {ends_of(row): row for row in rows if row["transport"] == "tcp"}
    theirs = {ends_of(row): row for row in EXPECTATIONS[capture]["tcptrace"]}
    assert ours.keys() == theirs.keys()
    assert len(ours) == len([row for row in rows if row["transport"] == "tcp"])
    return [(ours[ends], theirs[ends]) for ends in ours]


@pytest.mark.parametrize("capture", [name for name in READ_BY_TCPTRACE if name != HEADERS_CUT])
@pytest.mark.parametrize("column", ["packets", "data_packets", "payload_bytes", "unique_bytes"])
def test_counts_of_each_connection_are_tcptraces(
    flows: dict[str, list[Row]], capture: str, column: str
) -> None:
    for ours, theirs in pairs(flows[capture], capture):
        assert ours[column] == theirs[column], ends_of(ours)


def repeated_control(theirs: Row, capture: str) -> tuple[int, int]:
    """Packets and bytes that tcptrace takes for repeated data because a SYN or FIN has a sequence number.

    A repeated SYN or FIN adds one byte to its count, and one packet if it carries nothing else.
    """
    (seen,) = [row for row in EXPECTATIONS[capture]["tshark"] if ends_of(row) == ends_of(theirs)]
    empty: int = seen["repeated_empty_control"]
    return empty, max(theirs["syns"] - 1, 0) + max(theirs["fins"] - 1, 0)


@pytest.mark.parametrize("capture", [name for name in READ_BY_TCPTRACE if name != HEADERS_CUT])
def test_retransmissions_of_each_connection_are_tcptraces(flows: dict[str, list[Row]], capture: str) -> None:
    for ours, theirs in pairs(flows[capture], capture):
        control_packets, control_bytes = repeated_control(theirs, capture)
        repeated = theirs["retransmitted_packets"] - control_packets
        if doubled := ours["network_duplicates"]:
            # tcptrace does not know a packet that the network doubled from one that was sent again
            doubled_data = repeated - ours["retransmitted_packets"]
            assert doubled - control_packets <= doubled_data <= doubled, ends_of(ours)
        else:
            assert ours["retransmitted_packets"] == repeated, ends_of(ours)
            assert ours["retransmitted_bytes"] == theirs["retransmitted_bytes"] - control_bytes, ends_of(ours)
        assert ours["out_of_order_packets"] == theirs["out_of_order_packets"], ends_of(ours)


@pytest.mark.parametrize("capture", [name for name in READ_BY_TCPTRACE if name != HEADERS_CUT])
def test_announced_segment_size_and_closed_windows_are_tcptraces(
    flows: dict[str, list[Row]], capture: str
) -> None:
    for ours, theirs in pairs(flows[capture], capture):
        assert (ours["mss"] or 0) == theirs["mss"], ends_of(ours)
        assert ours["zero_windows"] == theirs["zero_windows"], ends_of(ours)


def rtts_by_acknowledgement(capture: str) -> dict[Ends, list[float]]:
    """Samples in ms of each direction: those of SACK blocks and timestamps are none of tcptrace's."""
    trace = tfrctrace.open(DATA / "captures" / capture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TfrctraceWarning)
        trace.read("flows", "rtt")
    found: dict[Ends, list[float]] = {}
    for row in trace.flows.to_dicts():
        own = trace.rtt.filter(flow=row["flow"], direction=row["direction"], method="ack")
        found[ends_of(row)] = (own["rtt_ns"] / 1e6).to_list()
    return found


@pytest.mark.parametrize(
    "capture", [name for name in READ_BY_TCPTRACE if name != HEADERS_CUT and name not in TIME_IS_WRONG]
)
def test_rtts_by_acknowledgement_of_each_connection_are_tcptraces(
    flows: dict[str, list[Row]], capture: str
) -> None:
    by_ends = rtts_by_acknowledgement(capture)
    for ours, theirs in pairs(flows[capture], capture):
        rtts_ms = by_ends.get(ends_of(ours), [])
        samples = len(rtts_ms)
        if ours["network_duplicates"] and not ours["out_of_order_packets"]:
            # The first copy's acknowledgement is a sample: tcptrace takes the second for a retransmission.
            most = theirs["rtt_samples"] + ours["network_duplicates"]
            assert theirs["rtt_samples"] <= samples <= most, ends_of(ours)
            continue
        if capture == REORDERED_BEHIND:
            # What a SACK block reported has given its sample then: tcptrace waits for the acknowledgement.
            assert 0.9 * theirs["rtt_samples"] <= samples <= theirs["rtt_samples"], ends_of(ours)
            continue
        if ours["out_of_order_packets"]:
            # A late packet may be a repeated one: we take no sample while it is outstanding.
            assert 0.9 * theirs["rtt_samples"] <= samples <= theirs["rtt_samples"], ends_of(ours)
        else:
            assert samples == theirs["rtt_samples"], ends_of(ours)
        for column, of in (("rtt_min_ms", min), ("rtt_mean_ms", statistics.fmean), ("rtt_max_ms", max)):
            close = pytest.approx(theirs[column], abs=PRINTED_MS)
            assert (of(rtts_ms) if rtts_ms else 0) == close, (column, ends_of(ours))
        if samples > 2:
            estimate = statistics.stdev(rtts_ms)
            assert estimate == pytest.approx(theirs["rtt_std_ms"], abs=PRINTED_MS, rel=0.02), ends_of(ours)


@pytest.mark.parametrize("counted", json.loads((DATA / "truth.json").read_text()), ids=str)
def test_retransmissions_at_the_sender_are_those_the_sender_counted(
    flows: dict[str, list[Row]], counted: Row
) -> None:
    ports = counted["src_port"], counted["dst_port"]
    (row,) = [r for r in flows[counted["capture"]] if (r["src_port"], r["dst_port"]) == ports]
    assert row["retransmitted_packets"] == counted["retransmissions"]


def test_forms_of_one_capture_give_one_table(flows: dict[str, list[Row]]) -> None:
    """Byte order, resolution, file format and link type change nothing but the size of the frames."""
    same = {"bigendian", "nano-magic", "nano-bigendian", "null-bsd", "raw-ip", "vlan", "qinq", "editcap-nsec"}
    names = [f"variant-{form}.pcap.gz" for form in same] + ["variant-same.pcapng.gz"]
    varies = {"source", "wire_bytes", "throughput_bps", "notes", "start_ns", "end_ns", "flow", "vlans"}

    def essence(name: str) -> list[Row]:
        rows = flows[name]
        return [{key: round_down(value) for key, value in row.items() if key not in varies} for row in rows]

    def round_down(value: object) -> object:
        # one of the forms has other digits below the microsecond
        return float(f"{value:.4g}") if isinstance(value, float) else value

    expected = essence("variant-same.pcap.gz")
    assert expected
    for name in names:
        assert essence(name) == expected, name


def sample(name: str) -> tuple[list[Row], dict[str, Any]]:
    capture = next(path for path in SAMPLES.iterdir() if path.name.startswith(f"{name}.pcap"))
    truth: dict[str, Any] = json.loads((SAMPLES / f"{name}.truth.json").read_text())
    return analyse(capture), truth


def test_two_flows_lost_what_kernel_and_queue_counted() -> None:
    rows, truth = sample("two-flows")
    for stream in truth["iperf3"]:
        (row,) = [r for r in rows if r["src_port"] == stream["client_port"]]
        assert row["retransmitted_packets"] == stream["retransmits"]
        assert stream["bytes_received"] <= row["unique_bytes"] <= stream["bytes"]
    total = sum(row["retransmitted_packets"] for row in rows)
    assert total == truth["sender_kernel"]["TcpRetransSegs"] == truth["bottleneck"]["drops"]


def test_rtt_of_two_flows_lies_between_the_empty_and_the_full_queue() -> None:
    rows, truth = sample("two-flows")
    empty_ms = 2 * truth["setting"]["one_way_delay_ms"]
    for stream in truth["iperf3"]:
        (row,) = [r for r in rows if r["src_port"] == stream["client_port"]]
        assert empty_ms <= row["rtt_min_ms"] < empty_ms + 5
        # the kernel's own estimate, a sampled moving average in microseconds
        assert row["rtt_mean_ms"] == pytest.approx(stream["mean_rtt"] / 1e3, rel=0.15)


def test_short_flows_of_the_mixed_trace_carry_what_was_asked_for() -> None:
    """A client port is used twice within seconds: two flows, each with its own bytes."""
    rows, truth = sample("mixed")
    asked = truth["short_flows"]
    for port in {flow["client_port"] for flow in asked}:
        answers = [row for row in rows if row["dst_port"] == port and row["src_port"] == 8080]
        expected = [flow["bytes_received"] for flow in asked if flow["client_port"] == port]
        assert [row["unique_bytes"] for row in answers] == expected


def test_udp_of_the_mixed_trace_is_what_iperf3_sent_and_one_to_open_the_stream() -> None:
    rows, truth = sample("mixed")
    (stream,) = [s for s in truth["iperf3"] if s["protocol"] == "udp"]
    (row,) = [r for r in rows if r["transport"] == "udp" and r["src_port"] == stream["client_port"]]
    assert row["packets"] == stream["packets"] + 1
    # the opening datagram carries four bytes
    assert row["payload_bytes"] == stream["bytes"] + 4


def test_closed_port_of_the_mixed_trace_is_refused() -> None:
    rows, truth = sample("mixed")
    port = truth["closed_port"]["port"]
    (attempt,) = [r for r in rows if r["dst_port"] == port and r["transport"] == "tcp"]
    assert attempt["state"] == "refused"
    (datagram,) = [r for r in rows if r["dst_port"] == port and r["transport"] == "udp"]
    assert datagram["icmp_errors"] == 1


@pytest.fixture(scope="module")
def witness(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(DATA / "witness.py")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", ["two-flows.pcapng.gz", "mixed.pcap.zst"])
def test_sample_traces_agree_with_the_tshark_of_this_machine(
    witness: ModuleType, tmp_path: Path, name: str
) -> None:
    if name.endswith(".zst") and shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    theirs = witness.ask_tshark(witness.unpack(SAMPLES / name, tmp_path))
    ours = with_packets(analyse(SAMPLES / name))
    for column in ("packets", "wire_bytes", "payload_bytes"):
        assert summed(ours, column) == summed(theirs, column), column


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
def test_expectations_are_what_the_tcptrace_of_this_machine_says(witness: ModuleType, tmp_path: Path) -> None:
    for name in ("linux-one-cubic-snd.pcap.gz", "linux-small-flows-rcv.pcap.gz"):
        plain = witness.unpack(DATA / "captures" / name, tmp_path)
        assert witness.ask_tcptrace(plain) == EXPECTATIONS[name]["tcptrace"]


def test_every_capture_has_an_expectation_and_every_expectation_a_witness() -> None:
    captures = {path.name for path in (DATA / "captures").iterdir()}
    assert captures == EXPECTATIONS.keys()
    silent = {name for name, witnesses in EXPECTATIONS.items() if not witnesses["tshark"]}
    assert silent == {"variant-empty.pcap.gz", "variant-zero-bytes.pcap"}


def test_percentiles_lie_between_their_neighbours(flows: dict[str, list[Row]]) -> None:
    measured = [row for rows in flows.values() for row in rows if row["rtt_samples"]]
    assert len(measured) > 50
    for row in measured:
        ordered = [row[f"rtt_{name}_ms"] for name in ("min", "p50", "p95", "max")]
        assert ordered == sorted(ordered)
        assert all(math.isfinite(value) for value in ordered)
