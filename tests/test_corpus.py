"""The labels of the corpus agree with what kernels, relay and simulator counted of the same run.

`evaluation/corpus` makes the corpus; `docs/classes-measured.md` shows what programs make of it.
"""

from collections import Counter
from typing import Any

import pytest
from corpus_case import all_cases

MSS = 1460
SERVER_PORT = 42424
HOSTS = ("snd", "rcv")

CASES = {case.name: case for case in all_cases()}
COUNTERS = {name: case.counters for name, case in CASES.items()}
LINUX = [name for name, counted in COUNTERS.items() if "snd" in counted]
RELAYED = [name for name in LINUX if "relay" in COUNTERS[name]]


def sent_by(name: str, host: str) -> list[dict[str, Any]]:
    """Rows of what a host sent, from the capture at it."""
    rows = [row for row in CASES[name].truth if row["tap"] == host]
    return [row for row in rows if (int(row["sport"]) == SERVER_PORT) == (host == "rcv")]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", LINUX)
def test_each_retransmission_of_the_kernel_has_a_label(name: str, host: str) -> None:
    again = [row for row in sent_by(name, host) if row["cause"]]
    segments = sum(max(1, -(-int(row["payload"]) // MSS)) for row in again)
    assert segments == COUNTERS[name][host].get("TcpRetransSegs", 0)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", LINUX)
def test_each_probe_of_the_kernel_has_a_label(name: str, host: str) -> None:
    kinds = Counter(row["kind"] for row in sent_by(name, host))
    counted = COUNTERS[name][host]
    assert kinds["keep_alive"] == counted.get("TcpExtTCPKeepAlive", 0)
    assert kinds["zero_window_probe"] == counted.get("TcpExtTCPWinProbe", 0)
    # a tail loss probe may be of new data, or of a FIN
    assert kinds["tail_loss_probe"] <= counted.get("TcpExtTCPLossProbes", 0)


@pytest.mark.parametrize("name", RELAYED)
def test_what_did_not_arrive_was_dropped_by_the_relay(name: str) -> None:
    counted = COUNTERS[name]
    lost = sum(counted["lost"].values())
    dropped = counted["relay"].get("drop", 0) + counted["relay"].get("outage", 0)
    # in these cases acknowledgements were dropped too
    too_many = any(word in name for word in ("ack", "outage", "window", "storm"))
    assert lost <= dropped if too_many else lost == dropped


@pytest.mark.parametrize("name", sorted(set(COUNTERS) - set(LINUX)))
def test_what_did_not_arrive_was_dropped_by_the_simulator(name: str) -> None:
    counted = COUNTERS[name]
    dropped = counted["simulator"]["dropped"]
    lost = sum(counted["lost"].values())
    assert (
        lost <= dropped
        if name in {"ns3-ack-loss", "ns3-random-heavy", "ns2-sack-ack-loss", "ns2-reno-random"}
        else lost == dropped
    )
