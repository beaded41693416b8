"""Logs beside traces say in our table what Python's own `json`, `csv` and `re` read in them, and belong to
the flows of the capture of the same run.
"""

import csv
import gzip
import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

DATA = Path(__file__).resolve().parent.parent.parent / "data"
LOGS = DATA / "logs"
IPERF3 = sorted(LOGS.glob("*-iperf3-*.json.gz"))
SS = sorted(LOGS.glob("linux-*-ss.txt.gz"))
TRUTH = json.loads((DATA / "truth.json").read_text())

Ends = tuple[str, int, str, int]
Row = tuple[Ends, int, str, float]


def variables(*paths: Path, **options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        _native.analyse([str(path) for path in paths], ReadSettings(**options)).table("variables").rows()
    )
    return rows


def ends_of(row: dict[str, Any]) -> Ends:
    return row["src"], row["src_port"], row["dst"], row["dst_port"]


def rows_of(*paths: Path, **options: str) -> list[Row]:
    return sorted((ends_of(v), v["time_ns"], v["name"], v["value"]) for v in variables(*paths, **options))


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def kinds(*paths: Path, **options: str) -> list[str]:
    return [
        problem["kind"]
        for problem in _native.analyse([str(path) for path in paths], ReadSettings(**options)).problems
    ]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# iperf3

MEASURED = {
    "snd_cwnd": ("cwnd", 1.0),
    "snd_wnd": ("snd_wnd", 1.0),
    "rtt": ("srtt", 1e3),
    "rttvar": ("rttvar", 1e3),
    "retransmits": ("interval_retransmits", 1.0),
    "jitter_ms": ("jitter", 1.0),
    "lost_packets": ("lost_packets", 1.0),
    "packets": ("packets", 1.0),
}


def iperf3_rows(test: dict[str, Any]) -> list[Row]:
    rows: list[Row] = []
    start = test["start"]
    ends = {
        stream["socket"]: tuple(
            stream[f"{end}_{part}"] for end in ("local", "remote") for part in ("host", "port")
        )
        for stream in start["connected"]
    }
    retransmits: dict[int, int] = defaultdict(int)
    for stream in (stream for interval in test["intervals"] for stream in interval["streams"]):
        local, remote = ends[stream["socket"]][:2], ends[stream["socket"]][2:]
        flow = (*local, *remote) if stream["sender"] else (*remote, *local)
        seconds = stream["end"] + (0 if stream["omitted"] else start["test_start"]["omit"])
        time_ns = start["timestamp"]["timesecs"] * 10**9 + round(seconds * 1e9)
        rate = "throughput" if stream["sender"] else "goodput"
        rows.append((flow, time_ns, rate, stream["bits_per_second"]))
        for key in MEASURED.keys() & stream.keys():
            name, divisor = MEASURED[key]
            rows.append((flow, time_ns, name, stream[key] / divisor))
        if "retransmits" in stream:
            retransmits[stream["socket"]] += stream["retransmits"]
            rows.append((flow, time_ns, "retransmits", retransmits[stream["socket"]]))
    if "server_output_json" in test:
        rows += iperf3_rows(test["server_output_json"])
    return sorted(rows)


@pytest.mark.parametrize("log", IPERF3, ids=lambda path: path.name)
def test_iperf3_says_what_json_reads_in_it(log: Path, tmp_path: Path) -> None:
    test = json.loads(text_of(log))
    expected = iperf3_rows(test)
    assert expected
    assert rows_of(log) == expected
    assert kinds(log) == ["imprecise"]
    events = [{"event": "start", "data": test["start"]}]
    events += [{"event": "interval", "data": interval} for interval in test["intervals"]]
    events += [{"event": key, "data": test[key]} for key in ("end", "server_output_json") if key in test]
    stream = write(tmp_path / "stream.json", "".join(json.dumps(event) + "\n" for event in events))
    assert rows_of(stream) == expected
    is_sorted = write(tmp_path / "sorted.json", json.dumps(test, sort_keys=True, indent=1))
    assert rows_of(is_sorted) == expected


