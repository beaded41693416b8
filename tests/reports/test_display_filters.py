"""Display filters show tshark the packets that the table of flows counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tfrctrace
from tfrctrace.metrics.flow.first_losses import MOST_FRAMES
from tfrctrace.report_data.gather_results import gather_results
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.display_filters import display_filter
from tfrctrace.reports.flow_rows import FlowRow
from tfrctrace.reports.records import records
from tfrctrace.reports.units import MISSING

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


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is the witness")
def test_frames_of_a_class_are_those_that_repeat_data_for_tshark() -> None:
    capture = ROOT / "tests/data/captures/linux-relay-loss-snd.pcap.gz"
    report = build_report(gather_results(tfrctrace.open(capture)), title="losses")
    known = [one for flow in report.details for one in flow.known if one.name.endswith(" frames")]
    filters = [value for one in known for value in one.values if value != MISSING]
    found = [frames(capture, one) for one in filters]
    # what tshark divides by time is one thing here
    theirs = frames(capture, "(tcp.analysis.retransmission || tcp.analysis.out_of_order) && tcp.len > 0")
    assert set().union(*found) < theirs
    # 21 of one class, of which the last is not shown, and 5 of another: the kernel counts 26
    assert sorted(map(len, found)) == [5, MOST_FRAMES]
    assert len(theirs) == 26


def test_numbers_through_joined_captures_are_no_frames() -> None:
    capture = ROOT / "tests/data/captures/linux-relay-loss-snd.pcap.gz"
    assert gather_results(tfrctrace.open(capture, join=True)).first_losses is None


def frames(capture: Path, shown: str) -> set[int]:
    """Return the numbers of the packets that tshark shows."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", shown, "-T", "fields", "-e", "frame.number"]
    return set(map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))
