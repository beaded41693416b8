"""A stretch of time gives what `editcap -A -B` cuts out of the same file, by date, time of day and offset."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import tfrctrace
from tfrctrace.base.errors import InputError, UsageError
from tfrctrace.base.stretch import parse_stretch
from tfrctrace.base.timezones import TimeZone

ROOT = Path(__file__).resolve().parent.parent.parent.parent
TWO_FLOWS = ROOT / "sample_traces" / "two-flows.pcapng.gz"
DUMBBELL = ROOT / "sample_traces" / "dumbbell.tr.xz"
PAIR = ROOT / "tests" / "data" / "pair"
NEAR, FAR = (PAIR / f"ns3-p2p-randloss-nosack-{end}.pcap.gz" for end in ("0-1", "1-1"))

FIRST_NS = 1_795_250_349_945_969_000
"""Time of the first packet of the two flows, by tshark."""
NOT_COMPARED = ["source", "outside", "notes"]


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """Return a function that cuts packets out of the two flows by Wireshark's editcap."""
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    folder = tmp_path_factory.mktemp("cut")

    def run(since: str, until: str) -> Path:
        out = folder / f"{since}-{until}.pcapng".replace(":", "")
        done = subprocess.run(
            ["editcap", "-A", since, "-B", until, str(TWO_FLOWS), str(out)],
            env={**os.environ, "TZ": "UTC"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return out

    return run


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_a_stretch_is_what_editcap_cuts_out(cut):
    expected = tfrctrace.open(cut("2026-11-21 08:39:14", "2026-11-21 08:39:19.5"))
    for bounds in (
        {"since": "2026-11-21 08:39:14", "until": "2026-11-21T08:39:19.5Z"},
        {"since": "09:39:14", "until": "09:39:19.5", "timezone": "Europe/Berlin"},
        {"since": "@1795250354", "until": "9554031us"},
    ):
        found = tfrctrace.open(TWO_FLOWS, **bounds)
        assert found.flows.drop(NOT_COMPARED).equals(expected.flows.drop(NOT_COMPARED)), bounds
        (left,), (right,) = found.sources, expected.sources
        assert left["packets"] + left["outside_packets"] == 13_910
        # packets keep their numbers
        others = {"source", "format", "compression", "interfaces", "decode_stops", "outside_packets"}
        assert {key: left[key] for key in left.keys() - others} == {
            key: right[key] for key in right.keys() - others
        }


def test_flows_that_go_beyond_are_marked():
    whole = (
        tfrctrace.open(TWO_FLOWS)
        .flows.group_by("flow", maintain_order=True)
        .agg(
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            pl.col("src").first(),
            pl.col("src_port").first(),
        )
    )
    since_ns, until_ns = FIRST_NS + 5 * 10**9, FIRST_NS + 8 * 10**9
    trace = tfrctrace.open(TWO_FLOWS, since="5s", until="8s")
    found = {row["src_port"]: row["outside"] for row in trace.flows[::2].iter_rows(named=True)}
    expected = {}
    for row in whole.iter_rows(named=True):
        if row["src_port"] not in found:
            continue
        is_early, is_late = row["start_ns"] < since_ns, row["end_ns"] >= until_ns
        expected[row["src_port"]] = {(1, 1): "both", (1, 0): "before", (0, 1): "after", (0, 0): None}[
            is_early, is_late
        ]
    assert expected == found
    (note,) = [one for one in trace.warnings if one["kind"] == "outside"]
    assert note["message"] == (
        "11,885 of 13,910 packets are outside of the stretch of time; "
        "1 flow began before it and 3 flows went on after it"
    )
    assert tfrctrace.open(TWO_FLOWS).flows["outside"].null_count() == len(tfrctrace.open(TWO_FLOWS).flows)


def test_every_command_knows_the_stretch(run):
    for command in ("flows", "metrics", "groups"):
        done = run(command, TWO_FLOWS, "--since", "5s", "--until", "8s", "--format", "json")
        assert done.status == 0, done.err
        assert "11,885 of 13,910 packets are outside" in done.err
    done = run("groups", TWO_FLOWS, "--by", "link", "--last", "3s", "--every", "1s", "--format", "csv")
    rows = pl.read_csv(io.StringIO(done.out))
    assert rows["packets"].sum() == 1_849
    assert rows["start_ns"].min() >= 1_795_250_369 * 10**9


def test_the_last_part_is_counted_back_from_the_last_packet(cut):
    last = tfrctrace.open(TWO_FLOWS).flows["end_ns"].max()
    packets = sum(source["packets"] for source in tfrctrace.open(TWO_FLOWS, last="3s").sources)
    begin = last - 3 * 10**9
    since = f"2026-11-21 08:39:{begin // 10**9 % 60:02d}.{begin % 10**9:09d}"
    expected = sum(source["packets"] for source in tfrctrace.open(cut(since, "2026-11-22 00:00:00")).sources)
    assert packets == expected


def test_a_pipe_knows_offsets_and_dates_but_neither_its_end_nor_its_day():
    whole = tfrctrace.open(TWO_FLOWS, since="5s", until="8s").flows

    def piped(*options):
        return subprocess.run(
            [sys.executable, "-m", "tfrctrace", "flows", "-", "--format", "json", *options],
            input=gzip.decompress(TWO_FLOWS.read_bytes()),
            capture_output=True,
            check=False,
        )

    done = piped("--since", "5s", "--until", "8s")
    rows = json.loads(done.stdout)["flows"]
    assert [row["packets"] for row in rows] == whole["packets"].to_list()
    for options, words in (
        (("--last", "3s"), b"error: the last part of a pipe is not known before it ends"),
        (("--since", "08:00"), b"error: the day of a pipe is not known before it is read"),
    ):
        refused = piped(*options)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"since": "yesterday"}, "`yesterday` is not a time"),
        ({"since": "2026-13-01"}, "month must be in 1..12"),
        ({"until": "25:00"}, "hours go to 24"),
        ({"since": "10s", "until": "5s"}, "ends before it begins"),
        ({"since": "2026-11-22", "until": "2026-11-21"}, "ends before it begins"),
        ({"last": "1min", "since": "5s"}, "has no other ends"),
        ({"last": "1"}, "is not a duration"),
        ({"since": "5s", "timezone": "Mars/Olympus"}, "is not a time zone"),
    ],
)
def test_what_is_no_stretch_is_refused(bounds, expected):
    with pytest.raises(UsageError, match=expected):
        tfrctrace.open(TWO_FLOWS, **bounds)


