"""The captures of the benchmarks are what their description says, in both file forms."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
TCP_KINDS = ["turns-8", "random-8", "random-200", "lan", "loss", "both-ways", "ipv6", "vlan", "full-size"]


@pytest.fixture(scope="module")
def script(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    pytest.importorskip("numpy")
    load_script(BENCHMARKS / "plan.py")
    return load_script(BENCHMARKS / "script.py")


@pytest.fixture(scope="module")
def captures(script: ModuleType, load_script: Callable[[Path], ModuleType]) -> ModuleType:
    return load_script(BENCHMARKS / "captures.py")


def written(captures: ModuleType, path: Path, *, kind: str = "turns-8", **plan: Any) -> Any:
    planned = captures.Plan(captures.KINDS[kind], **plan)
    with open(path, "wb") as file:
        captures.write(planned, file)
    return planned


def flows(path: Path) -> list[dict[str, Any]]:
    analysis = _native.analyse([str(path)], ReadSettings())
    assert {problem["kind"] for problem in analysis.problems} <= {"capture_gap"}
    rows: list[dict[str, Any]] = analysis.table("flows").rows()
    return rows


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("kind", TCP_KINDS)
def test_every_connection_is_whole_and_repeats_what_it_lost(
    captures: ModuleType, script: ModuleType, tmp_path: Path, form: str, kind: str
) -> None:
    plan = written(captures, tmp_path / "c", kind=kind, packets=24_000, form=form)
    rows = flows(tmp_path / "c")
    assert len(rows) == 2 * plan.kind.flows
    assert sum(row["packets"] for row in rows) == plan.sent
    every, repair_after = plan.kind.loss_every, plan.kind.flight + 2
    losses = range(script.LOSS_AT, plan.rounds, every) if every else []
    repaired = sum(turn + repair_after < plan.rounds for turn in losses)
    for row in rows:
        assert row["state"] == "closed"
        assert row["missing_bytes"] == 0
        assert row["out_of_order_packets"] == 0
        if row["direction"] == "fwd":
            assert row["data_packets"] == 2 * plan.rounds
            assert row["retransmitted_packets"] == repaired
            assert row["unique_bytes"] == (2 * plan.rounds - repaired) * script.SEGMENT
        else:
            assert row["data_packets"] == plan.rounds * plan.kind.answers
        if plan.kind.order == "turns" and row["direction"] == "fwd":
            assert row["rtt_p50_ms"] == pytest.approx(40, rel=0.1)
            assert row["ts_rtt_mean_ms"] == pytest.approx(40, rel=0.1)


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
@pytest.mark.parametrize("kind", [kind for kind in TCP_KINDS if kind != "random-200"])
def test_tcptrace_finds_every_connection_complete(captures: ModuleType, tmp_path: Path, kind: str) -> None:
    plan = written(captures, tmp_path / "c", kind=kind, packets=12_000)
    command = ["tcptrace", "-n", str(tmp_path / "c")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"{plan.sent} packets seen, {plan.sent} TCP packets traced" in report
    assert report.count("(complete)") == plan.kind.flows


@pytest.mark.parametrize("kind", ["udp", "rtp", "quic"])
def test_datagrams_are_what_they_are_called(captures: ModuleType, tmp_path: Path, kind: str) -> None:
    plan = written(captures, tmp_path / "c", kind=kind, packets=4_000)
    rows = flows(tmp_path / "c")
    assert {row["transport"] for row in rows} == {"rtp" if kind == "rtp" else "udp"}
    assert sum(row["packets"] for row in rows) == plan.sent
    # nothing tells where they were captured, so whether they arrived
    assert {row["pdr"] for row in rows} == {None}


def test_a_capture_with_holes_misses_a_hundredth(captures: ModuleType, tmp_path: Path) -> None:
    plan = written(captures, tmp_path / "c", kind="holes", packets=40_000)
    rows = flows(tmp_path / "c")
    assert sum(row["packets"] for row in rows) == pytest.approx(0.99 * plan.sent, rel=0.002)
    assert all(row["missing_bytes"] > 0 for row in rows if row["direction"] == "fwd")


def test_both_forms_hold_the_same_packets(captures: ModuleType, tmp_path: Path) -> None:
    for form in ("pcap", "pcapng"):
        written(captures, tmp_path / form, kind="random-200", packets=5_000, form=form)
    pcap, pcapng = ([row | {"source": ""} for row in flows(tmp_path / form)] for form in ("pcap", "pcapng"))
    assert pcap == pcapng


@pytest.mark.parametrize("kind", ["turns-8", "random-200", "quic", "holes"])
def test_the_same_plan_gives_the_same_bytes_and_another_seed_others(
    captures: ModuleType, tmp_path: Path, kind: str
) -> None:
    for name, seed in (("first", 1), ("second", 1), ("other", 2)):
        written(captures, tmp_path / name, kind=kind, packets=2_000, seed=seed)
    first, second, other = ((tmp_path / name).read_bytes() for name in ("first", "second", "other"))
    assert first == second
    assert (first == other) == (kind == "turns-8")


def test_the_far_capture_of_a_pair_is_late_by_the_way_and_lacks_what_it_says(
    captures: ModuleType, load_script: Callable[[Path], ModuleType], tmp_path: Path
) -> None:
    plan = written(captures, tmp_path / "near", packets=20_000)
    rows = flows(tmp_path / "near")
    far = load_script(BENCHMARKS / "far.py")
    (tmp_path / "far").write_bytes(far.seen_at_the_far_end((tmp_path / "near").read_bytes()))
    analysis = _native.analyse_pair([str(tmp_path / "near"), str(tmp_path / "far")], ReadSettings())
    # data that was acknowledged: its absence is of the capture, not of the path
    assert {problem["kind"] for problem in analysis.problems} == {"imprecise", "capture_gap"}
    found = analysis.table("flows").rows()
    assert sum(row["sent_packets"] for row in found) == plan.sent
    sent = sum(row["packets"] for row in rows if row["direction"] == "fwd")
    assert sum(row["missed_packets"] for row in found) == sent // far.MISSED_EVERY
    assert sum(row["lost_packets"] for row in found) == 0
    assert {round(row["delay_mean_ms"], 6) for row in found} == {far.WAY_US / 1e3}
    assert len(found) == len(rows)


@pytest.mark.usefixtures("captures")
def test_a_kind_that_costs_over_two_percent_more_than_recorded_fails(
    load_script: Callable[[Path], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = load_script(BENCHMARKS / "instructions.py")
    monkeypatch.setattr(script, "RECORD", tmp_path / "instructions.json")
    monkeypatch.setattr(script, "compiler", lambda: "rustc 1.0")
    monkeypatch.setattr(script.shutil, "which", lambda _: "valgrind")
    for count, options, status in ((1000, ["--record"], 0), (1019, [], 0), (1021, [], 1)):
        monkeypatch.setattr(script, "per_packet", lambda *_, count=count: float(count))
        monkeypatch.setattr("sys.argv", ["instructions.py", "analyse", *options])
        assert script.main() == status
        assert capsys.readouterr().out.count("more than recorded") == status * len(script.CHECKED)
