"""What tcpdump prints of a capture gives the table of flows that the capture itself gives.

`tests/data/texts/tcpdump` holds the first packets of some captures as tcpdump 4.99.3 printed them; where
tcpdump is installed, more captures are printed with more options. What an option leaves out cannot be equal:
each such place is named below, with the reason.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import struct
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrctrace

DATA = Path(__file__).resolve().parent.parent.parent / "data"
TEXTS = sorted((DATA / "texts" / "tcpdump").iterdir())
FILE_HEADER = 24

Row = dict[str, Any]

ENDS = ["transport", "src", "src_port", "dst", "dst_port"]
COUNTS = ["packets", "data_packets", "payload_bytes"]
STREAM = [
    "unique_bytes",
    "retransmitted_packets",
    "retransmitted_bytes",
    "out_of_order_packets",
    "duplicate_acks",
    "zero_windows",
    "state",
    "mss",
    "rtt_samples",
]
DURATIONS_MS = ["handshake_rtt_ms", "rtt_min_ms", "rtt_mean_ms", "rtt_max_ms"]

CAPTURES = [
    "linux-cooked-any-rtr-sll2.pcap",
    "linux-cooked-any-snd-sll1.pcap",
    "linux-ipv6-rcv.pcapng",
    "linux-ipv6-snd.pcap",
    "linux-midstream-snd.pcap",
    "linux-one-cubic-rcv-ns.pcap",
    "linux-one-reno-offload-on-snd.pcap",
    "linux-relay-loss-snd.pcap",
    "linux-relay-reorder-noloss-rcv.pcap",
    "linux-seq-wrap-snd.pcap",
    "linux-small-flows-snd.pcap",
    "linux-udp-vs-tcp-rcv.pcap",
    "ns3-p2p-newreno-cubic-udp-0-1.pcap",
    "variant-clock-step-back.pcap",
    "variant-every-packet-twice.pcap",
    "variant-null-bsd.pcap",
    "variant-qinq.pcap",
    "variant-raw-ip.pcap",
    "variant-snap40-short.pcap",
    "variant-swapped-order.pcap",
    "variant-vlan.pcap",
]
OPTIONS = [
    "-n",
    "-n -t",
    "-n -tt",
    "-n -ttt",
    "-n -tttt",
    "-n -ttttt",
    "-n -tt -S",
    "-n -tt -v",
    "-n -tt -vv",
    "-n -tt -S -vv",
    "-n -tt -e",
    "-n -tt -e -v",
    "-n -tt -q",
    "-n -tt -q -e -v",
    "-n -tt -K -v",
    "-n -tt -x",
    "-n -tt -A",
    "-n -tt --number",
    "-n -ttt --number",
    "-n -tt --nano",
]
# every other packet stands before the one that it followed
ANSWERS_FIRST = "variant-swapped-order.pcap"


def flows_of(path: Path) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tfrctrace.open(path).flows.to_dicts()


def warnings_of(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = tfrctrace.open(path)
        trace.flows  # noqa: B018  reading it is what warns
        return "\n".join(str(problem) for problem in trace.warnings)


def unpacked(capture: str, folder: Path, packets: int | None = None) -> Path:
    """Write a capture uncompressed, with no more than its first packets if it is pcap."""
    content = gzip.decompress((DATA / "captures" / f"{capture}.gz").read_bytes())
    end = FILE_HEADER
    for _ in range(packets or 0):
        if end < len(content):
            (captured,) = struct.unpack_from("<I", content, end + 8)
            end += 16 + captured
    path = folder / capture
    path.write_bytes(content[:end] if packets else content)
    return path


def check(capture: list[Row], text: list[Row], options: str) -> None:
    """Require of a text what its options print."""
    words = set(options.split())
    assert [[row[key] for key in ENDS] for row in text] == [[row[key] for key in ENDS] for row in capture]
    if "-q" in words and any(row["capture_duplicates"] for row in capture):
        # nothing shows what was printed twice
        assert all(ours["packets"] >= theirs["packets"] for ours, theirs in zip(text, capture, strict=True))
        return
    # -q prints no header: what happened to the stream cannot be known
    columns = COUNTS + (STREAM if "-q" not in words else [])
    unknown = set()
    if hides_copies(capture, options):
        unknown |= {"retransmitted_packets", "retransmitted_bytes", "duplicate_acks", "rtt_samples"}
    if "-t" in words:
        # the capture gives no sample where its clock goes back
        unknown.add("rtt_samples")
    columns = [column for column in columns if column not in unknown]
    if "-e" in words and "-q" not in words:
        columns = [*columns, "wire_bytes"]
    for ours, theirs in zip(text, capture, strict=True):
        assert {key: ours[key] for key in columns} == {key: theirs[key] for key in columns}
    if "-t" not in words:
        check_times(capture, text, words, [] if "rtt_samples" in unknown or "-q" in words else DURATIONS_MS)


def hides_copies(capture: list[Row], options: str) -> bool:
    """Whether a doubled packet looks like one sent again: only with -v its identification is printed."""
    return "-v" not in options and any(
        row["network_duplicates"] or row["capture_duplicates"] for row in capture
    )


def check_times(capture: list[Row], text: list[Row], words: set[str], durations: list[str]) -> None:
    """Times are the capture's to the printed microsecond, from a start that the options choose."""
    is_absolute = bool(words & {"-tt", "-tttt"})
    offset = 0 if is_absolute else text[0]["start_ns"] - capture[0]["start_ns"]
    # a sum of differences adds their rounding
    printed_ns = 1_000 if "-ttt" not in words else 1_000_000
    for ours, theirs in zip(text, capture, strict=True):
        for key in ("start_ns", "end_ns"):
            if theirs[key] is not None:
                assert abs(ours[key] - offset - theirs[key]) <= printed_ns
        for key in durations:
            assert (ours[key] is None) == (theirs[key] is None)
            assert (ours[key] or 0) == pytest.approx(theirs[key] or 0, abs=0.0021)


