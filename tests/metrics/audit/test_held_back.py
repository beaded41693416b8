"""What held flows back within an incident, of rows written out."""

import polars as pl

from tfrctrace.metrics.audit.held_back import HeldBack, held_back_within
from tfrctrace.metrics.audit.incidents import Incident
from tfrctrace.metrics.flow.causes import CAUSE_SUMS

S = 10**9
INCIDENT = Incident("link", 10 * S, 20 * S)


def evidence(*rows):
    schema = {"group": pl.String, "direction": pl.String, "start_ns": pl.Int64}
    schema |= dict.fromkeys(CAUSE_SUMS, pl.UInt64)
    full = [dict(zip(("group", "direction", "start_ns"), key, strict=True)) | times for *key, times in rows]
    return pl.DataFrame([dict.fromkeys(schema) | row for row in full], schema)


ROWS = evidence(
    ("a", "sent", 5 * S, {"receiver_ns": 100}),
    ("a", "sent", 10 * S, {"receiver_ns": 7, "loss_ns": 1, "mark_ns": 0}),
    ("b", "received", 10 * S, {"receiver_ns": 7, "loss_ns": 1}),
    ("b", "sent", 15 * S, {"loss_ns": 20}),
    ("c", "received", 15 * S, {"loss_ns": 20}),
    ("b", "sent", 20 * S, {"policer_ns": 100}),
)


def test_all_hosts_count_what_is_sent_once_within_the_incident():
    found = held_back_within(INCIDENT, ROWS, ())
    assert (list(found.ns.items()), found.lacking) == ([("loss", 21), ("receiver", 7)], None)


def test_of_named_hosts_what_they_send_and_receive():
    assert held_back_within(INCIDENT, ROWS, ["a"]).ns == {"receiver": 7, "loss": 1}
    assert held_back_within(INCIDENT, ROWS, ["b"]).ns == {"receiver": 7, "loss": 21}


def test_without_causes_or_without_data_the_reason_is_there():
    idle = evidence(("a", "sent", 10 * S, dict.fromkeys(CAUSE_SUMS, 0)), ("b", "sent", 10 * S, {}))
    for rows in (idle, ROWS.clear()):
        assert held_back_within(INCIDENT, rows, ()) == HeldBack("no data")
        assert held_back_within(INCIDENT, None, ()) == HeldBack("not collected")
