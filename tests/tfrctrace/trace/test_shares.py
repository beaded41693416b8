"""A part never exceeds its whole: in every table, of every capture and trace here, whole or cut anywhere."""

from __future__ import annotations

import gzip
import itertools
import struct
import tarfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.metrics.link import link_tables
from tfrctrace.parsers.schema import TABLES

DATA = Path(__file__).parents[2] / "data"
CAPTURES = DATA / "captures"
SAMPLES = DATA.parents[1] / "sample_traces"

GROUPS = {
    "data_packets": "packets",
    "cut_packets": "packets",
    "tcp_packets": "packets",
    "ect_packets": "packets",
    # ns-2's SYN has the number of a packet, and no payload
    "retransmitted_packets": "tcp_data_segments",
    "retransmitted_segments": "tcp_data_segments",
    "retransmitted_bytes": "payload_bytes",
    "goodput_bytes": "payload_bytes",
    "lost_before_capture": "arrivals_shown",
    "reordered_packets": "arrivals_shown",
    "lost_behind_capture": "losses_shown",
    "losses_shown": "tcp_data_segments",
    "zero_windows": "tcp_packets",
    "ce_packets": "ect_packets",
    "connections_established": "connection_attempts",
    "connections_refused": "connection_attempts",
    "connections_unanswered": "connection_attempts",
    "requests_unanswered": "requests",
    "large_stalls": "stalls",
    "large_holes": "tcp_packets",
    "dns_failures": "dns_queries",
    "dns_unanswered": "dns_queries",
    "echo_unanswered": "echo_requests",
    "path_lost_packets": "path_packets",
    "wifi_retry_frames": "wifi_frames",
}
FLOWS = {
    "data_packets": "packets",
    "retransmitted_packets": "data_segments",
    "retransmitted_segments": "data_segments",
    "super_segments": "data_packets",
    "lost_behind_capture": "data_segments",
    "unique_bytes": "payload_bytes",
    "retransmitted_bytes": "payload_bytes",
    "dropped_packets": "sent_packets",
    "received_packets": "sent_packets",
    "lost_packets": "sent_packets",
    "reported_lost_packets": "reported_expected_packets",
}
LINK = {
    "lost_segments": "sent_segments",
    "retransmitted_segments": "tcp_data_segments",
    "failed_connections": "connection_attempts",
}
PARTS = {
    "groups": GROUPS,
    "flows": FLOWS,
    "bins": {"retransmitted_packets": "packets"},
    "rtp_sources": {"lost_packets": "sent_packets"},
    "hops": {
        "arrived_packets": "packets",
        "lost_packets": "packets",
        "in_flight_packets": "packets",
        "missed_packets": "arrived_packets",
    },
}
"""Of each table, columns that are a part of another one."""

METRICS = ("goodput_share", "drop_ratio", "retransmission_ratio", "timeout_share")

SHARES = {
    table: [
        column.name
        for column in columns
        if column.name in {"pdr", "plr", "reported_plr", "loss_event_rate"}
        or column.name.endswith(("_ratio", "_share"))
        # more than was promised is good news, and an acknowledgement is of several segments
        if column.name not in {"promised_share", "delayed_ack_ratio"}
    ]
    for table, columns in TABLES.items()
}


@cache
def files() -> list[Path]:
    found = [
        *CAPTURES.iterdir(),
        *(DATA / "offload").glob("*.pcap*"),
        *(DATA / "pair").glob("*.pcap*"),
        *(DATA / "rtp").glob("*.pcap*"),
        *(DATA / "wifi").glob("*.pcap*"),
        *(DATA / "ns2").glob("*.tr.*"),
        *(DATA / "ns3").glob("*.tr.*"),
        *(path for path in SAMPLES.glob("*.*") if ".pcap" in path.name or ".tr." in path.name),
    ]
    return sorted(path for path in found if "zero-bytes" not in path.name)


def opened(*paths: Path, **options: Any) -> tfrctrace.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = tfrctrace.open(paths, **options)
        assert trace.flows is not None
        return trace


def check(frame: pl.DataFrame, parts: dict[str, str], shares: list[str], where: str) -> None:
    wrong = {
        f"{part} of {whole}": pl.col(part) > pl.col(whole)
        for part, whole in parts.items()
        if part in frame.columns and whole in frame.columns
    }
    wrong |= {share: ~pl.col(share).is_between(0, 1) for share in set(shares) & set(frame.columns)}
    # all in one query: a frame has a hundred of them
    for found in frame.select(**{name: is_wrong.any() for name, is_wrong in wrong.items()}).to_dicts():
        for name in [name for name, is_found in found.items() if is_found]:
            columns = wrong[name].meta.root_names()
            raise AssertionError(f"{where}: {name}: {frame.filter(wrong[name]).select(columns).rows()[:5]}")


