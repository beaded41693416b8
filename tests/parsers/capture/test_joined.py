"""Files of one capture in any order, overlapping, doubled or with a clock that steps, are the capture.

The witness is the capture before it was split, whose flows tshark, the kernel and the relay confirm
elsewhere.
"""

import gzip
import itertools
import json
import random
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ip_packets import ethernet, tcp

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
LOSSY = CAPTURES / "linux-relay-loss-snd.pcap.gz"
SPLIT = (
    LOSSY,
    CAPTURES / "linux-relay-reorder-noloss-rcv.pcap.gz",
    CAPTURES / "ns3-csma-red-veno-0-1.pcap.gz",
)
SECOND_NS = 10**9

Record = tuple[int, bytes]
"""Time in ns, and the record behind its time."""


class Capture:
    """The records of a pcap file, to be written in parts."""

    def __init__(self, path: Path) -> None:
        content = gzip.decompress(path.read_bytes())
        self.header, at = content[:24], 24
        self.records: list[Record] = []
        while at < len(content):
            seconds, micros, captured = struct.unpack_from("<III", content, at)
            end = at + 16 + captured
            self.records.append((seconds * SECOND_NS + micros * 1_000, content[at + 8 : end]))
            at = end

    def write(self, path: Path, records: list[Record], *, shift_ns: int = 0) -> Path:
        """Write `records` with their times changed."""
        shifted = ((time_ns + shift_ns, rest) for time_ns, rest in records)
        times = ((struct.pack("<II", ns // SECOND_NS, ns % SECOND_NS // 1_000), rest) for ns, rest in shifted)
        path.write_bytes(self.header + b"".join(time + rest for time, rest in times))
        return path

    def parts(self, folder: Path, cuts: list[int]) -> list[Path]:
        """Write parts that begin at `cuts`."""
        bounds = [0, *cuts, len(self.records)]
        return [
            self.write(folder / f"part{number}.pcap", self.records[start:end])
            for number, (start, end) in enumerate(itertools.pairwise(bounds))
        ]


@pytest.fixture(scope="module", params=SPLIT, ids=lambda path: path.name.partition(".")[0])
def capture(request: pytest.FixtureRequest) -> tuple[Capture, pl.DataFrame]:
    return Capture(request.param), flows_of(request.param)


@pytest.fixture(scope="module")
def lossy() -> Capture:
    return Capture(LOSSY)


def flows_of(*paths: Path) -> pl.DataFrame:
    return tfrctrace.open(paths, join=True).flows.drop("source")


def quarters(lossy: Capture, folder: Path) -> list[Path]:
    length = len(lossy.records)
    return lossy.parts(folder, [length // 4, length // 2, length * 3 // 4])


def same_flows(left: pl.DataFrame, right: pl.DataFrame) -> bool:
    return bool(left.equals(right))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_order_of_any_split_gives_the_same_flows(
    capture: tuple[Capture, pl.DataFrame], tmp_path: Path, data: st.DataObject
) -> None:
    whole, flows = capture
    length = len(whole.records)
    cuts = data.draw(st.lists(st.integers(1, length - 1), min_size=1, max_size=11, unique=True))
    starts = [whole.records[cut][0] for cut in [0, *sorted(cuts)]]
    # files of one packet at one time may be copies of each other
    assume(len({*starts}) == len(starts))
    parts = whole.parts(tmp_path, sorted(cuts))
    order = data.draw(st.permutations(parts))
    trace = tfrctrace.open(order, join=True)
    assert same_flows(trace.flows.drop("source"), flows)
    assert trace.warnings == []


def test_packets_are_numbered_through(run: Any, lossy: Capture, tmp_path: Path) -> None:
    parts = quarters(lossy, tmp_path)
    tables = []
    for name, inputs in (("whole", [LOSSY]), ("joined", [*reversed(parts), "--join"])):
        done = run("convert", *inputs, "-o", f"{name}.parquet")
        assert (done.status, done.err.count("warning")) == (0, 0)
        tables.append(pl.read_parquet(tmp_path / f"{name}.parquet"))
    assert tables[0].equals(tables[1])
    numbers = [tfrctrace.open(inputs, join=True).losses["packet"] for inputs in ([LOSSY], parts)]
    assert numbers[0].equals(numbers[1])


@pytest.mark.parametrize("shift_s", [-30, -5, -1, 1, 5, 3600])
@pytest.mark.parametrize("number", [1, 2])
def test_a_clock_that_steps_is_reported_and_makes_no_rtt(
    lossy: Capture, tmp_path: Path, number: int, shift_s: int
) -> None:
    parts = quarters(lossy, tmp_path)
    bounds = [len(lossy.records) * quarter // 4 for quarter in (number, number + 1)]
    lossy.write(parts[number], lossy.records[slice(*bounds)], shift_ns=shift_s * SECOND_NS)
    with pytest.warns(TfrctraceWarning):
        flows = tfrctrace.open(parts, join=True).flows
    whole = flows_of(LOSSY)
    assert flows["rtt_max_ms"].max() == whole["rtt_max_ms"].max()
    assert flows["retransmitted_packets"].to_list() == whole["retransmitted_packets"].to_list()
    trace = tfrctrace.open(parts, join=True)
    with pytest.warns(TfrctraceWarning):
        steps = [problem for problem in trace.warnings if problem["kind"] == "clock_step"]
    assert [Path(problem["source"]).name for problem in steps] == [
        f"part{number}.pcap",
        f"part{number + 1}.pcap",
    ]
    behind, ahead = (f"{abs(shift_s)}.000 s {which}" for which in ("behind", "ahead of"))
    there, back = (behind, ahead) if shift_s < 0 else (ahead, behind)
    assert there[:2] in steps[0]["message"]
    assert there.split()[2] in steps[0]["message"]
    assert back.split()[2] in steps[1]["message"]


def test_a_clock_that_was_set_back_shows_without_timestamps_too(tmp_path: Path) -> None:
    # ns-3's segments of this run have none
    whole = Capture(CAPTURES / "ns3-p2p-newreno-cubic-udp-0-1.pcap.gz")
    half = len(whole.records) // 2
    parts = [
        whole.write(tmp_path / "a.pcap", whole.records[:half]),
        whole.write(tmp_path / "b.pcap", whole.records[half:], shift_ns=-SECOND_NS),
    ]
    with pytest.warns(TfrctraceWarning, match="clock"):
        flows = flows_of(*parts)
    assert (
        flows["packets"].to_list()
        == flows_of(CAPTURES / "ns3-p2p-newreno-cubic-udp-0-1.pcap.gz")["packets"].to_list()
    )


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([(0.0, 0.6), (0.4, 1.0)], "packets are in"),
        ([(0.0, 1.0), (0.0, 1.0)], "all its"),
        ([(0.0, 1.0), (0.3, 0.5)], "all its"),
        ([(0.0, 0.5), (0.3, 0.8), (0.4, 1.0)], "packets are in"),
    ],
)
def test_packets_of_an_overlap_count_once(
    lossy: Capture, tmp_path: Path, pieces: list[tuple[float, float]], words: str
) -> None:
    length = len(lossy.records)
    parts = [
        lossy.write(
            tmp_path / f"{chr(97 + number)}.pcap", lossy.records[int(start * length) : int(end * length)]
        )
        for number, (start, end) in enumerate(pieces)
    ]
    random.Random(1).shuffle(parts)
    trace = tfrctrace.open(parts, join=True)
    with pytest.warns(TfrctraceWarning, match=words):
        flows = trace.flows
    assert same_flows(flows.drop("source"), flows_of(LOSSY))
    copies = sum(source["packets"] for source in trace.sources) - length
    reported = [problem["message"] for problem in trace.warnings if problem["kind"] == "overlap"]
    numbers = [int(word) for message in reported for word in message.split()[:3] if word.isdigit()]
    assert sum(numbers) == copies


def test_a_file_for_each_direction_is_read_in_the_order_of_time(lossy: Capture, tmp_path: Path) -> None:
    # the addresses are behind the record's lengths and the frame of Ethernet
    sources = sorted({rest[8 + 26 : 8 + 30] for _, rest in lossy.records})
    first = [record for record in lossy.records if record[1][34:38] == sources[0]]
    others = [record for record in lossy.records if record[1][34:38] != sources[0]]
    parts = [lossy.write(tmp_path / "tx.pcap", others), lossy.write(tmp_path / "rx.pcap", first)]
    with pytest.warns(TfrctraceWarning, match="no packet in common"):
        flows = flows_of(*parts)
    assert same_flows(flows, flows_of(LOSSY))


def test_missing_parts_are_reported(run: Any, lossy: Capture, tmp_path: Path) -> None:
    parts = quarters(lossy, tmp_path)
    kept = [parts[0], parts[2], parts[3]]
    done = run("flows", "--join", "--format", "json", *kept)
    messages = [problem["message"] for problem in json.loads(done.out)["warnings"]]
    assert any("has number 1 after `part`" in message for message in messages)
    # the payload that the missing part has alone
    missing = flows_of(LOSSY)["unique_bytes"].sum() - flows_of(*kept[:1])["unique_bytes"].sum()
    missing -= flows_of(*kept[1:])["unique_bytes"].sum()
    reported = [int(message.split()[0]) for message in messages if "payload byte" in message]
    assert reported == [missing]
    assert run("flows", "--join", "--strict", *kept).status == 3


def connection(client_seq: int, server_seq: int) -> list[bytes]:
    """Return the frames of a connection between ever the same ports that carries 3,000 bytes."""
    client, server = ("192.0.2.1", 40_000), ("198.51.100.1", 443)
    packets = [
        tcp(client, server, "S", seq=client_seq),
        tcp(server, client, "SA", seq=server_seq, ack=client_seq + 1),
        tcp(client, server, "A", seq=client_seq + 1, ack=server_seq + 1),
    ]
    for sent in (0, 1000, 2000):
        seq = server_seq + 1 + sent
        packets.append(tcp(server, client, "A", seq=seq, ack=client_seq + 1, payload=bytes(1000)))
        packets.append(tcp(client, server, "A", seq=client_seq + 1, ack=seq + 1000))
    packets.append(tcp(client, server, "FA", seq=client_seq + 1, ack=server_seq + 3001))
    packets.append(tcp(server, client, "FA", seq=server_seq + 3001, ack=client_seq + 2))
    return [ethernet(packet) for packet in packets]


def test_connections_that_reuse_ports_in_another_file_miss_nothing(run: Any, tmp_path: Path) -> None:
    header = gzip.decompress(LOSSY.read_bytes())[:24]
    for number, numbers in enumerate(((1_000, 5_000), (900_000, 2_000_000_000), (70_000, 80_000))):
        frames = connection(*numbers)
        if number == 2:
            frames += connection(3_000_000_000, 1_000_000_000)
        times = ((1_700_000_000 + 600 * number, 1_000 * i) for i in range(len(frames)))
        records = (
            struct.pack("<IIII", *time, len(frame), len(frame)) + frame
            for time, frame in zip(times, frames, strict=True)
        )
        (tmp_path / f"part{number}.pcap").write_bytes(header + b"".join(records))
    done = run("flows", "--join", "--format", "json", *sorted(tmp_path.glob("part*.pcap")))
    messages = [problem["message"] for problem in json.loads(done.out)["warnings"]]
    assert not any("payload byte" in message for message in messages)
    assert {row["flow"] for row in json.loads(done.out)["flows"]} == {1, 2, 3, 4}


@pytest.mark.parametrize("command", ["flows", "metrics", "report", "plot", "replay", "check"])
def test_every_command_takes_parts_in_any_order(
    run: Any, lossy: Capture, tmp_path: Path, command: str
) -> None:
    parts = quarters(lossy, tmp_path)
    more = {
        "report": ["-o", "r.html"],
        "plot": ["--kind", "throughput", "-o", "p.svg"],
        "replay": ["--algorithm", "tfrc"],
        "check": ["-r", "count(flow) > 0"],
    }
    results = []
    for inputs in (parts, parts[::-1]):
        done = run(command, "--join", *inputs, *more.get(command, []))
        assert (done.status, done.err.count("warning:")) == (0, 0)
        files = sorted(path for path in tmp_path.iterdir() if path.suffix in (".html", ".svg"))
        results.append(done.out + "".join(path.read_text() for path in files))
    assert results[0] == results[1]


def test_captures_of_two_places_are_reported(tmp_path: Path) -> None:
    places = [LOSSY, CAPTURES.parent / "pair" / "linux-relay-loss-rcv.pcap.gz"]
    with pytest.warns(TfrctraceWarning, match="RTTs mix two places|count once"):
        flows = flows_of(*places)
    packets = [flows_of(path)["packets"].sum() for path in places]
    assert max(packets) <= flows["packets"].sum() < sum(packets)


def test_an_unreadable_file_does_not_change_how_the_others_are_read(lossy: Capture, tmp_path: Path) -> None:
    length = len(lossy.records)
    (tmp_path / "a.pcap").write_bytes(b"")
    parts = [
        tmp_path / "a.pcap",
        lossy.write(tmp_path / "b.pcap", lossy.records[length // 3 :]),
        lossy.write(tmp_path / "c.pcap", lossy.records[: length // 2]),
    ]
    with pytest.warns(TfrctraceWarning, match="the file is empty|count once"):
        flows = flows_of(*parts)
    assert same_flows(flows, flows_of(LOSSY))


@pytest.mark.parametrize("cut", [600, 700])
def test_a_problem_is_at_the_packet_of_its_own_file(tmp_path: Path, cut: int) -> None:
    stepped = Capture(CAPTURES / "variant-clock-step-back.pcap.gz")
    first, second = stepped.parts(tmp_path, [cut])
    # the step is at frame 752 of the whole file, by tshark's frame.time_delta
    for inputs, join in (([str(first), str(second)], True), ([str(second)], False)):
        with pytest.warns(TfrctraceWarning, match=rf"`{second}` packet {752 - cut}: "):
            tfrctrace.open(inputs, join=join).flows  # noqa: B018
