"""Captures of very many small flows: memory of each command by what it shows."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

PCAP_HEADER = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
FEW = 500

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports a high-water mark"),
]


def datagrams(flows):
    """Give a datagram of each of many hosts."""
    for flow in range(flows):
        yield flow, 40_000, bytes(8)


def rtp(flows):
    """Give eight packets of each of many RTP sources."""
    for flow in range(flows):
        for turn in range(8):
            yield flow, 5_004, struct.pack(">BBHII", 0x80, 0, turn, 160 * turn, flow)


def write_flood(path, packets):
    with open(path, "wb") as file:
        file.write(PCAP_HEADER)
        for number, (flow, port, payload) in enumerate(packets):
            udp = struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload
            head = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 0x0A000001 + flow, 1)
            frame = bytes(12) + b"\x08\x00" + head + udp
            time = (1_700_000_000 + number // 100_000, 10 * (number % 100_000))
            file.write(struct.pack("<IIII", *time, len(frame), len(frame)) + frame)
    return path


def peak_mb(folder, command, trace):
    """Return the high-water mark of a command: ru_maxrss begins with that of the process that forked it."""
    script = (
        "import re, sys; from tfrctrace.cli import run\n"
        "status = run(sys.argv[1:])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command, trace],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1]) / 1024


@pytest.mark.parametrize(
    ("make", "flows", "command", "most_mb"),
    [
        (datagrams, 50_000, ["metrics"], 70),
        (datagrams, 50_000, ["report", "-o", "report.html"], 50),
        (rtp, 20_000, ["flows"], 75),
        (datagrams, 50_000, ["audit", "-o", "audit", "-j", "1"], 150),
    ],
    ids=["metrics", "report", "rtp", "audit"],
)
def test_memory_grows_little_with_flows(tmp_path, make, flows, command, most_mb):
    few = write_flood(tmp_path / "few.pcap", make(FEW))
    many = write_flood(tmp_path / "many.pcap", make(flows))
    assert peak_mb(tmp_path, command, many) - peak_mb(tmp_path, command, few) < most_mb
