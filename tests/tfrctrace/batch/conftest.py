"""Captures for batches: files that were rotated, and folders to compare."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADER_BYTES = 24
RECORD_BYTES = 16


def records_of(capture: bytes) -> list[bytes]:
    """Return the records of a pcap file of the usual byte order."""
    records, at = [], HEADER_BYTES
    while at < len(capture):
        length = RECORD_BYTES + struct.unpack_from("<I", capture, at + 8)[0]
        records.append(capture[at : at + length])
        at += length
    return records


@pytest.fixture(scope="session")
def rotate() -> Callable[..., list[Path]]:
    """Return a function that cuts a capture into files of as many records each."""

    def cut(capture: bytes, folder: Path, files: int, name: str = "link-{:03d}.pcap") -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        records = records_of(capture)
        bounds = [len(records) * number // files for number in range(files + 1)]
        paths = [folder / name.format(number) for number in range(files)]
        for path, start, stop in zip(paths, bounds, bounds[1:], strict=False):
            path.write_bytes(capture[:HEADER_BYTES] + b"".join(records[start:stop]))
        return paths

    return cut


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Return a function that reads all files of a folder."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    return read


@pytest.fixture
def farm(conversation, write_capture, tmp_path) -> Path:
    """Return a folder with six captures of one connection each, hours apart."""
    for number in range(6):
        frames = conversation(port=40_000 + number, data_packets=2 + number)
        write_capture(f"farm/run-{number + 1}.pcap", frames, start_s=1_700_000_000 + 7_200 * number)
    return tmp_path / "farm"
