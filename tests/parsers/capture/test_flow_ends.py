"""Flows end, leave memory, and their rows stay what they were."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import shutil
import struct
import subprocess
import sys
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ip_packets import ethernet, ipv4, tcp, udp
from polars.testing import assert_frame_equal

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[3]
START_S = 1_700_000_000
S = 1_000_000_000
HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
SERVER = ("198.51.100.7", 80)
CLOCK = ("203.0.113.1", 9), ("203.0.113.2", 9)
"""A flow of its own whose packets only show that time passes."""

Timed = tuple[int, bytes]
"""A frame and its time in ns."""


def capture(path: Path, packets: Iterable[Timed]) -> Path:
    records = (
        struct.pack("<IIII", START_S + time // S, time % S, len(frame), len(frame)) + frame
        for time, frame in packets
    )
    path.write_bytes(HEADER + b"".join(records))
    return path


def segment(port: int, flags: str = "A", *, seq: int = 1, payload: bytes = b"", back: bool = False) -> bytes:
    ends = (("192.0.2.1", port), SERVER)
    src, dst = ends[::-1] if back else ends
    return ethernet(tcp(src, dst, flags, seq=seq, ack=1, payload=payload))


def datagram(port: int) -> bytes:
    return ethernet(udp(("192.0.2.1", port), ("198.51.100.7", 4_000), b"\0" * 20))


def ticks(until_ns: int, every_ns: int = S) -> list[Timed]:
    """Give packets of the clock: the more there are, the sooner others are found to be over."""
    frame = ethernet(udp(*CLOCK, b""))
    return [(time, frame) for time in range(0, until_ns, every_ns)]


def flows(path: Path, **given: Any) -> list[dict[str, Any]]:
    rows = _native.analyse([str(path)], ReadSettings(**given)).table("flows").rows()
    return [row for row in rows if row["src"] not in {CLOCK[0][0], CLOCK[1][0]}]


def forward(path: Path, **given: Any) -> list[tuple[str, int, str]]:
    """Give transport, packets of both directions, and end of each flow."""
    rows = flows(path, **given)
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return [(there["transport"], there["packets"] + back["packets"], there["ended"]) for there, back in pairs]


def in_order(*packets: Sequence[Timed]) -> list[Timed]:
    return sorted(itertools.chain(*packets), key=lambda timed: timed[0])


CLOSE = [segment(1), segment(1, "FA", seq=1), segment(1, "FA", back=True), segment(1, seq=2)]


@pytest.mark.parametrize("has_clock", [False, True])
def test_a_closed_connection_is_over_after_two_segment_lifetimes(tmp_path: Path, has_clock: bool) -> None:
    """RFC 9293 section 3.4.1: whatever comes after them is of another connection."""
    closed = [(time, frame) for time, frame in enumerate(CLOSE)]
    last = closed[-1][0]
    clock = ticks(300 * S, S // 4) if has_clock else []
    late = lambda ns: in_order(closed, [(last + ns, segment(1, seq=2))], clock)  # noqa: E731
    same = forward(capture(tmp_path / "a", late(120 * S)))
    assert same == [("tcp", 5, "closed")]
    other = forward(capture(tmp_path / "b", late(120 * S + 1)))
    assert other == [("tcp", 4, "closed"), ("tcp", 1, "open")]


def test_a_row_says_how_its_flow_ended(tmp_path: Path) -> None:
    packets = [
        *((number, frame) for number, frame in enumerate(CLOSE)),
        (10, segment(2)),
        (11, segment(2, "R", back=True)),
        (12, segment(3)),
        (13, segment(4, "S", seq=7)),
        (14 + 121 * S, segment(4, "S", seq=9_000_000)),
        (3_600 * S, datagram(5)),
    ]
    found = forward(capture(tmp_path / "a", packets))
    assert found == [
        ("tcp", 4, "closed"),
        ("tcp", 2, "reset"),
        ("tcp", 1, "open"),
        ("tcp", 1, "replaced"),
        ("tcp", 1, "idle"),
        ("udp", 1, "open"),
    ]
    ended = [end for *_, end in forward(tmp_path / "a", idle_timeout_ns=60 * S)]
    # The first SYN between the ports of the fourth was over before the second one came.
    assert ended == ["closed", "reset", "idle", "idle", "idle", "open"]


OPENING = [segment(1, "S", seq=0), segment(1, "SA", seq=0, back=True)]


@pytest.mark.parametrize(
    ("packets", "minutes"),
    [
        ([datagram(1)], 5),
        (OPENING[:1], 4),
        (OPENING, 4),
        ([*OPENING, segment(1)], 124),
        ([segment(1, payload=b"x")], 124),
        # Of one direction only: data follow an answer that was not captured.
        ([OPENING[0], segment(1, payload=b"x")], 124),
        ([*OPENING, segment(1), segment(1, "FA")], 124),
    ],
)
@pytest.mark.parametrize("clock_every_s", [0, 10])
def test_a_flow_may_be_silent_for_as_long_as_a_nat_keeps_one_of_its_kind(
    tmp_path: Path, packets: list[bytes], minutes: int, clock_every_s: int
) -> None:
    """RFC 4787 REQ-5 (UDP, recommended) and RFC 5382 REQ-5 (transitory and established connections)."""
    quiet = minutes * 60 * S
    clock = ticks(quiet + 60 * S, clock_every_s * S) if clock_every_s else []
    for late, flows_found in ((quiet, 1), (quiet + 1, 2)):
        timed = [*enumerate(packets), (len(packets) - 1 + late, packets[0])]
        found = forward(capture(tmp_path / "a", in_order(timed, clock)))
        assert [count for _, count, _ in found] == (
            [len(packets) + 1] if flows_found == 1 else [len(packets), 1]
        )
        assert found[0][2] == ("open" if flows_found == 1 else "idle")
    # A time that was given is that of all flows.
    path = capture(tmp_path / "a", [*enumerate(packets), (len(packets) - 1 + quiet, packets[0])])
    assert len(forward(path, idle_timeout_ns=quiet - 1)) == 2
    assert len(forward(path, idle_timeout_ns=2 * quiet)) == 1


GAPS_NS = [S // 10, S - 1, S, S + 1, 3 * S, 40 * S, 130 * S]


@settings(max_examples=30)
@given(
    steps=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(GAPS_NS)), max_size=60),
    idle_ns=st.sampled_from([S, 40 * S, 150 * S, 3_600 * S]),
    clock_every_ns=st.sampled_from([0, S // 50, S]),
    collect=st.sampled_from([set(), {"rtt", "bins"}, {"tcp"}]),
)
def test_a_flow_ends_where_it_is_silent_for_longer_than_the_timeout(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    idle_ns: int,
    clock_every_ns: int,
    collect: set[str],
) -> None:
    """What each flow has follows from the times, in every way in which packets are followed."""
    path = tmp_path_factory.mktemp("drawn") / "a"
    time, packets, last, expected = 0, [], {}, {}
    for port, gap in steps:
        time += gap
        frame = datagram(port) if port % 2 else segment(port, payload=b"x")
        packets.append((time, frame))
        if port not in last or time - last[port][0] > idle_ns:
            last[port] = (time, len(expected))
            expected[last[port][1]] = 0
        expected[last[port][1]] += 1
        last[port] = (time, last[port][1])
    clock = ticks(min(time, 200 * S), clock_every_ns) if clock_every_ns else []
    capture(path, in_order(packets, clock))
    analysis = _native.analyse([str(path)], ReadSettings(idle_timeout_ns=idle_ns), collect=collect)
    rows = [row for row in analysis.table("flows").rows() if row["src"].startswith("192.0.2")]
    assert [row["packets"] for row in rows if row["direction"] == "fwd"] == list(expected.values())
    shown = Counter(
        row["flow"]
        for row in packets_of(path, idle_timeout_ns=idle_ns)
        if str(row["src"]).startswith("192.0.2")
    )
    assert [shown[row["flow"]] for row in rows if row["direction"] == "fwd"] == list(expected.values())


def packets_of(path: Path, **given: Any) -> Iterator[dict[str, Any]]:
    reader = _native.PacketReader([str(path)], ReadSettings(**given))
    while (batch := reader.next_batch()) is not None:
        yield from batch.rows()


TABLES = ["rtt", "losses", "rounds", "tcp", "feedback", "loss_events", "loss_intervals", "findings"]


def captures() -> Iterator[tuple[Path, bytes]]:
    """Give the small captures of the repository; some of them are damaged."""
    openers: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress}
    for path in [*ROOT.glob("sample_traces/*.pcap*"), *ROOT.glob("tests/data/**/*.pcap*")]:
        if path.stat().st_size < 100_000:
            with suppress(EOFError, OSError, lzma.LZMAError, zlib.error):
                yield path, openers.get(path.suffix, bytes)(path.read_bytes())


def with_hours_after(content: bytes) -> bytes | None:
    """Add packets of another flow over eight hours; None for other forms than pcap with Ethernet or IP."""
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(content[:4])
    link = {1: ethernet(b""), 101: b"", 113: bytes(14) + b"\x08\0"}
    kind = struct.unpack(f"{order}I", content[20:24])[0] if order else None
    if kind not in link:
        return None
    at, last = 24, 0
    while at + 16 <= len(content):
        seconds, _, captured, _ = struct.unpack(f"{order}IIII", content[at : at + 16])
        at, last = at + 16 + captured, max(last, seconds)
    frame = link[kind] + udp(*CLOCK, b"")
    records = (
        struct.pack(f"{order}IIII", last + 30 * number, 0, len(frame), len(frame)) + frame
        for number in range(1, 1_000)
    )
    return content + b"".join(records) if at == len(content) else None


def test_what_a_flow_counted_is_the_same_after_it_left(tmp_path: Path) -> None:
    """Hours later all flows are over, and every table has them as if they went on."""
    ends: Counter[str] = Counter()
    compared = 0
    for path, content in captures():
        if (longer := with_hours_after(content)) is None:
            continue
        (tmp_path / "a").write_bytes(content)
        (tmp_path / "b").write_bytes(longer)
        one, other = (
            _native.analyse([str(tmp_path / name)], ReadSettings(), collect=set(TABLES)) for name in "ab"
        )
        for table in ["flows", "rtt_buckets", "rtp_sources", *TABLES]:
            rows = [list(comparable(analysis.table(table).rows())) for analysis in (one, other)]
            assert rows[0] == rows[1], (path, table)
        ends.update(row["ended"] for row in other.table("flows").rows())
        compared += 1
    assert compared > 10
    assert ends["open"] == 2 * compared
    assert min(ends[end] for end in ("closed", "reset", "idle")) > 0


def comparable(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.get("src") not in {CLOCK[0][0], CLOCK[1][0]}:
            yield {name: value for name, value in row.items() if name not in {"ended", "source"}}


def test_groups_count_what_flows_count_wherever_they_end(tmp_path: Path) -> None:
    """Pieces of flows that leave, DNS queries that nobody answered among them, add up to the same."""
    queries = [
        (
            number * S // 3,
            ethernet(udp(("192.0.2.1", 3_000 + number % 7), ("198.51.100.7", 53), query(number))),
        )
        for number in range(400)
    ]
    packets = [(number * S // 2, segment(number % 5, payload=b"x", seq=number)) for number in range(400)]
    path = capture(tmp_path / "a", in_order(queries, packets, ticks(250 * S, S // 20)))
    sums = []
    for idle_ns in (S, 3_600 * S):
        grouping = ("link", (24, 64), 10 * S, 10_000)
        analysis = _native.analyse([str(path)], ReadSettings(idle_timeout_ns=idle_ns, grouping=grouping))
        rows = analysis.table("groups").rows()
        sums.append(
            {name: sum(row[name] for row in rows) for name in ("packets", "wire_bytes", "dns_queries")}
        )
        of_flows = analysis.table("flows").rows()
        assert sums[-1]["packets"] == sum(row["packets"] for row in of_flows)
    assert sums[0] == sums[1]
    assert sums[0]["dns_queries"] == len(queries)


def query(number: int) -> bytes:
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + b"\x01a\0\0\x01\0\x01"


def test_an_error_refers_to_flows_that_are_not_over(tmp_path: Path) -> None:
    quoted = ipv4(17, "192.0.2.1", "198.51.100.7", struct.pack(">HHHH", 5, 4_000, 8, 0))
    error = ethernet(ipv4(1, "198.51.100.7", "192.0.2.1", bytes([3, 3, 0, 0, 0, 0, 0, 0]) + quoted))
    packets = [(0, datagram(5)), (S, error), (3 * S, error)]
    assert [row["icmp_errors"] for row in flows(capture(tmp_path / "a", packets))] == [2, 0]
    for clock in ([], ticks(3 * S, S // 200)):
        capture(tmp_path / "b", in_order(packets, clock))
        assert [row["icmp_errors"] for row in flows(tmp_path / "b", idle_timeout_ns=2 * S)] == [1, 0]


def test_the_bound_is_one_on_flows_that_go_on(tmp_path: Path) -> None:
    packets = [(number * S // 10, datagram(number + 1)) for number in range(3_000)]
    path = capture(tmp_path / "a", packets)
    analysis = _native.analyse([str(path)], ReadSettings(idle_timeout_ns=S, max_flows=700))
    assert len(analysis.table("flows")) == 6_000
    assert analysis.sources[0]["untracked_packets"] == 0
    analysis = _native.analyse([str(path)], ReadSettings(max_flows=700))
    assert len(analysis.table("flows")) == 1_400
    assert analysis.sources[0]["untracked_packets"] == 2_300
    assert "more than 700 flows at a time: 2300 packets" in analysis.problems[0]["message"]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_short_flows_of_any_number_pass_through_a_pipe(run_in: Callable[..., Any], transport: str) -> None:
    """The stream of the benchmark: its totals follow from the number of flows."""
    pytest.importorskip("numpy")
    script = [sys.executable, str(ROOT / "benchmarks/churn.py"), "20000", "300", "--transport", transport]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as stream:
        found = run_in("flows", "--max-flows", "700", "--format", "json", "-", stdin=stream.stdout)
    document = json.loads(found)
    rows = document["flows"]
    packets, end = (7, "closed") if transport == "tcp" else (2, "idle")
    assert len(rows) == 40_000
    assert sum(row["packets"] for row in rows) == 20_000 * packets
    assert document["sources"][0]["untracked_packets"] == 0
    assert sum(row["ended"] == end for row in rows) >= 39_000
    assert [row["src_port"] for row in rows[::2]] == [1_024 + number % 50_000 for number in range(20_000)]


@pytest.fixture
def run_in() -> Callable[..., str]:
    def run(*arguments: str, stdin: Any) -> str:
        command = [sys.executable, "-m", "tfrctrace", *arguments]
        return subprocess.run(command, stdin=stdin, check=True, capture_output=True, text=True).stdout

    return run


def test_a_first_packet_without_a_time_does_not_split_its_connection(tmp_path: Path) -> None:
    """A clock that was set is no silence of half a century.

    tshark is asked where it is installed: it has one stream. tcptrace goes by times and has two connections.
    """
    others = [(n * 1_000, segment(2_000 + n % 7, payload=b"x")) for n in range(20_000)]
    rest = [(S + n * 1_000, segment(1_000, seq=2 + n, payload=b"x")) for n in range(10)]
    path = capture(tmp_path / "c.pcap", [(-START_S * S, segment(1_000, "S")), *others, *rest])
    rows = _native.analyse([str(path)], ReadSettings()).table("flows").rows()
    assert [row["packets"] for row in rows if row["src_port"] == 1_000] == [11]
    assert {row["ended"] for row in rows} == {"open"}
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    asked = ["tshark", "-n", "-r", str(path), "-Y", "tcp.port == 1000", "-T", "fields", "-e", "tcp.stream"]
    streams = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert Counter(streams) == {"0": 11}


ALWAYS = (0, -(2**63))
"""Pack every flow whenever that is possible."""
NEVER = (2**32 - 1, 0)
OF_EVERY_PASS = ["flows", "rtt_buckets", "rtp_sources"]


def results(
    path: Path, packing: tuple[int, int], collect: Sequence[str], **given: Any
) -> tuple[dict[str, pl.DataFrame], str]:
    """Return all tables of an analysis and its packets, for which flows are looked up one by one."""
    reading = ReadSettings(packing=packing, **given)
    analysis = _native.analyse([str(path)], reading, collect=set(collect))
    names = [*OF_EVERY_PASS, *collect, *(["groups"] if "grouping" in given else [])]
    frames = {name: pl.DataFrame(analysis.table(name)) for name in names}
    reader = _native.PacketReader([str(path)], reading)
    batches = iter(reader.next_batch, None)
    frames["packets"] = pl.concat([pl.DataFrame(), *map(pl.DataFrame, batches)], how="diagonal")
    return frames, repr((analysis.sources, analysis.problems))


def check(path: Path, collect: Sequence[str], packing: tuple[int, int], **given: Any) -> None:
    (packed, told), (kept, told_of_kept) = (
        results(path, packing, collect, **given) for packing in (packing, NEVER)
    )
    assert told == told_of_kept, path
    for name, frame in kept.items():
        assert_frame_equal(packed[name], frame, check_exact=True)


@pytest.mark.slow
def test_packing_after_every_packet_changes_no_result(tmp_path: Path) -> None:
    """The captures of the repository, as they are and with hours after."""
    checked = 0
    for _, content in captures():
        (tmp_path / "a").write_bytes(content)
        check(tmp_path / "a", [*TABLES, "bins"], ALWAYS)
        check(tmp_path / "a", [], ALWAYS, grouping=("link", (24, 64), S, 10_000))
        if (longer := with_hours_after(content)) is not None:
            (tmp_path / "a").write_bytes(longer)
            check(tmp_path / "a", [], ALWAYS)
        checked += 1
    assert checked > 10


@settings(max_examples=20)
@given(
    steps=st.lists(st.tuples(st.integers(1, 40), st.sampled_from([1_000, S // 10, S, 40 * S])), max_size=200),
    few=st.integers(0, 30),
    silence_ns=st.sampled_from([-(2**63), 0, S // 10, S, 30 * S]),
    is_grouped=st.booleans(),
)
def test_packing_at_any_time_changes_no_result(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
    few: int,
    silence_ns: int,
    is_grouped: bool,
) -> None:
    path = tmp_path_factory.mktemp("drawn") / "a"
    time, packets = 0, []
    for number, (port, gap) in enumerate(steps):
        time += gap
        frame = datagram(port) if port % 2 else segment(port, seq=number, payload=b"x" * (number % 3))
        packets.append((time, frame))
    # More packets than a clock needs, so that flows are found to be silent.
    others = [
        (number * max(time, 1) // 600, segment(500 + number % 7, "S", seq=number)) for number in range(600)
    ]
    capture(path, in_order(packets, others, [(time, frame) for frame in CLOSE]))
    given: dict[str, Any] = {"grouping": ("link", (24, 64), S, 10_000)} if is_grouped else {}
    check(path, ["rtt", "bins"], (few, silence_ns), **given)


def test_every_flow_of_a_flood_is_counted(tmp_path: Path) -> None:
    """The stream of the benchmark: its totals follow from the number of flows."""
    pytest.importorskip("numpy")
    flows = 20_000
    script = [sys.executable, str(ROOT / "benchmarks/churn.py"), str(flows), "--a-second", "4000"]
    path = tmp_path / "flood.pcap"
    with open(path, "wb") as file:
        subprocess.run([*script, "--transport", "mixed"], stdout=file, check=True)
    analysis = _native.analyse([str(path)], ReadSettings())
    rows = analysis.table("flows").rows()
    assert analysis.sources[0]["untracked_packets"] == 0
    assert len(rows) == 2 * flows
    # Of ten flows four have seven packets, four two, and two one.
    assert sum(row["packets"] for row in rows) == flows // 10 * (4 * 7 + 4 * 2 + 2)
    states = [row["state"] for row in rows[::2]]
    assert [states.count(state) for state in ("closed", "refused", "attempted", None)] == [
        flows // 10 * share for share in (4, 1, 1, 4)
    ]
