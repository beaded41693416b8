"""Why TCP repeated, against the counters of the kernels that did it, and the relay that lost nothing."""

from __future__ import annotations

import gzip
import json
import struct
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrctrace

DATA = Path(__file__).resolve().parent.parent.parent / "data"
CAPTURES = DATA / "captures"
KERNELS: list[dict[str, Any]] = json.loads((DATA / "kernel.json").read_text())

RETRANSMISSIONS = [
    "fast_retransmissions",
    "sack_retransmissions",
    "rto_retransmissions",
    "tail_loss_probes",
    "unexplained_retransmissions",
]

Row = dict[str, Any]


def flows_of(capture: str, **options: Any) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows: list[Row] = tfrctrace.open(CAPTURES / capture, **options).flows.to_dicts()
    return [row for row in rows if row["transport"] == "tcp"]


def total(rows: list[Row], *columns: str) -> int:
    """Sum columns; what cannot be seen in one direction is seen in the other."""
    return sum(row[column] or 0 for row in rows for column in columns)


def main_flow(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: row["payload_bytes"])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel["capture"]))
def test_classes_at_the_sender_are_the_kernels(kernel: Row) -> None:
    sender = kernel["sender"]
    # What the other host sends belongs to its own counters.
    rows = [row for row in flows_of(kernel["capture"]) if row["vantage"] == "sender"]
    assert total(rows, "fast_retransmissions", "sack_retransmissions") == sender["fast_retransmits"]
    timeouts = sender["timeouts"] - sender["syn_retransmits"]
    assert total(rows, "timeouts") == timeouts
    assert total(rows, "rto_retransmissions") == sender["slow_start_retransmits"] + timeouts
    assert total(rows, "syn_retransmissions") == sender["syn_retransmits"]
    assert total(rows, "zero_window_probes") == sender["window_probes"]
    # The rest are probes, which the kernel counts together with those that carry new data; and FIN.
    repeated = total(rows, *RETRANSMISSIONS, "syn_retransmissions", "fin_retransmissions")
    assert repeated == sender["retransmitted_segments"]
    assert total(rows, "retransmitted_segments") == total(rows, *RETRANSMISSIONS)
    assert total(rows, "unexplained_retransmissions") == 0


def test_shares_at_a_sender_with_offload_are_those_of_the_kernel() -> None:
    kernel = json.loads((DATA / "offload" / "counters.json").read_text())
    sent, again = kernel["tcp_info"]["data_segs_out"], kernel["nstat"]["TcpRetransSegs"]
    trace = tfrctrace.open(DATA / "offload" / "losses-snd.pcap.gz")
    row = main_flow(trace.flows.to_dicts())
    assert (row["data_packets"], row["retransmitted_packets"]) == (279, 86)
    assert (row["data_segments"], row["retransmitted_segments"]) == (sent, again) == (2214, 142)
    (group,) = trace.groups("link").rows.filter(direction=row["direction"]).to_dicts()
    assert (group["lost_behind_capture"], group["losses_shown"]) == (again, sent)
    assert group["retransmission_ratio"] == pytest.approx(again / sent)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel["capture"]))
def test_what_the_receiver_reports_twice_was_not_needed(kernel: Row) -> None:
    rows = [row for row in flows_of(kernel["capture"]) if row["vantage"] == "sender"]
    assert total(rows, "spurious_retransmissions") == kernel["sender"]["d_sack_segments"]


@pytest.mark.parametrize("end", ["snd", "rcv"])
def test_reordering_alone_is_no_loss(end: str) -> None:
    row = main_flow(flows_of(f"linux-relay-reorder-noloss-{end}.pcap.gz"))
    assert (
        total([row], "lost_before_capture", "lost_behind_capture", "missing_bytes", "capture_gap_bytes") == 0
    )
    assert (row["loss_events"], row["loss_event_rate"]) == (0, 0.0)
    # What the relay wrote down: 21 held back so that others overtook them, 4 sent twice.
    seen = {"snd": (None, 0), "rcv": (21, 4)}[end]
    assert (row["reordered_packets"], row["network_duplicates"]) == seen


