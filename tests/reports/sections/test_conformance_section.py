"""Departures from specifications on the page, with filters that tshark reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tfrctrace
from tfrctrace.reports.report_content import prepare
from tfrctrace.reports.sections.conformance import conformance_section

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Section

ROOT = Path(__file__).resolve().parents[3]
TIMERS = ROOT / "tests/data/conformance/linear-timeouts.pcap.gz"
"""Of a Linux whose timers do not double."""
BETA = ROOT / "tests/data/conformance/beta/sender.pcap.gz"
"""Of a Linux whose CUBIC halves its window."""


def section_of(trace: tfrctrace.Trace) -> Section:
    return conformance_section(prepare(trace.results()))


def texts(section: Section, table: int = 0) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in section.tables[table].rows]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is the witness")
def test_a_filter_shows_tshark_the_packets_of_a_finding() -> None:
    section = section_of(tfrctrace.open(TIMERS))
    ((*told, shown),) = texts(section)
    assert section.tables[0].rows[0].cells[0].anchor == "flow-1"
    assert told[:5] == ["1", "no backoff", "sender", "MUST", "RFC 6298 section 5.5"]
    command = ["tshark", "-n", "-r", str(TIMERS), "-T", "fields", "-e", "tcp.analysis.retransmission"]
    found = subprocess.run([*command, "-Y", shown], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["1"] * 5


def test_findings_on_a_page_are_those_of_the_trace() -> None:
    for capture in (TIMERS, BETA, ROOT / "sample_traces" / "dccp-ccid3.pcap.gz"):
        trace = tfrctrace.open(capture)
        assert trace.results().table("findings").equals(trace.findings)
        section = section_of(trace)
        times = [
            row.cells[[one.label for one in table.headings].index("Times")].text
            for table in section.tables
            for row in table.rows
        ]
        assert sum(map(int, times)) == trace.findings.height


def test_what_the_path_did_is_no_departure_of_an_end() -> None:
    """Witness: RFC 5348 section 4.4 asks the sender to halve its rate when the timer expires."""
    inputs = [ROOT / "sample_traces" / name for name in ("dumbbell.tr.xz", "dccp-ccid3.pcap.gz")]
    (table,) = section_of(tfrctrace.open(inputs)).tables
    assert table.key == "path-events"
    ((_, event, rule, times, first, packets),) = texts(section_of(tfrctrace.open(inputs)))
    assert (event, rule, times, first) == ("nofeedback timeout", "RFC 5348 section 4.4", "1", "31.0 s")
    # the lines of the other input have no numbers that Wireshark knows
    assert packets == "frame.number in {3074}"


def test_a_page_says_what_the_source_requires_and_what_was_found() -> None:
    ((*_, level, rule, found, allowed, times, _, packets),) = texts(section_of(tfrctrace.open(BETA)))
    # the kernel's beta is 512 / 1024, its CUBIC's without change 717 / 1024
    assert (level, rule, allowed, times) == ("SHOULD", "RFC 9438 section 4.6", "0.7 of the window", "4")
    share, unit = found.split(maxsplit=1)
    assert float(share) == pytest.approx(0.5, abs=0.02)
    assert unit == "of the window"
    assert packets.startswith("frame.number in {")


def test_numbers_through_joined_captures_are_no_filter() -> None:
    ((*_, packets),) = texts(section_of(tfrctrace.open(TIMERS, join=True)))
    assert packets == "14, 15, 16, 17, 18"


def test_a_sender_that_keeps_its_specification_has_no_section() -> None:
    capture = ROOT / "tests/data/conformance/doubled-timeouts.pcap.gz"
    assert not section_of(tfrctrace.open(capture)).tables


def test_large_traces_have_findings_about_windows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrctrace.report_data.gather_results._MOST_PACKETS", 0)
    assert not section_of(tfrctrace.open(TIMERS)).tables
    assert len(texts(section_of(tfrctrace.open(BETA)))) == 1


def test_a_page_names_the_same_congestion_control_as_why() -> None:
    for capture in sorted((ROOT / "tests/data/congestion_controls").glob("*/sender.pcap.gz"))[:3]:
        trace = tfrctrace.open(capture)
        controls = trace.results().named_controls
        assert controls is not None
        assert controls.equals(trace.named_controls)
