"""Losses of a capture, retries of a radio and the end of a test are not losses between two captures.

The witness is the pair without the fault: packets are removed from one of two captures whose losses the
kernel, the simulator and the relay confirm (`test_pair.py`).
"""

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ip_packets import udp

import tfrctrace
from tfrctrace.base.errors import TfrctraceWarning

DATA = Path(__file__).resolve().parent.parent.parent / "data"
PAIRS = {
    "relay": (DATA / "captures/linux-relay-loss-snd.pcap.gz", DATA / "pair/linux-relay-loss-rcv.pcap.gz"),
    "ns3": (
        DATA / "captures/ns3-p2p-newreno-cubic-udp-0-1.pcap.gz",
        DATA / "pair/ns3-p2p-newreno-cubic-udp-3-1.pcap.gz",
    ),
}
A, B = ("10.0.0.1", 5001), ("10.0.0.2", 5001)
MS = 1_000_000
STATION, ACCESS_POINT = b"\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x02"
IEEE_802_11 = 105
RAW_IP = 101

Captured = list[tuple[int, bytes]]


def without(path: Path, out: Path, share: float, seed: int) -> tuple[Path, set[int]]:
    """Write a capture without some packets of its middle, and return also the numbers of these."""
    import gzip

    content = gzip.decompress(path.read_bytes())
    records: list[bytes] = []
    at = 24
    while at < len(content):
        end = at + 16 + int(struct.unpack_from("<I", content, at + 8)[0])
        records.append(content[at:end])
        at = end
    chance = random.Random(seed)
    inside = range(len(records) // 20, len(records) * 19 // 20)
    gone = {number for number in inside if chance.random() < share}
    out.write_bytes(content[:24] + b"".join(kept for n, kept in enumerate(records) if n not in gone))
    return out, {number + 1 for number in gone}


def write(path: Path, captured: Captured, link_type: int) -> Path:
    content = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, link_type)
    for time_ns, frame in captured:
        content += struct.pack("<IIII", 1_000, time_ns, len(frame), len(frame)) + frame
    path.write_bytes(content)
    return path


def transits(trace: tfrctrace.Trace) -> pl.DataFrame:
    ends = trace.flows.select("flow", "direction", "transport")
    return trace.transits.join(ends, on=["flow", "direction"])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("pair", PAIRS)
def test_data_that_the_farther_capture_missed_are_not_lost(pair: str, seed: int, tmp_path: Path) -> None:
    near, far = PAIRS[pair]
    whole = transits(tfrctrace.open([near, far], pair=True, clock_offset="0s"))
    cut, gone = without(far, tmp_path / "far.pcap", 0.05, seed)
    trace = tfrctrace.open([near, cut], pair=True, clock_offset="0s")
    with pytest.warns(
        TfrctraceWarning, match=r"far\.pcap`: misses [0-9]+ packets of|acknowledged but not captured"
    ):
        found = transits(trace)
    data = (pl.col("transport") == "tcp") & (pl.col("payload_bytes") > 0)
    truth = whole.filter(data & (pl.col("fate") == "lost"))["sent_packet"].to_list()
    missed = whole.filter(data & pl.col("received_packet").is_in(list(gone)) & (pl.col("fate") == "arrived"))
    # of packets that this end sends, the other capture has what this one missed
    from_far = missed.filter(pl.col("sent_packet").is_in(list(gone)))
    assert from_far.is_empty() or len(from_far) < len(missed)
    mine = found.filter(data & (pl.col("fate") == "missed"))["sent_packet"].to_list()
    lost = found.filter(data & (pl.col("fate") == "lost"))["sent_packet"].to_list()
    assert set(truth) <= set(lost)
    assert len(lost) - len(truth) <= 0.1 * len(missed)
    assert set(mine) <= set(missed["sent_packet"])
    flows = trace.flows
    assert flows["missed_packets"].sum() >= len(mine) > 0
    sums = flows.select((pl.col("sent_packets") - pl.col("received_packets") - pl.col("lost_packets")).sum())
    assert sums.item() is not None


@pytest.mark.parametrize("pair", PAIRS)
def test_packets_that_arrive_without_being_sent_are_losses_of_the_first_capture(
    pair: str, tmp_path: Path
) -> None:
    near, far = PAIRS[pair]
    whole = tfrctrace.open([near, far], pair=True, clock_offset="0s")
    lost = whole.flows["lost_packets"].to_list()
    assert (whole.warnings, whole.flows["missed_packets"].sum()) == ([], 0)
    cut, gone = without(near, tmp_path / "near.pcap", 0.05, 4)
    trace = tfrctrace.open([cut, far], pair=True, clock_offset="0s")
    with pytest.warns(
        TfrctraceWarning, match=r"near\.pcap`: misses [0-9]+ packets of|acknowledged but not captured"
    ):
        flows = trace.flows
    arrived = whole.transits.filter((pl.col("fate") == "arrived") & pl.col("sent_packet").is_in(list(gone)))
    forward = arrived.filter(pl.col("direction") == "fwd")
    assert len(forward) <= flows["missed_packets"].sum() <= len(gone)
    reported = flows.filter(pl.col("direction") == "fwd")["lost_packets"].to_list()
    assert all(mine <= was for mine, was in zip(reported, lost[::2], strict=True) if mine is not None)


