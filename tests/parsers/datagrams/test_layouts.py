"""TFRC over UDP with a layout of the user's: a simulation's ends, every field, and bad input."""

from __future__ import annotations

import json
import math
import re
import statistics
import struct
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import polars as pl
import pytest
from dccp_packets import ELAPSED_TIME, LOSS_EVENT_RATE, RECEIVE_RATE, RTT_ESTIMATE, Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from udp_tfrc import LAYOUT, PORT, SIZE, UdpConnection, data, datagram, report, write

import tfrctrace
from tfrctrace import cli
from tfrctrace.base.errors import UsageError
from tfrctrace.base.toml import read_toml
from tfrctrace.parsers.dissect import parse_dissect
from tfrctrace.parsers.layouts import KNOWN, PAYLOAD_BYTES, known_layouts, layout_of_table, read_layout
from tfrctrace.parsers.reading_settings import ReadSettings
from tfrctrace.trace.passes import TableName

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "layouts.md"
MS = 1_000_000
NONE = 0xFFFF_FFFF

Row = dict[str, Any]
Captured = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def truth() -> Row:
    document: Row = json.loads((ROOT / "sample_traces" / "dccp-ccid3.truth.json").read_text())
    return document


def opened(folder: Path, captured: Captured, layout: str = LAYOUT, **options: Any) -> tfrctrace.Trace:
    """Return the trace of datagrams at their times."""
    (folder / "layout.toml").write_text(layout)
    path = write(folder / "link.pcap", captured)
    trace = tfrctrace.open(path, dissect=[f"udp:{PORT}={folder / 'layout.toml'}"], **options)
    trace.read("flows", "feedback", "loss_events", "loss_intervals", "findings", "rtt")
    return trace


