"""What TCP agents of ns-2 repeated, and why, against the simulator's own lines of the same trace.

An agent writes an event line at each timeout (`eventtrace-all`); what arrived of what it sent is in the lines
of the links.
"""

import lzma
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tfrctrace

TRACE = Path(__file__).resolve().parent.parent.parent / "data" / "ns2" / "timeouts.tr.xz"
FLOW_IDS = (1, 2, 3)
"""Reno, NewReno with delayed acknowledgements, and Sack1."""


@dataclass
class Agent:
    """What the simulator shows of one TCP sender."""

    highest: int = -1
    timer_ran_out: str = ""
    timeouts: int = 0
    sent: list[tuple[str, int]] = field(default_factory=list)
    """Identifier and sequence number of each data packet."""
    arrived: set[str] = field(default_factory=set)

    def take_sent(self, time: str, identifier: str, number: int) -> None:
        if self.timer_ran_out == time and number <= self.highest:
            self.timeouts += 1
        self.timer_ran_out = ""
        self.sent.append((identifier, number))
        self.highest = max(self.highest, number)

    @property
    def lost(self) -> int:
        return sum(identifier not in self.arrived for identifier, _ in self.sent)

    @property
    def needless(self) -> int:
        """Packets that had arrived, or did in the end, by an earlier sending."""
        carried = defaultdict[int, bool](bool)
        count = 0
        for identifier, number in self.sent:
            count += carried[number]
            carried[number] |= identifier in self.arrived
        return count


@pytest.fixture(scope="module")
def agents() -> dict[int, Agent]:
    found = {number: Agent() for number in FLOW_IDS}
    for line in lzma.decompress(TRACE.read_bytes()).decode().splitlines():
        words = line.split()
        if words[0] == "E":
            if words[5] == "TIMEOUT":
                found[int(words[6])].timer_ran_out = words[1]
            continue
        event, time, here, there, kind, *_, flow, source, destination, number, identifier = words
        if kind != "tcp":
            continue
        if event == "+" and here == source.split(".")[0]:
            found[int(flow)].take_sent(time, identifier, int(number))
        elif event == "r" and there == destination.split(".")[0]:
            found[int(flow)].arrived.add(identifier)
    return found


@pytest.fixture(scope="module")
def rows() -> dict[int, dict[str, Any]]:
    flows = tfrctrace.open(TRACE).flows.to_dicts()
    return {row["flow_id"]: row for row in flows if row["agent"] == "tcp"}


@pytest.mark.parametrize("flow", FLOW_IDS)
def test_each_timeout_of_an_agent_is_found(agents, rows, flow):
    assert rows[flow]["timeouts"] == agents[flow].timeouts > 0


@pytest.mark.parametrize("flow", FLOW_IDS)
def test_losses_are_those_that_the_trace_shows(agents, rows, flow):
    assert rows[flow]["lost_behind_capture"] == agents[flow].lost > 0
    assert 0 < rows[flow]["loss_events"] <= agents[flow].lost


@pytest.mark.parametrize("flow", FLOW_IDS)
def test_what_had_arrived_was_sent_again_for_nothing(agents, rows, flow):
    assert rows[flow]["spurious_retransmissions"] == agents[flow].needless


def test_some_agents_sent_what_had_arrived(agents):
    assert sum(agent.needless for agent in agents.values()) > 10


@pytest.mark.parametrize("flow", FLOW_IDS)
def test_a_row_of_both_ends_has_no_note_on_where_the_capture_was_taken(rows, flow):
    assert rows[flow]["vantage"] == "both"
    assert "captured at" not in (rows[flow]["notes"] or "")
