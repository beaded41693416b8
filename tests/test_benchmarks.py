"""The captures of the benchmarks are what their description says, in both file forms."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tfrctrace.parsers import _native
from tfrctrace.parsers.reading_settings import ReadSettings

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def captures(load_script: Callable[[Path], ModuleType]) -> ModuleType:
    pytest.importorskip("numpy")
    load_script(BENCHMARKS / "plan.py")
    return load_script(BENCHMARKS / "captures.py")


def flows(captures: ModuleType, path: Path, **plan: Any) -> tuple[list[dict[str, Any]], Any]:
    planned = captures.Plan(**plan)
    with open(path, "wb") as file:
        captures.write(planned, file)
    analysis = _native.analyse([str(path)], ReadSettings())
    assert analysis.problems == []
    return analysis.table("flows").rows(), planned


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("snap_length", [96, 1514])
def test_every_connection_is_whole_and_repeats_what_it_lost(
    captures: ModuleType, tmp_path: Path, form: str, snap_length: int
) -> None:
    rows, plan = flows(captures, tmp_path / "c", packets=9_000, flows=3, snap_length=snap_length, form=form)
    assert len(rows) == 2 * plan.flows
    assert sum(row["packets"] for row in rows) == plan.written
    losses = [turn for turn in range(plan.rounds) if turn % captures.LOSS_EVERY == captures.LOSS_AT]
    for row in rows:
        assert row["state"] == "closed"
        assert row["missing_bytes"] == 0
        assert row["out_of_order_packets"] == 0
        if row["direction"] == "fwd":
            assert row["data_packets"] == 2 * plan.rounds
            assert row["retransmitted_packets"] == len(losses)
            assert row["unique_bytes"] == (2 * plan.rounds - len(losses)) * captures.SEGMENT
            assert row["rtt_p50_ms"] == pytest.approx(40, rel=0.1)
            assert row["ts_rtt_mean_ms"] == pytest.approx(40, rel=0.1)


def test_both_forms_hold_the_same_packets(captures: ModuleType, tmp_path: Path) -> None:
    tables = [
        flows(captures, tmp_path / form, packets=5_000, flows=50, form=form)[0] for form in ("pcap", "pcapng")
    ]
    pcap, pcapng = ([row | {"source": ""} for row in table] for table in tables)
    assert pcap == pcapng


def test_the_same_plan_gives_the_same_bytes(captures: ModuleType, tmp_path: Path) -> None:
    for name in ("first", "second"):
        flows(captures, tmp_path / name, packets=2_000, flows=7)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_the_far_capture_of_a_pair_is_late_by_the_way_and_lacks_what_it_says(
    captures: ModuleType, load_script: Callable[[Path], ModuleType], tmp_path: Path
) -> None:
    rows, plan = flows(captures, tmp_path / "near", packets=20_000, flows=4)
    far = load_script(BENCHMARKS / "far.py")
    (tmp_path / "far").write_bytes(far.seen_at_the_far_end((tmp_path / "near").read_bytes()))
    analysis = _native.analyse_pair([str(tmp_path / "near"), str(tmp_path / "far")], ReadSettings())
    # data that was acknowledged: its absence is of the capture, not of the path
    assert {problem["kind"] for problem in analysis.problems} == {"imprecise", "capture_gap"}
    found = analysis.table("flows").rows()
    assert sum(row["sent_packets"] for row in found) == plan.written
    sent = sum(row["packets"] for row in rows if row["direction"] == "fwd")
    assert sum(row["missed_packets"] for row in found) == sent // far.MISSED_EVERY
    assert sum(row["lost_packets"] for row in found) == 0
    assert {round(row["delay_mean_ms"], 6) for row in found} == {far.WAY_US / 1e3}
    assert len(found) == len(rows)
