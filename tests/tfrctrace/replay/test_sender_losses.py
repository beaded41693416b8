"""What a sender lost, once for each window (RFC 6582 section 3.2)."""

import polars as pl

from tfrctrace.replay.recordings.sender_losses import loss_events, repairs, with_losses


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
