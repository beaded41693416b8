"""What numbers in UDP payloads say is what iperf, iperf3 and the simulator reported of the same run.

`tests/data/udp.json` holds what the programs reported: iperf 2's server (32 of 628 lost, which counts the
datagram that ends the test; its mean delay is a sum divided by 596 with that datagram), ns-3's FlowMonitor
and its log of receptions, iperf3's client (in the truth of the sample trace). A capture at the sender cannot
know what arrived: null there.
"""

import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrctrace
from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.parsers.tfrc import TfrcParameters

DATA = Path(__file__).resolve().parent.parent.parent / "data"
SAMPLES = DATA.parent.parent / "sample_traces"
REPORTED = json.loads((DATA / "udp.json").read_text())

Row = dict[str, Any]


def rows_to(path: Path, port: int, **options: Any) -> Row:
    analysis = _native.analyse([str(path)], ReadSettings(**options))
    (row,) = [
        row for row in analysis.table("flows").rows() if row["dst_port"] == port and row["transport"] == "udp"
    ]
    return dict(row)


def path_of(name: str) -> Path:
    return DATA / name if "/" in name else DATA / "captures" / name


@pytest.mark.parametrize("name", REPORTED)
def test_counts_are_those_that_the_program_reported(name: str) -> None:
    reported = REPORTED[name]
    row = rows_to(path_of(name), reported["dst_port"])
    # datagrams lost behind the last one seen cannot be known
    unseen = reported["sent"] - reported.get("last_seen", reported["sent"])
    assert row["sent_packets"] == reported["sent"] - unseen
    assert row["received_packets"] == reported["received"]
    if reported["received"] is None:
        assert (row["vantage"], row["vantage_confidence"] >= 0.75) == ("sender", True)
        unknown = ("lost_packets", "pdr", "plr", "duplicate_packets", "jitter_ms", "delay_mean_ms")
        assert {row[column] for column in unknown} == {None}
        assert "does not show what arrives" in row["notes"]
    else:
        assert row["lost_packets"] == reported["lost"] - unseen
        assert row["duplicate_packets"] == 0
    assert f"({reported['layout']})" in row["notes"]


@pytest.mark.parametrize("name", [name for name in REPORTED if "delay_sum_ms" in REPORTED[name]])
def test_delays_and_jitter_are_those_that_the_program_reported(name: str) -> None:
    reported = REPORTED[name]
    row = rows_to(path_of(name), reported["dst_port"])
    assert row["delay_mean_ms"] * row["received_packets"] == pytest.approx(reported["delay_sum_ms"], rel=1e-4)
    assert row["delay_min_ms"] == pytest.approx(reported["delay_min_ms"], abs=1e-3)
    assert row["delay_max_ms"] == pytest.approx(reported["delay_max_ms"], abs=1e-3)
    # iperf takes its times in user space, behind the capture
    assert row["jitter_ms"] == pytest.approx(reported["jitter_ms"], rel=0.1)


HIDDEN = ("received_packets", "lost_packets", "pdr", "plr", "duplicate_packets", "jitter_ms", "delay_mean_ms")
"""What a capture at the sender does not show."""


@pytest.mark.parametrize("vantage", [None, "middle"])
def test_numbers_without_gaps_are_no_arrivals_where_the_place_is_not_the_receivers(
    tmp_path: Path, vantage: str | None
) -> None:
    """Packets of one side alone, none missing: they may all have been lost after the capture."""
    path = capture(tmp_path / "c.pcap", [iperf3_wide(number) for number in range(1, 101)])
    row = rows_to(path, 5001, vantage=vantage)
    assert (row["vantage"], row["sent_packets"], row["lost_before_capture"]) == (vantage, 100, 0)
    assert {row[column] for column in HIDDEN} == {None}
    assert ("pass `vantage=receiver`" in row["notes"]) == (vantage is None)
    row = rows_to(path, 5001, vantage="receiver")
    assert (row["received_packets"], row["lost_packets"], row["pdr"]) == (100, 0, 1)
    assert "`vantage" not in row["notes"]


def test_no_limit_on_losses_holds_where_the_place_is_unknown(run: Callable[..., Any], tmp_path: Path) -> None:
    path = capture(tmp_path / "c.pcap", [iperf3_wide(number) for number in range(1, 101)])
    for limit in ("sum(lost_packets) / sum(sent_packets) < 1 %", "max(plr) < 1 %", "min(pdr) > 99 %"):
        checked = run("check", path, "-r", limit)
        assert checked.status == 1
        assert "not known" in checked.out
        assert "--vantage" in checked.out
        assert run("check", path, "-r", limit, "--vantage", "receiver").status == 0


