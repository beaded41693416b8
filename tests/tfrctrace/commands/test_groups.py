"""`tfrctrace groups`: the text table, the other forms, and the answers of servers and of DNS."""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest
from ip_packets import tcp, udp

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.base.timezones import moment, parse_timezone

MIXED = str(Path(__file__).parents[3] / "sample_traces/mixed.pcap.zst")

START_NS = 1_760_000_000 * 1_000_000_000


def write(path, packets):
    content = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101))
    for time_ns, packet in sorted(packets):
        seconds, rest = divmod(START_NS + time_ns, 1_000_000_000)
        content += struct.pack("<IIII", seconds, rest, len(packet), len(packet)) + packet
    path.write_bytes(content)
    return path


def dns(number, flags):
    name = f"h{number}".encode()
    question = bytes((len(name),)) + name + bytes(1) + struct.pack("!HH", 1, 1)
    return struct.pack("!HHHHHH", number * 7919 % 65_536, flags, 1, 0, 0, 0) + question


def exchanges(seed):
    """Give queries, some repeated, some never answered, with answers of every kind."""
    chance = random.Random(seed)
    time_ns = 0
    for number in range(300):
        time_ns += chance.randrange(1_000_000, 400_000_000)
        client = (f"10.0.0.{chance.randrange(1, 4)}", 20_000 + number)
        server = ("10.0.0.53", 53)
        yield time_ns, udp(client, server, dns(number, 0x0100))
        fate = chance.random()
        if fate < 0.1:
            continue
        wait_ns = chance.randrange(500_000, 60_000_000)
        if fate < 0.2:
            yield time_ns + 1_000_000_000, udp(client, server, dns(number, 0x0100))
            wait_ns += 1_000_000_000
        code = chance.choice([0, 0, 0, 3, 2, 5])
        yield time_ns + wait_ns, udp(server, client, dns(number, 0x8180 | code))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("seed", range(3))