def test_a_router_that_shows_each_packet_twice_has_the_classes_of_the_sender() -> None:
    router = main_flow(flows_of("linux-cooked-any-rtr-sll2.pcap.gz"))
    sender = main_flow(flows_of("linux-cooked-any-snd-sll1.pcap.gz"))
    for column in [
        *RETRANSMISSIONS,
        "retransmitted_packets",
        "unique_bytes",
        "lost_behind_capture",
        "data_segments",
        "packets",
        "payload_bytes",
    ]:
        assert router[column] == sender[column], column
    # what the router's queue dropped it shows once: `tc -s qdisc` counted 22
    assert router["packets"] - router["capture_duplicates"] == 22
    assert (router["vantage"], sender["vantage"]) == ("middle", "sender")


def test_without_a_syn_long_segments_show_how_many_packets_they_were(tmp_path: Path) -> None:
    name = "linux-one-reno-offload-on-snd.pcap.gz"
    whole = main_flow(flows_of(name))
    content = gzip.decompress((CAPTURES / name).read_bytes())
    kept, at = bytearray(content[:24]), 24
    while at < len(content):
        (captured,) = struct.unpack_from("<I", content, at + 8)
        record = content[at : at + 16 + captured]
        # Ethernet and IPv4 without options: the flags of TCP stand at 47
        is_syn = len(record) > 16 + 47 and record[16 + 47] & 0x02
        kept += b"" if is_syn else record
        at += len(record)
    (tmp_path / "midstream.pcap").write_bytes(kept)
    row = main_flow(tfrctrace.open(tmp_path / "midstream.pcap").flows.to_dicts())
    assert row["super_segments"] == whole["super_segments"] > 0
    assert row["data_segments"] == whole["data_segments"]


@pytest.mark.parametrize(
    ("capture", "vantage"),
    [
        ("linux-one-cubic-snd.pcap.gz", "sender"),
        ("linux-one-cubic-rcv.pcap.gz", "receiver"),
        ("linux-ipv6-snd.pcap.gz", "sender"),
        ("linux-ipv6-rcv.pcapng.gz", "receiver"),
        ("linux-midstream-snd.pcap.gz", "sender"),
        ("linux-relay-loss-snd.pcap.gz", "sender"),
        ("linux-relay-reorder-noloss-rcv.pcap.gz", "receiver"),
        ("linux-udp-vs-tcp-rcv.pcap.gz", "receiver"),
    ],
)
def test_where_a_capture_was_taken_shows_in_it(capture: str, vantage: str) -> None:
    row = main_flow(flows_of(capture))
    assert row["vantage"] == vantage
    assert 0.75 <= row["vantage_confidence"] <= 1
    unseen = {"sender": ["reordered_packets", "lost_before_capture"], "receiver": RETRANSMISSIONS}[vantage]
    assert all(row[column] is None for column in unseen)


def test_the_user_may_say_where_it_was_taken() -> None:
    row = main_flow(flows_of("linux-one-cubic-rcv.pcap.gz", vantage="middle"))
    assert (row["vantage"], row["vantage_confidence"]) == ("middle", 1.0)
    assert row["fast_retransmissions"] is not None
    with pytest.raises(tfrctrace.UsageError):
        tfrctrace.open(CAPTURES / "linux-one-cubic-rcv.pcap.gz", vantage="here")


def test_samples_have_the_classes_that_are_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = tfrctrace.open(CAPTURES / "linux-one-cubic-snd.pcap.gz")
        losses, flows = trace.losses.to_dicts(), trace.flows.to_dicts()
    names = {"fast_retransmission": "fast_retransmissions", "tail_loss_probe": "tail_loss_probes"}
    for name, column in names.items():
        assert sum(row["class"] == name for row in losses) == total(flows, column) > 0
    assert [row["spurious"] for row in losses if row["class"] == "tail_loss_probe"] == ["d_sack"]