@pytest.mark.parametrize("case", ["one-cubic", "relay-loss", "reno2-cubic2", "udp-vs-tcp", "ipv6"])
def test_iperf3s_retransmits_add_up_to_its_own_sum(case: str) -> None:
    log = LOGS / f"linux-{case}-iperf3-client.json.gz"
    last = {ends: value for ends, _, name, value in rows_of(log) if name == "retransmits"}
    assert sum(last.values()) == json.loads(text_of(log))["end"]["sum_sent"]["retransmits"] > 0


def test_documents_in_a_row_are_all_read(tmp_path: Path) -> None:
    both = write(tmp_path / "both.json", "".join(text_of(log) for log in IPERF3[:2]))
    assert rows_of(both) == sorted(rows_of(IPERF3[0]) + rows_of(IPERF3[1]))


def test_a_cut_document_keeps_what_stands_before(tmp_path: Path) -> None:
    text = text_of(LOGS / "linux-one-cubic-iperf3-client.json.gz")
    # in the third interval
    cut = [found.start() for found in re.finditer('"rtt"', text)][2]
    path = write(tmp_path / "cut.json", text[:cut])
    (cut_short, _) = sorted(
        _native.analyse([str(path)], ReadSettings()).problems,
        key=lambda problem: problem["kind"] != "truncated",
    )
    assert (cut_short["kind"], cut_short["severity"], cut_short["byte"]) == ("truncated", "warning", cut)
    whole = rows_of(LOGS / "linux-one-cubic-iperf3-client.json.gz")
    times = sorted({time_ns for _, time_ns, _, _ in whole})
    assert rows_of(path) == [row for row in whole if row[1] < times[2]]


# ss

SS_NUMBERS = {
    "cwnd": r" cwnd:(\d+)",
    "ssthresh": r" ssthresh:(\d+)",
    "srtt": r" rtt:([\d.]+)/",
    "rttvar": r" rtt:[\d.]+/([\d.]+)",
    "minrtt": r" minrtt:([\d.]+)",
    "rto": r" rto:([\d.]+)",
    "mss": r" mss:(\d+)",
    "unacked": r" unacked:(\d+)",
    "bytes_sent": r" bytes_sent:(\d+)",
    "bytes_acked": r" bytes_acked:(\d+)",
    "bytes_retrans": r" bytes_retrans:(\d+)",
    "notsent": r" notsent:(\d+)",
    "snd_wnd": r" snd_wnd:(\d+)",
    "send_rate": r" send (\d+)bps",
    "pacing_rate": r" pacing_rate (\d+)bps",
    "delivery_rate": r" delivery_rate (\d+)bps",
    "retransmits": r" retrans:\d+/(\d+)",
}


def ss_rows(text: str) -> list[Row]:
    rows: list[Row] = []
    time_ns = 0
    for line in text.splitlines():
        if line.startswith("# "):
            seconds, fraction = line.split()[1].split(".")
            time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
            continue
        words = line.split()
        ends: list[Any] = []
        for end in words[3:5]:
            address, _, port = end.rpartition(":")
            ends += [address.strip("[]").removeprefix("::ffff:"), int(port)]
        found = {name: re.search(pattern, line) for name, pattern in SS_NUMBERS.items()}
        values = {name: float(match[1]) for name, match in found.items() if match}
        values.setdefault("retransmits", 0.0)
        rows += [(tuple(ends), time_ns, name, value) for name, value in values.items()]
    return sorted(rows)


@pytest.mark.parametrize("log", SS, ids=lambda path: path.name)
def test_ss_says_what_expressions_find_in_it(log: Path) -> None:
    expected = ss_rows(text_of(log))
    assert expected
    assert rows_of(log) == expected
    assert kinds(log) == []


def in_two_lines(line: str) -> str:
    """Break a socket's line where `ss` breaks it without `-O`."""
    return re.sub(r"^(\S+ +\d+ +\d+ +\S+ \S+) ", r"\1 \n\t ", line)


