"""Small traces as the parsers hand them over: frames of flows and bins, facts about inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from jsonschema import Draft202012Validator

from tfrctrace.parsers.schema import TABLES, polars_schema
from tfrctrace.reports.build_report import build_report
from tfrctrace.reports.page.html import render
from tfrctrace.reports.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START_NS = 1_700_000_000_000_000_000
"""2023-11-14 22:13:20 UTC."""

WIDTH_NS = 100_000_000

_FLOW = {
    "direction": "fwd",
    "transport": "tcp",
    "src": "10.0.0.1",
    "src_port": 40000,
    "dst": "10.0.0.2",
    "dst_port": 80,
    "source": "a.pcap",
    "state": "closed",
    "start_ns": START_NS,
    "end_ns": START_NS + 10**9,
    "duration_s": 1.0,
    "packets": 10,
    "wire_bytes": 10_000,
    "data_packets": 10,
    "data_segments": 10,
    "retransmitted_packets": 0,
    "retransmitted_segments": 0,
    "zero_windows": 0,
    "rtt_samples": 0,
    "ip_fragments": 0,
    "icmp_errors": 0,
}
_BIN = {
    "direction": "fwd",
    "width_ns": WIDTH_NS,
    "packets": 1,
    "wire_bytes": 1000,
    "payload_bytes": 900,
    "unique_bytes": 900,
    "retransmitted_packets": 0,
    "rtt_samples": 0,
}
_SOURCE = {
    "source": "a.pcap",
    "format": "pcap",
    "compression": "",
    "link_types": ["Ethernet"],
    "interfaces": [],
    "start_ns": START_NS,
    "end_ns": START_NS + 10**9,
    "packets": 10,
    "filtered_packets": 0,
    "tcp_packets": 10,
    "udp_packets": 0,
    "other_ip_packets": 0,
    "non_ip_packets": 0,
    "undecoded_packets": 0,
    "untracked_packets": 0,
    "repeated_packets": 0,
    "decode_stops": [],
    "out_of_order_times": 0,
    "clock_steps": [],
    "dccp_packets": 0,
    "tfrc_packets": 0,
    "lines": 0,
    "other_lines": 0,
    "bad_lines": 0,
    "wire_bytes": 10_000,
    "captured_bytes": 10_000,
}
_PROBLEM = {
    "severity": "warning",
    "kind": "truncated",
    "source": "a.pcap",
    "flows": [],
    "packet": None,
    "line": None,
    "byte": None,
    "message": "the file ends early",
    "hint": None,
    "packets_before": 10,
}


def _frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    names = [column.name for column in TABLES[table]]
    unknown = {name for row in rows for name in row} - set(names)
    assert not unknown, f"no such column: {unknown}"
    full = [tuple(row.get(name) for name in names) for row in rows]
    return pl.DataFrame(full, schema=polars_schema(table), orient="row")


@dataclass
class SmallTrace:
    """Rows that become the results of a report; what is not given has a harmless value."""

    flow_rows: list[dict[str, Any]] = field(default_factory=list)
    bin_rows: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    problems: list[dict[str, Any]] = field(default_factory=list)

    def flow(self, flow: int, **values: Any) -> SmallTrace:
        """Add one direction of a flow."""
        self.flow_rows.append(_FLOW | {"flow": flow} | values)
        return self

    def bin(self, flow: int, place: int, **values: Any) -> SmallTrace:
        """Add the bin number `place`, from 0."""
        self.bin_rows.append(_BIN | {"flow": flow, "time_ns": START_NS + place * WIDTH_NS} | values)
        return self

    def source(self, **values: Any) -> SmallTrace:
        """Add an input."""
        self.sources.append(_SOURCE | values)
        return self

    def problem(self, **values: Any) -> SmallTrace:
        """Add what went wrong with an input."""
        self.problems.append(_PROBLEM | values)
        return self

    @property
    def flows(self) -> pl.DataFrame:
        """The table of flows."""
        return _frame("flows", self.flow_rows)

    @property
    def bins(self) -> pl.DataFrame:
        """The table of bins."""
        return _frame("bins", self.bin_rows)

    def results(self, **others: Any) -> Results:
        """What `build_report` takes, with tables by name in `tables`."""
        return Results(
            flows=self.flows, bins=self.bins, sources=self.sources, problems=self.problems, **others
        )


@pytest.fixture
def small_trace() -> Callable[[], SmallTrace]:
    """Make an empty trace to add rows to."""
    return SmallTrace


@pytest.fixture
def two_flows() -> SmallTrace:
    """Two TCP flows with RTT and a retransmission, and one UDP flow, over one second."""
    return _two_flows()


@pytest.fixture(scope="session")
def page_of_two_flows() -> str:
    """The page of `two_flows`."""
    return render(build_report(_two_flows().results(), title="a trace"))


def _two_flows() -> SmallTrace:
    trace = SmallTrace().source(packets=50, wire_bytes=61_000, captured_bytes=4_800)
    rtts = {"rtt_samples": 20, "rtt_min_ms": 40.0, "rtt_p50_ms": 42.0, "rtt_p95_ms": 55.0, "rtt_max_ms": 60.0}
    back = {"direction": "rev", "src": "10.0.0.2", "src_port": 80, "dst": "10.0.0.1", "dst_port": 40000}
    trace.flow(1, wire_bytes=40_000, throughput_bps=320e3, goodput_bps=290e3, **rtts, vantage="sender")
    trace.flow(1, wire_bytes=1_000, data_packets=0, data_segments=0, **back)
    again = {"retransmitted_packets": 1, "retransmitted_segments": 1}
    trace.flow(2, wire_bytes=10_000, goodput_bps=60e3, **again, **rtts)
    of_tcp = ("state", "retransmitted_packets", "data_segments", "retransmitted_segments", "rtt_samples")
    trace.flow(3, wire_bytes=10_000, transport="udp", **dict.fromkeys(of_tcp))
    for place in range(10):
        rtt = {"rtt_samples": 2, "rtt_min_ms": 40.0, "rtt_mean_ms": 42.0 + place, "rtt_max_ms": 60.0}
        trace.bin(1, place, wire_bytes=4_000, **rtt)
        trace.bin(1, place, direction="rev", wire_bytes=100)
        if place != 5:
            trace.bin(2, place, retransmitted_packets=int(place == 4), **rtt)
        trace.bin(3, place)
    return trace


@pytest.fixture
def complaints() -> Callable[[Any, Any], Iterator[str]]:
    """Return a function that says what in a value is against a JSON schema."""
    return lambda value, schema: Draft202012Validator(schema).iter_errors(value)
