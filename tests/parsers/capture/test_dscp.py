"""The codepoints of flows are those that tshark shows of their packets, in captures and in tcpdump's text."""

import csv
import gzip
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import tfrctrace

DATA = Path(__file__).resolve().parent.parent.parent / "data" / "dscp"
CAPTURE = DATA / "dscp.pcap.gz"

Ends = tuple[str, int, int]


def marks_by_tshark() -> dict[Ends, list[int]]:
    """Return the codepoint of each packet of TCP and UDP, by source and ports, in order."""
    marks: dict[Ends, list[int]] = {}
    with gzip.open(DATA / "tshark.csv.gz", "rt") as file:
        for src_4, src_6, tcp_src, udp_src, tcp_dst, udp_dst, mark_4, mark_6 in csv.reader(file):
            if tcp_src or udp_src:
                ends = (src_4 or src_6, int(tcp_src or udp_src), int(tcp_dst or udp_dst))
                marks.setdefault(ends, []).append(int(mark_4 or mark_6))
    return marks


def rows(flows: pl.DataFrame) -> Iterator[tuple[Ends, int | None]]:
    for src, src_port, dst_port, dscp in flows.select("src", "src_port", "dst_port", "dscp").iter_rows():
        yield (src, src_port, dst_port), dscp


def first_mark(marks: list[int]) -> int:
    return next((mark for mark in marks if mark), 0)


def test_the_codepoint_of_a_direction_is_its_first_other_than_0() -> None:
    marks = marks_by_tshark()
    assert dict(rows(tfrctrace.open(CAPTURE).flows)) == {ends: first_mark(of) for ends, of in marks.items()}
    # expedited forwarding, two classes of assured forwarding, and none; some begin with unmarked packets
    assert {first_mark(of) for of in marks.values()} == {0, 10, 34, 46}
    assert any(of[0] == 0 and first_mark(of) for of in marks.values())


def test_each_packet_has_its_own_codepoint() -> None:
    packets = pl.concat(tfrctrace.open(CAPTURE).packets()).filter(pl.col("src_port").is_not_null())
    ours: dict[Ends, list[int]] = {}
    for src, src_port, dst_port, dscp in packets.select("src", "src_port", "dst_port", "dscp").iter_rows():
        ours.setdefault((src, src_port, dst_port), []).append(dscp)
    assert ours == marks_by_tshark()


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.filterwarnings("ignore:.*the text has:tfrctrace.TfrctraceWarning")
@pytest.mark.parametrize("options", ["-env", "-en"])
def test_the_text_of_tcpdump_shows_codepoints_only_with_v(options: str, tmp_path: Path) -> None:
    capture, text = tmp_path / "dscp.pcap", tmp_path / "dscp.txt"
    capture.write_bytes(gzip.decompress(CAPTURE.read_bytes()))
    with text.open("wb") as file:
        command = ["tcpdump", options, "-tt", "-r", str(capture), "tcp or udp"]
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
    found = dict(rows(tfrctrace.open(text).flows))
    marks = marks_by_tshark()
    assert found == {ends: first_mark(of) if options == "-env" else None for ends, of in marks.items()}


@pytest.mark.filterwarnings("ignore:.*the text has:tfrctrace.TfrctraceWarning")
def test_a_text_that_begins_in_the_middle_makes_up_no_codepoint(tmp_path: Path) -> None:
    text = tmp_path / "middle.txt"
    ends = "IP 192.0.2.1.1000 > 198.51.100.7.80: Flags [.]"
    sent = [
        f"17000000{n:02}.000000 {ends}, seq {n}01:{n + 1}01, ack 1, win 500, length 100\n"
        for n in range(1, 5)
    ]
    text.write_text("".join(sent))
    (forward,) = tfrctrace.open(text).flows.filter(pl.col("packets") > 0).to_dicts()
    assert (forward["packets"], forward["dscp"]) == (4, None)


def test_flows_are_labelled_by_their_codepoint() -> None:
    flows = tfrctrace.open(CAPTURE).measure(labels=["ef=dscp 46", "af=dscp 10"]).looked_at
    assert dict(flows.filter(pl.col("label").is_not_null()).select("label", "dst_port").iter_rows()) == {
        "ef": 5201,
        "af": 5202,
    }