@pytest.fixture(scope="module", params=["receiver", "sender"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    connection = UdpConnection(at_sender=request.param == "sender")
    folder = tmp_path_factory.mktemp("simulated")
    return request.param, opened(folder, connection.run(), vantage=None)


def errors(trace: tfrctrace.Trace, truth: Row, ours: str, theirs: str, scale: float = 1) -> list[float]:
    """Return by which share a column differs from what an end computed, at every report."""
    pairs = zip(trace.feedback[ours].to_list(), truth["reports"], strict=True)
    known = [(row, one[theirs] * scale) for row, one in pairs if theirs in one and row is not None]
    return [abs(row / expected - 1) for row, expected in known if expected]


def test_the_ends_are_those_of_the_simulation(simulated: tuple[str, tfrctrace.Trace], truth: Row) -> None:
    at, trace = simulated
    forward = trace.flows.row(0, named=True)
    assert (forward["transport"], forward["vantage"]) == ("tfrc", at)
    assert forward["feedback_packets"] == len(truth["reports"])
    if at == "receiver":
        assert forward["loss_events"] == truth["loss_events"] == trace.loss_events.height
        assert trace.loss_events["packets"].sum() == truth["packets_lost"] == forward["lost_packets"]
        p = errors(trace, truth, "p", "p")
        assert statistics.median(p) < 1e-9
        # round-trip times go to the receiver in whole microseconds
        assert max(p) < 0.003
        assert statistics.median(errors(trace, truth, "x_recv_bps", "x_recv", 8)) < 1e-9
        return
    assert forward["loss_events"] == pytest.approx(truth["loss_events"], abs=2)
    # until three echoes show the place it is the estimate that the data carry
    assert max(errors(trace, truth, "rtt_ms", "r_sample_s", 1e3)[3:]) < 1e-9
    # without a handshake R begins with the first sample, and forgets that by a tenth with each report
    assert max(errors(trace, truth, "r_ms", "r_s", 1e3)[150:]) < 1e-6
    assert statistics.median(errors(trace, truth, "x_bps", "x", 8)) < 1e-4
    found = set(trace.findings["finding"])
    assert not found & {"above_allowed_rate", "halving_missed", "late_feedback", "impossible_value"}


def test_what_reports_say_is_shown_as_it_is(simulated: tuple[str, tfrctrace.Trace], truth: Row) -> None:
    _, trace = simulated
    rows = trace.feedback.to_dicts()
    for row, one in zip(rows, truth["reports"], strict=True):
        assert row["reported_x_recv_bps"] == round(one["x_recv"]) * 8
        if one["p"] == 0:
            assert row["reported_p"] == 0
        else:
            assert 1 / row["reported_p"] == pytest.approx(1 / one["p"], abs=1)
    assert trace.rtt["method"].unique().to_list() == ["report"]


class CmbConnection(UdpConnection):
    """The simulated connection in datagrams of cmb-protocol (struct formats are those of its code)."""

    def payload_of(self, header: Any, options: dict[int, int], sent_ns: int) -> bytes | None:
        if header.kind == Kind.Data:
            self.sent_us[header.seq] = sent_ns // 1000
            ms = (sent_ns // MS % (1 << 24)).to_bytes(3, "big")
            number = (header.seq % (1 << 24)).to_bytes(3, "big")
            head = struct.pack("!H6s3sH3s", 0xCB01, bytes(6), ms, options[RTT_ESTIMATE] // 1000, number)
            return head + bytes(SIZE - len(head))
        if header.kind != Kind.Ack or RECEIVE_RATE not in options:
            return None
        ms = (self.sent_us[header.ack] // 1000 % (1 << 24)).to_bytes(3, "big")
        inverse = options[LOSS_EVENT_RATE]
        p = 0.0 if inverse == NONE else 1 / inverse
        held_ms = options[ELAPSED_TIME] // 100
        return struct.pack("!HH3s1sIf", 0xCB06, held_ms, ms, b"\0", options[RECEIVE_RATE], p)


def test_a_public_programs_layout_by_its_name(tmp_path: Path, truth: Row) -> None:
    path = write(tmp_path / "link.pcap", CmbConnection(at_sender=False).run())
    trace = tfrctrace.open(path, dissect=[f"udp:{PORT}=cmb"])
    trace.read("flows", "feedback", "loss_events")
    assert trace.flows["transport"][0] == "tfrc"
    assert trace.loss_events["packets"].sum() == truth["packets_lost"]
    # times in whole milliseconds group losses a little otherwise
    assert trace.loss_events.height == pytest.approx(truth["loss_events"], abs=1)
    for row, one in zip(trace.feedback.to_dicts(), truth["reports"], strict=True):
        assert row["reported_x_recv_bps"] == round(one["x_recv"]) * 8
        assert row["reported_p"] == pytest.approx(1 / math.ceil(1 / one["p"]) if one["p"] else 0, rel=1e-7)


@pytest.mark.parametrize("name", known_layouts())
def test_layouts_by_name_are_files_like_any_other(name: str) -> None:
    assert parse_dissect(f"udp:9000={name}") == (9000, read_layout(str(KNOWN / f"{name}.toml")))
    assert f"| `{name}` |" in PAGE.read_text()


def test_tinycontrols_data_come_from_its_port(tmp_path: Path) -> None:
    sent = [struct.pack("!3I", number, 10 * number, 40) + bytes(988) for number in range(1, 60)]
    captured = [(number * 10 * MS, datagram(payload, back=True)) for number, payload in enumerate(sent, 1)]
    captured.append((600 * MS, datagram(struct.pack("!4I", 590, 2, 99_000, 7))))
    trace = tfrctrace.open(write(tmp_path / "link.pcap", captured), dissect=[f"udp:{PORT}=tinycontrol"])
    (row,) = trace.feedback.to_dicts()
    assert (row["sequence"], row["reported_x_recv_bps"], row["reported_p"]) == (59, 99_000 * 8, None)
    assert row["elapsed_ms"] == 2


def test_a_clock_that_begins_anew_makes_no_jitter(tmp_path: Path) -> None:
    layout = LAYOUT.replace('width = 5, order = "little"', "width = 4")

    def jitter(first_us: int) -> float:
        captured = []
        for number in range(200):
            sent_us = first_us + 10_000 * number
            head = struct.pack("!B", 1) + number.to_bytes(6, "big") + struct.pack("!I", sent_us % (1 << 32))
            late_ns = number % 3 * MS
            captured.append((10 * MS * number + late_ns, datagram(head + bytes([0]) + bytes(3) + bytes(900))))
        row = opened(tmp_path, captured, layout, vantage="receiver").flows.row(0, named=True)
        value: float = row["jitter_ms"]
        return value

    assert jitter((1 << 32) - 500_000) == pytest.approx(jitter(1_000_000), rel=1e-9)


def test_what_is_grouped_without_any_round_trip_time_is_reported(tmp_path: Path) -> None:
    layout = re.sub(r"rtt = .*\n", "", LAYOUT).split("[feedback]")[0]
    captured = [entry for entry in conversation({50, 52, 58}) if entry[1][24:26] != b"" and entry[1][28] == 1]
    (note,) = {row["notes"] for row in opened(tmp_path, captured, layout).flows.to_dicts() if row["packets"]}
    assert "197 data packets came before any round-trip time was known" in note
    assert "grouped by 0.2 s" in note


def plain_report(number: int) -> bytes:
    """Return a report 1 ms after the packet came."""
    return report(number, 10_000 * number, 100, 99_000, NONE)


def conversation(losses: set[int], reported: Callable[[int], bytes] = plain_report) -> Captured:
    """Return 200 packets 10 ms apart, and after every fourth a report, where the receiver is."""
    captured: Captured = []
    for number in range(200):
        time_us = 10_000 * number
        if number not in losses:
            captured.append((time_us * 1000, datagram(data(number, time_us, 40_000), ttl=60)))
        if number % 4 == 3:
            captured.append((time_us * 1000 + MS, datagram(reported(number), back=True)))
    return captured


def test_loss_events_are_grouped_by_the_round_trip_time_of_the_data(tmp_path: Path) -> None:
    # 50 and 52 are within 40 ms, 58 is not, and 120 is alone
    trace = opened(tmp_path, conversation({50, 52, 58, 120}))
    assert trace.flows["loss_events"][0] == 3
    assert trace.loss_events["packets"].to_list() == [2, 1, 1]
    starts = [50, 58, 120]
    expected = [float(after - before) for before, after in pairwise(starts)]
    last = trace.loss_intervals.filter(pl.col("packet") == pl.col("packet").max())
    # the open interval, two that are closed, and the one before the first event by the equation
    assert last["packets"].to_list()[:3] == [200 - 120, *reversed(expected)]
    assert trace.flows["vantage"][0] == "receiver"


def test_without_a_round_trip_time_in_the_data_it_is_given(tmp_path: Path) -> None:
    layout = re.sub(r"rtt = .*\n", "", LAYOUT)
    captured = conversation({50, 52, 58, 120})
    trace = opened(tmp_path, captured, layout, tfrc={"rtt": "100ms"})
    assert trace.flows["loss_events"][0] == 2
    assert "no round-trip time in the data" in trace.flows["notes"][0]


def test_without_reports_the_receiver_is_rebuilt_alone(tmp_path: Path) -> None:
    layout = LAYOUT.partition("[feedback]")[0]
    trace = opened(tmp_path, conversation({50, 120}), layout)
    assert (trace.flows["transport"][0], trace.flows["loss_events"][0]) == ("tfrc", 2)
    assert trace.feedback.is_empty()
    assert "no report about this TFRC flow" in trace.flows["notes"][0]


def test_a_given_place_overrides_the_inferred_one(tmp_path: Path) -> None:
    trace = opened(tmp_path, conversation({50}), vantage="middle")
    assert (trace.flows["vantage"][0], trace.flows["vantage"][1]) == ("middle", "middle")


def test_numbers_wrap_in_their_own_width(tmp_path: Path) -> None:
    layout = """
    [data]
    direction = "to_port"
    sequence = { offset = 0, width = 1 }
    rtt = { offset = 1, width = 4, form = "float", unit = "s" }
    [feedback]
    sequence = { offset = 0, width = 1 }
    loss_event_rate = { offset = 1, width = 8, form = "float", order = "little" }
    """
    captured: Captured = []
    for number in range(600):
        time_ns = 10 * MS * number
        if number not in {254, 255, 256, 400}:
            captured.append((time_ns, datagram(struct.pack("!Bf", number % 256, 0.05) + bytes(200))))
        if number % 5 == 4:
            captured.append((time_ns + MS, datagram(struct.pack("<Bd", number % 256, 0.02), back=True)))
    trace = opened(tmp_path, captured, layout)
    forward = trace.flows.row(0, named=True)
    assert (forward["sent_packets"], forward["lost_packets"], forward["loss_events"]) == (600, 4, 2)
    assert (forward["loss_event_rate"], forward["feedback_packets"]) == (0.02, 120)
    seen = trace.feedback.filter(pl.col("rtt_ms").is_not_null())
    assert set(trace.rtt["rtt_ns"]) == {MS}, "the acknowledged packet gives it, without an echo"
    assert seen.height > 0


def test_the_forms_of_a_loss_event_rate(tmp_path: Path) -> None:
    forms = {
        "form = 'inverse'": (25, 0.04),
        "unit = 'full'": (round(0.04 * NONE), 0.04),
        "unit = 1e-6": (40_000, 0.04),
        "form = 'float'": (int.from_bytes(struct.pack("!f", 0.04), "big"), 0.04),
    }
    for described, (raw, expected) in forms.items():
        layout = LAYOUT.replace('form = "inverse"', described.replace("'", '"'))
        captured = conversation(set(), reported=lambda n, raw=raw: report(n, 10_000 * n, 100, 99_000, raw))
        trace = opened(tmp_path, captured, layout)
        assert trace.feedback["reported_p"].to_list() == pytest.approx([expected] * 50, rel=1e-7), described


def test_what_cannot_be_is_a_finding_and_a_null(tmp_path: Path) -> None:
    odd = {
        # an inverse of 0
        19: report(19, 190_000, 100, 99_000, 0),
        # an echo of nothing
        39: report(1 << 47, (1 << 40) - 1, 100, 99_000, NONE),
        # held for longer than the packet was away
        59: report(59, 590_000, NONE, 99_000, NONE),
        # cut short, and neither data nor a report
        79: report(79, 790_000, 100, 99_000, NONE)[:10],
        99: b"\x03hello",
    }
    captured = conversation({50}, reported=lambda number: odd.get(number, plain_report(number)))
    captured.append((2_000 * MS, datagram(data(1 << 47, 2_000_000, 40_000))))
    trace = opened(tmp_path, captured)
    found = trace.findings.group_by("finding").len().sort("finding").rows()
    assert found == [
        ("impossible_elapsed_time", 1),
        ("impossible_value", 1),
        ("sequence_jump", 1),
        ("unseen_acknowledged", 1),
    ]
    assert trace.feedback["reported_p"].null_count() == 1
    backward = trace.flows["notes"][1]
    assert "1 datagram is too short for its layout" in backward
    assert "1 datagram is neither data nor report by" in backward
    assert trace.flows["loss_events"][0] == 1


def test_numbers_of_2_to_the_63_are_no_trouble(tmp_path: Path) -> None:
    layout = """
    [data]
    direction = "to_port"
    sequence = { offset = 0, width = 8 }
    send_time = { offset = 8, width = 8, unit = "s" }
    rtt = { offset = 16, width = 8, unit = "s" }
    [feedback]
    time_echo = { offset = 0, width = 8 }
    elapsed = { offset = 8, width = 8, unit = "s" }
    receive_rate = { offset = 16, width = 8, unit = "MB/s" }
    loss_event_rate = { offset = 24, width = 8, form = "inverse" }
    """
    captured: Captured = []
    for number in range(40):
        huge = (1 << 63) + number
        small = number if number % 2 else huge
        captured.append((number * MS, datagram(struct.pack("!3Q", huge, small, huge) + bytes(100))))
        captured.append((number * MS + 1, datagram(struct.pack("!4Q", small, huge, huge, huge), back=True)))
    trace = opened(tmp_path, captured, layout)
    assert trace.feedback.height == 40
    # seconds beyond the times there are
    assert "20 datagrams are too short for their layout, or their time" in trace.flows["notes"][0]
    assert trace.flows["sent_packets"][0] == 39


def field(offset: int, width: int, order: str, **more: object) -> str:
    """Return a field as TOML."""
    rest = "".join(f", {key} = {json.dumps(value)}" for key, value in more.items())
    return f'{{ offset = {offset}, width = {width}, order = "{order}"{rest} }}'


@st.composite
def places(draw: st.DrawFn, count: int) -> list[tuple[int, int, str]]:
    """Draw fields one behind the other with gaps, in any order, within what is read."""
    widths = draw(st.lists(st.integers(2, 6), min_size=count, max_size=count))
    room = PAYLOAD_BYTES - sum(widths)
    gaps = draw(st.lists(st.integers(0, max(0, room // count)), min_size=count, max_size=count))
    found, offset = [], 0
    for width, gap in zip(widths, gaps, strict=True):
        found.append((offset + gap, width, draw(st.sampled_from(["big", "little"]))))
        offset += gap + width
    return draw(st.permutations(found))


def laid(values: list[int], at: list[tuple[int, int, str]]) -> bytes:
    """Return a payload with values at their places and noise between."""
    payload = bytearray(b"\xa5" * PAYLOAD_BYTES)
    for value, (offset, width, order) in zip(values, at, strict=True):
        payload[offset : offset + width] = value.to_bytes(width, "little" if order == "little" else "big")
    return bytes(payload)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(places(3), places(5))
def test_a_layout_finds_what_was_laid_out(
    tmp_path: Path, of_data: list[tuple[int, int, str]], of_reports: list[tuple[int, int, str]]
) -> None:
    # the number of a report is as wide as that of the data
    offset, _, order = of_reports[4]
    width = min(of_reports[4][1], of_data[0][1])
    of_data[0] = (of_data[0][0], width, of_data[0][2])
    of_reports[4] = (offset, width, order)
    layout = f"""
    [data]
    direction = "to_port"
    sequence = {field(*of_data[0])}
    send_time = {field(*of_data[1], unit="ms")}
    rtt = {field(*of_data[2], unit="ms")}
    [feedback]
    time_echo = {field(*of_reports[0])}
    elapsed = {field(*of_reports[1], unit="ms")}
    receive_rate = {field(*of_reports[2], unit="kbit/s")}
    loss_event_rate = {field(*of_reports[3], unit=1e-4)}
    sequence = {field(*of_reports[4])}
    """
    captured: Captured = []
    for number in range(20):
        captured.append((10 * MS * number, datagram(laid([number, 5 + 10 * number, 300], of_data))))
        values = [5 + 10 * number, 2, 1000 + number, 30 + number, number]
        captured.append((10 * MS * number + 8 * MS, datagram(laid(values, of_reports), back=True)))
    trace = opened(tmp_path, captured, layout)
    rows = trace.feedback.to_dicts()
    assert [row["sequence"] for row in rows] == list(range(20))
    assert [row["elapsed_ms"] for row in rows] == [2.0] * 20
    assert [row["reported_x_recv_bps"] for row in rows] == [(1000 + n) * 1000 for n in range(20)]
    assert [row["reported_p"] for row in rows] == pytest.approx([(30 + n) * 1e-4 for n in range(20)])
    assert trace.rtt["rtt_ns"].to_list() == [6 * MS] * 20


BASE = {
    "data": {"direction": "to_port", "sequence": {"offset": 0, "width": 4}},
    "feedback": {"loss_event_rate": {"offset": 0, "width": 4, "form": "inverse"}},
}
"""A layout with as little as there can be."""


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("data", None, "`[data]` is missing"),
        ("data", 5, "`data` must be a table"),
        ("sender", {}, "unknown key `sender`"),
        ("data.sequnce", {}, "unknown key `sequnce` in `data`"),
        ("order", "middle", "`order` cannot be `middle`"),
        ("data.sequence", None, "`data.sequence` is missing"),
        ("data.sequence", 4, "`data.sequence` must be a table"),
        ("data.sequence.width", None, "`data.sequence.width` is missing"),
        ("data.sequence.width", 9, "`data.sequence.width` must be 1 to 8 bytes, not 9"),
        ("data.sequence.width", 0, "`data.sequence.width` must be 1 to 8 bytes, not 0"),
        ("data.sequence.width", 2.5, "`data.sequence.width` must be a whole number"),
        ("data.sequence.offset", 29, "ends at byte 33, but only the first 32 are read"),
        ("data.sequence.offset", -1, "`data.sequence.offset` must be a number of at least 0"),
        ("data.sequence.unit", "ms", "unknown key `unit` in `data.sequence`"),
        ("data.sequence.order", "net", "`data.sequence.order` cannot be `net`"),
        ("data.direction", "up", "`data.direction` cannot be `up`"),
        ("data.direction", None, "data and feedback cannot be distinguished"),
        ("feedback.direction", "to_port", "data and feedback cannot be distinguished"),
        ("data.send_time", {"offset": 4, "width": 4}, "`data.send_time.unit` is missing"),
        ("data.send_time", {"offset": 4, "width": 4, "unit": "min"}, "`data.send_time.unit` cannot be `min`"),
        ("data.send_time", {"offset": 4, "width": 4, "unit": 5}, "must be a whole number of nanoseconds"),
        ("data.send_time", {"offset": 4, "width": 4, "unit": 0}, "`data.send_time.unit` is 0"),
        (
            "data.send_time",
            {"offset": 3, "width": 4, "unit": "s"},
            "` and `data.sequence` share bytes",
        ),
        (
            "data.rtt",
            {"offset": 4, "width": 3, "unit": "s", "form": "float"},
            "`data.rtt.width` is 3, but a float",
        ),
        ("data.rtt", {"offset": 4, "width": 4, "unit": "s", "form": "inverse"}, "`data.rtt.form` cannot be"),
        ("data.when", {"offset": 9, "width": 1}, "`data.when.is` is missing"),
        (
            "data.when",
            {"offset": 9, "width": 1, "is": 256},
            "must be a whole number from 0 to 255",
        ),
        ("data.when", {"offset": 9, "width": 1, "is": 3, "mask": 2}, "`data.when.is` can never match"),
        ("feedback.loss_event_rate", None, "neither `receive_rate` nor `loss_event_rate`"),
        ("feedback.loss_event_rate.form", "integer", "`feedback.loss_event_rate.unit` is missing"),
        ("feedback.time_echo", {"offset": 4, "width": 4}, "`feedback.time_echo` needs a `data.send_time`"),
        ("feedback.sequence", {"offset": 4, "width": 2}, "must be as wide as `data.sequence`"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: object, error: str) -> None:
    layout: Row = json.loads(json.dumps(BASE))
    *tables, key = path.split(".")
    table = layout
    for name in tables:
        table = table[name]
    if value is None:
        del table[key]
    else:
        table[key] = value
    with pytest.raises(UsageError, match=re.escape(error)):
        layout_of_table(layout)


def test_a_file_that_is_no_layout_is_named(tmp_path: Path) -> None:
    path = tmp_path / "my layout.toml"
    with pytest.raises(UsageError, match=r"my layout.toml`: no such file"):
        parse_dissect(f"udp:{PORT}={path}")
    path.write_text("data = {")
    with pytest.raises(UsageError, match=r"my layout.toml`: not TOML"):
        tfrctrace.open("x", dissect=[f"udp:{PORT}={path}"])


def test_what_the_core_gets_is_checked_there_too() -> None:
    from tfrctrace.parsers import _native

    layout = layout_of_table(BASE)
    layout["data"]["rtt"] = ((4, 3, False), "float", 1.0)
    with pytest.raises(ValueError, match="a float has 4 or 8 bytes"):
        _native.analyse(["x"], ReadSettings(dissect=((PORT, layout),)))
    layout["data"]["rtt"] = ((30, 3, False), "integer", 1.0)
    with pytest.raises(ValueError, match="first 32 bytes"):
        _native.analyse(["x"], ReadSettings(dissect=((PORT, layout),)))


def test_the_layout_of_the_documentation_works(run: Callable[..., Any], tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert block is not None
    (tmp_path / "stream.toml").write_text(block[1])
    layout = read_layout(str(tmp_path / "stream.toml"))
    assert layout == layout_of_table(read_toml(str(tmp_path / "stream.toml"), 1 << 16))
    captured: Captured = []
    for number in range(100):
        if number not in {30, 31, 70}:
            payload = struct.pack("!III", number, 1000 + 10 * number, 40 if number else 0)
            captured.append((10 * MS * number, datagram(payload + bytes(500))))
        if number % 4 == 3:
            payload = struct.pack("!4I", 1000 + 10 * number, 2, 51_200, round(0.01 * NONE))
            captured.append((10 * MS * number + 2 * MS, datagram(payload, back=True)))
    write(tmp_path / "link.pcap", captured)
    outcome = run("flows", "--format", "json", "--dissect", f"udp:{PORT}=stream.toml", "link.pcap")
    assert outcome.status == 0, outcome.err
    flow = json.loads(outcome.out)["flows"][0]
    assert (flow["transport"], flow["loss_events"], flow["feedback_packets"]) == ("tfrc", 2, 25)
    assert flow["loss_event_rate"] == pytest.approx(0.01, rel=1e-8)
    assert flow["x_recv_bps"] == 51_200 * 8


@pytest.mark.parametrize(("option", "value"), [("vantage", "receiver"), ("dissect", "udp:9000=layout.toml")])
def test_convert_refuses_an_option_only_for_tables_that_it_does_not_change(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    option: str,
    value: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    connection = UdpConnection(at_sender=True).run()
    known = opened(tmp_path, connection)
    other = opened(tmp_path, connection, **({"vantage": value} if option == "vantage" else {}))
    if option == "dissect":
        known = tfrctrace.open(tmp_path / "link.pcap")
    for table in get_args(TableName):
        if table in {"transits", "hops"}:  # of several captures
            continue
        command = ["convert", "link.pcap", "--what", table, "-o", f"{table}.csv", f"--{option}", value, "-q"]
        status = cli.run(command)
        printed = capsys.readouterr().err
        if status == 2:
            assert f"`--{option}` applies to `--what" in printed
            assert known.table(table).frame().equals(other.table(table).frame()), table
        else:
            assert status == 0, printed


def test_bins_have_every_round_trip_by_reports(tmp_path: Path) -> None:
    trace = opened(tmp_path, UdpConnection(at_sender=True).run())
    samples = trace.rtt
    assert samples.height > 10
    assert trace.bins["rtt_samples"].sum() == samples.height
    longest_ms = samples["rtt_ns"].max() / 1e6
    assert trace.bins["rtt_max_ms"].max() == pytest.approx(longest_ms)
