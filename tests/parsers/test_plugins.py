"""Readers that other packages bring, and packets that are read back from CSV."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import UsageError
from tfrctrace.parsers.plugins import PacketStream, Reader, reader_named

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"
LOG = """\
1.000000 s 1 a b 100
1.500000 s 2 a b 100
1.600000 r 1 a b 100
2.000000 s 3 a b 200
2.250000 r 3 a b 200
"""


def python_block(having):
    """Return the code of the documentation that contains `having`."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    return next(block for block in blocks if having in block)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the reader of the documentation, as a package manager would."""
    site = tmp_path / "site"
    info = site / "pinglog-1.0.dist-info"
    info.mkdir(parents=True)
    source = python_block("class PingLog")
    (site / "pinglog.py").write_text(source)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pinglog\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tfrctrace.readers]\npinglog = pinglog:PingLog\n"
        "empty = pinglog:Iterator\nmissing = pinglog:Nothing\n"
    )
    monkeypatch.syspath_prepend(str(site))
    return {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


def flow_of(outcome):
    assert outcome.status == 0, outcome.err
    (there, _) = json.loads(outcome.out)["flows"]
    return there


@pytest.mark.parametrize("named", [True, False])
def test_the_reader_of_the_documentation_gives_delivery_and_delay(run, tmp_path, installed, named):
    (tmp_path / "ping.log").write_text(LOG)
    option = ("--input-format", "pinglog") if named else ()
    flow = flow_of(run("flows", "--format", "json", *option, "ping.log", environment=installed))
    assert (flow["src"], flow["dst"], flow["transport"]) == ("a", "b", "udp")
    counts = ("sent_packets", "received_packets", "lost_packets", "in_flight_packets")
    assert [flow[name] for name in counts] == [3, 2, 1, 0]
    assert (flow["delay_min_ms"], flow["delay_max_ms"]) == (250.0, 600.0)
    assert flow["delay_mean_ms"] == pytest.approx(425.0, rel=1e-12)


def test_packets_of_a_reader_can_be_converted(run, tmp_path, installed):
    (tmp_path / "ping.log").write_text(LOG)
    assert (
        run("convert", "ping.log", "-o", "x.csv", "--input-format", "pinglog", environment=installed).status
        == 0
    )
    frame = pl.read_csv(tmp_path / "x.csv")
    assert frame["event"].to_list() == ["sent", "sent", "received", "sent", "received"]


def test_an_exception_of_a_reader_ends_its_input_with_an_error(run, tmp_path, installed):
    (tmp_path / "ping.log").write_text(LOG + "what is this\n")
    outcome = run("flows", "ping.log", "--format", "json", environment=installed)
    assert outcome.status == 3
    assert "error: `ping.log`" in outcome.err
    assert "not enough values to unpack" in outcome.err


def test_an_unknown_format_is_refused_with_the_known_ones(run, installed):
    outcome = run("flows", "--input-format", "nam", "x", environment=installed)
    assert outcome.status == 2
    assert "unknown input format `nam`" in outcome.err
    assert "ns2" in outcome.err
    assert "pinglog" in outcome.err
    with pytest.raises(UsageError, match="unknown input format"):
        tfrctrace.open("x", input_format="nam")


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_what_is_no_reader_is_refused(installed, name):
    with pytest.raises(UsageError, match=name):
        reader_named(name)


def test_an_installed_reader_is_one(installed):
    assert isinstance(reader_named("pinglog"), Reader)


def test_a_packet_with_a_wrong_name_is_refused(installed):
    class Wrong:
        def recognises(self, start):
            return False

        def packets(self, file):
            yield {"time": 1}

    with pytest.raises(UsageError, match="'time'"):
        PacketStream(Wrong(), None).read(10_000)


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_stream_gives_the_same_bytes_in_any_pieces(size):
    class Few:
        def recognises(self, start):
            return False

        def packets(self, file):
            for number in range(20):
                yield {"time_ns": number, "src": "a, b", "dst": "c"}

    whole = PacketStream(Few(), None).read(1 << 30)
    stream = PacketStream(Few(), None)
    pieces = list(iter(lambda: stream.read(size), b""))
    assert b"".join(pieces) == whole
    assert all(len(piece) <= size for piece in pieces)
    assert whole.count(b"\n") == 21


def test_converted_packets_are_read_back_to_the_same_flows(run, write_capture, conversation, tmp_path):
    write_capture("a.pcap", [*conversation(), *conversation(50_000, data_packets=20)])
    assert run("convert", "a.pcap", "-o", "a.csv").status == 0
    before, after = (
        pl.DataFrame(
            json.loads(run("flows", name, "--format", "json").out)["flows"], infer_schema_length=None
        )
        for name in ("a.pcap", "a.csv")
    )
    # the table of packets does not have the MSS, which gives how much the wire carries in one packet
    of_mss = {"mss", "super_segments", "data_segments", "retransmitted_segments"}
    same = [name for name in before.columns if name not in {"source", "notes"} | of_mss]
    for name in same:
        assert before[name].to_list() == after[name].to_list(), name