@pytest.mark.parametrize("log", SS[:2], ids=lambda path: path.name)
def test_the_forms_of_ss_say_the_same(log: Path, tmp_path: Path) -> None:
    lines = text_of(log).splitlines()
    expected = rows_of(log)
    header = "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
    two = "".join(in_two_lines(line) + "\n" + header * line.startswith("#") for line in lines)
    assert "\n\t " in two
    assert rows_of(write(tmp_path / "two.txt", two)) == expected

    def iso(line: str) -> str:
        seconds, fraction = line.split()[1].split(".")
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%S},{fraction}+00:00"

    dates = "".join((iso(line) if line.startswith("#") else line) + "\n" for line in lines)
    assert rows_of(write(tmp_path / "iso.txt", dates)) == expected
    stamped = ""
    for line in lines:
        if line.startswith("#"):
            stamp = line.split()[1]
        else:
            stamped += "".join(f"{stamp} {part}\n" for part in in_two_lines(line).split("\n"))
    assert rows_of(write(tmp_path / "ts.txt", stamped)) == expected


def test_without_times_samples_of_ss_are_numbered() -> None:
    log = LOGS / "loopback-ss-tinmoep.txt.gz"
    samples = rows_of(log)
    assert {time_ns for _, time_ns, _, _ in samples} == {10**9}
    assert {ends for ends, *_ in samples} == {
        ("127.0.0.1", 50986, "127.0.0.1", 5301),
        ("127.0.0.1", 5301, "127.0.0.1", 50986),
    }
    assert kinds(log) == ["imprecise"]


# the same run in several files


@pytest.mark.parametrize("case", ["one-cubic", "relay-loss", "udp-vs-tcp", "ipv6"])
def test_logs_belong_to_the_flows_of_their_capture(case: str) -> None:
    capture = DATA / "captures" / f"linux-{case}-snd.pcap.gz"
    logs = [LOGS / f"linux-{case}-{name}" for name in ("ss.txt.gz", "iperf3-client.json.gz")]
    analysis = _native.analyse([str(path) for path in (capture, *logs)], ReadSettings())
    flows = {(flow["flow"], flow["direction"]): flow for flow in analysis.table("flows").rows()}
    samples = analysis.table("variables").rows()
    # a connection attempt that ended before the capture began is in no flow
    strangers = {ends_of(sample) for sample in samples if sample["flow"] is None}
    assert len(strangers) <= (case == "ipv6")
    for sample in samples:
        if sample["flow"] is not None:
            assert ends_of(flows[sample["flow"], sample["direction"]]) == ends_of(sample)
    (truth,) = [truth for truth in TRUTH if truth["capture"] == capture.name]
    data = [sample for sample in samples if sample["src_port"] == truth["src_port"]]
    counts = [sample["value"] for sample in data if sample["name"] == "retransmits"]
    # neither sees the last moment, nor what of the handshake was sent again
    assert max(counts) in (truth["retransmissions"], truth["retransmissions"] - 1)


@pytest.mark.parametrize("case", ["one-cubic", "relay-loss", "udp-vs-tcp", "ipv6", "reno2-cubic2"])
def test_the_two_programs_agree_on_the_round_trip_time(case: str) -> None:
    log = LOGS / f"linux-{case}-iperf3-client.json.gz"
    test = json.loads(text_of(log))
    by_socket = {stream["socket"]: stream["local_port"] for stream in test["start"]["connected"]}
    samples = variables(LOGS / f"linux-{case}-ss.txt.gz")
    for stream in test["end"]["streams"]:
        port = by_socket[stream["sender"]["socket"]]
        # without the first half second, in which the queue fills
        mine = [sample for sample in samples if sample["src_port"] == port and sample["name"] == "srtt"]
        start_ns = min(sample["time_ns"] for sample in mine) + 500_000_000
        srtt = [sample["value"] for sample in mine if sample["time_ns"] > start_ns]
        assert sum(srtt) / len(srtt) == pytest.approx(stream["sender"]["mean_rtt"] / 1e3, rel=0.2)


