"""Timeouts inside a recovery, against the congestion state of ns-3's socket and the kernel's own stacks."""

from collections import Counter
from pathlib import Path

import pytest
from corpus_case import CorpusCase
from labels import labelled
from programs import ask_tfrctrace

import tfrctrace

CASES = Path(__file__).resolve().parent.parent.parent / "data" / "timeouts"
NAMES = ("ns3-timeout-among-sacks", "queue-far-no-sack")
RETRANSMISSIONS = ("fast_retransmission", "sack_retransmission", "rto_retransmission")


@pytest.mark.parametrize("name", NAMES)
def test_each_retransmission_has_the_cause_that_its_sender_had(name: str, tmp_path: Path) -> None:
    case = CorpusCase(name, CASES)
    capture = case.unpack("snd", tmp_path)
    called = ask_tfrctrace(capture)
    counts = Counter(
        (packet.kind, called[packet.number].name)
        for packet in labelled(case, "snd", capture)
        if packet.place == "sender" and packet.kind in RETRANSMISSIONS
    )
    assert {kind: name for kind, name in counts if kind != name} == {}
    assert counts["rto_retransmission", "rto_retransmission"] >= 30


def test_timeouts_are_those_that_the_kernel_counted(tmp_path: Path) -> None:
    case = CorpusCase("queue-far-no-sack", CASES)
    [row] = [
        row
        for row in tfrctrace.open(case.unpack("snd", tmp_path)).flows.to_dicts()
        if row["dst_port"] == case.about["server_port"]
    ]
    assert row["timeouts"] == case.counters["snd"]["TcpExtTCPTimeouts"]


def test_a_repaired_segment_is_repeated_by_the_timer_if_its_acknowledgement_was_lost() -> None:
    flows = tfrctrace.open(CASES / "linux-acks-lost-behind.pcap.gz").flows
    [row] = [row for row in flows.to_dicts() if row["dst_port"] == 5000]
    # the sender's kernel counted 4 TcpExtTCPTimeouts
    assert (row["timeouts"], row["tail_loss_probes"]) == (4, 0)
