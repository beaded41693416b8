"""ns-2's agents replayed: their own rate at each report, and near it without the reports."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from ns2_tfrc_agents import agent_rows

import tfrctrace

DATA = Path(__file__).resolve().parents[2] / "data" / "ns2" / "tfrc"

STOPS_S = {
    "application-limited": 18,
    "heavy-loss": 29,
    "outage": 24,
    "parameters": 19,
    "ecn": 14,
    "tagged": 4,
    "mixed": 16,
    "wireless": 5,
}
"""Traces with one TFRC flow each, and when the script stopped it."""

PARAMETERS = {"parameters": {"df": 0.8, "tcp_tick": 0.02, "ca": 0}}

FREE_WAY_BACK = ("application-limited", "heavy-loss", "outage", "parameters", "ecn", "tagged", "wireless")
"""Those of which no report is lost: on wired links, and one on a radio."""


def opened(name: str) -> tfrctrace.Trace:
    return tfrctrace.open(DATA / f"{name}.tr.xz", tfrc=PARAMETERS.get(name))


def printed(name: str) -> list[dict[str, Any]]:
    """Return what the sender printed at each report until it was stopped."""
    rows = [{**row, "time": float(row["time"])} for row in agent_rows(name, "sender")]
    return [row for row in rows if row["time"] <= STOPS_S[name]]


@pytest.mark.parametrize("name", STOPS_S)
def test_x_is_the_agents_rate_at_every_report_after_slow_start(name: str) -> None:
    steps = opened(name).replay("tfrc", profile="ns2").filter(pl.col("event") == "report")
    pairs = list(zip(steps.iter_rows(named=True), printed(name), strict=False))
    # the last packet leaves before the sender is stopped, and a report or two may come in between
    assert len(pairs) >= len(printed(name)) - 2
    after = [(ours, theirs) for ours, theirs in pairs if theirs["branch"] != "SLOW_START"]
    assert after
    for ours, theirs in after:
        assert ours["x_bps"] / 8 == pytest.approx(float(theirs["rate_Bps"]), rel=1e-5, abs=0.01)
        assert ours["x_calc_bps"] is not None


@pytest.mark.parametrize("name", STOPS_S)
def test_packets_show_in_slow_start_what_the_resolution_of_the_trace_does_not(name: str) -> None:
    trace = opened(name)
    steps = trace.replay("tfrc", profile="ns2").filter(pl.col("event") == "report")
    pairs = zip(steps.iter_rows(named=True), printed(name), strict=False)
    wrong = [
        ours["time_ns"]
        for ours, theirs in pairs
        if theirs["branch"] == "SLOW_START"
        and ours["x_bps"] / 8 != pytest.approx(float(theirs["rate_Bps"]), rel=1e-4, abs=0.01)
    ]
    assert not wrong
    notes = trace.flows["notes"].drop_nulls().to_list()
    assert not any("in slow start whose rate the trace's resolution" in note for note in notes)


def without_reports(path: Path, folder: Path) -> tfrctrace.Trace:
    """Return the trace without the lines of TFRC's reports."""
    opener = gzip.open if path.suffix == ".gz" else lzma.open
    with opener(path, "rt") as file:
        kept = [line for line in file if "tcpFriendCtl" not in line]
    stripped = folder / path.stem
    stripped.write_text("".join(kept))
    return tfrctrace.open(stripped, tfrc=PARAMETERS.get(path.name.partition(".")[0]))


def after_slow_start(recorded: pl.DataFrame, simulated: pl.DataFrame) -> tuple[Any, Any]:
    """Return X each 50 ms after slow start, by the trace's reports and by simulated ones."""
    assert set(recorded["reports"]) == {"reports"}
    assert set(simulated["reports"]) == {"simulated_reports"}
    begin_ns = recorded.filter(pl.col("x_calc_bps").is_not_null())["time_ns"][0]
    grid = np.arange(begin_ns, recorded["time_ns"][-1], 50_000_000)
    first, second = (
        steps["x_bps"].to_numpy()[np.searchsorted(steps["time_ns"].to_numpy(), grid, "right") - 1]
        for steps in (recorded, simulated)
    )
    return first, second


