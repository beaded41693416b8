"""Anonymised traces: networks stay together, nobody can be found, and no real address gets out."""

from __future__ import annotations

import base64
import csv
import gzip
import ipaddress
import json
import re
import shutil
import subprocess
import zlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.base.errors import UsageError, input_problem
from tfrctrace.parsers.anonymity import Anonymizer
from tfrctrace.parsers.schema import TABLES

KEY = b"sixteen bytes it is"
VEIL = Anonymizer(KEY)

CAPTURES = {
    "IPv4 and IPv6": "sample_traces/mixed.pcap.zst",
    "802.11": "tests/data/wifi/ns3-wifi-radiotap-veno-udp-2-1.pcap.gz",
    "named interfaces": "sample_traces/two-flows.pcapng.gz",
}

UNCHANGED_COLUMNS = (
    # words of ours
    {"direction", "transport", "vantage", "state", "event", "flags", "layer", "point", "kind", "method"}
    | {"class", "evidence", "spurious", "repair", "unit", "p_from", "rtt_method", "mode", "finding"}
    | {"lacking", "candidate", "congestion_control", "congestion_control_reason"}
    | {"end", "ended", "outside", "rule", "ecn_mode", "clock_rate_by", "algorithm", "profile", "reports"}
    | {"reason", "fate", "cause", "sign", "second_cause", "discipline", "capacity_reason"}
    | {"buffer_reason", "discipline_reason", "policer_reason", "level"}
    # what a user calls flows, what a program calls its variables, a simulation its agents
    | {"label", "name", "agent"}
    # durations of groups
    | {"measure"}
    # numbers of headers
    | {"dccp", "tunnel", "mpls_labels", "vlans", "quic_version"}
    # protocols above TLS, what names the server, and what the spin bit of QUIC shows
    | {"alpn", "server_name_from", "spin_verdict"}
)


def leading_bits_in_common(one: bytes, other: bytes) -> int:
    difference = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return 8 * len(one) - difference.bit_length()


def packed(address: str) -> bytes:
    if address.count(":") == 5 and len(address) == 17:
        return bytes.fromhex(address.replace(":", ""))
    return ipaddress.ip_address(address).packed


def pairs(length: int):
    """Two addresses that have some leading bits in common, as neighbours do."""
    bits = 8 * length

    def second(drawn):
        first, other, shared = drawn
        low = (1 << (bits - shared)) - 1
        return first, (first & ~low) | (other & low)

    numbers = st.integers(0, (1 << bits) - 1)
    return st.tuples(numbers, numbers, st.integers(0, bits)).map(second)


@given(pairs(4), st.binary(min_size=16, max_size=40))
def test_ipv4_addresses_keep_exactly_the_prefix_that_they_share(two, key):
    one, other = map(ipaddress.IPv4Address, two)
    veil = Anonymizer(key)
    replaced = [packed(veil.host(str(address))) for address in (one, other)]
    assert leading_bits_in_common(*replaced) == leading_bits_in_common(one.packed, other.packed)


@given(pairs(16))
def test_ipv6_addresses_keep_exactly_the_prefix_that_they_share(two):
    one, other = map(ipaddress.IPv6Address, two)
    replaced = [packed(VEIL.host(str(address))) for address in (one, other)]
    assert leading_bits_in_common(*replaced) == leading_bits_in_common(one.packed, other.packed)


@given(pairs(6))
def test_stations_keep_exactly_the_prefix_that_they_share(two):
    # stations, not groups
    one, other = ((number & ~(1 << 40)).to_bytes(6, "big") for number in two)
    replaced = [packed(VEIL.host(address.hex(":"))) for address in (one, other)]
    assert leading_bits_in_common(*replaced) == leading_bits_in_common(one, other)


@given(st.binary(min_size=6, max_size=6))
def test_a_mac_stays_a_station_or_a_group_and_given_by_a_vendor_or_not(address):
    assert packed(VEIL.host(address.hex(":")))[0] & 3 == address[0] & 3


def test_all_addresses_of_a_network_become_as_many_others():
    network = [f"10.1.{number >> 8}.{number & 255}" for number in range(65_536)]
    assert len(set(map(VEIL.host, network))) == 65_536


@pytest.mark.parametrize("key", [KEY, b"another key, as long"])
def test_the_broadcast_stays_and_nobody_else_becomes_it(key):
    veil = Anonymizer(key)
    broadcast = "ff:ff:ff:ff:ff:ff"
    assert veil.host(broadcast) == broadcast
    # who would have become it is one of these: its image has their first bytes
    assert len({veil.host(f"ff:ff:ff:ff:ff:{last:02x}") for last in range(256)}) == 256