def test_a_page_has_no_delivery_where_the_place_is_not_known(tmp_path: Path) -> None:
    frames = [iperf3_wide(number) for number in range(1, 101)]
    page = tfrctrace.open(capture(tmp_path / "c.pcap", frames)).report_html()
    assert "0 of 100 packets sent" in page
    assert "losses after it are not known" in page
    assert "--vantage" in page
    for words in ("Lost on the way", "Delivery and delay", "No stretch of time stands out"):
        assert words not in page


def test_packets_within_a_host_arrive_where_they_are_captured(tmp_path: Path) -> None:
    payloads = [iperf3_wide(number) for number in range(1, 101)]
    row = rows_to(capture(tmp_path / "c.pcap", payloads, dst=b"\x0a\0\0\1"), 5001)
    assert (row["vantage"], row["received_packets"], row["lost_packets"]) == (None, 100, 0)


@pytest.mark.parametrize("end", ["snd", "rcv"])
def test_one_direction_alone_never_shows_fewer_losses_than_the_program_reported(end: str) -> None:
    """Without TCP and the answer nothing tells the place; 32 of 628 were lost for iperf's server."""
    trace = tfrctrace.open(path_of(f"linux-udp-vs-tcp-{end}.pcap.gz"), filter="udp dst port 5202")
    row = trace.flows.filter(direction="fwd").to_dicts()[0]
    assert (row["vantage"], row["sent_packets"]) == (None, 627)
    lost = REPORTED["linux-udp-vs-tcp-rcv.pcap.gz"]["lost"]
    if end == "snd":
        assert {row[column] for column in HIDDEN} == {None}
        assert (row["lost_before_capture"], "`vantage=receiver`" in row["notes"]) == (0, True)
    else:
        assert row["lost_packets"] == row["lost_before_capture"] == lost
        assert "losses downstream of it are not counted" in row["notes"]


def test_where_nothing_tells_the_place_losses_are_a_lower_bound(tmp_path: Path) -> None:
    """Numbers are missing, so packets were lost before the capture, and perhaps after it."""
    path = capture(tmp_path / "c.pcap", [iperf3_wide(number) for number in range(1, 101) if number != 20])
    row = rows_to(path, 5001)
    assert (row["vantage"], row["lost_packets"], row["received_packets"]) == (None, 1, 99)
    assert row["lost_before_capture"] == 1
    assert "the place of the capture is not known" in row["notes"]
    row = rows_to(path, 5001, vantage="receiver")
    assert (row["vantage"], row["lost_packets"]) == ("receiver", 1)
    assert "place of the capture" not in row["notes"]
    row = rows_to(path, 5001, vantage="middle")
    assert row["lost_packets"] == 1
    assert "losses downstream of the capture are not counted" in row["notes"]
    row = rows_to(path, 5001, vantage="sender")
    assert row["sent_packets"] == 100
    assert row["lost_packets"] is row["pdr"] is row["received_packets"] is None
    assert "the capture does not have 1 of these packets" in row["notes"]


@pytest.mark.parametrize(("end", "fact"), [("snd", None), ("rcv", "Lost on the way")])
def test_a_page_shows_losses_only_where_they_are_visible(end: str, fact: str | None) -> None:
    port = REPORTED[f"linux-udp-vs-tcp-{end}.pcap.gz"]["dst_port"]
    trace = tfrctrace.open(path_of(f"linux-udp-vs-tcp-{end}.pcap.gz"), filter=f"port {port}")
    page = trace.report_html()
    assert ("Lost on the way" in page) == (fact is not None)
    assert "Lost before the capture" not in page
    assert ("32 of 627 packets sent" in page) == (fact is not None)
    assert "No stretch of time stands out" not in page


def test_a_connection_between_the_same_hosts_proposes_its_round_trip_time() -> None:
    name = "linux-udp-vs-tcp-rcv.pcap.gz"
    path, port = path_of(name), REPORTED[name]["dst_port"]
    match = re.search(r"flow (\d+) between the same hosts has `rtt=([\d.]+)ms`", rows_to(path, port)["notes"])
    assert match is not None
    lender = [
        dict(row)
        for row in _native.analyse([str(path)], ReadSettings()).table("flows").rows()
        if row["flow"] == int(match[1])
    ]
    assert {row["transport"] for row in lender} == {"tcp"}
    known = [row[name] for row in lender for name in ("rtt_p50_ms", "handshake_rtt_ms") if row[name]]
    assert float(match[2]) == pytest.approx(max(known), abs=1e-3)
    with_rtt = rows_to(path, port, tfrc=TfrcParameters(rtt_s=float(match[2]) / 1e3))
    assert with_rtt["loss_events"] > 0
    assert "between the same hosts" not in with_rtt["notes"]