def printed_by_tcpdump(capture: Path, options: str) -> Path:
    """Print a capture, in the time zone that texts with dates are taken to be of."""
    text = capture.with_name("printed.txt")
    command = ["tcpdump", *options.split(), "-r", str(capture)]
    environment = {**os.environ, "TZ": "UTC"}
    with text.open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True, env=environment)
    return text


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name.removesuffix(".txt.gz"))
def test_shipped_texts_give_the_flows_of_their_captures(path: Path, tmp_path: Path) -> None:
    name, form = path.name.removesuffix(".txt.gz").split(".")
    packets = 40 if form.endswith("-x") else 250
    capture = flows_of(unpacked(f"{name}.pcap", tmp_path, packets))
    assert capture
    check(capture, flows_of(path), " ".join(f"-{word}" for word in form.split("-")))


@pytest.fixture(scope="module")
def read_capture(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Row]]:
    """A capture, uncompressed, and its flows."""
    path = unpacked(request.param, tmp_path_factory.mktemp("capture"))
    return path, flows_of(path)


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("read_capture", CAPTURES, indirect=True)
def test_any_option_gives_the_flows_of_the_capture(
    read_capture: tuple[Path, list[Row]], options: str
) -> None:
    path, expected = read_capture
    if path.name == ANSWERS_FIRST and "-q" in options:
        pytest.skip("without flags nobody knows who opened a connection whose answer stands before its SYN")
    assert expected
    check(expected, flows_of(printed_by_tcpdump(path, options)), options)


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.parametrize("options", ["-nn -tt -v", "-nn -tt -v -S", "-nn -ttttt -v", "-nn -tt"])
@pytest.mark.parametrize("capture", ["linux-relay-loss-snd.pcap", "linux-seq-wrap-snd.pcap"])
def test_blocks_of_sack_are_those_of_the_capture(capture: str, options: str, tmp_path: Path) -> None:
    path = unpacked(capture, tmp_path)
    whole, text = tfrctrace.open(path), tfrctrace.open(printed_by_tcpdump(path, options))
    columns = ["sack_packets", "dsack_packets", "max_sack_blocks"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trace in (whole, text):
            trace.read("flows", "tcp")
    assert text.tcp.select(columns).equals(whole.tcp.select(columns))
    assert text.tcp["sack_packets"].sum() > 20
    classes = ["max_flight_bytes", "spurious_retransmissions"]
    if "-v" in options:
        # without time to live it is less sure where the capture was taken, and what can be seen there
        classes += ["fast_retransmissions", "sack_retransmissions", "rto_retransmissions", "tail_loss_probes"]
        classes += ["unexplained_retransmissions", "lost_behind_capture"]
    assert text.flows.select(classes).equals(whole.flows.select(classes))


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.parametrize("options", ["-nn -tt -vv", "-nn -vv -S"])
def test_blocks_of_sack_that_a_capture_cut_count_in_both(options: str, tmp_path: Path) -> None:
    """tcpdump prints the whole blocks of an option that the snapshot length cut, and then `[|tcp]`."""
    path = unpacked("linux-cooked-any-rtr-sll2.pcap", tmp_path)
    text = printed_by_tcpdump(path, options)
    assert re.search(r"sack 3 (\{[\d:]+\}){2} \[\|tcp\]", text.read_text())
    means = [[row["mean_flight_bytes"] for row in flows_of(source)] for source in (path, text)]
    assert means[0] == means[1]
    assert any(means[0])


def as_version_3(line: str) -> str:
    """Write a line as tcpdump 3 printed it."""
    found = re.fullmatch(
        r"(\S+) IP (.*?): Flags \[(.*?)\](?:, seq (\d+)(?::(\d+))?)?(?:, ack (\d+))?"
        r", win (\d+)(?:, options \[(.*)\])?, length (\d+).*",
        line,
    )
    if found is None:
        return line
    time, ends, flags, seq, end, ack, window, options, length = found.groups()
    words = [f"{time} {ends}: {flags.replace('.', '') or '.'}"]
    if seq is not None:
        words.append(f"{seq}:{end or seq}({length})")
    if ack is not None:
        words.append(f"ack {ack}")
    words.append(f"win {window}")
    if options is not None:
        times = re.sub(r"TS val (\d+) ecr (\d+)", r"timestamp \1 \2", options)
        words.append(f"<{times}>")
    return " ".join([*words, "(DF)"])


def test_the_form_of_version_3_gives_the_same_flows(tmp_path: Path) -> None:
    capture = flows_of(unpacked("linux-udp-vs-tcp-rcv.pcap", tmp_path, 250))
    lines = gzip.decompress((DATA / "texts/tcpdump/linux-udp-vs-tcp-rcv.nn-tt.txt.gz").read_bytes()).decode()
    old = tmp_path / "old.txt"
    old.write_text("\n".join(map(as_version_3, lines.splitlines())))
    assert " P 1:38(37) ack 1 win 63 <nop,nop,timestamp " in old.read_text()
    check(capture, flows_of(old), "-nn -tt")


def test_names_stand_for_addresses_and_ports(tmp_path: Path) -> None:
    capture = flows_of(unpacked("linux-udp-vs-tcp-rcv.pcap", tmp_path, 250))
    lines = gzip.decompress((DATA / "texts/tcpdump/linux-udp-vs-tcp-rcv.nn-tt.txt.gz").read_bytes()).decode()
    named = tmp_path / "named.txt"
    names = {"10.75.1.1": "client.example.org", "10.75.2.2": "server"}
    for address, name in names.items():
        lines = lines.replace(f"{address}.", f"{name}.")
    named.write_text(lines.replace("server.5201", "server.targus-getdata1"))
    expected = [{**row, "src": names[row["src"]], "dst": names[row["dst"]]} for row in capture]
    check(expected, flows_of(named), "-nn -tt")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("linux-one-cubic-snd.default", "times without date"),
        ("linux-one-cubic-snd.nn-ttt", "taken as differences"),
        ("linux-one-cubic-snd.nn-tttt", "taken as UTC"),
        ("linux-small-flows-snd.nn-ttttt", "since the first packet"),
        ("linux-small-flows-snd.nn-t", "no times"),
        ("linux-udp-vs-tcp-rcv.nn-tt-q", "no TCP headers"),
        ("linux-udp-vs-tcp-rcv.nn-tt", "no sizes of frames"),
        ("linux-udp-vs-tcp-rcv.nn-tt", "no IP headers (tcpdump -v)"),
    ],
)
def test_what_a_text_leaves_out_is_reported(text: str, words: str) -> None:
    assert words in warnings_of(DATA / "texts" / "tcpdump" / f"{text}.txt.gz")


def test_times_of_day_go_on_over_midnight(tmp_path: Path) -> None:
    line = "IP 10.0.0.1.5 > 10.0.0.2.6: UDP, length 12\n"
    text = tmp_path / "midnight.txt"
    text.write_text(f"23:59:59.900000 {line}00:00:00.100000 {line}")
    (row, _) = flows_of(text)
    assert row["end_ns"] - row["start_ns"] == 200_000_000
