"""Whatever a file holds: a clear message, the designed status, and the analysis of what could be read."""

import gzip
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
SMALL = gzip.decompress((CAPTURES / "linux-small-flows-snd.pcap.gz").read_bytes())
FILE_HEADER = 24
NOT_READ = 3


@dataclass(frozen=True)
class Outcome:
    status: int
    flows: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    printed: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(run: Callable[..., Any]) -> Run:
    """Return a function that runs `tfrctrace flows` and holds it to what it never says."""

    def flows(*arguments: str | Path, **more: Any) -> Outcome:
        done = run("flows", "--format", "json", *arguments, **more)
        assert "panicked" not in done.err
        assert "internal error" not in done.err
        result = json.loads(done.out) if done.out else {"flows": [], "warnings": []}
        return Outcome(done.status, result["flows"], result["warnings"], done.err)

    return flows


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def record_offsets(capture: bytes) -> list[int]:
    offsets, at = [], FILE_HEADER
    while at < len(capture):
        offsets.append(at)
        (captured,) = struct.unpack_from("<I", capture, at + 8)
        at += 16 + captured
    return offsets


OFFSETS = record_offsets(SMALL)


def packets(outcome: Outcome) -> int:
    return sum(row["packets"] for row in outcome.flows)


def test_an_empty_file_is_named_and_not_read(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "empty.pcap", b"")
    outcome = run(path)
    assert outcome.status == NOT_READ
    assert f"error: `{path}`: the file is empty, expected a capture" in outcome.printed


def test_a_file_header_alone_is_a_capture_without_packets(run: Run) -> None:
    outcome = run(CAPTURES / "variant-empty.pcap.gz")
    assert outcome.status == 0
    assert outcome.flows == []
    assert "warning: " in outcome.printed


