"""The file formats of captures, and their compression, beside pcap and pcapng."""

import bz2
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

TUNNELS = Path(__file__).resolve().parents[2] / "data" / "tunnels"
CAPTURE = TUNNELS / "gre.pcap"


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    analysis = _native.analyse([str(path)], ReadSettings())
    (source,) = analysis.sources
    return list(analysis.table("flows").rows()), dict(source), list(analysis.problems)


def records() -> list[bytes]:
    content, frames = CAPTURE.read_bytes(), []
    at = 24
    while at < len(content):
        (length,) = struct.unpack_from("<8xI", content, at)
        frames.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def numbers(path: Path) -> list[tuple[Any, ...]]:
    columns = ("src", "src_port", "dst", "dst_port", "packets", "wire_bytes", "payload_bytes", "start_ns")
    return [tuple(row[column] for column in columns) for row in read(path)[0]]


def snoop() -> bytes:
    """Return the capture as Solaris writes it, from the same time on."""
    parts = [b"snoop\0\0\0" + struct.pack(">II", 2, 4)]
    for number, frame in enumerate(records()):
        padding = -len(frame) % 4
        head = (len(frame), len(frame), 24 + len(frame) + padding, 0, 1_700_000_000, 1000 * number)
        parts.append(struct.pack(">6I", *head) + frame + bytes(padding))
    return b"".join(parts)


def erf() -> bytes:
    """Return the capture as Endace's cards write it, with an extension header, padding and another type."""
    parts = []
    for number, frame in enumerate(records()):
        time = (1_700_000_000 << 32) + (1000 * number << 32) // 1_000_000 + 1
        extended = number % 2
        body = bytes(8 * extended + 2) + frame + bytes(-(18 + 8 * extended + len(frame)) % 8)
        head = struct.pack(">BBHHH", 2 | 0x80 * extended, 4, 16 + len(body), 0, len(frame))
        parts.append(struct.pack("<Q", time) + head + body)
    parts.append(struct.pack("<Q", 1_700_000_000 << 32) + struct.pack(">BBHHH", 48, 4, 24, 0, 8) + bytes(8))
    return b"".join(parts)


def test_snoop(tmp_path: Path) -> None:
    path = tmp_path / "c.snoop"
    path.write_bytes(snoop())
    assert numbers(path) == numbers(CAPTURE)
    _, source, problems = read(path)
    assert (source["format"], source["packets"], problems) == ("snoop", 7, [])


@pytest.mark.skipif(not shutil.which("editcap"), reason="needs editcap")
def test_snoop_as_wireshark_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "c.snoop"
    subprocess.run(["editcap", "-F", "snoop", str(CAPTURE), str(path)], check=True)
    assert numbers(path) == numbers(CAPTURE)


def test_erf(tmp_path: Path) -> None:
    path = tmp_path / "c.erf"
    path.write_bytes(erf())
    ours = [(*row[:5], row[6]) for row in numbers(path)]
    assert ours == [(*row[:5], row[6]) for row in numbers(CAPTURE)]
    _, source, problems = read(path)
    assert (source["format"], source["packets"], problems) == ("erf", 7, [])


@pytest.mark.skipif(not shutil.which("tshark"), reason="needs tshark")
def test_tshark_reads_the_same_erf(tmp_path: Path) -> None:
    path = tmp_path / "c.erf"
    path.write_bytes(erf())
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "tcp.len", "-e", "frame.time_epoch"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines][:5] == ["0", "0", "0", "100", "0"]
    start_ns = read(path)[0][0]["start_ns"]
    assert start_ns == pytest.approx(float(lines[0].split("\t")[1]) * 1e9, abs=1000)


@pytest.mark.parametrize("made", [snoop, erf])
def test_a_cut_file_is_read_up_to_there(tmp_path: Path, made: Any) -> None:
    path = tmp_path / "c"
    path.write_bytes(made()[:-60])
    _, source, (problem,) = read(path)
    assert source["packets"] == 6
    assert problem["byte"] > 16


@pytest.mark.parametrize("made", [snoop, erf])
@pytest.mark.parametrize("value", [0, 0x7F, 0xFF])
def test_no_byte_of_a_header_is_believed(tmp_path: Path, made: Any, value: int) -> None:
    content = made()
    path = tmp_path / "c"
    for at in range(64):
        path.write_bytes(content[:at] + bytes([value]) + content[at + 1 :])
        _, source, _ = read(path)
        assert source["packets"] <= 8


def test_bzip2(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap.bz2"
    content = CAPTURE.read_bytes()
    path.write_bytes(bz2.compress(content[:400]) + bz2.compress(b"") + bz2.compress(content[400:], 1))
    assert numbers(path) == numbers(CAPTURE)
    assert read(path)[1]["compression"] == "bzip2"


def test_bzip2_of_long_runs_and_all_bytes(tmp_path: Path) -> None:
    """Blocks of every size, runs of every length, and bytes in every order."""
    frame = b"".join(bytes([byte]) * (byte % 11) for byte in range(256)) * 20
    frames = [records()[3] + (frame * 9)[at : at + 60_000] for at in range(0, 100_000, 5_000)]
    head = CAPTURE.read_bytes()[:24]
    capture = head + b"".join(struct.pack("<IIII", 1, 0, len(one), len(one)) + one for one in frames)
    plain, packed = tmp_path / "c.pcap", tmp_path / "c.bz2"
    plain.write_bytes(capture)
    for level in (1, 5, 9):
        packed.write_bytes(bz2.compress(capture, level))
        assert numbers(packed) == numbers(plain)
        assert read(packed)[1]["packets"] == len(frames)


def test_damaged_bzip2_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.bz2"
    whole = bz2.compress(CAPTURE.read_bytes())
    for at in range(4, len(whole), 3):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            _, source, problems = read(path)
            # a bit that no decoder needs may change: then nothing else does
            assert source["packets"] <= 7
            assert problems or numbers(path) == numbers(CAPTURE)
