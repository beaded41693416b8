"""Every field of `tcptrace -l` is one of our columns, or stands in `docs/tcptrace.md` with the reason.

tcptrace is asked where it is installed; where it is right to count differently, that is named here.
"""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from corpus_case import CorpusCase

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DATA = ROOT / "tests" / "data"

Row = dict[str, Any]
EQUAL = {
    "total_packets": "packets",
    "resets_sent": "rst_packets",
    "ack_pkts_sent": "ack_packets",
    "pure_acks_sent": "pure_acks",
    "sack_pkts_sent": "sack_packets",
    "dsack_pkts_sent": "dsack_packets",
    "max_sack_blks/ack": "max_sack_blocks",
    "unique_bytes_sent": "unique_bytes",
    "actual_data_pkts": "data_packets",
    "actual_data_bytes": "payload_bytes",
    "pushed_data_pkts": "pushed_packets",
    "adv_wind_scale": "window_scale",
    "sacks_sent": "sack_packets",
    "urgent_data_pkts": "urgent_packets",
    "mss_requested": "mss",
    "max_segm_size": "max_segment_bytes",
    "min_segm_size": "min_segment_bytes",
    "avg_segm_size": "mean_segment_bytes",
    "max_win_adv": "receive_window_max_bytes",
    "min_win_adv": "receive_window_min_bytes",
    "zero_win_adv": "zero_windows",
    "initial_window_bytes": "initial_window_bytes",
    "initial_window_pkts": "initial_window_packets",
    "ttl_stream_length": "stream_bytes",
    "missed_data": "missed_bytes",
    "truncated_data": "truncated_bytes",
    "truncated_packets": "truncated_packets",
    "data_xmit_time": "data_time_s",
    "idletime_max": "gap_max_ms",
    "RTT_from_3WHS": "syn_rtt_ms",
    "post-loss_acks": "post_loss_acks",
    "ambiguous_acks": "ambiguous_acks",
    "RTT_min_(last)": "ambiguous_rtt_min_ms",
    "RTT_max_(last)": "ambiguous_rtt_max_ms",
    "RTT_avg_(last)": "ambiguous_rtt_mean_ms",
    "RTT_sdv_(last)": "ambiguous_rtt_std_ms",
    "segs_cum_acked": "cumulative_acks",
    "max_#_retrans": "max_retransmissions",
    "min_retr_time": "retransmission_min_ms",
    "max_retr_time": "retransmission_max_ms",
    "avg_retr_time": "retransmission_mean_ms",
    "sdv_retr_time": "retransmission_std_ms",
}
"""Fields that are one of our columns, in every capture but those of `DIFFERENT`."""

# every packet twice, in another order, or with a clock that goes back: what depends on order means little
DISORDERED = ("variant-every-packet-twice", "variant-swapped-order", "variant-clock-step-back")
# no window scale: tcptrace gives the number as it stands, we say that it is not known
NO_SCALE = ("linux-midstream", "variant-snap54")

# single precision in tcptrace's sums of times
LOST_DIGITS = 2e-4

DIFFERENT = {
    # the snap length cuts SACK blocks in half, and tcptrace leaves those packets out
    "sack_pkts_sent": ("variant-vlan",),
    "sacks_sent": ("variant-vlan",),
    "max_sack_blks/ack": ("variant-vlan",),
    # blocks on either side of the wrap of the numbers; the kernel counted no D-SACK
    "dsack_pkts_sent": ("linux-seq-wrap",),
    # the same wrap divides a segment for tcptrace
    "segs_cum_acked": ("linux-seq-wrap", *DISORDERED),
    "max_win_adv": (*NO_SCALE, *DISORDERED),
    "min_win_adv": (*NO_SCALE, *DISORDERED),
    "initial_window_bytes": ("linux-midstream", *DISORDERED),
    "initial_window_pkts": ("linux-midstream", *DISORDERED),
    # options that were cut are no payload
    "truncated_data": ("variant-vlan", "variant-snap54"),
    "data_xmit_time": DISORDERED,
    "idletime_max": DISORDERED,
    # tcptrace takes a network duplicate of what was acknowledged for the segment
    "post-loss_acks": ("linux-relay-reorder-noloss-rcv", *DISORDERED),
    "ambiguous_acks": ("linux-relay-reorder-noloss-rcv", *DISORDERED),
    "adv_wind_scale": DISORDERED,
    **dict.fromkeys(
        ("RTT_min_(last)", "RTT_max_(last)", "RTT_avg_(last)", "RTT_sdv_(last)"),
        ("linux-relay-reorder-noloss-rcv", *DISORDERED),
    ),
}


