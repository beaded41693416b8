"""What formulas give of an algorithm at a flow's loss event rate, beside its open loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tfrctrace
from tfrctrace.replay.algorithms import BUILT_IN
from tfrctrace.replay.long_run import PathConditions, long_run_rate
from tfrctrace.replay.open_loop_results import open_loop_runs

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[2] / "data"
MET = PathConditions(p=0.01, rtt_s=0.12, base_rtt_s=0.1)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_window_has_a_formula(name: str) -> None:
    found = long_run_rate(name, {}, MET)
    assert found is not None
    assert 0 < found.low_pps <= found.high_pps


def test_formulas_are_those_of_the_vectors() -> None:
    rows = json.loads((DATA / "vectors" / "tcp_models.json").read_text())
    checked = 0
    for row in rows["westwood_model"]:
        if row["westwood_pps"] is not None:
            found = long_run_rate("westwood", {}, PathConditions(row["p"], row["rtt"], row["rtt_min"]))
            assert found is not None
            assert found.low_pps == pytest.approx(row["westwood_pps"], rel=1e-9)
            checked += 1
    assert checked


def test_parameters_change_what_is_expected() -> None:
    reno, gentle = long_run_rate("sack", {}, MET), long_run_rate("sack", {"gamma": 0.8}, MET)
    assert reno is not None
    assert gentle is not None
    assert gentle.low_pps > reno.low_pps
    fast = MET._replace(p=1e-5)
    first, other = long_run_rate("cubic", {}, fast), long_run_rate("cubic", {"beta": 0.8}, fast)
    assert first is not None
    assert other is not None
    assert other.low_pps > first.low_pps


def test_the_thresholds_of_an_agent_are_those_of_its_formula() -> None:
    thresholds = {"alpha": 1.0, "beta": 3.0}  # v_alpha_ and v_beta_ of ns-2
    assert long_run_rate("vegas", {"agent": "ns2"}, MET) == long_run_rate("vegas", thresholds, MET)
    assert long_run_rate("vegas", {"agent": "ns2"}, MET) != long_run_rate("vegas", {}, MET)


@pytest.mark.parametrize(
    ("name", "settings", "measured"),
    [
        ("westwood", {}, MET._replace(rtt_s=0.1)),
        ("vegas", {}, MET._replace(rtt_s=0.1)),
        ("sack", {}, MET._replace(p=0.0)),
        ("sack", {"increase": 0.0}, MET),
        ("my:Own", {}, MET),
        ("cubic", {}, MET._replace(rtt_s=0.0)),
    ],
)
def test_where_no_formula_says_anything_there_is_none(
    name: str, settings: dict[str, float], measured: PathConditions
) -> None:
    assert long_run_rate(name, settings, measured) is None


def test_ns_2_s_newreno_on_a_lossy_path_received_what_its_formula_says() -> None:
    # 25 s on 800 kbit/s with 0.4 % random loss: the minute's mean by ns-2's sink (dumbbells.json)
    runs = json.loads((DATA / "ns2" / "dumbbells.json").read_text())
    [run] = [one for one in runs if (one["dumbbell"], one["algorithm"]) == ("long", "newreno")]
    received_bps = run["received_packets"] * 8000 / run["duration_s"]
    trace = tfrctrace.open(DATA / "ns2" / "dumbbell-newreno.tr.xz")
    [replayed] = open_loop_runs(trace.replays("newreno"))
    assert replayed.long_run_by == "Padhye"
    low, high = replayed.long_run_bps
    assert low == high == pytest.approx(received_bps, rel=0.3)


def test_the_table_shows_it_and_names_the_formulas(run: Callable[..., Any]) -> None:
    done = run("replay", "-q", "-a", "newreno,vegas,tfrc", DATA / "ns2" / "dumbbell-newreno.tr.xz")
    assert done.status == 0, done.err
    assert "long run" in done.out
    assert "long run is what formulas give at this p and R: Padhye, Vegas' rest" in done.out
    assert " to " in next(line for line in done.out.splitlines() if line.startswith("  vegas"))