def test_nothing_inside_says_when_the_trace_was(run):
    done = run("flows", TWO_FLOWS, "--since", "2027-01-01", "--timezone", "Europe/Berlin")
    assert "all 13,910 packets are outside of the stretch of time" in done.err
    assert "2026-11-21 09:39:09 Europe/Berlin to 2026-11-21 09:39:32 Europe/Berlin" in done.err


def test_simulations_count_from_their_start():
    whole = pl.concat(tfrctrace.open(DUMBBELL).packets())
    found = pl.concat(tfrctrace.open(DUMBBELL, since="5s", until="8s").packets())
    inside = whole.filter(pl.col("time_ns").is_between(5 * 10**9, 8 * 10**9, closed="left"))
    names = ["packet", "time_ns", "src", "dst", "transport", "wire_bytes"]
    assert found.select(names).equals(inside.select(names))
    with pytest.raises(UsageError, match="no time of day"):
        tfrctrace.open(DUMBBELL, since="14:00").read("flows")


@pytest.mark.filterwarnings("ignore::tfrctrace.base.errors.TfrctraceWarning")
def test_captures_of_a_pair_are_cut_at_one_time():
    whole = tfrctrace.open([NEAR, FAR], pair=True, clock_offset="0s").transits
    found = tfrctrace.open([NEAR, FAR], pair=True, clock_offset="0s", since="2s", until="5s").transits
    key = ["flow", "direction", "sent_ns", "received_ns", "fate"]
    inside = whole.filter(
        pl.col("sent_ns").is_between(2 * 10**9, 5 * 10**9, closed="left")
        & (pl.col("received_ns").is_null() | (pl.col("received_ns") < 5 * 10**9))
    )
    arrived = pl.col("fate") == "arrived"
    assert found.filter(arrived).select(key[1:]).equals(inside.filter(arrived).select(key[1:]))
    lost, expected = (frame.filter(pl.col("fate") == "lost")["sent_ns"] for frame in (found, inside))
    assert set(lost) <= set(expected), "packets under way at the end seem lost"
    # those sent so late that the far capture may have ended are of unknown outcome
    assert len(expected) - len(lost) <= 2


def test_joined_files_are_one_stretch(tmp_path, run):
    first, second = tmp_path / "link.pcapng0", tmp_path / "link.pcapng1"
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    for path, ends in ((first, ("-B", "2026-11-21 08:39:15")), (second, ("-A", "2026-11-21 08:39:15"))):
        subprocess.run(
            ["editcap", *ends, str(TWO_FLOWS), str(path)], env={**os.environ, "TZ": "UTC"}, check=True
        )
    joined = tfrctrace.open([first, second], join=True, since="5s", until="8s").flows
    alone = tfrctrace.open(TWO_FLOWS, since="5s", until="8s").flows
    assert joined.drop("source", "notes").equals(alone.drop("source", "notes"))


def test_documents_have_no_packets_to_leave_out():
    logs = sorted((ROOT / "tests" / "data").rglob("*iperf3*.json*"))
    with pytest.raises(InputError, match="a stretch of time is of packets"):
        tfrctrace.open(logs[0], since="2026-01-01").read("flows")


def test_times_of_day_follow_the_clocks_of_the_zone():
    hour_ns = 3_600 * 10**9
    # the clocks of Berlin go back at 2026-10-25 01:00 UTC
    first_ns, last_ns = 1_792_875_600 * 10**9, 1_792_962_000 * 10**9
    zone = TimeZone.named("Europe/Berlin")
    stretch = parse_stretch("23:00", "12:00", None, zone)
    since_ns, until_ns = stretch.resolve(first_ns, last_ns)
    assert (since_ns, until_ns - since_ns) == (1_792_875_600 * 10**9, 14 * hour_ns)
    # one that is in the trace of no day is that before it
    assert parse_stretch("22:00", None, None, zone).resolve(first_ns, first_ns + hour_ns) == (
        first_ns - hour_ns,
        None,
    )