def test_an_empty_directory_is_named(run: Run, tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert outcome.status == NOT_READ
    assert str(tmp_path) in outcome.printed


def test_a_directory_stands_for_the_captures_in_it(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.pcap", SMALL)
    write(tmp_path / "notes.txt", b"measured on a Friday\n")
    outcome = run(tmp_path)
    assert outcome.status == 0
    assert {Path(row["source"]).name for row in outcome.flows} == {"a.pcap"}


def test_a_text_file_is_called_text(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "notes.pcap", b"measured on a Friday\n")
    outcome = run(path)
    assert outcome.status == NOT_READ
    assert (
        f"error: `{path}` at byte 0: this is text of no known form, expected a capture or one of: "
        in outcome.printed
    )


def test_other_bytes_are_no_capture(run: Run, tmp_path: Path) -> None:
    outcome = run(write(tmp_path / "noise.pcap", bytes(range(128, 256))))
    assert outcome.status == NOT_READ
    assert "neither pcap, pcapng, snoop nor ERF" in outcome.printed


def test_a_cut_last_record_is_a_warning_and_the_rest_is_analysed(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "cut.pcap", SMALL[:-5])
    outcome = run(path)
    number, start = len(OFFSETS), OFFSETS[-1]
    assert outcome.status == 0
    warning = f"warning: `{path}` packet {number} at byte {start}: the file ends inside a record"
    assert warning in outcome.printed
    assert f"{number - 1} packets before it were analysed" in outcome.printed
    assert "hint:" in outcome.printed
    assert [warning["kind"] for warning in outcome.warnings] == ["truncated"]
    whole = run(write(tmp_path / "whole.pcap", SMALL))
    without_last = run(write(tmp_path / "short.pcap", SMALL[:start]))
    assert packets(outcome) == packets(without_last) <= packets(whole)


def test_strict_makes_an_error_of_a_cut_record(run: Run, tmp_path: Path) -> None:
    outcome = run("--strict", write(tmp_path / "cut.pcap", SMALL[:-5]))
    assert outcome.status == NOT_READ
    assert "error: " in outcome.printed
    assert packets(outcome) > 0


def test_a_cut_record_header_is_a_warning(run: Run, tmp_path: Path) -> None:
    outcome = run(write(tmp_path / "cut.pcap", SMALL[: OFFSETS[-1] + 7]))
    assert outcome.status == 0
    assert "the file ends inside a record header: 7 bytes, expected 16" in outcome.printed


def test_a_record_of_four_gigabytes_ends_the_reading_there(run: Run, tmp_path: Path) -> None:
    number = 50
    start = OFFSETS[number - 1]
    content = bytearray(SMALL)
    struct.pack_into("<I", content, start + 8, 0xFFFF_FFFF)
    path = write(tmp_path / "huge.pcap", bytes(content))
    outcome = run(path)
    assert outcome.status == NOT_READ
    expected = f"error: `{path}` packet {number} at byte {start}: record length 4294967295, expected at most"
    assert expected in outcome.printed
    assert "49 packets before it were analysed" in outcome.printed
    assert packets(outcome) == packets(run(write(tmp_path / "before.pcap", SMALL[:start])))


def test_an_unknown_link_type_is_named(run: Run, tmp_path: Path) -> None:
    content = bytearray(SMALL)
    struct.pack_into("<I", content, 20, 147)
    outcome = run(write(tmp_path / "user.pcap", bytes(content)))
    assert outcome.status == NOT_READ
    assert "link type 147" in outcome.printed


def test_a_gzip_stream_that_ends_early_gives_what_is_there(run: Run) -> None:
    outcome = run(CAPTURES / "variant-cut-gzip-stream.pcap.gz")
    assert outcome.status == 0
    assert "warning: " in outcome.printed
    assert "the gzip data end early" in outcome.printed
    # 888 of 1500 records can be unpacked; 22 and more are not TCP
    assert 800 < packets(outcome) < 888


def test_damaged_gzip_data_are_an_error_after_what_could_be_read(run: Run, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(SMALL * 20, mtime=0))
    packed[len(packed) // 2 :] = bytes(len(packed) - len(packed) // 2)
    outcome = run(write(tmp_path / "damaged.pcap.gz", bytes(packed)))
    assert outcome.status == NOT_READ
    assert "gzip" in outcome.printed


def test_a_decompression_bomb_stops_at_the_bound(run: Run, tmp_path: Path) -> None:
    one = SMALL[OFFSETS[0] : OFFSETS[1]]
    many = 300_000
    packed = gzip.compress(SMALL[:FILE_HEADER] + one * many, compresslevel=9, mtime=0)
    assert len(packed) * 200 < len(one) * many
    path = write(tmp_path / "bomb.pcap.gz", packed)
    outcome = run("--max-decompressed", "5000000", path)
    assert outcome.status == NOT_READ
    assert "more than 5000000 bytes after decompression" in outcome.printed
    assert "`--max-decompressed`" in outcome.printed
    (problem,) = (one for one in outcome.warnings if one["kind"] == "decompression_limit")
    assert 0 < problem["packets_before"] <= 5_000_000 // len(one)


def test_a_file_that_is_not_there_is_named_and_the_others_are_analysed(run: Run, tmp_path: Path) -> None:
    there = write(tmp_path / "there.pcap", SMALL)
    outcome = run(tmp_path / "gone.pcap", there)
    assert outcome.status == NOT_READ
    assert f"error: `{tmp_path / 'gone.pcap'}`: no such file or directory" in outcome.printed
    assert packets(outcome) == packets(run(there))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "secret.pcap", SMALL)
    path.chmod(0)
    outcome = run(path)
    assert outcome.status == NOT_READ
    assert "permission denied" in outcome.printed


def test_a_writer_that_goes_away_leaves_what_it_wrote(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.pcap"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(SMALL[: OFFSETS[100] + 20],))
    writer.start()
    outcome = run(pipe)
    writer.join()
    assert outcome.status == 0
    assert "packet 101" in outcome.printed
    assert packets(outcome) > 0


def test_standard_input_is_read_like_a_file(run: Run, tmp_path: Path) -> None:
    piped = run("-", stdin=SMALL)
    filed = run(write(tmp_path / "small.pcap", SMALL))
    assert piped.status == 0
    assert [row | {"source": ""} for row in piped.flows] == [row | {"source": ""} for row in filed.flows]


def test_a_closed_pipe_on_standard_output_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path / "small.pcap", SMALL)
    command = [sys.executable, "-m", "tfrctrace", "flows", "--format", "json", *([str(path)] * 40)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        printed = process.stderr.read().decode()
        status = process.wait()
    assert printed == ""
    assert status == 0


# pcapng, block by block


def block(kind: int, body: bytes) -> bytes:
    padded = body + bytes(-len(body) % 4)
    length = 12 + len(padded)
    return struct.pack("<II", kind, length) + padded + struct.pack("<I", length)


def section(magic: int = 0x1A2B3C4D) -> bytes:
    return block(0x0A0D0D0A, struct.pack("<IHHq", magic, 1, 0, -1))


def interface(link_type: int = 1, options: bytes = b"") -> bytes:
    return block(1, struct.pack("<HHI", link_type, 0, 96) + options)


def enhanced(number: int, frame: bytes) -> bytes:
    stamp = number * 1000
    head = struct.pack("<IIIII", number, stamp >> 32, stamp & 0xFFFF_FFFF, len(frame), len(frame))
    return block(6, head + frame)


# the first frame of a TCP connection in the small capture
FRAME = next(
    SMALL[at + 16 : at + 16 + struct.unpack_from("<I", SMALL, at + 8)[0]]
    for at in OFFSETS
    if SMALL[at + 28 : at + 30] == b"\x08\x00" and SMALL[at + 39] == 6
)


def test_a_pcapng_block_of_length_zero_ends_the_reading_there(run: Run, tmp_path: Path) -> None:
    good = section() + interface() + enhanced(0, FRAME)
    path = write(tmp_path / "zero.pcapng", good + struct.pack("<II", 6, 0) + bytes(24))
    outcome = run(path)
    assert outcome.status == NOT_READ
    expected = f"error: `{path}` packet 2 at byte {len(good)}: block length 0, expected at least 12"
    assert expected in outcome.printed
    assert "1 packet before it was analysed" in outcome.printed
    assert packets(outcome) == 1


def test_a_pcapng_section_of_unknown_byte_order_is_an_error(run: Run, tmp_path: Path) -> None:
    good = section() + interface() + enhanced(0, FRAME)
    outcome = run(write(tmp_path / "order.pcapng", good + section(magic=0x11223344)))
    assert outcome.status == NOT_READ
    assert f"at byte {len(good)}: a section header without byte-order magic" in outcome.printed
    assert packets(outcome) == 1


def test_a_packet_of_an_undeclared_interface_is_an_error(run: Run, tmp_path: Path) -> None:
    content = section() + interface() + enhanced(0, FRAME) + enhanced(7, FRAME)
    outcome = run(write(tmp_path / "interface.pcapng", content))
    assert outcome.status == NOT_READ
    assert "a packet of interface 7, expected one of the 1 declared" in outcome.printed
    assert packets(outcome) == 1


def test_a_packet_longer_than_its_block_is_an_error(run: Run, tmp_path: Path) -> None:
    lying = bytearray(enhanced(0, FRAME))
    struct.pack_into("<I", lying, 20, 5000)
    outcome = run(write(tmp_path / "long.pcapng", section() + interface() + bytes(lying)))
    assert outcome.status == NOT_READ
    assert "a packet of 5000 bytes in a block of" in outcome.printed


def test_a_pcapng_block_cut_at_the_end_is_a_warning(run: Run, tmp_path: Path) -> None:
    content = section() + interface() + enhanced(0, FRAME) + enhanced(0, FRAME)[:-9]
    outcome = run(write(tmp_path / "cut.pcapng", content))
    assert outcome.status == 0
    assert "warning: " in outcome.printed
    assert packets(outcome) == 1


def test_packets_of_a_link_type_that_is_not_decoded_are_counted(tmp_path: Path) -> None:
    content = section() + interface() + interface(link_type=147) + enhanced(0, FRAME) + enhanced(1, FRAME)
    path = write(tmp_path / "two-links.pcapng", content)
    analysis = _native.analyse([str(path)], ReadSettings())
    (source,) = analysis.sources
    assert source["packets"] == 2
    assert source["undecoded_packets"] == 1
    assert len(analysis.table("flows")) == 2


def test_unknown_blocks_are_passed_over(run: Run, tmp_path: Path) -> None:
    stranger = block(0x0BAD_0BAD & 0x7FFF_FFFF, bytes(4000))
    content = section() + stranger + interface() + stranger + enhanced(0, FRAME) + stranger
    outcome = run(write(tmp_path / "blocks.pcapng", content))
    assert outcome.status == 0
    assert packets(outcome) == 1


def test_control_characters_of_a_file_name_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "red\x1b[31m.pcap", b"")
    outcome = run(path)
    assert outcome.status == NOT_READ
    assert "\x1b" not in outcome.printed


def test_an_interface_name_may_hold_anything(run: Run, tmp_path: Path) -> None:
    name = b"\x1b]0;owned\x07\xff<script>"
    option = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4) + bytes(4)
    content = section() + interface(options=option) + enhanced(0, FRAME)
    outcome = run(write(tmp_path / "name.pcapng", content))
    assert outcome.status == 0
    assert packets(outcome) == 1


# Any change to any byte

PCAPNG = gzip.decompress((CAPTURES / "linux-ipv6-rcv.pcapng.gz").read_bytes())[:6000]
SEEDS = {
    "pcap": SMALL[: OFFSETS[60]],
    "pcapng": PCAPNG,
    "gzip": gzip.compress(SMALL[: OFFSETS[60]], mtime=0),
    "cooked": gzip.decompress((CAPTURES / "linux-cooked-any-snd-sll1.pcap.gz").read_bytes())[:5000],
    "qinq": gzip.decompress((CAPTURES / "variant-qinq.pcap.gz").read_bytes())[:5000],
}

MEANINGFUL = bytes([0x00, 0x01, 0x7F, 0x80, 0xFF, 0x45, 0x60, 0x06, 0x11])
"""What means something in lengths and types, and comes up more often."""


@st.composite
def mutated(draw: st.DrawFn, seed: bytes) -> bytes:
    content = bytearray(seed)
    # as one draw, since each costs as much as what is done with it: where, whether anything, what
    changes = draw(st.binary(max_size=48))
    for *place, anything, byte in zip(*[iter(changes)] * 4, strict=False):
        at = int.from_bytes(place, "big") % len(content)
        content[at] = byte if anything & 1 else MEANINGFUL[byte % len(MEANINGFUL)]
    if draw(st.booleans()):
        del content[draw(st.integers(0, len(content))) :]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(content)))
        content[at:at] = draw(st.binary(max_size=40))
    return bytes(content)


