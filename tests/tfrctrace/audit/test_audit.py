"""`tfrctrace audit`: the folder that it writes, what it reads the next time, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import struct
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import jsonschema
import polars as pl
import pytest

import tfrctrace
from tfrctrace.audit.audit_folder import AuditFolder
from tfrctrace.audit.link_days import LinkDays
from tfrctrace.audit.pieces import BatchResults, Piece, named_links
from tfrctrace.base.errors import UsageError
from tfrctrace.base.grouping import parse_grouping
from tfrctrace.base.inventory import Inventory
from tfrctrace.batch import chains
from tfrctrace.batch.capture_files import find_captures
from tfrctrace.gate.limits_file import read_objectives
from tfrctrace.metrics.audit.attribution import Attribution, Reason
from tfrctrace.metrics.audit.courses import Course
from tfrctrace.metrics.audit.incidents import Incident, raised_stretches
from tfrctrace.metrics.results.audit import AuditDocument, FoundIncident
from tfrctrace.metrics.results.schemas import schema_of
from tfrctrace.reports.audit import audit_json
from tfrctrace.reports.audit.incident_tables import command
from tfrctrace.reports.audit.place_words import reason_text

ROOT = Path(__file__).resolve().parents[3]
LIMITS = """
[[objective]]
name = "delay"
require = "median(rtt_ms) < 100 ms"
by = "link"
every = "5min"
raise = 2
clear = 3

[[objective]]
name = "networks"
require = "p95(rtt_ms) < 250 ms"
by = "prefix/24"
every = "10min"
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory) -> Path:
    """Return captures of two days of twelve hours each, with a full queue in the first."""
    sys.path.insert(0, str(ROOT / "evaluation/links"))
    try:
        from link import draw_link
        from link_files import write_link
    finally:
        sys.path.remove(str(ROOT / "evaluation/links"))
    folder = tmp_path_factory.mktemp("captures")
    link = draw_link(7, ["bufferbloat"], days=26 / 24, hosts=6, connections_per_s=0.04)
    (fault,) = link.faults
    write_link(link, folder)
    (folder / "truth.json").rename(folder.parent / "truth.json")
    assert fault.until_s < 86_400
    return folder


@pytest.fixture(scope="module")
def evening(captures, tmp_path_factory) -> Path:
    """Return the captures of the second half of the first day."""
    folder = tmp_path_factory.mktemp("evening")
    for path in captures.glob("link-20260105*.pcap"):
        if path.stem[-4:] >= "1200":
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def audited(captures, tmp_path_factory, run_in) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    (folder / "limits.toml").write_text(LIMITS)
    outcome = run_in(folder, "audit", captures, "-o", "audit", "--limits", "limits.toml")
    assert outcome.status == 0, outcome.err
    assert "1 link, 1 incident" in outcome.err
    return folder


def document(folder: Path) -> dict:
    return json.loads((folder / "audit" / "audit.json").read_text())