def test_a_key_gives_the_same_each_time_and_another_one_something_else():
    hosts = ["192.0.2.1", "2001:db8::1", "02:00:00:00:00:01", "www.example.com"]
    outputs = list(map(VEIL.host, hosts))
    assert list(map(Anonymizer(KEY).host, hosts)) == outputs
    for other in (Anonymizer(KEY + b"!"), Anonymizer()):
        assert not set(map(other.host, hosts)) & set(outputs)


def test_a_key_that_could_be_guessed_is_refused():
    with pytest.raises(UsageError, match="the key has 15 bytes"):
        Anonymizer(b"k" * 15)


@pytest.mark.parametrize("node", ["0", "-1", "12", "1.0.2"])
def test_nodes_of_a_simulation_are_nobody(node):
    assert VEIL.host(node) == node == VEIL.place(node)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("www.example.com", r"host-[0-9a-f]{16}"),
        ("fe80::1%eth0", r"[0-9a-f:]+"),
        ("::ffff:192.0.2.1", r"[0-9a-f:.]+"),
        ("", r"host-[0-9a-f]{16}"),
        ("\udcff", r"host-[0-9a-f]{16}"),
    ],
)
def test_names_of_hosts_are_replaced_whatever_they_are(name, form):
    assert re.fullmatch(form, VEIL.host(name))


def test_addresses_in_words_are_replaced_and_words_are_not():
    real = ["10.0.0.1", "2001:db8::1", "::ffff:1.2.3.4", "aa:bb:cc:dd:ee:ff"]
    words = "from {}:80 and [{}]:443, also {}, and {} at 12:30:45... of 1.2.3, ipv6: ICMPv6, 1.5 s."
    assert VEIL.text(words.format(*real)) == words.format(*map(VEIL.host, real))


def test_what_an_input_contained_is_in_no_message():
    problem = input_problem("/home/me/x.pcap", "k", "no `user@host` of 10.0.0.1", hint="see `--strict`")
    outputs = Anonymizer(KEY).problem(problem)
    assert (outputs["source"], outputs["hint"]) == ("trace-1", "see `--strict`")
    assert outputs["message"] == f"no `...` of {VEIL.host('10.0.0.1')}"


def test_every_column_of_text_is_treated_or_known_to_be_harmless():
    known = Anonymizer(KEY)._columns.keys() | UNCHANGED_COLUMNS
    for name, columns in TABLES.items():
        assert {column.name for column in columns if column.type == "string"} <= known, name