def check_trace(
    trace: tfrctrace.Trace,
    where: str,
    widths: tuple[str | None, ...] = (None, "100ms"),
    *,
    is_cut: bool = False,
) -> None:
    for by, every in itertools.product(("host", "flow", "link"), widths):
        groups = trace.groups(by, every)
        check(groups.rows, GROUPS, SHARES["groups"], f"{where} by {by} every {every}")
        if by == "host":
            check(groups.in_total().rows, GROUPS, SHARES["groups"], f"{where} in total")
            link = link_tables(groups)
            for name in ("sides", "course", "hosts", "host_course"):
                check(getattr(link, name), LINK, [], f"{where}: {name} of the link every {every}")
    for table in ("flows", "bins", "rtp_sources"):
        frame = trace.table(table).frame(None)
        if is_cut:
            # of the packets that arrive some were sent before, which `pdr` leaves out
            frame = frame.drop("received_packets", strict=False)
        check(frame, PARTS[table], SHARES[table], f"{where}: {table}")


def check_metrics(trace: tfrctrace.Trace, where: str) -> None:
    check(trace.metrics(*METRICS).rename({"value": "share"}), {}, ["share"], f"{where}: metrics")


def cut(capture: Path, folder: Path, records: int) -> Path:
    """Write the first records of a capture."""
    content = gzip.decompress(capture.read_bytes())
    at = 24
    for _ in range(records):
        if at >= len(content):
            break
        at += 16 + struct.unpack_from("<I", content, at + 8)[0]
    path = folder / "cut.pcap"
    path.write_bytes(content[:at])
    return path


@pytest.mark.slow
def test_no_share_of_any_trace_is_above_its_whole():
    for path in files():
        trace = opened(path)
        check_trace(trace, path.name)
        check_metrics(trace, path.name)


@pytest.mark.slow
def test_no_share_of_the_corpus_is_above_its_whole(tmp_path):
    for archive in sorted((DATA / "corpus").glob("*.tar.xz")):
        with tarfile.open(archive) as content:
            names = [name for name in content.getnames() if name.endswith(".pcap")]
            content.extractall(tmp_path / archive.name, names, filter="data")
        # one trace of all places: rows of flows and of groups by flow are those of one capture each
        check_trace(opened(*(tmp_path / archive.name / name for name in names)), archive.name, ("20ms",))


LOSSY = (
    "../offload/losses-snd.pcap.gz",
    "linux-one-cubic-rcv.pcap.gz",
    "linux-relay-loss-snd.pcap.gz",
    "linux-one-reno-offload-on-snd.pcap.gz",
    "linux-udp-vs-tcp-rcv.pcap.gz",
)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(LOSSY), st.integers(20, 2_000), st.sampled_from([None, "10ms", "1s"]))
def test_no_share_of_a_capture_that_ends_anywhere_is_above_its_whole(tmp_path_factory, name, records, every):
    path = cut(CAPTURES / name, tmp_path_factory.mktemp("cut"), records)
    check_trace(opened(path), f"{name}, {records} records", (every,))


CUT_INSIDE = (
    *LOSSY,
    "../ns2/tcp-agents.tr.xz",
    "../ns2/timeouts.tr.xz",
    "../ns2/wired-mix.tr.xz",
    "../ns2/shares-lossy.tr.xz",
    "../ns3/p2p-newreno.tr.xz",
    "../rtp/gstreamer-receiver.pcap.gz",
)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(CUT_INSIDE), st.integers(1, 3_000), st.integers(1, 3_000))
@example("../ns2/tcp-agents.tr.xz", 250, 100_000)
def test_no_share_of_a_stretch_of_time_is_above_its_whole(name, since_ms, lasting_ms):
    trace = opened(CAPTURES / name, since=f"{since_ms}ms", until=f"{since_ms + lasting_ms}ms")
    check_trace(trace, f"{name} from {since_ms} ms for {lasting_ms} ms", (None,), is_cut=True)
    check_metrics(trace, name)


@pytest.mark.parametrize("topology", ["chain", "tree"])
def test_no_share_of_a_hop_is_above_its_whole(topology):
    trace = opened(*sorted((DATA / "network" / topology).glob("*.pcap.xz")), pair=True)
    check(trace.hops, PARTS["hops"], SHARES["hops"], topology)
    check_trace(trace, topology, (None,))