def test_iperf_at_both_ends_of_udp() -> None:
    server, client = (LOGS / f"linux-udp-vs-tcp-iperf-{end}.txt.gz" for end in ("server", "client"))
    start_ns = int(datetime(2026, 11, 21, 7, 54, tzinfo=UTC).timestamp()) * 10**9
    samples = variables(server)
    lines = re.findall(r"-(\S+) sec +\S+ KBytes +(\S+) Mbits/sec +(\S+) ms (\d+)/(\d+)", text_of(server))
    # the last is the total
    total, lines = lines[-1], lines[:-1]
    expected = []
    for end, mbps, jitter, lost, packets in lines:
        values = (float(mbps) * 1e6, float(jitter), float(lost), float(packets))
        names = ("goodput", "jitter", "lost_packets", "packets")
        expected += [(start_ns + round(float(end) * 1e9), *pair) for pair in zip(names, values, strict=True)]
    assert [(v["time_ns"], v["name"], v["value"]) for v in samples] == [
        (time_ns, name, pytest.approx(value)) for time_ns, name, value in expected
    ]
    sums = [sum(v["value"] for v in samples if v["name"] == name) for name in ("lost_packets", "packets")]
    assert sums == [int(total[3]), int(total[4])]
    # the server's report in the client's log says the same, of the same flow
    report = {v["name"]: v["value"] for v in variables(client) if v["name"] != "throughput"}
    assert [report["lost_packets"], report["packets"]] == sums
    assert {ends_of(v) for v in samples + variables(client)} == {("10.75.1.1", 52479, "10.75.2.2", 5202)}
    assert [v["value"] for v in variables(client) if v["name"] == "throughput"] == [
        pytest.approx(mbps * 1e6) for mbps in (1.52, 1.5, 1.5, 1.5)
    ]


def test_iperf_belongs_to_the_flow_of_its_capture() -> None:
    paths = [DATA / "captures/linux-udp-vs-tcp-snd.pcap.gz", LOGS / "linux-udp-vs-tcp-iperf-server.txt.gz"]
    analysis = _native.analyse([str(path) for path in paths], ReadSettings())
    (flow,) = {sample["flow"] for sample in analysis.table("variables").rows()}
    transports = {row["transport"] for row in analysis.table("flows").rows() if row["flow"] == flow}
    assert transports == {"udp"}


def test_the_text_of_iperf3() -> None:
    samples = variables(LOGS / "loopback-iperf3-client.txt.gz")
    rates = [(v["time_ns"] / 1e9, v["value"]) for v in samples if v["name"] == "throughput"]
    assert rates == [(seconds, pytest.approx(10.5e6)) for seconds in (0.5, 1.0, 1.5, 2.0)]
    assert [v["value"] for v in samples if v["name"] == "cwnd"] == [pytest.approx(1.12 * 2**20)] * 4


# columns


def test_columns_say_what_csv_reads_in_them() -> None:
    log = LOGS / "ns2-rao4-err-samples-tcp.csv.gz"
    expected = []
    columns = [
        ("cwnd", "cwnd", 1),
        ("ssthresh", "ssthresh", 1),
        ("rtt_s", "rtt", 1e3),
        ("srtt_s", "srtt", 1e3),
    ]
    columns += [("rttvar_s", "rttvar", 1e3), ("nrexmitpack", "retransmits", 1)]
    for row in csv.DictReader(text_of(log).splitlines()):
        ends = (f"flow {row['fid']}", 0, "unknown", 0)
        time_ns = round(float(row["time"]) * 1e9)
        expected += [(ends, time_ns, name, float(row[column]) * scale) for column, name, scale in columns]
    assert rows_of(log) == sorted(expected)
    assert kinds(log) == ["imprecise"]


def test_traces_of_ns3_are_read_if_named(tmp_path: Path) -> None:
    log = LOGS / "ns3-p2p-late-start-cwnd.txt.gz"
    numbers = [line.split() for line in text_of(log).splitlines()]
    rows = rows_of(log, format="tcpvars")
    assert [(time_ns, value) for _, time_ns, _, value in rows] == sorted(
        (round(float(time) * 1e9), float(value)) for _, time, value in numbers
    )
    assert {(ends[0], name) for ends, _, name, _ in rows} == {("flow 0", "value")}
    named = write(tmp_path / "cwnd.txt", "# flow time cwnd_bytes\n" + text_of(log))
    assert {(v["name"], v["unit"]) for v in variables(named)} == {("cwnd", "bytes")}
    assert kinds(named) == []


def test_a_text_with_nothing_in_it_is_still_reported_empty(tmp_path: Path) -> None:
    assert kinds(write(tmp_path / "empty.csv", "time,cwnd_packets\n")) == ["no_packets"]
