"""Checkpoints: a pass that stops behind each file of a trace and goes on is one pass over all of them."""

from __future__ import annotations

import dataclasses
import gzip
import io
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrctrace.base.grouping import parse_grouping
from tfrctrace.parsers._native import (
    Progress,
    analyse,
    analyse_chain,
    empty_table,
    file_digest,
    write_parquet,
)
from tfrctrace.parsers.reading_settings import ReadSettings

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TABLES = ("flows", "groups", "group_buckets", "rtp_sources", "links")
COLLECT = frozenset({"flows", "rtp_sources"})
SETTINGS = ReadSettings(join=True, grouping=parse_grouping("host", "500ms").for_core)
PACKED = dataclasses.replace(SETTINGS, packing=(0, -(2**63)))
"""The same, with every flow packed whenever that is possible."""
CAPTURES = {
    "tcp with losses": "tests/data/captures/linux-one-cubic-rcv.pcap.gz",
    "tcp behind a relay": "tests/data/captures/linux-relay-reorder-noloss-snd.pcap.gz",
    "short connections": "tests/data/captures/linux-small-flows-snd.pcap.gz",
    "numbered datagrams": "tests/data/captures/linux-udp-vs-tcp-rcv.pcap.gz",
    "several interfaces": "tests/data/interfaces/router-udp.pcap.gz",
    "dccp": "sample_traces/dccp-ccid3.pcap.gz",
    "rtp": "tests/data/rtp/gstreamer-sender.pcap.gz",
    "quic": "tests/data/quic/aioquic.pcap.gz",
    "names": "tests/data/names/clients.pcap.gz",
    "802.11": "tests/data/wifi/ns3-wifi-radiotap-veno-udp-2-1.pcap.gz",
}
HEADER, RECORD = 24, 16


def capture_of(name):
    """Return the header of a pcap file and its records."""
    content = gzip.decompress((ROOT / CAPTURES[name]).read_bytes())
    order = "<" if content[:4] in {b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"} else ">"
    records, at = [], HEADER
    while at < len(content):
        length = RECORD + struct.unpack_from(f"{order}I", content, at + 8)[0]
        records.append(content[at : at + length])
        at += length
    return content[:HEADER], records


def cut(capture, folder, bounds):
    """Write the records between the bounds as files; return their paths."""
    header, records = capture
    places = [0, *sorted(set(bounds)), len(records)]
    paths = []
    for number, (start, stop) in enumerate(pairwise(places)):
        paths.append(folder / f"link-{number:03d}.pcap")
        paths[-1].write_bytes(header + b"".join(records[start:stop]))
    return [str(path) for path in paths]


def shown(analysis):
    """Return all that a batch takes of an analysis, as bytes where it writes bytes."""
    tables = {}
    for name in TABLES:
        content = io.BytesIO()
        write_parquet(content.write, empty_table(name), [analysis.table(name)])
        tables[name] = content.getvalue()
    return {**tables, "sources": list(analysis.sources), "problems": list(analysis.problems)}


def go_on(files, resume=None, save=None, *, stamp="stamp", left_out=None, reading=SETTINGS):
    return analyse_chain(
        [str(file) for file in files],
        reading,
        collect=COLLECT,
        progress=Progress(),
        resume=resume and (str(resume), stamp),
        save=save and (str(save), stamp, left_out),
    )


def check_resumed(files, folder, reading=SETTINGS):
    """Stop behind each file but the first, go on, and compare with one pass; stop where none is left."""
    checkpoint = folder / "checkpoint"
    _, refusal = go_on(files[:2], None, checkpoint, reading=reading)
    for count in range(3, len(files) + 1):
        if refusal is not None:
            return count - 1
        analysis, refusal = go_on(files[count - 1 : count], checkpoint, checkpoint, reading=reading)
        if analysis is None:
            return count - 1
        assert shown(analysis) == shown(analyse(files[:count], SETTINGS, collect=COLLECT))
    return len(files)


@pytest.mark.parametrize("reading", [SETTINGS, PACKED], ids=["kept", "packed"])
@pytest.mark.parametrize("name", CAPTURES)
def test_a_pass_that_stops_behind_each_file_is_one_pass(name, reading, tmp_path):
    capture = capture_of(name)
    places = [len(capture[1]) * number // 6 for number in range(1, 6)]
    assert check_resumed(cut(capture, tmp_path, places), tmp_path, reading) == 6


@pytest.mark.parametrize("name", ["tcp with losses", "dccp", "rtp"])
def test_files_may_end_anywhere(name, tmp_path_factory):
    capture = capture_of(name)
    fully_resumed = 0

    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.integers(1, len(capture[1]) - 1), min_size=2, max_size=5, unique=True))
    def check(bounds):
        nonlocal fully_resumed
        folder = tmp_path_factory.mktemp("cut")
        files = cut(capture, folder, bounds)
        fully_resumed += check_resumed(files, folder) == len(files)

    check()
    assert fully_resumed > 0