def test_iperf3_of_the_sample_trace_sent_what_it_says_and_has_no_delay() -> None:
    truth = json.loads((SAMPLES / "mixed.truth.json").read_text())
    (stream,) = [stream for stream in truth["iperf3"] if stream["protocol"] == "udp"]
    row = rows_to(next(SAMPLES.glob("mixed.pcap*")), stream["server_port"])
    # captured at the sender, as handshakes of TCP between the same hosts show: losses are behind it
    assert (row["vantage"], row["sent_packets"]) == ("sender", stream["packets"])
    assert row["received_packets"] is row["lost_packets"] is row["delay_mean_ms"] is row["jitter_ms"] is None
    assert "(iperf3)" in row["notes"]


def test_the_other_direction_says_nothing() -> None:
    rows = (
        _native.analyse([str(path_of("linux-udp-vs-tcp-rcv.pcap.gz"))], ReadSettings()).table("flows").rows()
    )
    (back,) = [row for row in rows if row["transport"] == "udp" and row["src_port"] == 5202]
    assert back["packets"] == 1
    assert back["sent_packets"] is back["lost_packets"] is back["plr"] is None


def capture(path: Path, payloads: list[bytes], step_us: int = 10_000, dst: bytes = b"\x0a\0\0\2") -> Path:
    """Write raw IPv4 packets of UDP from port 4000 to port 5001, one each `step_us`."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)]
    for number, payload in enumerate(payloads):
        length = 28 + len(payload)
        header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, number, 0, 64, 17, 0, b"\x0a\0\0\1", dst)
        packet = header + struct.pack(">HHHH", 4000, 5001, length - 20, 0) + payload
        seconds, microseconds = divmod(number * step_us, 1_000_000)
        records.append(struct.pack("<IIII", 1_700_000_000 + seconds, microseconds, length, length) + packet)
    path.write_bytes(b"".join(records))
    return path


def iperf3_wide(number: int) -> bytes:
    seconds, microseconds = divmod(number * 10_000, 1_000_000)
    return struct.pack(">IIQ", 77 + seconds, microseconds, number) + bytes(100)


def test_wide_counters_of_iperf3_are_distinguished_from_narrow_ones(tmp_path: Path) -> None:
    payloads = [iperf3_wide(number) for number in range(1, 101) if number not in {20, 21, 50}]
    row = rows_to(capture(tmp_path / "c.pcap", payloads), 5001)
    assert (row["sent_packets"], row["received_packets"], row["lost_packets"]) == (100, 97, 3)
    assert "(iperf3-64)" in row["notes"]


def test_a_few_datagrams_are_counted_only_on_the_users_word(tmp_path: Path) -> None:
    path = capture(tmp_path / "c.pcap", [iperf3_wide(number) for number in (1, 2, 4)])
    assert rows_to(path, 5001)["sent_packets"] is None
    row = rows_to(path, 5001, dissect=[(5001, "iperf3-64")])
    assert (row["sent_packets"], row["lost_packets"]) == (4, 1)
    assert rows_to(path, 5001, dissect=[(5002, "iperf3-64")])["sent_packets"] is None
    with pytest.raises(ValueError, match="no layout of UDP payloads `iperf4`"):
        _native.analyse([str(path)], ReadSettings(dissect=((5001, "iperf4"),)))


@pytest.mark.parametrize("kind", ["noise", "zeros", "text", "counter"])
def test_other_payloads_are_not_taken_for_numbered_ones(tmp_path: Path, kind: str) -> None:
    source = random.Random(kind)
    makers = {
        "noise": lambda _: source.randbytes(200),
        "zeros": lambda _: bytes(200),
        "text": lambda n: f"{n:08d} some words".encode(),
        "counter": lambda n: struct.pack(">III", n, n, n) + bytes(100),
    }
    path = capture(tmp_path / "c.pcap", [makers[kind](number) for number in range(300)])
    assert rows_to(path, 5001)["sent_packets"] is None


def test_numbers_are_found_among_thousands_of_flows(tmp_path: Path) -> None:
    """With many flows packets are counted in another order than they came."""
    path = capture(tmp_path / "c.pcap", [iperf3_wide(number) for number in range(1, 101) if number != 50])
    header, records = path.read_bytes()[:24], path.read_bytes()[24:]
    length = len(records) // 99
    others = []
    for number in range(3000):
        packet = bytearray(records[16:length])
        packet[20:22] = struct.pack(">H", 10_000 + number)
        packet[22:24] = struct.pack(">H", 53)
        others.append(records[:16] + packet)
    path.write_bytes(header + b"".join(others) + records)
    row = rows_to(path, 5001)
    assert (row["packets"], row["sent_packets"], row["lost_packets"]) == (99, 100, 1)