@pytest.fixture(scope="module")
def witness(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(DATA / "witness.py")


def captures() -> list[Path]:
    expected = {path: json.loads(path.read_text()) for path in sorted((DATA / "expected").iterdir())}
    return [
        DATA / "captures" / path.name.removesuffix(".json")
        for path, reported in expected.items()
        if reported["tcptrace"] and "snap40" not in path.name
    ]


@pytest.fixture(scope="module")
def pairs(witness: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Row, Row, Row]]:
    """Capture, our row, that of the other direction, and tcptrace's."""
    if shutil.which("tcptrace") is None:
        pytest.skip("tcptrace is not installed")
    found = []
    for capture in captures():
        path = witness.unpack(capture, tmp_path_factory.mktemp("unpacked"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TfrctraceWarning)
            trace = tfrctrace.open(path)
            trace.read("flows", "tcp")
            rows = trace.flows.join(trace.tcp, on=["flow", "direction"]).to_dicts()
        # ports distinguish the directions of each of these captures
        ours = {(row["src_port"], row["dst_port"]): row for row in rows}
        for (_, src_port, _, dst_port), theirs in witness.tcptrace_directions(path):
            ends = (src_port, dst_port)
            found.append((capture.name, ours[ends], ours[ends[::-1]], theirs))
    return found


def number(text: str) -> float | None:
    return None if text in {"NA", ""} else float(text)


def tolerance(column: str) -> float:
    """Return how far a printed number may be from ours: tcptrace cuts or rounds to what it prints."""
    if column.endswith("_ms"):
        return 0.06
    if column.startswith("mean_"):
        return 1.0
    return 0.0006 if column.endswith("_s") else 0.0


@pytest.mark.parametrize("field", EQUAL)
def test_a_field_of_tcptrace_is_our_column(field: str, pairs: list[tuple[str, Row, Row, Row]]) -> None:
    column = EQUAL[field]
    compared = 0
    for capture, ours, _, theirs in pairs:
        reported = number(theirs[field])
        if capture.startswith(DIFFERENT.get(field, ())) or is_named_elsewhere(field, ours, reported):
            continue
        compared += 1
        # tcptrace prints 0 for what there is none of
        is_close = reported == pytest.approx(ours[column] or 0, rel=LOST_DIGITS, abs=tolerance(column))
        is_known_to_neither = reported is None and ours[column] is None
        assert is_close or is_known_to_neither, (capture, ours["src_port"], reported, ours[column])
    assert compared > len(pairs) // 4


def is_named_elsewhere(field: str, ours: Row, reported: float | None) -> bool:
    """Return whether a difference is one of those that depend on the flow: `docs/tcptrace.md` has them."""
    match field:
        case "max_win_adv" | "min_win_adv":
            # a SYN alone announces no receive window; and tcptrace leaves closed ones out of the smallest
            return ours["receive_window_max_bytes"] is None or ours["receive_window_min_bytes"] == 0
        case "adv_wind_scale" | "RTT_from_3WHS":
            return bool(ours["state"] == "refused")
        case "ttl_stream_length" | "missed_data":
            # the number of a RST behind the FIN is one more
            return bool(
                ours["rst_packets"] and ours["fin_packets"] and reported == (ours["stream_bytes"] or 0) + 1
            )
        case "idletime_max":
            # of what was not closed tcptrace counts the time to the end of the capture too
            return ours["state"] != "closed"
        case "sdv_retr_time" | "RTT_sdv_(last)":
            # tcptrace has no deviation of two samples
            return reported == 0 and ours[EQUAL[field]] is not None
    return False


def test_what_a_syn_offers_and_how_many_there_are_is_tcptraces(
    pairs: list[tuple[str, Row, Row, Row]],
) -> None:
    for capture, ours, _, theirs in pairs:
        if not ours["syn_packets"] or capture.startswith("variant-snap54"):
            continue  # no SYN, or its options were cut
        offers = [ours["window_scale"] is not None, ours["offers_timestamps"], ours["permits_sack"]]
        reported = [*theirs["req_1323_ws/ts"].split("/"), theirs["req_sack"]]
        assert ["Y" if offer else "N" for offer in offers] == reported, (capture, ours["src_port"])
        assert theirs["SYN/FIN_pkts_sent"] == f"{ours['syn_packets']}/{ours['fin_packets']}"


@pytest.mark.parametrize("field", ["duplicate_acks", "triple_dupacks"])
def test_duplicate_acknowledgements_are_tcptraces_of_the_other_direction(
    field: str, pairs: list[tuple[str, Row, Row, Row]]
) -> None:
    """tcptrace counts them for the sender of the data, and also where nothing was outstanding."""
    column = {"duplicate_acks": "duplicate_acks", "triple_dupacks": "triple_duplicate_acks"}[field]
    for capture, ours, other, theirs in pairs:
        if not capture.startswith(DISORDERED):
            reported = float(theirs[field])
            assert other[column] <= reported <= other[column] + 4, (capture, ours["src_port"])


def test_mean_windows_are_tcptraces_but_for_reset_packets(pairs: list[tuple[str, Row, Row, Row]]) -> None:
    """tcptrace takes the window of a RST, which is 0 and none, into its mean."""
    for capture, ours, _, theirs in pairs:
        if capture.startswith(NO_SCALE) or ours["mean_window_bytes"] is None:
            continue
        windows = ours["packets"] - ours["syn_packets"] - ours["rst_packets"]
        mean = ours["mean_window_bytes"] * windows / (windows + ours["rst_packets"])
        if not capture.startswith(DISORDERED):
            assert float(theirs["avg_win_adv"]) == pytest.approx(mean, abs=1), (capture, ours["src_port"])


def test_the_largest_flight_is_tcptraces_without_the_byte_that_it_adds(
    pairs: list[tuple[str, Row, Row, Row]],
) -> None:
    """tcptrace's outstanding window of one unacknowledged byte is 2, but of none it is 1.

    It has what SACK blocks say has arrived.
    """
    compared = 0
    for capture, ours, other, theirs in pairs:
        if ours["max_flight_bytes"] is None or capture.startswith(("linux-seq-wrap", *DISORDERED)):
            continue
        compared += 1
        more = float(theirs["max_owin"]) - ours["max_flight_bytes"]
        # a FIN behind the last data is one more
        assert more in {0, 1} or (more > 0 and other["sack_packets"] > 0), (capture, ours["src_port"])
    assert compared > len(pairs) // 3


def test_throughput_is_unique_bytes_over_the_time_of_both_directions(
    pairs: list[tuple[str, Row, Row, Row]],
) -> None:
    for capture, ours, other, theirs in pairs:
        ends = [row[column] for row in (ours, other) for column in ("start_ns", "end_ns")]
        times = [time_ns for time_ns in ends if time_ns is not None]
        lasted_s = (max(times) - min(times)) / 1e9
        if lasted_s > 0 and not capture.startswith(DISORDERED):
            rate = ours["unique_bytes"] / lasted_s
            assert float(theirs["throughput"]) == pytest.approx(rate, abs=1, rel=1e-3), capture


def test_every_field_stands_in_the_documentation(tmp_path: Path, witness: ModuleType) -> None:
    if shutil.which("tcptrace") is None:
        pytest.skip("tcptrace is not installed")
    page = (ROOT / "docs" / "tcptrace.md").read_text()
    (_, reported), *_ = witness.tcptrace_directions(witness.unpack(captures()[0], tmp_path))
    assert len(reported) > 60
    assert [field for field in reported if f"`{field}`" not in page] == []


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
@pytest.mark.parametrize("name", ["drop-first-data", "drop-one", "tail-one"])
def test_what_is_repeated_is_no_part_of_the_initial_window(
    name: str, tmp_path: Path, witness: ModuleType
) -> None:
    path = CorpusCase(name).unpack("snd", tmp_path)
    trace = tfrctrace.open(path)
    named = ("src_port", "dst_port", "initial_window_bytes", "initial_window_packets")
    ours = trace.flows.join(trace.tcp, on=["flow", "direction"]).select(*named).rows()
    theirs = [
        (src_port, dst_port, int(row["initial_window_bytes"]), int(row["initial_window_pkts"]))
        for (_, src_port, _, dst_port), row in witness.tcptrace_directions(path)
    ]
    assert set(ours) == set(theirs)