@pytest.mark.parametrize("name", ["tcp with losses", "dccp"])
def test_gaps_and_overlaps_of_files_are_the_same(name, tmp_path):
    header, records = capture_of(name)
    step = len(records) // 12
    ranges = [(0, 2), (2, 4), (3, 6), (6, 7), (8, 9), (9, 10), (11, 12)]
    files = []
    for number, (start, stop) in enumerate(ranges):
        files.append(tmp_path / f"link-{number}.pcap")
        files[-1].write_bytes(header + b"".join(records[start * step : stop * step]))
    files = list(map(str, files))
    assert check_resumed([files[0], *files[3:]], tmp_path) == 5
    assert check_resumed([files[0], *files[3:]], tmp_path, PACKED) == 5
    checkpoint = tmp_path / "checkpoint"
    assert go_on(files[:3], None, checkpoint)[1] is None
    for count in range(4, len(files) + 1):
        analysis, refusal = go_on(files[count - 1 : count], checkpoint, checkpoint)
        assert refusal is None
        assert shown(analysis) == shown(analyse(files[:count], SETTINGS, collect=COLLECT))
    whole = analyse(files, SETTINGS, collect=COLLECT)
    assert {"gap", "overlap"} <= {problem["kind"] for problem in whole.problems}


@pytest.mark.parametrize("name", CAPTURES)
def test_the_last_file_may_be_left_out(name, tmp_path):
    capture = capture_of(name)
    files = cut(capture, tmp_path, [len(capture[1]) * number // 6 for number in (1, 2, 4)])
    checkpoint = tmp_path / "checkpoint"
    whole = shown(analyse(files, SETTINGS, collect=COLLECT))
    analysis, refusal = go_on(files, None, checkpoint, left_out=3)
    assert refusal is None
    assert shown(analysis) == whole
    for _ in range(2):
        # of a single new file that is left out the checkpoint stays what it is
        analysis, refusal = go_on(files[3:], checkpoint, checkpoint, left_out=0)
        assert refusal is None
        assert shown(analysis) == whole
    assert go_on(files, None, checkpoint, left_out=1)[1] == "files without an order cannot be saved"


def made(tmp_path):
    files = cut(capture_of("rtp"), tmp_path, [400, 900, 1400])
    checkpoint = tmp_path / "checkpoint"
    assert go_on(files[:2], None, checkpoint)[1] is None
    return files, checkpoint


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    files, checkpoint = made(tmp_path)
    assert go_on(files[2:], checkpoint, stamp="other") == (None, "the checkpoint is of something else")
    assert "the checkpoint cannot be used: No such file" in str(go_on(files[2:], tmp_path / "none")[1])


def test_files_that_do_not_follow_are_refused(tmp_path):
    files, checkpoint = made(tmp_path)
    why = "a new file does not simply follow the last one"
    assert go_on(files[1:2], checkpoint) == (None, why)
    assert go_on([*files[2:], files[0]], checkpoint) == (None, why)
    assert go_on([str(DATA / "ns2" / "README.md")], checkpoint) == (None, why)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:7],
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content + b"\0",
        lambda content: b"\0" * len(content),
        lambda content: content[:8] + b"\xff" * 24 + content[32:],
        lambda content: content[:16] + struct.pack("<Q", 1 << 62) + content[24:],
    ],
)
def test_a_damaged_checkpoint_is_refused(damage, tmp_path):
    files, checkpoint = made(tmp_path)
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    assert go_on(files[2:], checkpoint) == (None, "the checkpoint is damaged")


def test_every_changed_byte_is_noticed(tmp_path):
    files, checkpoint = made(tmp_path)
    content = checkpoint.read_bytes()
    places = random.Random(1)
    for _ in range(300):
        place = places.randrange(len(content))
        changed = bytearray(content)
        changed[place] ^= 1 << places.randrange(8)
        checkpoint.write_bytes(changed)
        assert go_on(files[2:], checkpoint)[0] is None, place


def test_a_state_that_cannot_be_is_no_panic(tmp_path):
    files, checkpoint = made(tmp_path)
    content = checkpoint.read_bytes()[:-8]
    places = random.Random(1)
    refused = 0
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(places.choice([1, 1, 4, 32])):
            changed[places.randrange(40, len(content))] = places.choice([0, 1, 0x7F, 0x80, 0xFF])
        checkpoint.write_bytes(changed)
        checkpoint.write_bytes(changed + int(file_digest(str(checkpoint)), 16).to_bytes(8, "little"))
        refused += go_on(files[2:], checkpoint)[0] is None
    assert refused > 0


def test_a_single_file_and_one_without_packets_leave_no_checkpoint(tmp_path):
    files = cut(capture_of("rtp"), tmp_path, [400, 900])
    assert go_on(files[:1], None, tmp_path / "checkpoint")[1] == "files without an order cannot be saved"
    header, _ = capture_of("rtp")
    (tmp_path / "empty.pcap").write_bytes(header)
    _, why = go_on([*files[:2], tmp_path / "empty.pcap"], None, tmp_path / "checkpoint")
    assert why == "files without an order cannot be saved"


def test_a_full_disk_leaves_the_results(tmp_path):
    files = cut(capture_of("rtp"), tmp_path, [400, 900])
    analysis, why = go_on(files, None, "/dev/full")
    assert "the checkpoint cannot be used: No space left" in str(why)
    assert shown(analysis) == shown(analyse(files, SETTINGS, collect=COLLECT))
