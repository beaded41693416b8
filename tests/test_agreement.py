"""Fields of tcptrace and tshark are our columns, or differ for a reason that `docs/validation.md` names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from compare_fields import table, tallies
from scapy.layers.inet import IP, TCP, fragment
from scapy.packet import Raw
from scapy.utils import wrpcap

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


def test_a_later_fragment_announces_no_window(tmp_path: Path) -> None:
    """It has no header: what tshark takes from the others is what the sender announced."""
    client, server = IP(src="192.0.2.1", dst="192.0.2.2"), IP(src="192.0.2.2", dst="192.0.2.1")
    there, back = {"sport": 4000, "dport": 80}, {"sport": 80, "dport": 4000}
    scale = [("WScale", 8)]
    packets = [
        client / TCP(**there, seq=1, flags="S", window=8192, options=scale),
        server / TCP(**back, seq=1, ack=2, flags="SA", window=8192, options=scale),
        client / TCP(**there, seq=2, ack=2, flags="A", window=256),
        server / TCP(**back, seq=2, ack=2, flags="A", window=252),
        *fragment(
            server / TCP(**back, seq=2, ack=2, flags="A", window=252) / Raw(bytes(4000)), fragsize=1480
        ),
        client / TCP(**there, seq=2, ack=4002, flags="A", window=250),
    ]
    path = tmp_path / "fragments.pcap"
    wrpcap(str(path), packets)
    found = tallies([path])
    largest = found["tshark", "window_size (largest)", "receive_window_max_bytes"]
    assert (largest.compared, largest.equal) == (2, 2)
