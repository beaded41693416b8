"""`tfrctrace replay` as a user runs it, and algorithms of the user's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tfrctrace.parsers.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT / "tests" / "data" / "ns2" / "tfrc" / "outage.tr.xz"
TCP = ROOT / "tests" / "data" / "captures" / "linux-relay-loss-snd.pcap.gz"
PAGE = (ROOT / "docs" / "replay.md").read_text()


def test_the_table_sums_up_each_algorithm(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", "--algorithm", "tfrc,tfrc-veno", TRACE)
    assert done.status == 0
    lines = done.out.splitlines()
    assert re.match(
        r"flow 1 fwd, 2:0 → 3:0, tfrc: 118 steps from reports of its receiver, s = 1000 bytes; sent ",
        lines[0],
    )
    assert lines[1].split()[:4] == ["algorithm", "RTT", "allowed", "least"]
    assert [line.split()[0] for line in lines[2:4]] == ["tfrc", "tfrc-veno"]
    assert "no feedback" in lines[2]
    assert lines[-1].startswith("note: open loop: ")


def test_json_has_every_step_under_the_names_of_the_design(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", "--profile", "ns2", "--format", "json", TRACE)
    printed = json.loads(done.out)
    assert printed["schema_version"] == 2
    assert printed["tool"]["name"] == "tfrctrace"
    (one,) = printed["replays"]
    assert (one["flow"], one["direction"], one["algorithm"], one["profile"]) == (1, "fwd", "tfrc", "ns2")
    series = ("time_ns", "x_bps", "p", "r_ms", "x_recv_bps", "mode", "reason", "sent_bps")
    assert {len(one[name]) for name in series} == {one["steps"]}
    assert sum(one["time_in_mode"].values()) == pytest.approx(1)
    assert printed["lacking"] == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_have_every_column(run: Callable[..., Any], tmp_path: Path, form: str) -> None:
    assert run("replay", "-q", "-o", f"x.{form}", TRACE).status == 0
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet}[form]
    assert read(tmp_path / f"x.{form}").columns == [column.name for column in TABLES["replay"]]


def test_sensitivity_is_three_lines(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", "--sensitivity", TCP)
    scales = re.findall(r"^  tfrc \(rfc5348\) +x([0-9.]+) ", done.out, re.MULTILINE)
    assert scales == ["1", "0.5", "2"]


def test_flows_that_cannot_be_replayed_say_why(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", TCP)
    words = r"^flow 1 fwd, \S+ → \S+ \(tcp\) cannot be replayed: it has 7 data packets, fewer than 20$"
    assert re.search(words, done.out, re.MULTILINE)


def test_what_arrived_is_no_more_than_what_was_sent(run: Callable[..., Any]) -> None:
    for trace in (TRACE, TCP, TRACE.with_name("application-limited.tr.xz")):
        document = json.loads(run("replay", "-q", "--format", "json", trace).out)
        for one in document["replays"]:
            assert 0 < one["received_mean_bps"] <= one["sent_mean_bps"] * 1.001


def test_rows_and_flows_name_their_ends(run: Callable[..., Any], tmp_path: Path) -> None:
    document = json.loads(run("replay", "-q", "--format", "json", TRACE).out)
    ends = {"src": "2", "src_port": 0, "dst": "3", "dst_port": 0}
    for one in (*document["flows"], *document["replays"]):
        assert {name: one[name] for name in ends} == ends
    assert run("replay", "-q", "-o", "x.csv", TRACE).status == 0
    rows = pl.read_csv(tmp_path / "x.csv", schema_overrides={"src": pl.String, "dst": pl.String})
    assert rows.select(*ends).unique().to_dicts() == [ends]


def test_mtfrc_shows_its_bounds(run: Callable[..., Any]) -> None:
    done = run(
        "replay", "-q", "-a", "mtfrc", "--station", "2x11", "--station", "2x5.5", "--preset", "paper", TCP
    )
    assert "X_t" in done.out
    assert "1.14 Mbit/s" in done.out


def test_stations_that_were_found_are_printed(run: Callable[..., Any]) -> None:
    # runs.py: uploads at 11 and 2 Mbit/s, three downloads from an access point at 5.5 Mbit/s
    trace = ROOT / "sample_traces" / "studies" / "zhang" / "traces" / "scenario2-5-tfrc-1.tr.xz"
    command = ("replay", "-q", "--algorithm", "mtfrc", "--stations-seen", trace)
    lines = run(*command).out.splitlines()
    assert "stations from 6 s: 1 at 11 and 1 at 2 Mb/s up, 3 down from the access point at 5.5 Mb/s" in lines
    steps = json.loads(run(*command, "--format", "json").out)["stations_seen"]
    assert {step["downloads"] for step in steps} == {3}
    six = next(step for step in steps if step["from_s"] <= 6 < step["until_s"])
    assert (six["uploads_mbps"], six["sparing"], six["access_point_mbps"]) == ([11, 2], [], 5.5)


REFUSED = {
    ("-a", "reno-2000"): "unknown algorithm `reno-2000`",
    ("-a", "nowhere:Control"): "`nowhere:Control` cannot be loaded",
    ("-a", "json:JSONDecoder"): "the algorithm `json:JSONDecoder` has no `on_feedback`",
    ("-a", "mtfrc"): "MTFRC needs the stations that share the medium",
    ("-a", "tfrc-sp", "--profile", "ns2"): "the profile `ns2` has `tfrc` only",
    ("--tfrc", "speed=1"): "no algorithm has a parameter `speed`",
    ("--tfrc", "q=2"): "the parameter `q` cannot have this value",
    ("--tfrc", "gamma=0.6"): "`gamma` is a parameter of `tfrc-veno` only",
    ("--profile", "ns2", "--tfrc", "t_mbi=9"): "the profile `ns2` has no parameter `t_mbi`",
    ("--rtt", "40"): "`40` is not a duration",
    ("--downloads", "2"): "need the stations of `mtfrc`",
    ("--station", "11"): "apply to `mtfrc` only",
    ("-a", "mtfrc", "--station", "11", "--stations-seen"): "choose one",
    ("-a", "mtfrc", "--stations-seen"): "no frame of the trace has the rate",
    ("-a", ","): "no algorithm is given",
}


@pytest.mark.parametrize(("options", "words"), REFUSED.items())
def test_what_cannot_be_is_refused(run: Callable[..., Any], options: tuple[str, ...], words: str) -> None:
    done = run("replay", "-q", *options, TCP)
    assert done.status == 2
    assert words in done.err
    assert done.out == ""


def test_the_algorithm_of_the_documentation_runs(run: Callable[..., Any], tmp_path: Path) -> None:
    code = re.search(r"```python\n(from tfrctrace.replay.controller.*?)```", PAGE, re.DOTALL)
    assert code
    assert code[1].count("\n") <= 32
    (tmp_path / "gentle.py").write_text(code[1])
    done = run("replay", "-q", "-a", "tfrc,gentle:GentleAimd", "--format", "json", TRACE)
    assert done.status == 0, done.err
    replays = {one["algorithm"]: one for one in json.loads(done.out)["replays"]}
    gentle = replays["gentle:GentleAimd"]
    assert gentle["profile"] is None
    # AIMD with 1/2 and 3/4 is made to be as fast as TCP, and so is TFRC
    assert 0.3 < gentle["x_mean_bps"] / replays["tfrc"]["x_mean_bps"] < 3
    assert set(gentle["reason"]) <= {"loss_event", "loss_free", "halved", "idle"}
    assert "no_feedback" in gentle["event"]


def test_an_algorithm_may_be_registered_by_a_package(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "still.py").write_text(
        "from tfrctrace.replay.controller import Allowed\n"
        "class Still:\n"
        "    def __init__(self, start): self.x = 2 * start.segment_bytes\n"
        "    def on_feedback(self, report): return Allowed(x=self.x)\n"
        "    def on_nofeedback(self, time_s, *, is_idle): return Allowed(x=self.x)\n"
    )
    about = tmp_path / "still-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: still\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[tfrctrace.controllers]\nstill = still:Still\n")
    done = run(
        "replay", "-q", "-a", "still", "--format", "csv", TRACE, environment={"PYTHONPATH": str(tmp_path)}
    )
    assert done.status == 0, done.err
    assert ",16000.0," in done.out
    wrong = run("replay", "-q", "-a", "stil", TRACE, environment={"PYTHONPATH": str(tmp_path)})
    assert "still" in wrong.err


@pytest.mark.parametrize("rate", ["-1.0", 'float("nan")', 'float("inf")'])
def test_a_rate_that_is_none_is_refused_in_open_loop_too(
    run: Callable[..., Any], tmp_path: Path, rate: str
) -> None:
    (tmp_path / "broken.py").write_text(
        "from tfrctrace.replay.controller import Allowed\n"
        "class Broken:\n"
        "    def __init__(self, start): pass\n"
        f"    def on_feedback(self, report): return Allowed(x={rate})\n"
        "    def on_nofeedback(self, time_s, *, is_idle): return self.on_feedback(None)\n"
    )
    done = run("replay", "-q", "-a", "broken:Broken", "--format", "json", TRACE)
    assert done.status == 2
    assert "returned an invalid rate" in done.err


def test_a_flow_more_takes_no_query_of_polars_more(
    write_capture: Callable[..., Path],
    conversation: Callable[..., list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., Any],
) -> None:
    queries = []
    collect = pl.LazyFrame.collect

    def counted(frame: pl.LazyFrame, *arguments: Any, **keywords: Any) -> Any:
        queries.append(frame)
        return collect(frame, *arguments, **keywords)

    monkeypatch.setattr(pl.LazyFrame, "collect", counted)

    def needed(flows: int) -> int:
        several = [conversation(40_000 + one, data_packets=30) for one in range(flows)]
        path = write_capture(
            f"{flows}.pcap", [frame for frames in zip(*several, strict=True) for frame in frames]
        )
        queries.clear()
        done = run("replay", "-q", path)
        assert done.out.count(" steps from ") == flows
        return len(queries)

    # 45 queries of a tenth of a millisecond were most of the time of a small flow
    assert needed(20) <= needed(1) + 20