@pytest.mark.parametrize("form", sorted(SEEDS))
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_bytes_make_the_core_fail(tmp_path: Path, form: str, data: st.DataObject) -> None:
    content = data.draw(mutated(SEEDS[form]))
    path = write(tmp_path / "mutated", content)
    analysis = _native.analyse(
        [str(path)],
        ReadSettings(max_flows=50, max_samples=500, max_decompressed_bytes=100_000),
        collect={"bins", "rtt", "losses"},
    )
    (source,) = analysis.sources
    flows = analysis.table("flows").rows()
    # a record takes at least 16 bytes of the (uncompressed) file
    assert source["packets"] <= 100_000 // 16
    assert len(flows) <= 2 * 50
    assert sum(row["packets"] for row in flows) <= source["packets"]
    assert len(analysis.table("rtt")) <= 500
    assert len(analysis.table("losses")) <= 500
    for row in flows:
        check_row(row)


def check_row(row: dict[str, Any]) -> None:
    """What no capture can make untrue."""
    if row["payload_bytes"] is not None:
        assert row["payload_bytes"] <= row["wire_bytes"]
    if row["unique_bytes"] is not None:
        # payload of a RST (RFC 9293 section 3.5.2 allows some) is no part of the stream
        assert row["unique_bytes"] + row["retransmitted_bytes"] <= row["payload_bytes"]
        assert row["retransmitted_packets"] <= row["data_packets"] <= row["packets"]
    if row["rtt_samples"]:
        assert 0 <= row["rtt_min_ms"] <= row["rtt_mean_ms"] <= row["rtt_max_ms"]


@pytest.mark.parametrize("form", sorted(SEEDS))
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_bytes_make_the_packet_reader_fail(tmp_path: Path, form: str, data: st.DataObject) -> None:
    path = write(tmp_path / "mutated", data.draw(mutated(SEEDS[form])))
    reader = _native.PacketReader([str(path)], ReadSettings(max_flows=50, max_decompressed_bytes=100_000))
    seen = 0
    while (batch := reader.next_batch(rows=16)) is not None:
        assert len(batch) <= 16
        seen += len(batch)
    if reader.sources:
        assert seen == reader.sources[0]["packets"]
