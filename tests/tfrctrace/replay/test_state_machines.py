"""Senders driven through recordings give the numbers that were computed independently of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_recordings import NS, recording

from tfrctrace.base.errors import UsageError
from tfrctrace.replay.controller import Controller, Start
from tfrctrace.replay.drive import drive
from tfrctrace.replay.tfrc import VARIANTS, Tfrc, TfrcVariant, run, tfrc_variant

if TYPE_CHECKING:
    from tfrctrace.replay.recordings.recording import Recording

VECTORS = Path(__file__).resolve().parents[2] / "data" / "vectors"


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


def of_vector(row: dict[str, Any]) -> Recording:
    """Return the recording of a vector: its sender sends each 5 ms but for its idle intervals."""
    params = row["params"]
    end_s = params.get("t_end") or row["feedback"][-1]["t"]
    idle = row["idle_intervals"]
    grid = [step / 200 for step in range(int(end_s * 200) + 2)]
    sends = [time for time in grid if not any(start < time <= end for start, end in idle)]
    # a timer that runs out at the very end is still one
    return recording(row["feedback"], segment_bytes=params["s"], sends=sends, end_s=end_s + 1e-6)


OF_SENDERS = [
    (row, profile)
    for row in vectors("sender")
    for profile in ("rfc5348", "rfc3448")
    if row[f"expect_{profile}"] is not None
]


@pytest.mark.parametrize(
    ("row", "profile"), OF_SENDERS, ids=lambda one: one if isinstance(one, str) else one["id"]
)
def test_every_step_of_a_sender_is_that_of_the_vector(row: dict[str, Any], profile: Any) -> None:
    expected = row[f"expect_{profile}"]
    mss = float(row["params"].get("mss") or row["params"]["s"])
    steps = run(TfrcVariant("tfrc", profile, (("mss", mss),)), of_vector(row))
    assert steps["time_ns"].to_list() == [round(step["t"] * NS) for step in expected]
    for ours, step in zip(steps.iter_rows(named=True), expected, strict=True):
        assert ours["x_bps"] / 8 == pytest.approx(step["X"], rel=1e-9)
        assert (ours["event"] == "no_feedback") == (step["event"] == "nofeedback")
        if ours["event"] == "report":
            assert ours["r_ms"] / 1e3 == pytest.approx(step["R"], rel=1e-9)


def one_report(p: float, rtt_s: float) -> list[dict[str, Any]]:
    return [{"t": 1.0, "r_sample": rtt_s, "p": p, "x_recv": 1e9}]


UNCAPPED = [row for row in vectors("tfrc_equation") if not row["cap"]]
"""The RFCs do not cap the timeout term of the equation."""


@pytest.mark.parametrize("row", UNCAPPED, ids=lambda row: row["id"])
def test_x_calc_is_the_throughput_equation(row: dict[str, Any]) -> None:
    parameters = [("b", float(row["b"]))]
    if row["t_rto"] is not None:
        parameters.append(("t_rto_factor", row["t_rto"] / row["rtt"]))
    chosen = TfrcVariant(parameters=tuple(parameters))
    steps = run(chosen, recording(one_report(row["p"], row["rtt"]), segment_bytes=row["s"]))
    assert steps["x_calc_bps"][0] / 8 == pytest.approx(row["X"], rel=1e-9)


@pytest.mark.parametrize("row", vectors("tfrc_veno"), ids=lambda row: row["id"])
def test_x_calc_of_veno_is_its_equation(row: dict[str, Any]) -> None:
    chosen = TfrcVariant("tfrc-veno", "rfc5348", (("gamma", row["gamma"]), ("b", float(row["b"]))))
    steps = run(chosen, recording(one_report(row["p"], row["rtt"]), segment_bytes=row["s"]))
    assert steps["x_calc_bps"][0] / 8 == pytest.approx(row["X"], rel=1e-9)


@pytest.mark.parametrize("row", vectors("tfrc_sp"), ids=lambda row: row["id"])
def test_x_calc_of_small_packets_counts_their_headers_and_the_10_ms(row: dict[str, Any]) -> None:
    variant = {40: "tfrc-sp", 36: "ccid4"}[row["H"]]
    steps = run(
        TfrcVariant(variant), recording(one_report(row["p"], row["rtt"]), segment_bytes=row["s_true"])
    )
    assert steps["x_calc_bps"][0] / 8 == pytest.approx(row["X_after_10ms_limit"], rel=1e-9)


def test_slow_start_of_small_packets_has_the_10_ms_too() -> None:
    reports = [{"t": 0.1 * n, "r_sample": 0.1, "p": 0.0, "x_recv": 1e9} for n in range(1, 20)]
    steps = run(TfrcVariant("tfrc-sp"), recording(reports, segment_bytes=160))
    assert steps["x_bps"].max() == pytest.approx(160 / 0.010 * 8)


def test_linux_begins_with_the_window_of_rfc_3390_where_rfc_3448_has_one_packet() -> None:
    reports = [{"t": 0.1 * n, "r_sample": 0.1, "p": 0.0, "x_recv": 1e9} for n in (1, 2)]
    linux, rfc3448 = (
        run(TfrcVariant(profile=name), recording(reports, end_s=0.3)) for name in ("linux", "rfc3448")
    )
    assert linux["x_bps"].to_list() == pytest.approx([4000 / 0.1 * 8, 8000 / 0.1 * 8])
    assert rfc3448["x_bps"].to_list() == pytest.approx([1000 / 0.1 * 8, 2000 / 0.1 * 8])


def test_a_handshake_gives_the_first_rate() -> None:
    reports = [{"t": 0.05, "r_sample": 0.1, "p": 0.0, "x_recv": 1e9}]
    steps = run(TfrcVariant(), recording(reports, handshake_rtt_s=0.1))
    # less than a round-trip time after the start nothing is doubled yet
    assert (steps["x_bps"][0], steps["reason"][0]) == (pytest.approx(4000 / 0.1 * 8), "held")


def test_damping_lowers_x_while_the_round_trip_time_grows() -> None:
    reports = [{"t": 0.2 * n, "r_sample": 0.1 * n, "p": 0.01, "x_recv": 1e9} for n in range(1, 6)]
    plain, damped = (
        run(TfrcVariant(parameters=parameters), recording(reports, end_s=1.0))
        for parameters in ((), (("reduce_oscillations", 1.0),))
    )
    assert (damped["x_bps"][1:] < plain["x_bps"][1:]).all()


times = st.floats(0.001, 0.5)
reports_made = st.lists(
    st.tuples(times, st.floats(0.001, 1.0), st.floats(0.0, 1.0), st.floats(1.0, 1e8), st.booleans()),
    min_size=1,
    max_size=30,
)


@given(
    made=reports_made,
    variant=st.sampled_from(VARIANTS),
    profile=st.sampled_from(["rfc5348", "rfc3448", "linux"]),
)
def test_one_step_after_the_other_is_the_same_as_all_at_once(made: Any, variant: str, profile: Any) -> None:
    time, rows = 0.0, []
    for step, rtt, p, x_recv, limited in made:
        time += step
        rows.append({"t": time, "r_sample": rtt, "p": p, "x_recv": x_recv, "data_limited": limited})
    given_flow = recording(rows, end_s=time + 5)
    chosen = TfrcVariant(variant, profile)
    whole = run(chosen, given_flow)
    controller = Tfrc(given_flow.start, chosen)
    assert isinstance(controller, Controller)
    stepwise = list(drive(controller, given_flow))
    assert [step[1] for step in stepwise] == whole["event"].to_list()
    assert [8 * step[3].x for step in stepwise] == pytest.approx(whole["x_bps"].to_list(), rel=1e-9)
    assert [step[3].reason for step in stepwise] == whole["reason"].to_list()


@given(made=reports_made, gamma=st.floats(0.5, 0.95))
def test_a_window_that_keeps_more_of_itself_is_never_slower(made: Any, gamma: float) -> None:
    time, rows = 0.0, []
    for step, rtt, p, x_recv, _ in made:
        time += step
        rows.append({"t": time, "r_sample": rtt, "p": p, "x_recv": x_recv})
    given_flow = recording(rows, end_s=time)
    tfrc, veno = (
        # the slower one's timer runs out at other times
        run(chosen, given_flow).filter(pl.col("event") == "report")
        for chosen in (TfrcVariant(), TfrcVariant("tfrc-veno", "rfc5348", (("gamma", gamma),)))
    )
    assert (veno["x_calc_bps"].fill_null(0) >= tfrc["x_calc_bps"].fill_null(0) * (1 - 1e-12)).all()


def test_parameters_are_checked() -> None:
    for name, value in (
        ("b", 0.5),
        ("gamma", 0.99),
        ("q", 1.0),
        ("t_mbi", 0.0),
        ("reduce_oscillations", 0.5),
    ):
        with pytest.raises(UsageError, match=f"`{name}` cannot have this value"):
            tfrc_variant("tfrc-veno", "rfc5348", [(name, value)])
    with pytest.raises(UsageError, match="the profile `ns2` has `tfrc` only"):
        tfrc_variant("tfrc-sp", "ns2", [])


def test_a_start_says_what_a_controller_may_know() -> None:
    assert recording([], handshake_rtt_s=0.05).start == Start(segment_bytes=1000.0, handshake_rtt_s=0.05)
