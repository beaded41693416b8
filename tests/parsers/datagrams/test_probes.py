"""Groups count probes as the firewall that dropped them and the programs that sent them do.

`tests/data/README.md` says what was dropped on which side of the captures.
"""

import gzip
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from ip_packets import ethernet, udp

import tfrctrace

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data/captures"
CLIENT, SERVER = "10.9.1.2", "10.9.2.2"
NTP_EPOCH_S = 2_208_988_800
"""From 1900 to 1970 (RFC 5905 figure 4)."""


def received(path: Path, host: str, every: str | None = None) -> pl.DataFrame:
    """Return the rows of what a host received."""
    trace = tfrctrace.open(path)
    groups = trace.groups("host", every) if every else trace.groups("host")
    return groups.rows.filter(group=host, direction="received")


@pytest.mark.parametrize(
    ("name", "requests", "unanswered"), [("linux-irtt", 995 - 31, 19 + 27), ("linux-twamp", 300 - 8, 5 + 13)]
)
def test_probes_are_answered_as_the_sender_and_the_firewall_report(
    name: str, requests: int, unanswered: int
) -> None:
    path = CAPTURES / f"{name}-rtr.pcap.gz"
    row = received(path, SERVER).row(0, named=True)
    assert (row["echo_requests"], row["echo_unanswered"]) == (requests, unanswered)
    assert row["echo_samples"] == requests - unanswered
    assert 0.02 < row["echo_p50_ms"] < 1
    seconds = received(path, SERVER, "1s")
    assert (seconds["echo_requests"].sum(), seconds["echo_unanswered"].sum()) == (requests, unanswered)


@pytest.mark.parametrize(
    ("name", "host", "arrived", "lost"),
    [
        ("linux-irtt", SERVER, 964, 31),
        ("linux-twamp", SERVER, 292, 8),
        # the responder numbers what it sends; the last one was dropped
        ("linux-twamp", CLIENT, 274, 13 - 1),
        ("linux-srt", SERVER, 1450, 50),
    ],
)
@pytest.mark.parametrize("every", [None, "1s"])
def test_numbers_show_what_was_dropped_before_the_capture(
    name: str, host: str, arrived: int, lost: int, every: str | None
) -> None:
    rows = received(CAPTURES / f"{name}-rtr.pcap.gz", host, every)
    sums = rows.select(pl.col("numbered_packets", "lost_before_capture", "arrivals_shown").sum())
    assert sums.row(0) == (arrived, lost, arrived + lost)


@pytest.mark.parametrize("every", [None, "1s"])
def test_a_capture_at_the_sender_shows_no_arrivals_and_one_at_the_receiver_what_iperf_reports(
    every: str | None,
) -> None:
    """32 of 627 lost, as in `tests/data/udp.json`."""
    found = {}
    for place in ("snd", "rcv"):
        trace = tfrctrace.open(CAPTURES / f"linux-udp-vs-tcp-{place}.pcap.gz")
        rows = (trace.groups("port", every) if every else trace.groups("port")).rows
        sums = rows.filter(group="5202", direction="received").select(
            pl.col("numbered_packets", "arrivals_shown", "lost_before_capture").sum()
        )
        found[place] = sums.row(0)
    assert found == {"snd": (627, 0, 0), "rcv": (595, 627, 32)}


def test_replies_that_repeat_the_numbers_of_probes_show_no_losses_of_their_own() -> None:
    row = received(CAPTURES / "linux-irtt-rtr.pcap.gz", CLIENT).row(0, named=True)
    assert (row["numbered_packets"], row["arrivals_shown"], row["lost_before_capture"]) == (0, None, None)


def records(data: bytes) -> Iterator[bytes]:
    """Give the records of a little-endian capture, with their headers."""
    at = 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        yield data[at : at + 16 + length]
        at += 16 + length


@pytest.fixture
def of_client(tmp_path: Path) -> Callable[[str], Path]:
    """Make a capture of what the client sent."""

    def make(name: str) -> Path:
        data = gzip.decompress((CAPTURES / f"{name}-rtr.pcap.gz").read_bytes())
        source = bytes(int(part) for part in CLIENT.split("."))
        path = tmp_path / "client.pcap"
        sent = (record for record in records(data) if record[16 + 26 :][:4] == source)
        path.write_bytes(data[:24] + b"".join(sent))
        return path

    return make


def test_probes_that_nobody_answers_by_design_are_not_unanswered(of_client: Callable[[str], Path]) -> None:
    """OWAMP's test packets begin like those of TWAMP (RFC 5357 section 4.1.2) and go one way."""
    row = received(of_client("linux-twamp"), SERVER).row(0, named=True)
    assert (row["echo_requests"], row["echo_unanswered"]) == (0, 0)
    assert (row["numbered_packets"], row["lost_before_capture"]) == (292, 8)


def state_clock(path: Path, estimate: bytes) -> None:
    """Give each test packet of a capture this error estimate (RFC 4656 section 4.1.2).

    0x9602 is S, and a multiplier of 2 scaled by 22: 2 * 2^22 / 2^32 s, 1.95 ms; 0x8c01 is 2^12 / 2^32 s.
    """
    data = path.read_bytes()
    stated = (record[: 16 + 42 + 12] + estimate + record[16 + 42 + 14 :] for record in records(data))
    path.write_bytes(data[:24] + b"".join(stated))


