"""Display filters show tshark the packets that the table of flows counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.reports.display_filters import display_filter
from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.records import records

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is the witness")
@pytest.mark.parametrize(
    "name",
    [
        "sample_traces/two-flows.pcapng.gz",
        "tests/data/captures/linux-ipv6-rcv.pcapng.gz",
        "tests/data/captures/linux-udp-vs-tcp-rcv.pcap.gz",
    ],
)
def test_tshark_finds_as_many_packets(name: str) -> None:
    rows = records(tfrctrace.open(ROOT / name).flows, FlowRow)
    assert rows
    for row in rows[:4]:
        shown = display_filter(row)
        assert shown is not None
        command = ["tshark", "-n", "-r", str(ROOT / name), "-Y", shown]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(found) == row.packets


def test_a_simulation_has_none() -> None:
    for row in records(tfrctrace.open(ROOT / "sample_traces/dumbbell.tr.xz").flows, FlowRow):
        assert display_filter(row) is None