def data_frame(number: int, payload: bytes, *, retry: bool = False) -> bytes:
    """Return an 802.11 data frame from the station to the access point."""
    control = b"\x08" + bytes([0x01 | (0x08 if retry else 0)])
    addresses = ACCESS_POINT + STATION + ACCESS_POINT
    return (
        control + b"\0\0" + addresses + struct.pack("<H", number << 4) + b"\xaa\xaa\x03\0\0\0\x08\0" + payload
    )


def test_a_retry_that_one_radio_heard_first_is_not_the_repeat_of_the_others_frame(tmp_path: Path) -> None:
    first: Captured = []
    second: Captured = []
    for number in range(60):
        packet = udp(A, B, struct.pack(">I", number) + bytes(60))
        sent_ns = number * MS
        first.append((sent_ns, data_frame(number, packet)))
        if number % 3 == 0:
            # the second radio hears the retry only, or both
            first.append((sent_ns + 200_000, data_frame(number, packet, retry=True)))
            second.append((sent_ns + 200_010, data_frame(number, packet, retry=True)))
        if number % 6:
            second.append((sent_ns + 10, data_frame(number, packet)))
    inputs = [
        write(tmp_path / "a.pcap", sorted(first), IEEE_802_11),
        write(tmp_path / "b.pcap", sorted(second), IEEE_802_11),
    ]
    trace = tfrctrace.open(inputs, pair=True, clock_offset="0s")
    (row,) = trace.flows.filter(pl.col("sent_packets") > 0).to_dicts()
    assert (row["sent_packets"], row["received_packets"], row["lost_packets"]) == (60, 60, 0)
    links = trace.links.sort("source")
    assert links["frames"].to_list() == [len(first), len(second)]
    assert links["repeated_frames"].to_list() == [20, 10]
    assert links["source"].to_list() == [str(path) for path in inputs]
    alone = [tfrctrace.open(path).links["repeated_frames"].to_list() for path in inputs]
    assert alone == [[20], [10]]


@pytest.mark.parametrize("answered", [True, False])
def test_the_end_of_an_iperf_2_test_is_no_data_in_a_pair_either(tmp_path: Path, *, answered: bool) -> None:
    def datagram(number: int, time_ns: int) -> bytes:
        return udp(A, B, struct.pack(">iII", number, 1_000, time_ns // 1_000) + bytes(88))

    sent: Captured = [(number * 10 * MS, datagram(number, number * 10 * MS)) for number in range(40)]
    closing = [(400 * MS + again * 5 * MS, datagram(-40, 400 * MS)) for again in range(5)]
    arrived = [(time_ns + 3 * MS, frame) for at, (time_ns, frame) in enumerate(sent) if at not in (7, 20)]
    inputs = [
        write(tmp_path / "a.pcap", sent + closing, RAW_IP),
        write(
            tmp_path / "b.pcap",
            arrived + [(ns + 3 * MS, frame) for ns, frame in closing[: answered + 1]],
            RAW_IP,
        ),
    ]
    (row,) = (
        tfrctrace.open(inputs, pair=True, clock_offset="0s")
        .flows.filter(pl.col("sent_packets") > 0)
        .to_dicts()
    )
    assert (row["sent_packets"], row["received_packets"], row["lost_packets"]) == (40, 38, 2)
    alone = tfrctrace.open(inputs[1]).flows.to_dicts()[0]
    assert (alone["sent_packets"], alone["received_packets"]) == (40, 38)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda near, far, _: [near, near], "was given twice"),
        (
            lambda near, _, folder: [near, write(folder / "e.pcap", [], RAW_IP)],
            "no TCP, UDP or DCCP packets in it",
        ),
        (
            lambda near, _, folder: [near, write(folder / "x.pcap", [(0, udp(A, B, b"x"))], RAW_IP)],
            "none of its",
        ),
    ],
)
def test_what_is_not_a_pair_is_refused(
    run: Any, make: Callable[[Path, Path, Path], list[Path]], words: str, tmp_path: Path
) -> None:
    for command in (
        ["flows"],
        ["metrics"],
        ["report", "-o", "r.html"],
        ["convert", "-w", "transits", "-o", "t.csv"],
    ):
        done = run(command[0], "--pair", *make(*PAIRS["relay"], tmp_path), *command[1:])
        assert done.status in (2, 3)
        assert words in done.err


def test_a_copy_of_a_capture_is_reported(tmp_path: Path) -> None:
    near, _ = PAIRS["relay"]
    copy, _ = without(near, tmp_path / "copy.pcap", 0, 1)
    trace = tfrctrace.open([near, copy], pair=True)
    with pytest.warns(TfrctraceWarning, match="one is a copy of the other"):
        assert trace.flows["lost_packets"].sum() == 0
