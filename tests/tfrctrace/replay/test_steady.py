"""Steady-state formulas against vectors made with two evaluators, and what theory says of them."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrctrace.replay.tcp import steady

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "tcp_models.json").read_text())

exactly = pytest.approx
rates = st.floats(1e-6, 1)
rtts = st.floats(1e-3, 2)


@pytest.mark.parametrize("entry", VECTORS["padhye"], ids=lambda entry: entry["id"])
def test_padhye_and_mathis_agree_with_the_vectors(entry):
    p, rtt_s, t0_s, b, w_max = (entry[name] for name in ("p", "rtt", "T0", "b", "Wmax"))
    assert steady.pftk_pps(p, rtt_s, t0_s, b=b, w_max=w_max) == exactly(entry["approx_pps"], rel=1e-9)
    assert steady.aimd_pps(p, rtt_s, b=b, t0_s=0) == exactly(entry["mathis_pps"], rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["vegas_equilibrium"])
def test_vegas_rests_where_the_vectors_say(entry):
    low, high = steady.vegas_bounds_pps(
        entry["rtt"], entry["base_rtt"], alpha=entry["alpha"], beta=entry["beta"]
    )
    assert (low, high) == exactly((entry["rate_low_pps"], entry["rate_high_pps"]), rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["westwood_model"])
def test_westwood_agrees_with_the_vectors(entry):
    p, rtt_s = entry["p"], entry["rtt"]
    assert steady.westwood_pps(p, rtt_s, entry["rtt_min"]) == exactly(entry["westwood_pps"], rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["cubic_model"])
def test_the_mean_window_of_cubic_agrees_with_the_vectors(entry):
    mean = steady.cubic_mean_window(entry["p"], entry["rtt"])
    assert mean == exactly(entry["avg_w"], rel=1e-9)
    assert mean / entry["rtt"] == exactly(entry["rate_pps"], rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["cubic_window"])
def test_the_window_of_cubic_over_time_agrees_with_the_vectors(entry):
    period_s = steady.cubic_period_s(entry["W_max"], steady.CUBIC_BETA * entry["W_max"])
    assert period_s == exactly(entry["K"], rel=1e-9)
    for elapsed_s, window in entry["W_at"]:
        assert steady.cubic_window(elapsed_s, entry["W_max"], period_s) == exactly(window, rel=1e-9)


@pytest.mark.parametrize("entry", VECTORS["aimd_generic"])
def test_additive_increase_agrees_with_the_vectors(entry):
    rate = steady.aimd_pps(entry["p"], entry["rtt"], increase=entry["a"], gamma=entry["gamma"])
    assert rate * entry["s"] == exactly(entry["X"], rel=1e-9)


@given(rates, rtts)
def test_more_loss_never_means_a_higher_rate(p, rtt_s):
    more = min(1.0, 1.5 * p)
    assert steady.aimd_pps(more, rtt_s) <= steady.aimd_pps(p, rtt_s)
    assert steady.aimd_pps(more, rtt_s, t0_s=0) <= steady.aimd_pps(p, rtt_s, t0_s=0)
    assert steady.cubic_mean_window(more, rtt_s) <= steady.cubic_mean_window(p, rtt_s)


@given(rates, rtts)
def test_without_timeouts_an_aimd_is_the_formula_of_mathis(p, rtt_s):
    assert steady.aimd_pps(p, rtt_s, t0_s=0) == exactly(math.sqrt(3 / (2 * p)) / rtt_s, rel=1e-12)


def test_without_loss_there_is_no_rate():
    assert steady.pftk_pps(0, 0.1, 1) is None

    assert steady.westwood_pps(0, 0.1, 0.05) is None
    assert steady.cubic_mean_window(0, 0.1) is None
    assert steady.aimd_pps(0, 0.1) is None


def test_without_a_queue_westwood_and_vegas_have_no_rate():
    assert steady.westwood_pps(0.01, 0.1, 0.1) is None
    assert steady.vegas_bounds_pps(0.1, 0.1) is None


def test_a_share_above_one_is_no_loss_event_rate():
    with pytest.raises(ValueError, match="from 0 to 1"):
        steady.aimd_pps(1.2, 0.1)
