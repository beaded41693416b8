"""Packets are followed flow by flow within a batch, and every table is that of the order of the file.

A pass that collects the table `tcp` follows packets in the order of the file.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SAMPLES = {"bins", "rtt", "losses", "rounds"}
HEADER = 24


@pytest.fixture(scope="module")
def captures(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    pytest.importorskip("numpy")
    for name in ("plan", "script"):
        load_script(BENCHMARKS / f"{name}.py")
    return load_script(BENCHMARKS / "captures.py")


def records(capture: bytes) -> Iterator[bytes]:
    at = HEADER
    while at < len(capture):
        end = at + 16 + int(struct.unpack_from("<I", capture, at + 8)[0])
        yield capture[at:end]
        at = end


def mixed(captures: ModuleType, folder: Path, kinds: tuple[str, ...], seed: int) -> Path:
    """Write a capture of several kinds, in order of time."""
    parts = []
    for kind in kinds:
        captures.main(str(folder / kind), kind, "12000", str(seed))
        parts += records((folder / kind).read_bytes())
    parts.sort(key=lambda record: struct.unpack_from("<II", record))
    path = folder / "mixed.pcap"
    path.write_bytes((folder / kinds[0]).read_bytes()[:HEADER] + b"".join(parts))
    return path


def tables(path: Path, collect: set[str]) -> dict[str, list[dict[str, Any]]]:
    analysis = _native.analyse([str(path)], ReadSettings(), collect=collect)
    found = {
        name: analysis.table(name).rows() for name in ("flows", "rtt_buckets", *sorted(SAMPLES & collect))
    }
    return found | {"problems": [dict(problem) for problem in analysis.problems]}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "kinds",
    [
        ("random-200",),
        ("loss",),
        ("both-ways", "rtp"),
        ("random-8", "loss", "ipv6", "quic"),
        ("lan", "holes"),
    ],
    ids="+".join,
)
def test_every_table_is_that_of_the_order_of_the_file(
    captures: ModuleType, tmp_path: Path, kinds: tuple[str, ...], seed: int
) -> None:
    path = mixed(captures, tmp_path, kinds, seed)
    in_order = tables(path, SAMPLES | {"tcp"})
    assert tables(path, SAMPLES) == in_order
    for collect in (set[str](), {"bins"}, {"bins", "rounds"}):
        found = tables(path, collect)
        assert found == {name: in_order[name] for name in found}
    packets = [row["packet"] for row in in_order["rtt"]]
    assert len(packets) > 1000
    assert packets == sorted(packets)