def test_an_unsynchronised_clock_gives_no_delay_and_a_synchronised_one_states_its_error(
    of_client: Callable[[str], Path],
) -> None:
    path = of_client("linux-twamp")

    def row() -> dict[str, object]:
        return tfrctrace.open(path).flows.filter(dst_port=862).row(0, named=True)

    free = row()
    assert free["delay_mean_ms"] is None
    assert "no delay, because the sender's clock is not the capture's" in str(free["notes"])
    state_clock(path, b"\x96\x02")
    stated = row()
    assert isinstance(stated["delay_mean_ms"], float)
    assert 0 < stated["delay_mean_ms"] < 5
    assert "its clock is right within 1.953125 ms" in str(stated["notes"])


def test_what_proves_to_have_no_numbers_has_lost_none(write_capture: Callable[..., Path]) -> None:
    """Three seconds look like a test of iperf 2 that lost every tenth datagram, then like nothing."""
    looks_numbered = [
        struct.pack("!III", number, 100 + number // 100, number % 100 * 10_000)
        for number in range(330)
        if number % 10 != 3
    ]
    nothing = [struct.pack("!III", number * 2_654_435_761 % 2**31, 7, 7) for number in range(300)]

    def rows(payloads: list[bytes]) -> pl.DataFrame:
        frames = (ethernet(udp((CLIENT, 40_000), (SERVER, 40_001), payload)) for payload in payloads)
        return received(write_capture("numbers.pcap", frames), SERVER, "1s").sort("start_ns")

    assert rows(looks_numbered)["lost_before_capture"].to_list()[:3] == [11, 11, 11]
    proven = rows(looks_numbered + nothing)
    assert proven["packets"].sum() == 297 + 300
    assert proven["numbered_packets"].to_list() == [0] * len(proven)
    assert proven["lost_before_capture"].to_list() == [None] * len(proven)


@pytest.mark.parametrize(
    ("host", "p50_ms", "p95_ms"),
    [(SERVER, 0.0289, 0.0855), (CLIENT, 0.0073, 0.0595)],
    ids=["probes", "replies"],
)
def test_the_variation_of_one_way_delays_is_that_of_the_times_that_tshark_shows(
    host: str, p50_ms: float, p95_ms: float
) -> None:
    """`frame.time_epoch` less `twamp.test.timestamp`, less the least of them, with the drift of 30 s."""
    row = received(CAPTURES / "linux-twamp-rtr.pcap.gz", host).row(0, named=True)
    assert row["oneway_variation_samples"] == row["packets"]
    assert row["oneway_variation_p50_ms"] == pytest.approx(p50_ms, abs=0.003)
    assert row["oneway_variation_p95_ms"] == pytest.approx(p95_ms, abs=0.003)
    assert (row["oneway_delay_samples"], row["oneway_delay_p50_ms"]) == (0, None)


def test_one_way_delays_are_known_where_the_stated_error_is_less(of_client: Callable[[str], Path]) -> None:
    path = of_client("linux-twamp")
    state_clock(path, b"\x96\x02")
    assert received(path, SERVER).row(0, named=True)["oneway_delay_samples"] == 0
    state_clock(path, b"\x8c\x01")
    row = received(path, SERVER).row(0, named=True)
    assert row["oneway_delay_samples"] == 292
    # by tshark, as above
    assert row["oneway_delay_p50_ms"] == pytest.approx(0.1124, rel=0.01)
    assert row["oneway_delay_p95_ms"] == pytest.approx(0.1690, rel=0.01)


@pytest.mark.parametrize("set_by_s", [0, 3600], ids=["drifting", "drifting and set"])
def test_neither_drift_nor_a_clock_that_is_set_is_a_variation_of_delays(
    write_capture: Callable[..., Path], set_by_s: int
) -> None:
    """STAMP (RFC 8762 section 4.2.1): every tenth packet waits for 8 ms; the clock gains 200 µs a second."""

    def packet(number: int) -> bytes:
        waited_s = 0.008 if number % 10 == 5 else 0.0
        sent_s = number / 100 * 1.0002 - waited_s + (set_by_s if number >= 1000 else 0)
        ntp = int((1_700_000_000 + NTP_EPOCH_S - 7 + sent_s) * 2**32)
        return ethernet(udp((CLIENT, 40_000), (SERVER, 862), struct.pack("!IQH30x", number, ntp, 0x3FFF)))

    path = write_capture("stamp.pcap", map(packet, range(2000)))
    row = received(path, SERVER).row(0, named=True)
    assert row["oneway_variation_samples"] == 2000
    assert row["oneway_variation_p50_ms"] == pytest.approx(0, abs=0.01)
    assert row["oneway_variation_p95_ms"] == pytest.approx(8, rel=0.01)


def test_few_intervals_of_many_flows_wait_for_a_proof_of_numbers(
    write_capture: Callable[..., Path],
) -> None:
    """The 1,025th flow has 255 of 262,144 intervals; numbers of 300 prove to be none."""

    def to_server(*words: int) -> bytes:
        return ethernet(udp((CLIENT, 40_000), (SERVER, 40_001), struct.pack("!III", *words)))

    looks_numbered = [to_server(number, 100, number * 1_000) for number in range(300)]
    nothing = [to_server(number * 2_654_435_761 % 2**31, 7, 7) for number in range(300)]
    others = [ethernet(udp((CLIENT, 1_000), (CLIENT, port), b"")) for port in range(1_024)]

    def numbered_packets(frames: list[bytes]) -> list[int]:
        path = write_capture("numbers.pcap", frames, step_ms=1)
        return received(path, SERVER, "1ms").sort("start_ns")["numbered_packets"].to_list()

    assert numbered_packets(looks_numbered + nothing) == [0] * 600
    assert numbered_packets(others + looks_numbered + nothing)[10:255] == [1] * 245
