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


WITHOUT = {"bbr", "bic", "htcp", "illinois", "lp", "yeah"}
"""No formula of their mean rate by p and R alone is published."""


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - WITHOUT))
def test_each_other_window_has_a_formula(name: str) -> None:
    found = long_run_rate(name, {}, MET)
    assert found is not None
    assert 0 < found.low_pps <= found.high_pps


# RFC 3649 table 2: the average window by the loss rate, and table 4: its reaction to losses
@pytest.mark.parametrize(
    ("p", "window"), [(1e-3, 38), (1e-4, 263), (1e-5, 1795), (1e-6, 12279), (1e-7, 83981)]
)
def test_the_mean_window_of_high_speed_is_that_of_the_rfc(p: float, window: float) -> None:
    found = long_run_rate("highspeed", {}, PathConditions(p, rtt_s=1.0, base_rtt_s=1.0))
    assert found is not None
    assert found.low_pps == pytest.approx(window, rel=0.02)


def test_the_mean_window_of_scalable_falls_as_the_loss_rate() -> None:
    # Kelly 2003: the rate is about a / b / p, 0.08 packets for each loss with a = 0.01 and b = 0.125
    found = long_run_rate("scalable", {}, PathConditions(1e-5, rtt_s=1.0, base_rtt_s=1.0))
    assert found is not None
    assert found.low_pps == pytest.approx(0.08 / 1e-5)


def test_hybla_has_the_rate_of_reno_on_a_short_path_and_more_on_a_long_one() -> None:
    short, longer = (PathConditions(0.01, rtt_s=rtt_s, base_rtt_s=rtt_s) for rtt_s in (0.02, 0.1))
    rates = [long_run_rate(name, {}, met) for met in (short, longer) for name in ("hybla", "sack")]
    assert all(rates)
    hybla, reno, far_hybla, far_reno = (rate.low_pps for rate in rates if rate is not None)
    assert hybla == pytest.approx(reno, rel=0.1)
    assert far_hybla > 3 * far_reno


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


def test_a_reno_that_counts_acknowledgements_is_slower() -> None:
    # b of Padhye et al.: packets that an acknowledgement is for
    rates = [
        long_run_rate("sack", {"segments_per_ack": b} | more, MET)
        for more in ({}, {"gamma": 0.5})
        for b in (1, 2)
    ]
    per_segment, per_ack, aimd, aimd_per_ack = (rate.low_pps for rate in rates if rate is not None)
    assert per_ack == pytest.approx(per_segment / 2**0.5, rel=0.1)
    assert aimd_per_ack == pytest.approx(aimd / 2**0.5, rel=0.1)


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
