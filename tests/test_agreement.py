"""Fields of tcptrace and tshark are our columns, or differ for a reason that `docs/validation.md` names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from compare_fields import table, tallies

DATA = Path(__file__).parent / "data"
CAPTURES = [
    *(
        DATA / "captures" / f"{name}.pcap.gz"
        for name in (
            "linux-relay-loss-snd",
            "linux-small-flows-snd",
            "linux-ipv6-snd",
            "ns3-csma-red-veno-0-1",
        )
    ),
    DATA / "captures" / "variant-same.pcapng.gz",
    DATA / "rtp" / "gstreamer-receiver.pcap.gz",
    DATA / "quic" / "aioquic.pcap.gz",
]

pytestmark = pytest.mark.skipif(
    not all(shutil.which(peer) for peer in ("tcptrace", "tshark")),
    reason="tcptrace or tshark is not installed",
)


def test_fields_of_peers_are_our_columns_or_differ_by_definition() -> None:
    found = tallies(CAPTURES)
    assert {name for _, name, _ in found} >= {
        *("rexmt_data_bytes", "RTT_stdev", "min_win_adv", "initial_window_bytes", "ack_rtt", "window_full"),
        *("RTP lost", "RTP jitter (within min and max)", "extensions_server_name"),
    }
    assert [difference for tally in found.values() for difference in tally.differing] == []
    for (_, name, _), tally in found.items():
        assert tally.compared == tally.equal + tally.reasons.total(), name
        assert tally.equal > 0, name
    assert "the sum is equal" in table(found)