def real_names(path) -> set[str]:
    """Every address in a capture, and the names of its interfaces, as Wireshark's dissectors read them."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    fields = ["ip.addr", "ipv6.addr", "wlan.addr", "frame.interface_name"]
    arguments = [part for field in fields for part in ("-e", field)]
    content = path.read_bytes()
    if path.suffix == ".zst":
        content = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    done = subprocess.run(
        ["tshark", "-n", "-r", "-", "-T", "fields", *arguments],
        input=gzip.decompress(content) if path.suffix == ".gz" else content,
        capture_output=True,
        check=False,
    )
    found = set(re.split(r"[\t\n,]", done.stdout.decode())) - {"", "ff:ff:ff:ff:ff:ff", "unknown", "-"}
    assert len(found) > 1
    return found | {path.name, path.name.split(".")[0]}


def named_in(text: str, names: set[str]) -> set[str]:
    # a search for plain text first, which is quick where there is nothing
    there = [name for name in names if name in text]
    return {name for name in there if re.search(rf"(?<![\w.:]){re.escape(name)}(?![\w:]|\.\d)", text)}


def page_text(page: str) -> str:
    """A page with what its scripts draw from unpacked."""
    blocks = re.findall(r'<script type="application/(gzip|x-deflate)"[^>]*>([^<]*)<', page)
    # tiles have no header, and what they hold is no text
    contents = [
        zlib.decompress(base64.b64decode(block), 31 if form == "gzip" else -15) for form, block in blocks
    ]
    return page + "".join(content.decode("latin-1") for content in contents)


@pytest.mark.parametrize("name", CAPTURES)
def test_no_real_address_and_no_name_gets_out(request, tmp_path, name):
    path = request.config.rootpath / CAPTURES[name]
    real = real_names(path)
    trace = tfrctrace.open(path, anonymize=KEY)
    bare = tfrctrace.open(path)
    assert named_in(page_text(bare.report_html()), real)
    folder = trace.save_results(tmp_path / "results")
    outputs = [page_text(trace.report_html()), (folder / "results.json").read_text(), repr(trace)]
    outputs += [str(trace.plot("throughput", tmp_path / "a.svg")), (tmp_path / "a.svg").read_text()]
    outputs += [pl.read_parquet(file).write_csv() for file in folder.glob("*.parquet")]
    outputs += [frame.write_csv() for frame in trace.packets()]
    outputs += [
        trace.links.write_csv(),
        trace.link_samples.write_csv(),
        str(list(trace.table("flows").rows())),
    ]
    for text in outputs:
        assert named_in(text, real) == set()


@pytest.mark.parametrize(
    "arguments",
    [("metrics",), ("replay", "--anonymize"), ("check", "--require", "mean(goodput_bps) > 1")],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_measure_write_no_address(run, request, arguments):
    path = request.config.rootpath / CAPTURES["named interfaces"]
    command, *options = arguments
    done = run(command, path, *options, "--format", "json")
    assert done.out
    addresses = set(tfrctrace.open(path).flows["src"])
    assert named_in(done.out + done.err, addresses) == set()


def test_flows_are_the_same_but_for_their_names(request):
    path = request.config.rootpath / CAPTURES["IPv4 and IPv6"]
    bare, veiled = tfrctrace.open(path).flows, tfrctrace.open(path, anonymize=KEY).flows
    names = ["src", "dst", "source"]
    assert veiled.drop(*names, "notes").equals(bare.drop(*names, "notes"))
    for known, hidden in zip(bare.iter_rows(named=True), veiled.iter_rows(named=True), strict=True):
        note = known["notes"] and known["notes"].replace(known["src"], hidden["src"])
        assert hidden["notes"] == (note and note.replace(known["dst"], hidden["dst"]))
    assert veiled["src"].to_list() == [VEIL.host(address) for address in bare["src"].to_list()]


def test_rules_for_labels_speak_of_real_hosts(request):
    trace = tfrctrace.open(request.config.rootpath / CAPTURES["named interfaces"], anonymize=KEY)
    bare = tfrctrace.open(request.config.rootpath / CAPTURES["named interfaces"])
    (host, *_) = bare.flows["src"].to_list()
    assert "one" in trace.metrics("rate_bps", labels=[f"one=host {host}"])["group"].to_list()


def test_commands_take_the_key_from_a_file_or_the_environment(run, request, tmp_path):
    path = request.config.rootpath / CAPTURES["named interfaces"]
    (tmp_path / "key").write_bytes(KEY)
    by_file = run("flows", path, "--anonymize-key", "key", "--format", "csv")
    by_variable = run(
        "flows", path, "--anonymize", "--format", "csv", environment={"TFRCTRACE_ANONYMIZE_KEY": KEY.decode()}
    )
    assert (by_file.status, by_file.err) == (0, "")
    assert by_file.out == by_variable.out
    first = next(csv.DictReader(by_file.out.splitlines()))
    assert first["src"] == VEIL.host(tfrctrace.open(path).flows["src"][0])
    packets = run("convert", path, "--anonymize-key", "key", "-o", "-", "--format", "csv", "-q")
    assert (first["src"], first["dst"]) in {
        (packet["src"], packet["dst"]) for packet in csv.DictReader(packets.out.splitlines())
    }
    once, again = (run("flows", path, "--anonymize", "--format", "json") for _ in range(2))
    assert "with a random key that is not saved" in once.err
    assert json.loads(once.out)["flows"][0]["src"] != json.loads(again.out)["flows"][0]["src"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--anonymize-key", "none"), "the key `none` cannot be read: no such file or directory"),
        (("--anonymize-key", "short"), "the key has 2 bytes"),
    ],
)
def test_a_key_that_is_none_is_refused_before_anything_is_written(run, request, tmp_path, arguments, error):
    (tmp_path / "short").write_text("ab")
    done = run("report", request.config.rootpath / CAPTURES["named interfaces"], *arguments)
    assert (done.status, error in done.err) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["short"]


def test_a_report_is_not_called_by_the_name_of_its_capture(run, write_capture, conversation, tmp_path):
    write_capture("secret.pcap", conversation())
    assert run("report", "secret.pcap", "--anonymize", "-q").status == 0
    page = (tmp_path / "report.html").read_text()
    assert "<title>trace-1</title>" in page
    assert "replaced by others" in page


def test_names_and_connections_of_quic_are_replaced_and_logs_still_belong_to_their_flow():
    anonymizer = Anonymizer(KEY)
    row = {"server_name": "www.example.org", "quic_connection_id": "8394c8f03e515708"}
    replaced = anonymizer.row(row)
    assert not set(row.values()) & set(replaced.values())
    assert anonymizer.host("client of 8394c8f03e515708") == f"client of {replaced['quic_connection_id']}"
    assert anonymizer.host("www.example.org") == replaced["server_name"]
