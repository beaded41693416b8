"""Window controls in open loop against what ns-2's own agents had as `cwnd_` in the same runs."""

import lzma
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from replay_recordings import recording

import tfrctrace
from tfrctrace.replay.recordings.sender_losses import loss_events, repairs, with_losses
from tfrctrace.replay.tcp.sack import Sack
from tfrctrace.replay.tcp.vegas import Vegas

NS2 = Path(__file__).parents[2] / "data" / "ns2"
SEGMENT = 1000


class Ns2Vegas(Vegas):
    """Vegas as ns-2's agent has it."""

    def __init__(self, start):
        super().__init__(start, agent="ns2")


def mean_of_steps(steps, first_s, last_s):
    """Return the mean over time of a step function, `time_s` and `cwnd`, between two times."""
    steps = steps.filter(pl.col("time_s") < last_s)
    until = pl.col("time_s").shift(-1, fill_value=last_s).clip(lower_bound=first_s)
    lasts = (until - pl.col("time_s").clip(lower_bound=first_s)).alias("lasts")
    return steps.select((pl.col("cwnd") * lasts).sum() / lasts.sum()).item()


def window_of_ns2(run, flow, first_s, last_s):
    own = pl.read_csv(lzma.decompress((NS2 / f"{run}.cwnd.csv.xz").read_bytes()))
    return mean_of_steps(own.filter(pl.col("flow") == flow), first_s, last_s)


def window_in_replay(run, algorithm, flow, first_s, last_s):
    steps = tfrctrace.open(NS2 / f"{run}.tr.xz").replay(algorithm)
    own = steps.filter(pl.col("flow") == flow, pl.col("direction") == "fwd").select(
        (pl.col("time_ns") / 1e9).alias("time_s"), (pl.col("window_bytes") / SEGMENT).alias("cwnd")
    )
    return mean_of_steps(own, first_s, last_s)


VEGAS = f"{__name__}:Ns2Vegas"


@pytest.mark.parametrize(
    ("run", "algorithm", "flow", "last_s", "within"),
    [
        ("dumbbell-newreno", "newreno", 1, 25, 0.02),
        ("wired-mix", "sack", 2, 13, 0.05),
        ("wired-mix", "veno", 3, 13, 0.02),
        ("wired-mix", VEGAS, 4, 13, 0.1),
    ],
    ids=["newreno", "sack", "veno", "vegas"],
)
def test_the_mean_window_is_that_of_ns2_s_agent(run, algorithm, flow, last_s, within):
    replayed = window_in_replay(run, algorithm, flow, 2, last_s)
    assert replayed == pytest.approx(window_of_ns2(run, flow, 2, last_s), rel=within)


def test_a_timeout_inside_a_recovery_takes_the_window_to_one_segment():
    for window in (window_of_ns2, lambda run, *rest: window_in_replay(run, "newreno", *rest)):
        assert window("dumbbell-newreno", 1, 1.75, 1.95) > 20
        assert window("dumbbell-newreno", 1, 2.0, 2.2) < 3


def needed(*rows):
    """Return repairs; each is time, place in the stream and class."""
    return pl.DataFrame(
        [(time, place, f"{kind}_retransmission", None) for time, place, kind in rows],
        schema={"time_ns": pl.Int64, "seq_rel": pl.Int64, "class": pl.String, "spurious": pl.String},
        orient="row",
    )


def sent(*places):
    """Return packets, one at each ns from 1 on."""
    return pl.DataFrame(
        {"time_ns": range(1, len(places) + 1), "seq_rel": places},
        schema={"time_ns": pl.Int64, "seq_rel": pl.Int64},
    )


def test_repairs_of_one_window_are_one_event_however_long_they_take():
    # RFC 6582 section 3.2: what was sent before the first repair is up to `recover`
    packets = sent(0, 1, 2, 3, 4, 5, 6, 7)
    found = loss_events(needed((5, 1, "fast"), (500, 3, "fast"), (900, 4, "fast")), packets)
    assert found.rows() == [(5, 2, False), (900, 1, False)]


def test_what_the_timer_sends_again_is_one_timeout_until_it_begins_anew():
    packets = sent(*range(10))
    found = loss_events(needed((20, 2, "rto"), (21, 3, "rto"), (22, 4, "rto"), (60, 2, "rto")), packets)
    assert found.rows() == [(20, 3, True), (60, 1, True)]


def test_a_timer_that_runs_out_in_recovery_is_a_timeout():
    found = loss_events(needed((20, 2, "fast"), (60, 2, "rto")), sent(*range(10)))
    assert found.rows() == [(20, 1, False), (60, 1, True)]


def test_repairs_that_were_not_needed_or_of_something_else_are_no_losses():
    losses = needed((5, 1, "fast"), (6, 2, "fast"), (7, 3, "syn")).with_columns(
        pl.Series("spurious", [None, "d_sack", None])
    )
    assert repairs(losses)["seq_rel"].to_list() == [1]


def test_an_event_counts_in_the_nearest_report_and_none_is_left_out():
    reports = pl.DataFrame({"time_ns": [100, 200, 300]})
    found = with_losses(
        reports, needed((110, 1, "fast"), (190, 150, "rto"), (900, 500, "fast")), sent(*range(600))
    )
    assert found.select("loss_events", "lost_packets", "timeouts").rows() == [(1, 1, 0), (1, 1, 1), (1, 1, 0)]


def test_without_losses_nothing_is_counted():
    found = with_losses(pl.DataFrame({"time_ns": [100]}), needed(), sent(0))
    assert found.select("loss_events", "lost_packets", "timeouts").rows() == [(0, 0, 0)]
    none = with_losses(
        pl.DataFrame({"time_ns": []}, schema={"time_ns": pl.Int64}), needed((1, 0, "fast")), sent(0)
    )
    assert none.height == 0


def test_a_recorded_loss_cuts_the_window_when_it_was_detected():
    # 40 ms before its report: the window grew until then, and rests for a round-trip time from then on
    reports = [{"t": 0.1 * n, "r_sample": 0.1, "p": 0.0, "x_recv": 1e6} for n in range(1, 6)]
    made = recording(reports, end_s=0.6)
    lost = pl.Series("lost_ns", [None, 160_000_000, None, None, None], dtype=pl.Int64)
    events = pl.Series("loss_events", [0, 1, 0, 0, 0], dtype=pl.UInt32)
    made = replace(made, reports=made.reports.with_columns(lost, events))
    control = Sack(made.start, initial_window=10)
    control.ssthresh = 1.0
    windows = [control.on_feedback(report).window_bytes / SEGMENT for report in made.steps()]
    cut = (11 + 0.6) / 2
    assert windows == pytest.approx([11, cut, cut + 0.4, cut + 1.4, cut + 2.4])