@pytest.mark.parametrize("name", FREE_WAY_BACK)
def test_without_its_reports_x_is_near(name: str, tmp_path: Path) -> None:
    stripped = without_reports(DATA / f"{name}.tr.xz", tmp_path)
    recorded, ours = after_slow_start(
        opened(name).replay("tfrc", profile="ns2"), stripped.replay("tfrc", profile="ns2")
    )
    assert np.median(np.abs(ours / recorded - 1)) < 0.15
    assert ours.mean() == pytest.approx(recorded.mean(), rel=0.15)


@pytest.mark.parametrize("name", [*STOPS_S, "agents-reports-lost-15", "agents-reports-lost-30"])
def test_simulated_reports_get_back_or_are_lost_as_those_of_the_trace(name: str) -> None:
    # taken for a path without queues and losses, X was off by up to 92 %
    recorded, ours = after_slow_start(
        *(opened(name).replay("tfrc", profile="ns2", simulate=simulate) for simulate in (False, True))
    )
    # a tagged trace rounds times otherwise, and slow start ends a report earlier
    within = 0.03 if name == "tagged" else 0.001
    assert np.median(np.abs(ours / recorded - 1)) < within
    assert ours.mean() == pytest.approx(recorded.mean(), rel=0.06)


@pytest.mark.parametrize(
    ("name", "error"), [("agents-reports-lost-15", 0.05), ("agents-reports-lost-30", 0.15)]
)
def test_a_lost_report_of_slow_start_does_not_hold_up_those_after_it(
    name: str, error: float, tmp_path: Path
) -> None:
    stripped = without_reports(DATA / f"{name}.tr.xz", tmp_path)
    recorded, ours = after_slow_start(
        opened(name).replay("tfrc", profile="ns2"), stripped.replay("tfrc", profile="ns2")
    )
    assert np.median(np.abs(ours / recorded - 1)) < error


def test_the_notes_state_what_is_known_of_the_return_path(tmp_path: Path) -> None:
    path = DATA / "agents-reports-lost-15.tr.xz"
    (known,) = tfrctrace.open(path).replays("tfrc", profile="ns2", simulate=True).recordings
    assert known.notes[0] == (
        "reports are simulated; they get back as the trace's own reports did; 8 of 51 were lost, and "
        "simulated ones with them"
    )
    (unknown,) = without_reports(path, tmp_path).replays("tfrc", profile="ns2").recordings
    assert unknown.notes[0].endswith("queues and losses on the return path are unknown, so X may be far off")


def test_a_flow_that_begins_behind_a_full_queue_is_not_taken_for_one_with_a_long_way(tmp_path: Path) -> None:
    # its fastest packet waited, which the lines of the queue show; taken for the way, X was 26 % off
    path = DATA / "late.tr.xz"
    recorded, ours = after_slow_start(
        tfrctrace.open(path).replay("tfrc", profile="ns2"),
        without_reports(path, tmp_path).replay("tfrc", profile="ns2"),
    )
    assert np.median(np.abs(ours / recorded - 1)) < 0.05


def test_in_slow_start_packets_show_when_reports_arrived(tmp_path: Path) -> None:
    # four nodes that lose frames: the way back takes 2 to 134 ms, and slow start never ends
    path = DATA.parent / "wireless-old.tr.gz"
    trace = tfrctrace.open(path)
    flow = trace.feedback["flow"][:1].to_list()
    recorded, ours = (
        one.replay("tfrc", profile="ns2", flows=flow)
        .filter(pl.col("event") == "report")
        .select("time_ns", "x_bps")
        for one in (trace, without_reports(path, tmp_path))
    )
    assert recorded.height > 30
    assert ours["time_ns"].to_list() == recorded["time_ns"].to_list()
    assert (ours["x_bps"] / recorded["x_bps"] - 1).abs().max() < 1e-6


