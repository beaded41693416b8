"""Headers of private protocols in UDP: where a scapy class has its fields, and what they show of a flow."""

from __future__ import annotations

import json
import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.parsers.dissect import layout_of, parse_dissect
from tfrctrace.parsers.reading_settings import ReadSettings

fields = pytest.importorskip("scapy.fields")
packet = pytest.importorskip("scapy.packet")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
START_S = 1_700_000_000
LOST = {7, 8, 30}
DELAYS_MS = (20, 26)


def header(*described, **attributes):
    return type("Header", (packet.Packet,), {"name": "Header", "fields_desc": list(described), **attributes})


def datagram(payload):
    from scapy.layers.inet import IP, UDP

    return bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=4000, dport=9000) / payload)


def write(path, payloads):
    """Write datagrams as raw IP; each payload comes with the time of its arrival in microseconds."""
    content = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101))
    for time_us, payload in payloads:
        frame = datagram(payload)
        seconds, us = divmod(time_us, 1_000_000)
        content += struct.pack("<IIII", seconds, us, len(frame), len(frame)) + frame
    path.write_bytes(content)


def test_the_header_of_the_documentation_gives_losses_delay_and_jitter(run, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    source = next(block for block in blocks if "class MyHeader" in block)
    (tmp_path / "myheader.py").write_text(source)
    names = {}
    exec(source, names)
    my_header = names["MyHeader"]
    sent = [
        (number, (START_S * 1000 + 10 * number) * 1000, DELAYS_MS[number % 2] * 1000) for number in range(100)
    ]
    arrived = [
        (sent_us + delay_us, bytes(my_header(seq=number, timestamp_us=sent_us)) + b"x" * 50)
        for number, sent_us, delay_us in sent
        if number not in LOST
    ]
    write(tmp_path / "link.pcap", arrived)
    command = ("flows", "--format", "json", "--dissect", "udp:9000=myheader:MyHeader", "link.pcap")
    outcome = run(*command)
    assert outcome.status == 0, outcome.err
    flow = json.loads(outcome.out)["flows"][0]
    counts = ("sent_packets", "received_packets", "lost_packets", "duplicate_packets")
    assert [flow[name] for name in counts] == [100, 97, 3, 0]
    delays = [DELAYS_MS[number % 2] for number, _, _ in sent if number not in LOST]
    assert flow["delay_mean_ms"] == pytest.approx(sum(delays) / len(delays), rel=1e-9)
    assert (flow["delay_min_ms"], flow["delay_max_ms"]) == DELAYS_MS
    jitter = 0.0
    for before, after in pairwise(delays):
        jitter += (abs(after - before) - jitter) / 16
    assert flow["jitter_ms"] == pytest.approx(jitter, rel=1e-9)


def test_without_a_word_about_it_nothing_is_made_up(run, tmp_path):
    write(
        tmp_path / "link.pcap", [(START_S * 1_000_000 + n, b"\xca\xfe" + bytes([n]) * 40) for n in range(50)]
    )
    flow = json.loads(run("flows", "--format", "json", "link.pcap").out)["flows"][0]
    assert flow["sent_packets"] is None
    assert flow["jitter_ms"] is None


def test_numbers_without_a_time_give_losses_only(tmp_path):
    numbered = header(
        fields.ByteField("kind", 0), fields.ShortField("n", 0), tfrctrace_fields={"number": "n"}
    )
    # 16 bits that wrap
    payloads = [
        (START_S * 1_000_000 + 1000 * n, bytes(numbered(n=(65_530 + n) % 65_536)))
        for n in range(20)
        if n != 9
    ]
    write(tmp_path / "link.pcap", payloads)
    from tfrctrace.parsers import _native

    analysis = _native.analyse(
        [str(tmp_path / "link.pcap")], ReadSettings(dissect=((9000, layout_of(numbered)),))
    )
    flow = analysis.table("flows").rows()[0]
    assert (flow["sent_packets"], flow["received_packets"], flow["lost_packets"]) == (20, 19, 1)
    assert (flow["delay_mean_ms"], flow["jitter_ms"]) == (None, None)


INTEGERS = {
    "ByteField": (1, False),
    "ShortField": (2, False),
    "LEShortField": (2, True),
    "ThreeBytesField": (3, False),
    "IntField": (4, False),
    "LEIntField": (4, True),
    "LongField": (8, False),
    "LELongField": (8, True),
}


@given(st.lists(st.sampled_from(sorted(INTEGERS)), max_size=2), st.sampled_from(sorted(INTEGERS)))
def test_a_field_lies_where_scapy_writes_it(before, kind):
    described = [getattr(fields, name)(f"f{at}", 0) for at, name in enumerate(before)]
    made = header(*described, getattr(fields, kind)("seq", 0))
    (offset, size, little), time = layout_of(made)
    assert time is None
    value = int.from_bytes(bytes(range(1, size + 1)), "big")
    written = bytes(made(seq=value))
    assert int.from_bytes(written[offset : offset + size], "little" if little else "big") == value
    assert (size, little) == INTEGERS[kind]


def test_what_has_no_fixed_place_is_refused():
    behind_text = header(fields.StrField("text", ""), fields.IntField("seq", 0))
    with pytest.raises(UsageError, match="no datagram number"):
        layout_of(behind_text)
    odd = header(fields.BitField("flags", 0, 4), fields.BitField("seq", 0, 8))
    with pytest.raises(UsageError, match="no datagram number"):
        layout_of(odd)
    wrong = header(fields.IntField("a", 0), tfrctrace_fields={"number": "b"})
    with pytest.raises(UsageError, match="`b`"):
        layout_of(wrong)
    unit = header(fields.IntField("seq", 0), fields.IntField("t", 0), tfrctrace_fields={"time": ("t", "min")})
    with pytest.raises(UsageError, match="not a unit of time"):
        layout_of(unit)


@pytest.mark.parametrize(
    ("specification", "error"),
    [
        ("9000=iperf2", "is not a dissection rule"),
        ("udp:0=iperf2", "is not a dissection rule"),
        ("udp:70000=iperf2", "is not a dissection rule"),
        ("udp:9000=quic", "unknown layout `quic`"),
        ("udp:9000=no_such_module:Header", "cannot be loaded"),
        ("udp:9000=json:JSONDecoder", "not a scapy packet class"),
    ],
)
def test_a_wrong_specification_is_refused_with_the_reason(specification, error):
    with pytest.raises(UsageError, match=re.escape(error)):
        parse_dissect(specification)
    with pytest.raises(UsageError, match=re.escape(error)):
        tfrctrace.open("x", dissect=[specification])


def test_a_known_layout_is_passed_on():
    assert parse_dissect("udp:5001=iperf2") == (5001, "iperf2")
