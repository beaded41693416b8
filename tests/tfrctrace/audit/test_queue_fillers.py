"""Who filled the queue in incidents under load, by connections of kernels whose senders are known."""

import gzip
import json
import struct
from collections import Counter
from pathlib import Path

import pytest

from tfrctrace.commands.checked_runs import RecordingConsole
from tfrctrace.commands.console import Console
from tfrctrace.metrics.audit.queue_fillers import FilledQueue, QueueFiller
from tfrctrace.reports.audit.incident_tables import filled_words
from tfrctrace.trace.passes import wait_quietly

DATA = Path(__file__).parents[2] / "data"
QUIET = DATA / "bottlenecks" / "0005-bursts-veno"
FILLERS = [DATA / "congestion_controls" / name for name in ("17-0000-bbr", "38-0013-scalable")]
BEGIN_S, FULL_S = 1_767_571_200, 26
"""2026-01-05, and when two connections join the first one, which lasts for 30 s."""
LIMITS = """
[[objective]]
name = "delay"
require = "median(rtt_ms) < 60 ms"
by = "link"
every = "1s"
least = 1
raise = 3
clear = 3
"""


def records(run: Path, begin_s: int):
    """Give times in ns from `begin_s` on, lengths on the wire and bytes of the packets of a capture."""
    with gzip.open(run / "sender.pcap.gz") as file:
        capture = file.read()
    in_ns = 1 if capture[:4] == b"\x4d\x3c\xb2\xa1" else 1000
    at, first_ns = 24, None
    while at < len(capture):
        seconds, part, size, on_wire = struct.unpack_from("<IIII", capture, at)
        time_ns = seconds * 10**9 + part * in_ns
        first_ns = time_ns if first_ns is None else first_ns
        yield time_ns - first_ns + begin_s * 10**9, on_wire, capture[at + 16 : at + 16 + size]
        at += 16 + size


def write_link(folder: Path, begin_s: int):
    """Write one capture of all connections, and return its packets."""
    of_fillers = (packet for run in FILLERS for packet in records(run, begin_s + FULL_S))
    packets = sorted([*records(QUIET, begin_s), *of_fillers])
    (folder / "limits.toml").write_text(LIMITS)
    with (folder / "link.pcap").open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        for time_ns, on_wire, data in packets:
            file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(data), on_wire) + data)
    return packets


def audited(run, tmp_path, *arguments):
    done = run("audit", *arguments, "-o", "audit", "--limits", "limits.toml")
    assert done.status == 0, done.err
    return done.err, json.loads((tmp_path / "audit" / "audit.json").read_text())["incidents"]


def scenario(run: Path):
    return json.loads((run / "scenario.json").read_text())["sender"]


def test_flows_that_filled_the_queue_are_named_with_their_congestion_controls(run, tmp_path):
    packets = write_link(tmp_path, BEGIN_S)
    printed, (incident,) = audited(run, tmp_path, "link.pcap")
    assert (incident["under_load"], incident["no_queue_filled_by"]) == (True, None)
    senders = [scenario(run) for run in FILLERS]
    ports = [one["port"] for one in senders]
    found = incident["queue_filled_by"]
    assert [one["src_port"] for one in found] == ports
    assert [one["congestion_control"] for one in found] == ["bbr", "nv|scalable"]
    for one, sender in zip(found, senders, strict=True):
        assert sender["controller"] in one["congestion_control"].split("|")
    assert found[0]["predicted_share"] is None  # BBR is named by its own sign
    assert found[1]["predicted_share"] > 0.75
    # by the lengths in the records of the capture while it lasted: acknowledgements rose with data
    sent = Counter()
    for time_ns, on_wire, data in packets:
        if incident["begin_ns"] <= time_ns < incident["end_ns"]:
            sent[struct.unpack_from(">H", data, 34)[0]] += on_wire
    for one in found:
        assert one["share"] == pytest.approx(sent[one["src_port"]] / sent.total(), abs=0.005)
    words = f":{ports[0]} → "
    summary = (tmp_path / "audit" / "summary.md").read_text()
    page = (tmp_path / "audit" / "index.html").read_text()
    assert all("ueue filled mostly by" in text and words in text for text in (printed, summary, page))
    assert ", bbr) and " in printed

    # what was read is kept, and what is damaged is read again if the captures are there
    (tmp_path / "link.pcap").rename(tmp_path / "moved.pcap")
    assert audited(run, tmp_path, "audit")[1] == [incident]
    (tmp_path / "audit" / "fillers.json").write_text('{"key": {"made_by": 5}}')
    printed, (without,) = audited(run, tmp_path, "audit")
    assert without["queue_filled_by"] is None
    assert without["no_queue_filled_by"].startswith("its captures are gone")
    assert "who filled the queue is not known: its captures are gone" in printed
    (tmp_path / "moved.pcap").rename(tmp_path / "link.pcap")
    assert audited(run, tmp_path, "link.pcap")[1] == [incident]
    # windows do not show elsewhere than at the sender
    _, (elsewhere,) = audited(run, tmp_path, "link.pcap", "--vantage", "receiver")
    reasons = [one["congestion_control_reason"] for one in elsewhere["queue_filled_by"]]
    assert set(reasons) == {"away_from_sender"}


def test_what_is_read_again_shows_its_progress_on_a_terminal(run, tmp_path, monkeypatch):
    write_link(tmp_path, BEGIN_S)
    shown = []

    def watch(console, running):
        shown.append(console.shows_progress)
        wait_quietly(running)

    monkeypatch.setattr(RecordingConsole, "watch", watch)
    monkeypatch.setattr(Console, "shows_progress", property(lambda console: not console.quiet))
    audited(run, tmp_path, "link.pcap")
    # all flows by their bytes, then what names the two that filled the queue
    assert shown == [True, True]
    (tmp_path / "audit" / "fillers.json").unlink()
    audited(run, tmp_path, "link.pcap", "--quiet")
    assert shown[2:] == [False, False]


def test_a_capture_of_a_clock_that_was_never_set_is_read_again_too(run, tmp_path):
    write_link(tmp_path, 1_000)
    _, (incident,) = audited(run, tmp_path, "link.pcap")
    assert len(incident["queue_filled_by"]) == len(FILLERS)


def test_nothing_is_read_again_where_no_incident_is_under_load(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tfrctrace.commands.audit._open_quietly", lambda *_, **__: pytest.fail("read again"))
    (tmp_path / "limits.toml").write_text(LIMITS.replace("60 ms", "10 ms").replace("1s", "5s"))
    _, (incident,) = audited(run, tmp_path, DATA / "causes" / "0002-receiver-vegas" / "sender.pcap.gz")
    assert (incident["under_load"], incident["queue_filled_by"]) == (False, None)
    assert incident["no_queue_filled_by"] is None


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.3, 0.25), "queue filled mostly by a:1 → b:2 (30.0 % of bytes) and a:1 → b:2 (25.0 % of bytes)"),
        ((0.12,), "queue filled by many, the largest: a:1 → b:2 (12.0 % of bytes)"),
    ],
)
def test_a_queue_is_filled_mostly_by_those_with_half_of_the_bytes(shares, words):
    fillers = tuple(QueueFiller("a", 1, "b", 2, 1, (1, "fwd"), share) for share in shares)
    assert filled_words(FilledQueue(fillers)) == words