def test_a_round_trip_time_that_is_given_is_that_of_simulated_reports() -> None:
    trace = tfrctrace.open(DATA.parent / "wireless-old.tr.gz")
    flow = trace.feedback["flow"][:1].to_list()
    steps = trace.replay("tfrc", profile="ns2", simulate=True, flows=flow, rtt="500ms")
    # the least of all packets, not all of which are reported upon
    assert 500 <= steps["rtt_ms"].min() < 515


def test_the_timer_has_rows_of_its_own() -> None:
    steps = opened("outage").replay("tfrc", profile="ns2")
    silent = steps.filter(pl.col("event") == "no_feedback")
    assert silent.height > 0
    assert set(silent["mode"]) <= {"no_feedback", "idle"}
    assert silent.select(pl.col("p", "rtt_ms", "x_recv_bps").is_null().all()).row(0) == (True, True, True)


def test_nothing_is_replayed_after_the_last_data_packet() -> None:
    for name in STOPS_S:
        trace = opened(name)
        replayed = trace.replays("tfrc", profile="ns2")
        (recording,) = replayed.recordings
        assert replayed.frame["time_ns"].max() <= recording.end_ns


def test_rfc_3448_and_ns_2_agree_where_only_data_limits() -> None:
    # ns-2 keeps its rate under twice the receive rate of one report, as RFC 3448 does; RFC 5348 does not
    trace = opened("application-limited")
    means = {
        profile: trace.replay("tfrc", profile=profile)["x_bps"].tail(40).mean()
        for profile in ("ns2", "rfc3448", "rfc5348")
    }
    assert means["rfc3448"] == pytest.approx(means["ns2"], rel=0.05)
    assert abs(means["rfc5348"] / means["ns2"] - 1) > 0.1


def test_parameters_of_the_agents_are_those_of_the_replay() -> None:
    trace = tfrctrace.open(DATA / "parameters.tr.xz", tfrc=PARAMETERS["parameters"])
    other = tfrctrace.open(DATA / "parameters.tr.xz")
    stated, left_out = (one.replay("tfrc", profile="ns2")["x_bps"] for one in (trace, other))
    assert (stated.tail(20) / left_out.tail(20) - 1).abs().max() > 0.01


AGENTS = {
    "sink": {"num_pkts": 3, "num_feedback": 2, "num_samples": 4, "smooth": 0, "adjust_history_after_ss": 0},
    "sender": {"voip": 1, "max_heavy_rounds": 3, "rate_init_option": 1, "rate_init": 3},
    "idle": {"idle_fix": 0, "rate_init_option": 1, "rate_init": 3},
    "ewma": {"algo": 2, "history": 0.5},
    "rbph": {"algo": 3, "minlc": 3},
    "ebph": {"algo": 4, "minlc": 3},
    "conservative": {"conservative": 1, "scmult": 1.2},
    "old": {"old_code": 1},
    "short-lost": {"short_intervals": 1, "short_rtts": 4},
    "short-large": {"short_intervals": 2, "short_rtts": 6},
    "short-rounds": {"short_intervals": 3, "short_rtts": 3, "precise_loss": 0, "voip": 1},
}
"""Runs of agents.tcl with other parameters than ns-2's defaults."""

IDLE = ("idle", "old")
"""Those whose application rests. The others never run dry, but a link that gets slow would look like that at
one report."""