def test_times_and_failures_of_dns_are_those_of_tshark(tmp_path, seed):
    path = write(tmp_path / "dns.pcap", exchanges(seed))
    fields = ["-T", "fields", "-e", "dns.time", "-e", "dns.flags.rcode"]
    shown = subprocess.run(
        ["tshark", "-r", path, "-Y", "dns.time", *fields], capture_output=True, text=True, check=True
    ).stdout
    theirs = sorted((float(line.split()[0]) * 1e3, int(line.split()[1])) for line in shown.splitlines())
    rows = tfrctrace.open(path).groups("port").rows.filter(direction="received")
    (row,) = rows.to_dicts()
    assert (row["dns_queries"], row["dns_samples"]) == (300, len(theirs))
    assert row["dns_unanswered"] == 300 - len(theirs)
    assert row["dns_failures"] == sum(code not in {0, 3} for _, code in theirs)
    assert row["dns_p50_ms"] == pytest.approx(theirs[(len(theirs) + 1) // 2 - 1][0], rel=1 / 128)
    by_interval = tfrctrace.open(path).groups("host", "10s").rows.filter(direction="sent")
    for name in ("dns_queries", "dns_failures", "dns_unanswered", "dns_samples"):
        assert by_interval[name].sum() == row[name]


def test_garbage_on_the_port_of_dns_is_no_query(tmp_path):
    chance = random.Random(1)
    packets = [
        (number, udp(("10.0.0.1", 2_000), ("10.0.0.2", 53), chance.randbytes(chance.randrange(11))))
        for number in range(200)
    ]
    row = tfrctrace.open(write(tmp_path / "junk.pcap", packets)).groups("link").rows.row(0, named=True)
    assert (row["packets"], row["dns_queries"]) == (200, 0)


def test_a_server_is_timed_from_the_last_byte_of_a_request(tmp_path):
    client, server = ("10.0.0.1", 40_000), ("10.0.0.2", 80)
    ms = 1_000_000
    packets = [
        (0, tcp(client, server, "S", seq=0)),
        (10 * ms, tcp(server, client, "SA", seq=0, ack=1)),
        (11 * ms, tcp(client, server, "A", seq=1, ack=1)),
        (20 * ms, tcp(client, server, "PA", seq=1, ack=1, payload=bytes(100))),
        (25 * ms, tcp(client, server, "PA", seq=101, ack=1, payload=bytes(50))),
        (35 * ms, tcp(server, client, "A", seq=1, ack=151)),
        (125 * ms, tcp(server, client, "PA", seq=1, ack=151, payload=bytes(1_000))),
        (126 * ms, tcp(server, client, "PA", seq=1_001, ack=151, payload=bytes(1_000))),
        # the second request is repeated: which copy is answered is not known
        (200 * ms, tcp(client, server, "PA", seq=151, ack=2_001, payload=bytes(10))),
        (500 * ms, tcp(client, server, "PA", seq=151, ack=2_001, payload=bytes(10))),
        (520 * ms, tcp(server, client, "PA", seq=2_001, ack=161, payload=bytes(10))),
    ]
    (row,) = (
        tfrctrace.open(write(tmp_path / "web.pcap", packets))
        .groups("port")
        .rows.filter(direction="received")
        .to_dicts()
    )
    assert row["response_samples"] == 1
    assert row["response_p50_ms"] == pytest.approx(100, rel=1 / 128)
    assert (row["connect_samples"], row["connection_attempts"]) == (1, 1)
    assert row["connect_p50_ms"] == pytest.approx(11, rel=1 / 128)


@pytest.mark.filterwarnings("ignore::tfrctrace.TfrctraceWarning")
def test_years_between_packets_make_no_rows(tmp_path):
    year_ns = 365 * 86_400 * 1_000_000_000
    ends = (("10.0.0.1", 2_000), ("10.0.0.2", 2_001))
    packets = [(time_ns, udp(*ends, bytes(10))) for time_ns in (0, 1, year_ns, 3 * year_ns)]
    rows = tfrctrace.open(write(tmp_path / "rare.pcap", packets)).groups("link", "1ms").rows
    assert rows["packets"].to_list() == [2, 1, 1]


def test_a_clock_that_goes_back_counts_each_packet_where_it_was(tmp_path):
    ends = (("10.0.0.1", 2_000), ("10.0.0.2", 2_001))
    path = write(tmp_path / "back.pcap", [])
    content = bytearray(path.read_bytes())
    for second in (100, 101, 40, 41, 102, 160):
        packet = udp(*ends, bytes(10))
        content += struct.pack("<IIII", 1_760_000_000 + second, 0, len(packet), len(packet)) + packet
    path.write_bytes(content)
    with pytest.warns(tfrctrace.TfrctraceWarning):
        rows = tfrctrace.open(path).groups("link", "1min").rows
    assert rows["packets"].to_list() == [2, 3, 1]


def test_all_forms_have_the_same_rows(run, tmp_path):
    path = MIXED
    csv = pl.read_csv(io.StringIO(run("groups", path, "--every", "1s", "--format", "csv").out))
    done = json.loads(run("groups", path, "--every", "1s", "--format", "json").out)
    assert run("groups", path, "--every", "1s", "-o", str(tmp_path / "rows.parquet")).status == 0
    parquet = pl.read_parquet(tmp_path / "rows.parquet")
    assert parquet.to_dicts() == done["groups"]
    assert csv["packets"].to_list() == parquet["packets"].to_list()
    assert run("groups", path, "--buckets", "--every", "1s", "-o", str(tmp_path / "b.parquet")).status == 0
    assert pl.read_parquet(tmp_path / "b.parquet").to_dicts() == done["buckets"]


def test_the_text_table_fits_80_columns(run):
    for options in ((), ("--every", "1s", "--sort", "rtt"), ("--by", "prefix/16")):
        lines = run("groups", MIXED, *options).out.splitlines()
        assert max(map(len, lines[:-1])) <= 80


def test_the_table_is_ordered_by_the_names_of_its_columns(run):
    head = run("groups", MIXED).out.splitlines()[0]
    for shown, order in (("retr.", "retransmissions"), ("failed", "failures"), ("RTT p50/p95", "rtt")):
        assert shown in head
        assert run("groups", MIXED, "--sort", shown).out == run("groups", MIXED, "--sort", order).out


def test_options_that_do_not_fit_are_refused(run):
    path = MIXED
    for options in (
        ("--sort", "rtt", "--format", "csv"),
        ("--buckets",),
        ("--by", "colour"),
        ("--every", "soon"),
        ("--timezone", "Mars"),
        ("--label", "a=port 1"),
    ):
        assert run("groups", path, *options).status == 2, options


def test_times_are_shown_in_the_zone_that_is_asked_for():
    assert f"{moment(START_NS, parse_timezone('Asia/Tokyo')):%H:%M}" == "17:53"
    assert f"{moment(START_NS, parse_timezone('utc')):%H:%M}" == "08:53"
    assert parse_timezone("local") is None
    with pytest.raises(UsageError, match="Mars"):
        parse_timezone("Mars")
