"""ns-3's ASCII traces and FlowMonitor's XML say what the simulator itself counted in the same runs.

`tests/data/ns3/truth.json` holds FlowMonitor's statistics as exact integers (its XML prints six digits), and
what the sending TCP sockets counted.
"""

import gzip
import json
import lzma
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "ns3"
TRUTH: dict[str, dict[str, list[dict[str, Any]]]] = json.loads((DATA / "truth.json").read_text())

Ends = tuple[str, str, int, str, int]
Row = dict[str, Any]

# the step of the last times: delays are differences of two of them
STEP_MS = 0.01
# one form of the trace of one run: up to here pieces of the others were kept
LINES_OF_PIECES = 800
OLD_FORMS = ["3.10", "3.12", "3.14", "3.22", "3.30"]


@cache  # many tests look at one trace
def analyse(trace: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tfrctrace", "flows", "--format", "json", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done


def rows_of(trace: Path) -> dict[Ends, Row]:
    rows = [row for row in json.loads(analyse(trace).stdout)["flows"] if row["packets"]]
    return {(row["transport"], row["src"], row["src_port"], row["dst"], row["dst_port"]): row for row in rows}


def truth_of(case: str) -> dict[Ends, dict[str, Any]]:
    transports = {6: "tcp", 17: "udp"}
    return {
        (transports[flow["proto"]], flow["src"], flow["sport"], flow["dst"], flow["dport"]): flow
        for flow in TRUTH[case]["flows"]
    }


def messages_of(trace: Path) -> str:
    return " ".join(analyse(trace).stderr.split())


def text_of(name: str) -> bytes:
    return lzma.decompress((DATA / name).read_bytes())


@pytest.fixture(scope="module")
def whole() -> dict[Ends, Row]:
    return rows_of(DATA / "p2p-newreno.tr.xz")


@pytest.mark.parametrize(
    ("trace", "case"),
    [
        ("p2p-newreno.tr.xz", "p2p-newreno"),
        ("p2p-newreno-ip.tr.xz", "p2p-newreno"),
        ("wifi-newreno.tr.xz", "wifi-newreno"),
    ],
)
def test_packets_sent_and_received_are_flow_monitors(trace: str, case: str) -> None:
    rows, truth = rows_of(DATA / trace), truth_of(case)
    assert rows.keys() == truth.keys()
    for ends, row in rows.items():
        flow = truth[ends]
        assert (row["sent_packets"], row["wire_bytes"]) == (flow["txPackets"], flow["txBytes"]), ends
        assert (row["received_packets"], row["received_bytes"]) == (flow["rxPackets"], flow["rxBytes"]), ends
        missing = flow["txPackets"] - flow["rxPackets"]
        assert row["lost_packets"] + row["in_flight_packets"] == missing, ends


@pytest.mark.parametrize(
    ("trace", "case"), [("p2p-newreno.tr.xz", "p2p-newreno"), ("wifi-newreno.tr.xz", "wifi-newreno")]
)
def test_losses_are_flow_monitors(trace: str, case: str) -> None:
    """In the trace of the IP layer a packet dropped shortly before the end may as well be on its way."""
    truth = truth_of(case)
    for ends, row in rows_of(DATA / trace).items():
        assert row["lost_packets"] == truth[ends]["lostPackets"], ends


def test_losses_without_a_word_at_the_ip_layer_are_lost_or_on_their_way() -> None:
    for ends, row in rows_of(DATA / "p2p-newreno-ip.tr.xz").items():
        lost = truth_of("p2p-newreno")[ends]["lostPackets"]
        assert lost - 1 <= row["lost_packets"] <= lost, ends


def test_drops_have_their_reason(whole: dict[Ends, Row]) -> None:
    (forth,) = [row for row in whole.values() if row["dst_port"] == 5001]
    assert (forth["dropped_packets"], forth["drop_reasons"]) == (6, "link queue 6")


def test_blocks_of_sack_show_what_repaired_the_losses() -> None:
    """ns-3's TcpSocketBase has SACK on: all that it sends again in a recovery but the first is of SACK."""
    (row,) = (row for row in rows_of(DATA / "p2p-newreno.tr.xz").values() if row["sack_retransmissions"])
    repaired = row["fast_retransmissions"] + row["sack_retransmissions"]
    assert (repaired, row["recovery_episodes"]) == (row["retransmitted_packets"], row["fast_retransmissions"])


@pytest.mark.parametrize("trace", ["p2p-newreno.tr.xz", "p2p-newreno-ip.tr.xz"])
def test_delays_are_flow_monitors(trace: str) -> None:
    truth = truth_of("p2p-newreno")
    for ends, row in rows_of(DATA / trace).items():
        flow = truth[ends]
        mean_ms = flow["delaySum"] / flow["rxPackets"] / 1e6
        assert row["delay_mean_ms"] == pytest.approx(mean_ms, abs=STEP_MS), ends


@pytest.mark.parametrize("trace", ["p2p-newreno.tr.xz", "p2p-newreno-ip.tr.xz"])
def test_the_delay_variation_is_flow_monitors(trace: str) -> None:
    """Its `jitterSum` is of all packets that follow another one (RFC 3393)."""
    truth = truth_of("p2p-newreno")
    for ends, row in rows_of(DATA / trace).items():
        mean_ms = truth[ends]["jitterSum"] / (truth[ends]["rxPackets"] - 1) / 1e6
        assert row["delay_variation_ms"] == pytest.approx(mean_ms, abs=STEP_MS), ends
        if ends[4] == 5001:
            assert row["delay_variation_ms"] == pytest.approx(mean_ms, rel=1e-5)


def test_delays_behind_a_radio_are_flow_monitors_and_before_one_shorter() -> None:
    """A packet that a station sends is first seen on the air, when it has waited for that already."""
    truth = truth_of("wifi-newreno")
    for ends, row in rows_of(DATA / "wifi-newreno.tr.xz").items():
        mean_ms = truth[ends]["delaySum"] / truth[ends]["rxPackets"] / 1e6
        if row["dst_port"] == 5001:
            assert row["delay_mean_ms"] == pytest.approx(mean_ms, abs=STEP_MS)
        else:
            assert row["delay_mean_ms"] < mean_ms
    assert "on the air" in messages_of(DATA / "wifi-newreno.tr.xz")


@pytest.mark.parametrize(
    ("trace", "case"),
    [
        ("p2p-newreno.tr.xz", "p2p-newreno"),
        ("p2p-newreno-ip.tr.xz", "p2p-newreno"),
        ("wifi-newreno.tr.xz", "wifi-newreno"),
    ],
)
def test_retransmissions_are_the_sockets(trace: str, case: str) -> None:
    senders = {flow["port"]: flow for flow in TRUTH[case]["tcp"]}
    rows = [row for row in rows_of(DATA / trace).values() if row["dst_port"] in senders]
    assert len(rows) == len(senders)
    for row in rows:
        sender = senders[row["dst_port"]]
        assert row["retransmitted_packets"] == sender["retx_segments"]
        assert row["retransmitted_bytes"] == sender["retx_bytes"]
        # the SYN is the truth's one more
        assert row["packets"] == sender["tx_segments"] + 1


@pytest.fixture(scope="module")
def newest_form(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what was kept of older forms, in the newest one."""
    path = tmp_path_factory.mktemp("ns3") / "new.tr"
    path.write_bytes(b"".join(text_of("p2p-newreno.tr.xz").splitlines(keepends=True)[:LINES_OF_PIECES]))
    return path


RTT_STATISTICS = ("min", "mean", "p50", "p95", "p99", "max", "std")


@pytest.mark.parametrize("release", OLD_FORMS)
def test_older_releases_print_the_same(release: str, newest_form: Path) -> None:
    """All but the options, which releases up to 3.21 do not print."""
    ours, expected = rows_of(DATA / f"p2p-newreno-{release}-style.tr.xz"), rows_of(newest_form)
    assert ours.keys() == expected.keys()
    has_options = release in ("3.22", "3.30")
    of_options = {"source", "ts_rtt_samples", "ts_rtt_min_ms", "ts_rtt_mean_ms", "ts_rtt_max_ms"}
    of_options |= {
        "receive_window_min_bytes",
        "receive_window_max_bytes",
        "max_flight_bytes",
        "cwnd_max_bytes",
    }
    of_options |= {
        "fast_retransmissions",
        "sack_retransmissions",
        "mean_flight_bytes",
        "slow_start_exit_bytes",
    }
    # SACK blocks and timestamps give round-trip times too
    of_options |= {f"rtt_{name}" for name in ("samples", *(f"{kind}_ms" for kind in RTT_STATISTICS))}
    for ends, row in ours.items():
        different = {name for name in row if row[name] != expected[ends][name]}
        assert different <= ({"source"} if has_options else of_options), ends


def test_the_file_of_one_device_counts_what_passed_it() -> None:
    """Node 2 is the router before the bottleneck: what its queue dropped is not there, nor what it sent."""
    trace = DATA / "p2p-newreno-2-1.tr.xz"
    lines = text_of(trace.name).splitlines()
    truth = truth_of("p2p-newreno")
    for ends, row in rows_of(trace).items():
        event = b"- " if ends[4] == 5001 else b"r "
        assert row["packets"] == sum(line.startswith(event) for line in lines)
        assert row["packets"] <= truth[ends]["txPackets"]
        assert row["sent_packets"] is None
    assert "6 drops" in messages_of(trace)


def test_packets_that_no_router_takes_are_lost() -> None:
    rows = rows_of(DATA / "ipv6-unrouted.tr.gz")
    columns = ("sent_packets", "received_packets", "lost_packets")
    counts = {ends[0]: tuple(row[column] for column in columns) for ends, row in rows.items()}
    assert counts == {"tcp": (2, 0, 2), "udp": (20, 0, 20)}
    assert "no packet arrives at" in messages_of(DATA / "ipv6-unrouted.tr.gz")


@pytest.mark.parametrize("case", sorted(name for name, case in TRUTH.items() if case["flows"]))
def test_totals_of_flow_monitor_are_its_own_integers(case: str) -> None:
    rows, truth = rows_of(DATA / f"{case}.flowmon.xml.gz"), truth_of(case)
    assert rows.keys() == truth.keys()
    for ends, row in rows.items():
        flow = truth[ends]
        assert (row["sent_packets"], row["wire_bytes"]) == (flow["txPackets"], flow["txBytes"])
        assert (row["received_packets"], row["received_bytes"]) == (flow["rxPackets"], flow["rxBytes"])
        assert row["lost_packets"] == flow["lostPackets"]
        mean_ms = flow["delaySum"] / flow["rxPackets"] / 1e6
        # six digits: half a unit of the last
        assert row["delay_mean_ms"] == pytest.approx(mean_ms, rel=5e-6)
        assert row["jitter_ms"] is None, "FlowMonitor's is not that of RFC 3550"
        changes = flow["rxPackets"] - 1
        if changes > 0:
            variation_ms = flow["jitterSum"] / changes / 1e6
            assert row["delay_variation_ms"] == pytest.approx(variation_ms, rel=5e-6)
        else:
            assert row["delay_variation_ms"] is None
        assert row["dscp"] is None, "FlowMonitor's XML does not list packets"


def test_flow_monitor_names_the_reasons_of_drops() -> None:
    reasons = {
        (case, ends[0]): row["drop_reasons"]
        for case in ("csma-red-veno", "ipv6-unrouted", "p2p-newreno")
        for ends, row in rows_of(DATA / f"{case}.flowmon.xml.gz").items()
        if row["lost_packets"]
    }
    assert reasons == {
        ("csma-red-veno", "tcp"): "link qdisc 57",
        ("csma-red-veno", "udp"): "link qdisc 10",
        ("ipv6-unrouted", "tcp"): "ip routeerr 2",
        ("ipv6-unrouted", "udp"): "ip routeerr 20",
        ("p2p-newreno", "tcp"): "link queue 6",
    }


def test_a_document_that_was_cut_is_reported_and_keeps_what_was_read(tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "p2p-vegas-westwood-bbr.flowmon.xml.gz").read_bytes())
    cut = tmp_path / "cut.xml"
    cut.write_bytes(text[: text.index(b'<Flow flowId="4" sourceAddress')])
    assert len(rows_of(cut)) == 3
    assert "ends inside an element" in messages_of(cut)


def test_entities_in_a_document_of_flow_monitor_are_replaced(tmp_path: Path) -> None:
    """XML 1.0 section 4.1: a character may be written by its number."""
    text = gzip.decompress((DATA / "p2p-newreno.flowmon.xml.gz").read_bytes()).decode()
    plain, escaped = tmp_path / "plain.xml", tmp_path / "escaped.xml"
    plain.write_text(text)
    numbered = text.replace('="+', '="&#43;').replace('Address="10.', 'Address="&#x31;0&#46;')
    assert numbered.count("&#") > 20
    escaped.write_text(numbered.replace("<FlowStats>", '<FlowStats note="&quot;a&quot; &lt;b&gt; &amp; c">'))
    names = dict.fromkeys(("source",))
    assert [row | names for row in rows_of(escaped).values()] == [
        row | names for row in rows_of(plain).values()
    ]
    assert "unreadable" not in messages_of(escaped)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (' flowId="', ' flowId="x'),
        (' rxPackets="', ' rxPackets="&many;'),
        (' sourceAddress="', ' sourceAddress="256.'),
        (' destinationPort="', ' destinationPort="9&#57;99'),
        ("<packetsDropped reasonCode=", "<packetsDropped code="),
    ],
)
def test_an_unreadable_element_of_flow_monitor_is_reported(before: str, behind: str, tmp_path: Path) -> None:
    text = gzip.decompress((DATA / "p2p-newreno.flowmon.xml.gz").read_bytes()).decode()
    broken = tmp_path / "broken.xml"
    assert before in text
    broken.write_text(text.replace(before, behind, 1))
    assert "1 element with an unreadable number or address was left out" in messages_of(broken)