def errors(name: str, settings: dict[str, float]) -> tuple[list[float], list[float]]:
    """Return how far X is from the agent's rate at each report, in slow start and after it."""
    rates = [float(row["rate_Bps"]) for row in agent_rows(f"agents-{name}", "rate")]
    trace = tfrctrace.open(DATA / f"agents-{name}.tr.xz", tfrc=settings)
    steps = trace.replay("tfrc", profile="ns2").filter(pl.col("event") == "report")
    assert len(rates) - 3 <= steps.height <= len(rates)
    pairs = zip(steps.select("x_bps", "x_calc_bps").iter_rows(), rates, strict=False)
    known = [(abs(x_bps / 8 / rate - 1), x_calc) for (x_bps, x_calc), rate in pairs]
    return (
        [error for error, x_calc in known if x_calc is None],
        [error for error, x_calc in known if x_calc is not None],
    )


@pytest.mark.parametrize("name", AGENTS)
def test_every_parameter_of_the_agents_is_an_option_with_which_x_is_theirs(name: str) -> None:
    always_sends = {} if name in IDLE else {"sndr_type": 0}
    slow, after = errors(name, {**AGENTS[name], **always_sends})
    assert len(after) > 30
    assert max(after) < 1e-5
    # as defaults would have it X is wrong, of an idle sender in slow start
    of_default = errors(name, always_sends)
    wrong = [sum(error > 0.01 for error in some) for some in of_default]
    assert wrong[0 if name in IDLE else 1] > (4 if name == "old" else 20)
    if name in IDLE:
        assert max(slow) < 1e-5


def test_what_a_report_says_of_losses_is_in_the_table_and_counts_where_it_was_not_seen() -> None:
    trace = tfrctrace.open(DATA / "agents-conservative.tr.xz", tfrc=AGENTS["conservative"])
    reports, events = trace.feedback, trace.loss_events
    assert reports["lost_packets"].sum() == events["packets"].sum() > 0
    simulated = trace.replays("tfrc", profile="ns2", simulate=True).recordings[0].reports
    assert simulated["lost_packets"].sum() == pytest.approx(reports["lost_packets"].sum(), rel=0.05)


def test_a_sink_that_reports_twice_in_a_round_trip_time_is_simulated_as_such() -> None:
    trace = tfrctrace.open(DATA / "agents-sink.tr.xz", tfrc=AGENTS["sink"])
    known, twice = (trace.replay("tfrc", profile="ns2", simulate=simulate) for simulate in (False, True))
    once = trace.replay("tfrc", profile="ns2", simulate=True, settings={"tfrc.num_feedback": 1})
    known_reports, of_two, of_one = (
        steps.filter(pl.col("event") == "report").height for steps in (known, twice, once)
    )
    assert of_two == pytest.approx(known_reports, rel=0.1)
    assert of_one < 0.75 * of_two


def test_a_parameter_of_the_sink_that_its_reports_do_not_show_is_reported_to_change_nothing() -> None:
    trace = tfrctrace.open(DATA / "agents-ewma.tr.xz", tfrc=AGENTS["ewma"])
    assert not any(
        "has no effect" in note for note in trace.replays("tfrc", profile="ns2").recordings[0].notes
    )
    other = trace.replays("tfrc", profile="ns2", settings={"tfrc.algo": 4})
    assert any("`algo` has no effect" in note for note in other.recordings[0].notes)


def test_the_documentation_has_every_parameter_of_the_agents() -> None:
    from tfrctrace.parsers._native import tfrc_parameters

    page = (DATA.parents[3] / "docs" / "tfrc.md").read_text()
    assert [name for name in tfrc_parameters() if f"`{name}`" not in page] == []


def test_every_step_has_all_that_is_known() -> None:
    from tfrctrace.parsers.schema import TABLES

    steps = opened("mixed").replay("tfrc", "tfrc-veno", profile="rfc5348")
    assert steps.columns == [column.name for column in TABLES["replay"]]
    assert set(steps["algorithm"]) == {"tfrc", "tfrc-veno"}
    reports = steps.filter(pl.col("event") == "report")
    known = ("x_bps", "mode", "reason", "p", "r_ms", "x_recv_bps")
    assert reports.select(pl.col(known).null_count().sum()).row(0) == (0,) * len(known)
    assert (steps["x_bps"] > 0).all()