def test_the_document_is_as_its_schema_says_and_names_the_incident(audited, captures):
    found = document(audited)
    jsonschema.validate(found, schema_of(AuditDocument, "tfrctrace audit"))
    (incident,) = found["incidents"]
    (fault,) = json.loads((captures.parent / "truth.json").read_text())["faults"]
    begin_s = 1_767_571_200  # 2026-01-05
    assert incident["begin_ns"] / 1e9 - begin_s == pytest.approx(fault["since_s"], abs=600)
    assert incident["end_ns"] / 1e9 - begin_s == pytest.approx(fault["until_s"], abs=600)
    side = "client side" if "near_rtt_s" in fault else "server side"
    assert (incident["place"], incident["under_load"]) == (side, True)
    assert {one["objective"] for one in incident["stretches"]} == {"delay", "networks"}
    assert "10.20.0.0/24" in {one["group"] for one in incident["stretches"]}
    # the files of its time, and no others
    hours = {int(re.search(r"(\d\d)00\.pcap", name)[1]) for name in incident["files"]}
    assert hours == set(range(int(fault["since_s"] // 3600), int(fault["until_s"] // 3600) + 1))


def test_an_incident_lasts_no_longer_than_the_capture(run, tmp_path):
    sample = Path(__file__).parents[3] / "sample_traces" / "mixed.pcap.zst"
    assert run("audit", sample, "-o", "audit").status == 0
    (incident,) = document(tmp_path)["incidents"]
    # what capinfos says of this capture, in an interval of three minutes
    assert incident["end_ns"] - incident["begin_ns"] == 9_377_812_000
    assert {one["end_ns"] - one["begin_ns"] for one in incident["stretches"]} == {9_377_812_000}
    assert "(9.38 s in all)" in (tmp_path / "audit" / "summary.md").read_text()


COUNTERS = {
    "statistics of an idle interface": {4: 0, 5: 0},
    "statistics of a filter": {4: 500, 5: 0, 6: 0},
    "a filter without statistics of its own": {4: 0, 5: 0},
    "statistics of losses": {4: 500, 5: 400, 7: 100},
}
"""Of an Interface Statistics Block (pcapng section 4.6): received, dropped, accepted, dropped by system."""


# the option if_filter as dumpcap 4.0 writes it for `-f "udp port 9"`: 0 for a text, and the text
FILTER = struct.pack("<HH", 11, 11) + b"\0udp port 9" + bytes(1 + 4)


def pcapng(
    capture: bytes, times_s: tuple[int, int], counters: dict[int, int], interface: bytes = b""
) -> bytes:
    """Return a capture in pcapng, with options of its interface and the statistics that dumpcap writes."""

    def block(kind: int, body: bytes) -> bytes:
        length = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + length + body + length

    def time(time_us: int) -> bytes:
        return struct.pack("<II", time_us >> 32, time_us & 0xFFFF_FFFF)

    start, end = (time(time_s * 1_000_000) for time_s in times_s)
    options = [(2, start), (3, end), *((code, struct.pack("<Q", count)) for code, count in counters.items())]
    statistics = b"".join(struct.pack("<HH", code, len(value)) + value for code, value in options)
    packets, at = [], 24
    while at < len(capture):
        seconds, ns, size, on_wire = struct.unpack_from("<IIII", capture, at)
        head = (
            struct.pack("<I", 0) + time(seconds * 1_000_000 + ns // 1000) + struct.pack("<II", size, on_wire)
        )
        packets.append(block(6, head + capture[at + 16 : at + 16 + size] + bytes(-size % 4)))
        at += 16 + size
    return b"".join(
        [
            block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
            block(1, struct.pack("<HHI", struct.unpack_from("<I", capture, 20)[0], 0, 65_535) + interface),
            *packets,
            block(5, struct.pack("<I", 0) + end + statistics),
        ]
    )


def with_statistics(captures: Path, into: Path, silent: dict[int, int], interface: bytes = b"") -> None:
    """Write the captures with statistics; `silent` are the counters of three hours without packets."""
    into.mkdir()
    for path in captures.iterdir():
        start_s = int(datetime.strptime(path.stem + "+0000", "link-%Y%m%d%H%M%z").timestamp())
        is_silent = bool(silent) and path.stem[-12:-2] in {"2026010518", "2026010519", "2026010520"}
        data = path.read_bytes()[: 24 if is_silent else None]
        counters = silent if is_silent else {4: 100_000, 5: 0}
        (into / path.name).write_bytes(pcapng(data, (start_s, start_s + 3_600), counters, interface))


def test_files_that_say_when_they_were_captured_show_that_no_capture_ran(evening, run, tmp_path):
    own = tmp_path / "captures"
    with_statistics(evening, own, {})
    for hour in (18, 19, 20):
        (own / f"link-20260105{hour}00.pcap").unlink()
    assert run("audit", own, "-o", "audit").status == 0
    found = document(tmp_path)
    (silence,) = found["links"][0]["silent"]
    assert (silence["kind"], silence["proofs"]) == ("capture stopped", ["capture ended"])
    (incident,) = [one for one in found["incidents"] if not one["stretches"]]
    assert (incident["place"], incident["confidence"]) == ("capture", "high")


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        (70, "the capture counted 70 dropped packets in these files"),
        (0, "the capture counted no dropped packet in these files, so they did not reach it"),
        (None, ""),
    ],
)
def test_what_the_capture_says_that_it_dropped_stands_beside_the_data_that_it_missed(
    dropped, words, tmp_path
):
    interface = {"dropped_packets": dropped}
    sources = ({"source": "a", "interfaces": [interface]}, {"source": "b", "interfaces": [{**interface}]})
    piece = Piece("k", "a", "a", ("a", "b"), 0, sources, (), False, {}, None, False, False, ())
    link = LinkDays("a", (piece,), parse_grouping("host", "5min"), (), AuditFolder(str(tmp_path)), ())
    reason = Reason("worse", worse=())
    missed = Attribution("capture", "all hosts", (), (), "high", reason, "", ())
    told = reason_text(link._with_drops(missed, ["a"]).reason)
    assert told.partition("; ")[2] == words
    elsewhere = replace(missed, place="client side")
    assert link._with_drops(elsewhere, ["a"]) == elsewhere


@pytest.mark.parametrize(
    ("left", "facts"),
    [
        ("headers", ("link dead", ["empty files"], "link")),
        ("requests of ARP", ("link dead", ["other packets"], "link")),
        ("nothing", ("unknown", [], "capture")),
        (
            "statistics of an idle interface",
            ("link dead", ["empty files", "capture running", "nothing received"], "link"),
        ),
        (
            "statistics of a filter",
            ("nobody there", ["empty files", "capture running", "filtered packets"], "unknown"),
        ),
        (
            "a filter without statistics of its own",
            (
                "nobody there",
                ["empty files", "capture running", "nothing received", "capture filter"],
                "unknown",
            ),
        ),
        ("statistics of losses", ("capture stopped", ["dropped packets"], "capture")),
    ],
)
def test_what_is_left_of_a_silence_tells_what_it_was(evening, left, facts, run, tmp_path):
    kind, proofs, place = facts
    own = tmp_path / "captures"
    if left in COUNTERS:
        with_statistics(evening, own, COUNTERS[left], FILTER if left.startswith("a filter") else b"")
    else:
        shutil.copytree(evening, own)
    for hour in () if left in COUNTERS else (18, 19, 20):
        path = own / f"link-20260105{hour}00.pcap"
        if left == "nothing":
            path.unlink()
            continue
        # who-has (RFC 826), which no host answers; times of this file are in nanoseconds
        arp = bytes.fromhex(
            "ffffffffffff020000000002080600010800060400010200000000020a1400010000000000000a140002"
        )
        record = struct.pack("<IIII", 1_767_571_200 + 3_600 * hour + 900, 0, len(arp), len(arp)) + arp
        path.write_bytes(path.read_bytes()[:24] + (record if left == "requests of ARP" else b""))
    assert run("audit", own, "-o", "audit").status == 0
    found = document(tmp_path)
    (silence,) = found["links"][0]["silent"]
    assert (silence["kind"], silence["proofs"]) == (kind, proofs)
    assert silence["end_ns"] - silence["begin_ns"] == pytest.approx(3 * 3_600 * 10**9, rel=0.01)
    (incident,) = [one for one in found["incidents"] if not one["stretches"]]
    assert incident["place"] == place
    shown = (tmp_path / "audit" / "index.html").read_text()
    assert ("the capture ran" in shown) == (kind in {"link dead", "nobody there"})
    # where names are replaced, nobody knows when files without packets were written
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    assert run("audit", own, "-o", "hidden", "--anonymize-key", "key").status == 0
    (hidden,) = json.loads((tmp_path / "hidden" / "audit.json").read_text())["links"][0]["silent"]
    if left != "headers":
        assert hidden == silence
    assert (hidden["begin_ns"], hidden["end_ns"]) == (silence["begin_ns"], silence["end_ns"])


def test_hours_of_use_are_read_with_the_objectives(evening, run, tmp_path):
    own = tmp_path / "captures"
    shutil.copytree(evening, own)
    for hour in (18, 19, 20):
        (own / f"link-20260105{hour}00.pcap").unlink()
    (tmp_path / "limits.toml").write_text(f'hours = ["Mon-Fri 08:00-19:00"]\n{LIMITS}')
    assert run("audit", own, "-o", "audit", "--limits", "limits.toml").status == 0
    (silence,) = document(tmp_path)["links"][0]["silent"]
    assert silence["end_ns"] - silence["begin_ns"] == pytest.approx(3_600 * 10**9, rel=0.02)
    (tmp_path / "limits.toml").write_text(f'hours = "8 to 7"\n{LIMITS}')
    outcome = run("audit", own, "-o", "audit", "--limits", "limits.toml")
    assert outcome.status == 2
    assert "hours of use are not written as `8 to 7`" in outcome.err


def test_another_checker_of_schemas_accepts_the_document_and_nothing_else(audited):
    jsonschema = pytest.importorskip("jsonschema")
    found, schema = document(audited), schema_of(AuditDocument, "tfrctrace audit")
    jsonschema.validate(found, schema)
    wrong = [
        {**found, "more": 1},
        {name: value for name, value in found.items() if name != "links"},
        {**found, "schema_version": 2},
        {**found, "incidents": [{**found["incidents"][0], "number": -1}]},
        {**found, "incidents": [{**found["incidents"][0], "place": "nowhere"}]},
    ]
    for one in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(one, schema)


def test_intervals_without_data_are_counted_and_never_met(audited):
    for link in document(audited)["links"]:
        for objective in link["objectives"]:
            for group in objective["groups"]:
                counts = [group[name] for name in ("met", "violated", "severe", "without_data")]
                assert sum(counts) == group["intervals"]


def test_groups_beyond_those_of_the_document_are_counted_and_in_the_table(
    audited, run, tmp_path, monkeypatch
):
    monkeypatch.setattr(audit_json, "_MOST_GROUPS", 1)
    assert run("audit", audited / "audit" / "results", "-o", "audit").status == 0
    verdicts = pl.read_parquet(
        list(tmp_path.glob("audit/tables/verdicts/*/*/*.parquet")), hive_partitioning=False
    )
    (link,) = document(tmp_path)["links"]
    for place, objective in enumerate(link["objectives"]):
        every = verdicts.filter(objective=place)["group"].unique()
        assert objective["groups"][0]["group"] in every
        assert 1 + objective["groups_left_out"] == len(every)
    assert max(objective["groups_left_out"] for objective in link["objectives"]) > 1


def test_the_page_leads_from_the_incident_to_its_evidence_and_the_command_for_its_packets(audited):
    page = (audited / "audit" / "index.html").read_text()
    assert 'href="#table-evidence-1"' in page
    assert 'id="table-evidence-1"' in page
    assert "tfrctrace report" in page
    summary = (audited / "audit" / "summary.md").read_text()
    assert "## Incidents" in summary
    assert "under load" in summary


def test_one_click_leads_to_a_report_of_the_captures_of_an_incident(audited, captures, run, tmp_path):
    shutil.copytree(audited / "audit", tmp_path / "audit")
    limits = str(audited / "limits.toml")
    outcome = run("audit", str(captures), "-o", "audit", "--limits", limits, "--pages")
    assert outcome.status == 0, outcome.err
    assert 'href="./incident-1.html"' in (tmp_path / "audit" / "index.html").read_text()
    (incident,) = document(tmp_path)["incidents"]
    report = (tmp_path / "audit" / "incident-1.html").read_text()
    assert 'href="./index.html"' in report
    assert len(incident["files"]) > 1
    # results have no packets
    outcome = run("audit", "audit", "-o", "audit", "--limits", limits, "--pages")
    assert outcome.status == 2
    assert "name the captures" in outcome.err


def test_tables_by_date_and_link_are_read_as_one(audited):
    intervals = pl.read_parquet(
        audited / "audit" / "tables" / "intervals" / "**" / "*.parquet", hive_partitioning=True
    )
    assert intervals["date"].n_unique() == 2
    violated = intervals.filter(pl.col("objective") == 0, pl.col("verdict") == "violated")
    (incident,) = document(audited)["incidents"]
    inside = violated["start_ns"].is_between(incident["begin_ns"], incident["end_ns"])
    assert inside.sum() >= 2


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_stretches_are_those_of_all_intervals_though_few_are_read(audited):
    found = document(audited)
    intervals = pl.read_parquet(audited / "audit" / "tables" / "intervals" / "**" / "*.parquet")
    whole = [
        {**row, "objective": objective.name}
        for number, objective in enumerate(read_objectives(str(audited / "limits.toml")))
        for row in raised_stretches(
            objective, intervals.filter(objective=number), number, found["links"][0]["last_ns"]
        ).to_dicts()
    ]
    listed = [one for incident in found["incidents"] for one in incident["stretches"]]
    assert sorted(map(json.dumps, listed)) == sorted(map(json.dumps, whole))
    assert len(listed) > 2


def test_an_audit_that_was_killed_goes_on_to_the_same_bytes(audited, run, tmp_path):
    shutil.copytree(audited, tmp_path / "copy")
    audit = tmp_path / "copy" / "audit"
    whole = contents(audit)
    # what a kill may leave: a day without facts, a table that is missing, another that nobody knows, no page
    next(audit.glob("days/*.json")).unlink()
    next(audit.glob("tables/evidence/*/*/*.parquet")).unlink()
    stray = next(audit.glob("tables/hours/*/*/*.parquet"))
    stray.with_name("0123456789abcdef.parquet").write_bytes(b"half")
    (audit / "index.html").unlink()
    limits = str(tmp_path / "copy" / "limits.toml")
    outcome = run("audit", str(audit), "-o", str(audit), "--limits", limits)
    assert outcome.status == 0, outcome.err
    assert contents(audit) == whole


@pytest.mark.parametrize("change", [{"link": 5}, {"link": None}, {"date": "\0"}, {"tables": []}, {"more": 1}])
def test_damaged_facts_of_a_day_count_as_missing(audited, tmp_path, change):
    shutil.copytree(audited / "audit", tmp_path / "audit")
    path = next((tmp_path / "audit").glob("days/*.json"))
    folder = AuditFolder(str(tmp_path / "audit"))
    facts = folder.get(path.stem)
    assert facts is not None
    path.write_text(json.dumps(facts | change))
    assert folder.get(path.stem) is None


def test_the_next_night_reads_the_new_day_only_and_keeps_days_whose_files_are_gone(captures, run, tmp_path):
    own = tmp_path / "captures"
    shutil.copytree(captures, own)
    later = sorted(own.glob("link-20260106*.pcap"))
    for path in later:
        path.rename(tmp_path / path.name)
    assert run("audit", str(own), "-o", str(tmp_path / "audit")).status == 0
    before = set((tmp_path / "audit" / "results" / "chains").iterdir())
    for path in later:
        (tmp_path / path.name).rename(path)
    outcome = run("audit", str(own), "-o", str(tmp_path / "audit"))
    assert "1 done before" in outcome.err
    both = document(tmp_path)
    assert before < set((tmp_path / "audit" / "results" / "chains").iterdir())
    for path in own.glob("link-20260105*.pcap"):
        path.unlink()
    assert run("audit", str(own), "-o", str(tmp_path / "audit")).status == 0
    assert document(tmp_path)["links"] == both["links"]


def test_names_and_addresses_are_replaced(captures, run, tmp_path):
    (tmp_path / "key").write_bytes(b"0123456789abcdef")
    options = ("-o", str(tmp_path / "audit"), "--anonymize-key", str(tmp_path / "key"))
    assert run("audit", str(captures), *options).status == 0
    shown = b"".join(path.read_bytes() for path in (tmp_path / "audit").iterdir() if path.is_file())
    for name in (b"10.20.0", b"198.51.100", b"link-2026"):
        assert name not in shown
    outcome = run("audit", str(tmp_path / "audit"), *options)
    assert outcome.status == 2
    assert "cannot be anonymized" in outcome.err


@pytest.mark.parametrize(
    ("objective", "complaint"),
    [
        ('require = "p95(rtt_ms) < 1 ms"\nby = "port"', "groups by port"),
        ('require = "p95(rtt_ms) < 1 ms"\nevery = "7min"', "do not divide a day"),
        ('require = "p95(rtt_ms) < 1 ms"\nevery = "1min"', "no multiple of 5 m"),
    ],
)
def test_objectives_that_results_cannot_be_judged_by_are_refused(
    audited, run, tmp_path, objective, complaint
):
    (tmp_path / "limits.toml").write_text(f"[[objective]]\n{objective}\n")
    options = ("-o", str(tmp_path / "out"), "--limits", str(tmp_path / "limits.toml"))
    outcome = run("audit", str(audited / "audit"), *options)
    assert outcome.status == 2
    assert complaint in outcome.err


def test_days_of_one_capture_are_chains_of_their_own(captures):
    found = find_captures([str(captures)])
    days = chains.find_chains(found.files, "days", [])
    assert [day.name for day in days] == ["link-*.pcap 2026-01-05", "link-*.pcap 2026-01-06"]
    assert {day.link for day in days} == {"link-*.pcap"}
    (whole,) = chains.find_chains(found.files, "auto", [])
    assert [file for day in days for file in day.files] == list(whole.files)


@pytest.fixture(scope="module")
def scored(captures, tmp_path_factory, run_in) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    names = [
        one for name in ("quality-of-outcome", "delay-under-load", "voice") for one in ("--profile", name)
    ]
    outcome = run_in(folder, "audit", captures, "-o", "audit", *names)
    assert outcome.status == 0, outcome.err
    return folder


def test_scores_stand_with_their_thresholds_and_with_how_they_were_measured(scored):
    found = document(scored)
    jsonschema.validate(found, schema_of(AuditDocument, "tfrctrace audit"))
    (link,) = found["links"]
    scores = {(one["profile"], one["segment"]): one for one in link["scores"] if one["segment"] != "host"}
    outcome = scores["quality-of-outcome", "client side"]
    # of 26 hours of a few connections: nobody asked for 4 Mbit/s
    assert outcome["is_at_most"] == (outcome["value"] > 0)
    assert outcome["reason"] == "throughput not known"
    # draft-ietf-ippm-qoo-09, what has to be said of every measurement
    assert {"method", "class", "layer", "traffic_class", "sampling"} < set(outcome["metadata"])
    assert {"endpoints", "segments", "direction", "first_sample", "duration_ms"} < set(outcome["metadata"])
    assert outcome["metadata"]["samples"] == outcome["n"] > 1_000
    for name in ("index.html", "summary.md"):
        text = (scored / "audit" / name).read_text().replace("\u00a0", " ")
        assert "unacceptable from 200 ms" in text
        assert "09 (2026-04-22)" in text
        assert "A+ below 5 ms" in text
        assert "no source of RTP was captured" in text


def test_a_score_is_that_of_all_samples_of_its_side(scored, captures):
    (link,) = document(scored)["links"]
    (outcome,) = (
        one
        for one in link["scores"]
        if (one["profile"], one["segment"]) == ("quality-of-outcome", "client side")
    )
    rtts = tfrctrace.open(sorted(captures.glob("*.pcap")), join=True).rtt.join(
        tfrctrace.open(sorted(captures.glob("*.pcap")), join=True).flows.select("flow", "direction", "dst"),
        on=["flow", "direction"],
    )
    own = rtts.filter(pl.col("dst").str.starts_with("10."))["rtt_ns"]
    assert outcome["n"] == len(own)
    p99_ms = own.quantile(0.99, interpolation="higher") / 1e6
    assert outcome["inputs"]["p99_ms"] == pytest.approx(p99_ms, rel=0.01)
    value = 100 * min(max(1 - (p99_ms - 100) / 100, 0), 1)
    assert outcome["value"] <= value + 2


def test_the_full_queue_is_graded_by_what_it_added(scored, captures):
    (fault,) = json.loads((captures.parent / "truth.json").read_text())["faults"]
    side, added_s = next(
        (side, fault[key])
        for side, key in (("client side", "near_rtt_s"), ("server side", "far_rtt_s"))
        if key in fault
    )
    (link,) = document(scored)["links"]
    (own,) = (one for one in link["scores"] if one["unit"] == "ms" and one["segment"] == side)
    assert own["value"] == pytest.approx(added_s * 1e3, rel=0.15)
    assert own["grade"] == ("C" if added_s < 0.2 else "D")


def test_scores_of_hours_are_a_table_and_go_with_their_profiles(scored, run, tmp_path):
    scores = pl.read_parquet(scored / "audit" / "scores.parquet")
    (link,) = document(scored)["links"]
    assert scores.filter(~pl.col("is_hour")).height == len(link["scores"])
    hours = scores.filter(pl.col("is_hour"), pl.col("segment") == "client side")
    assert hours["n"].sum() == scores.filter(~pl.col("is_hour"), pl.col("segment") == "client side")["n"][0]
    shutil.copytree(scored / "audit", tmp_path / "audit")
    outcome = run("audit", "audit", "-o", "audit")
    assert outcome.status == 0, outcome.err
    assert not (tmp_path / "audit" / "scores.parquet").exists()
    assert document(tmp_path)["links"][0]["scores"] == []


def test_speech_is_scored_where_its_receiver_reported_and_the_end_is_known(run, tmp_path):
    (tmp_path / "calls").mkdir()
    shutil.copy(ROOT / "tests/data/rtp/gstreamer-sender.pcap.gz", tmp_path / "calls")
    reported = json.loads((ROOT / "tests/data/rtp/truth.json").read_text())["sender"]["sound"]
    (lost,) = {one["rb-packetslost"] for one in reported if one.get("have-rb")}
    outcome = run("audit", "calls", "-o", "audit", "--profile", "voice", "--vantage", "sender")
    assert outcome.status == 0, outcome.err
    sound, picture = document(tmp_path)["links"][0]["scores"]
    percent = 100 * lost / 601
    # G.711 with 143 ms from mouth to ear, of which less than one point of R is the delay's
    expected = 93.2 - 95 * percent / (percent + 25.1)
    assert expected - 1 < sound["inputs"]["rating"] < expected
    assert (sound["value"], sound["grade"]) == (
        pytest.approx(2.84, abs=0.05),
        "nearly all users dissatisfied",
    )
    assert picture["value"] is None
    assert "payload type 26" in picture["reason"]


def test_a_file_that_is_called_like_an_option_is_none_in_the_command_of_an_incident():
    files = ("-o evil.pcap", "$(id) 'a'.pcap")
    found = FoundIncident(1, Incident("link", 0, 10**9), Course("over"), None, None, files)
    words = shlex.split(command(found))
    assert words[-4:] == ["./-o evil.pcap", files[1], "-o", "incident-1.html"]


def test_an_unknown_profile_is_refused_before_anything_is_read(run):
    outcome = run("audit", "missing", "-o", "audit", "--profile", "qoo")
    assert outcome.status == 2
    assert "no profile is named `qoo`" in outcome.err


def test_options_that_an_audit_refuses_are_not_in_its_help(run):
    outcome = run("audit", "--help")
    assert "--since" in outcome.out
    assert "--join" not in outcome.out
    outcome = run("audit", "missing", "-o", "audit", "--pair")
    assert outcome.status == 2
    assert "`--pair` cannot be used" in outcome.err


@pytest.mark.parametrize("damage", ["missing", "cut", "other columns"])
def test_results_with_a_damaged_table_are_named(audited, run, tmp_path, damage):
    shutil.copytree(audited / "audit" / "results", tmp_path / "results")
    path = next((tmp_path / "results").rglob("group_buckets.parquet"))
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        pl.read_parquet(path).drop("samples").write_parquet(path)
        facts = path.with_name("facts.json")
        document = json.loads(facts.read_text())
        document["tables"]["group_buckets"] = hashlib.sha256(path.read_bytes()).hexdigest()
        facts.write_text(json.dumps(document))
    outcome = run("audit", "results", "-o", "again", "--limits", str(audited / "limits.toml"))
    assert outcome.status == 3
    assert "`group_buckets.parquet`" in outcome.err
    assert ("has no column `samples`" in outcome.err) == (damage == "other columns")
    assert "internal error" not in outcome.err


def lossy_end(folder: Path) -> Path:
    """Write what a receiver saw until a burst was lost: six segments, and eight behind 22 lost ones."""
    client, server, mss = 0x0A010002, 0x0A020002, 1448
    steps = [(client, 0, 0x02), (server, 0, 0x12)]
    steps += [(client, 1 + place * mss, 0x10) for place in (*range(6), *range(28, 36))]
    records = [struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 101)]
    for number, (source, seq, flags) in enumerate(steps):
        is_syn, is_client = bool(flags & 2), source == client
        ends = (source, server if is_client else client)
        ports, ttl = ((40_000, 443), 50) if is_client else ((443, 40_000), 64)
        options = struct.pack(">BBH", 2, 4, mss) if is_syn else b""
        payload = 0 if is_syn else mss
        tcp = struct.pack(
            ">HHIIBBHHH", *ports, seq, int(flags != 2), (5 + len(options) // 4) << 4, flags, 60_000, 0, 0
        )
        length = 20 + len(tcp) + len(options) + payload
        packet = struct.pack(">BBHHHBBHII", 0x45, 0, length, number, 0x4000, ttl, 6, 0, *ends) + tcp + options
        records.append(struct.pack("<IIII", 1_767_571_200, number * 1_000, len(packet), length) + packet)
    (folder / "end.pcap").write_bytes(b"".join(records))
    return folder / "end.pcap"


def test_a_capture_that_ends_in_a_burst_of_losses_loses_no_more_than_was_sent(run, tmp_path):
    capture = lossy_end(tmp_path)
    total = tfrctrace.open(capture).groups("link", "1s").rows.filter(direction="fwd")
    counts = ("tcp_data_segments", "lost_before_capture", "arrivals_shown")
    assert total.select(counts).rows() == [(14, 22, 36)]
    assert run("report", capture, "-o", tmp_path / "report.md").status == 0
    assert "22 of 36 TCP segments" in (tmp_path / "report.md").read_text()
    done = run("audit", capture, "-o", tmp_path / "audit", "--profile", "quality-of-outcome")
    assert (done.status, "internal error" in done.err) == (0, False)
    page = (tmp_path / "audit" / "index.html").read_text()
    assert "61.1" in page


def test_a_part_of_the_page_that_fails_is_named_and_the_page_stands(audited, run, tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("math domain error")

    monkeypatch.setattr("tfrctrace.reports.audit.page._host_rows", broken)
    limits = audited / "limits.toml"
    done = run("audit", audited / "audit", "-o", tmp_path / "audit", "--limits", limits)
    assert done.status == 70
    assert "error: left out of the page, which names why: Hosts" in done.err
    page = (tmp_path / "audit" / "index.html").read_text()
    assert "This part could not be made (ValueError: math domain error)." in page
    assert "incident-1" in page
    assert (tmp_path / "audit" / "audit.json").exists()


def test_an_inventory_names_links_and_does_not_unite_two(audited, run_in):
    (audited / "sites.toml").write_text(
        '[north]\nlinks = ["other-*", "link-*"]\nnetworks = ["10.20.0.0/16"]\n'
    )
    again = ("audit", "audit", "--limits", "limits.toml", "--inventory")
    assert run_in(audited, *again, "sites.toml", "-o", "named").status == 0
    found = json.loads((audited / "named/audit.json").read_text())
    (link,) = found["links"]
    assert (link["name"], found["incidents"][0]["link"]) == ("north", "north")
    assert (found["title"], link["incidents"]) == ("Audit of north", 1)
    (audited / "nothing.toml").write_text("[north]\n")
    refused = run_in(audited, *again, "nothing.toml", "-o", "named")
    assert (refused.status, "names no network and no link" in refused.err) == (2, True)


def test_two_links_with_one_name_are_refused():
    link = Piece("", "", "", (), 0, (), (), False, {}, None, False, False, ())
    two = BatchResults(
        parse_grouping("host", "5min"), tuple(replace(link, link=name) for name in ("a-1", "a-2")), ()
    )
    with pytest.raises(UsageError, match="names both `a-1` and `a-2` `north`"):
        named_links(two, Inventory({}, {}, {"a-*": "north"}))


def test_columns_of_a_short_capture_are_as_wide_as_its_widest_objective(captures, run, tmp_path):
    assert run("audit", captures / "link-202601050000.pcap", "-o", "audit").status == 0
    page = (tmp_path / "audit" / "index.html").read_text().replace("\u00a0", " ")
    assert "Intervals of 3 min 00 s." in page
    hours = pl.read_parquet(tmp_path / "audit/tables/hours/**/*.parquet", hive_partitioning=False)
    starts = hours.filter(by="link")["start_ns"].unique().sort()
    assert starts.diff().drop_nulls().min() == 180 * 10**9
    assert starts.len() > 10
