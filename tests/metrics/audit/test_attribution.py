"""Where incidents were, of evidence that is made up."""

from dataclasses import replace
from typing import get_args

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.attribution import Attribution, Reason, ReasonKind, attribution_of, explained
from tfrctrace.metrics.audit.incidents import Incident, RaisedStretch
from tfrctrace.metrics.audit.signals import (
    EVIDENCE_COLUMNS,
    EVIDENCE_MEDIANS,
    SIGNALS,
    SignalKey,
    Trouble,
    trouble_of,
)
from tfrctrace.metrics.audit.silence_proofs import SilenceFacts
from tfrctrace.metrics.audit.usual_hours import best_period, usual_hours
from tfrctrace.reports.audit.place_words import SIGNAL_NAMES, reason_text

STEP_NS = 300 * 10**9
BEGIN, END, LAST = 48, 60, 72
CLIENTS = [f"10.0.0.{number}" for number in range(1, 5)]
SERVERS = [f"192.0.2.{number}" for number in range(1, 4)]
REQUIRE = {
    "delay": "median(rtt_ms) < 80 ms",
    "loss": "retransmission_ratio < 1 %",
    "connections": "sum(connections_established) / sum(connection_attempts) > 90 %",
    "requests": "sum(requests_unanswered) / sum(requests) < 20 %",
    "answers": "p95(response_ms) < 500 ms",
    "names": "p95(dns_ms) < 500 ms",
    "ping": "sum(echo_unanswered) / sum(echo_requests) < 10 %",
    "radio": "wifi_retry_ratio < 20 %",
}
WIRINGS = {
    "delay": {"near_rtt", "far_rtt", "echo_time"},
    "loss": {"near_loss", "far_loss", "capture_gaps"},
    "connections": {"unanswered", "refused", "incomplete", "near_loss", "far_loss"},
    "requests": {"unanswered", "near_stalls", "far_stalls", "near_holes", "far_holes", "unserved"},
    "answers": {"server_time", "far_rtt"},
    "names": {"dns_unanswered", "dns_failures", "dns_time", "far_rtt"},
    "ping": {"echo_unanswered", "echo_time", "near_rtt", "far_rtt"},
    "radio": {"radio_retries", "radio_signal"},
}
"""Signals that explain each kind of trouble."""
INCIDENTS = {
    "near_loss": ("client side", {"received": {"lost_behind_capture": 8}}),
    "far_loss": ("server side", {"sent": {"lost_behind_capture": 8}}),
    "unanswered": ("server side", {"sent": {"connections_established": -5, "connections_unanswered": 5}}),
    "refused": ("server", {"sent": {"connections_established": -5, "connections_refused": 5}}),
    "incomplete": ("client side", {"sent": {"connections_established": -5}}),
    "near_stalls": ("client side", {"received": {"stalls": 4}}),
    "near_holes": ("client side", {"sent": {"large_holes": 4}}),
    "far_holes": ("server side", {"received": {"large_holes": 4}}),
    "far_stalls": ("server side", {"sent": {"requests_unanswered": 4, "stalls": 4}}),
    "unserved": ("server", {"sent": {"requests_unanswered": 4}}),
    "dns_unanswered": ("server side", {"sent": {"dns_unanswered": 3}}),
    "dns_failures": ("server", {"sent": {"dns_failures": 3}}),
    "echo_unanswered": ("server side", {"sent": {"echo_unanswered": 3}}),
    "capture_gaps": ("capture", {"sent": {"capture_gap_bytes": 20_000}}),
    "radio_retries": ("radio", {"sent": {"wifi_retry_frames": 40}}),
    "near_rtt": ("client side", {"received": {"rtt_p50_ms": 100}}),
    "far_rtt": ("server side", {"sent": {"rtt_p50_ms": 100}}),
    "server_time": ("server", {"sent": {"response_p50_ms": 900}}),
    "dns_time": ("server", {"sent": {"dns_p50_ms": 400}}),
    "echo_time": ("server side", {"sent": {"echo_p50_ms": 100}}),
    "radio_signal": ("radio", {"sent": {"wifi_signal_sum_dbm": -1_000}}),
}
"""What changes in an incident of which a signal is the only sign, and where it was."""


def usual(direction: str, *, is_client: bool) -> dict:
    """Return what a host shows in five minutes: 5 ms to clients, 30 ms to servers."""
    is_own_side = direction == "received"
    counts = {name: 0 for name in EVIDENCE_COLUMNS if name not in EVIDENCE_MEDIANS}
    counts |= {"packets": 100, "wire_bytes": 100_000, "payload_bytes": 90_000, "tcp_data_segments": 80}
    counts |= {"arrivals_shown": 80, "losses_shown": 80, "rtt_samples": 40, "response_samples": 5}
    counts |= {"wifi_frames": 100, "wifi_signal_samples": 100, "wifi_signal_sum_dbm": -5_500}
    if is_client != is_own_side:
        counts |= {"connection_attempts": 5, "connections_established": 5}
        counts |= {"dns_queries": 5, "echo_requests": 5, "requests": 6}
    rtt_ms = 5.0 if is_client == is_own_side else 30.0
    asks = is_client != is_own_side
    answers = {"response_p50_ms": 60.0, "dns_p50_ms": 40.0, "echo_p50_ms": 30.0}
    return {**counts, "rtt_p50_ms": rtt_ms, **(answers if asks else dict.fromkeys(answers))}


def evidence(hosts: list[str], changes: dict[str, dict[str, float]]) -> pl.DataFrame:
    """Return six hours of hosts; `changes` are added during the fifth, by direction."""
    rows = []
    for host in [*CLIENTS, *SERVERS]:
        for place in range(LAST):
            for direction in ("sent", "received"):
                row = usual(direction, is_client=host in CLIENTS)
                # values differ a little from interval to interval
                row["rtt_p50_ms"] += place % 5 * 0.1
                if BEGIN <= place < END and host in hosts:
                    for name, more in changes.get(direction, {}).items():
                        row[name] = (row[name] or 0) + more
                times = {"start_ns": place * STEP_NS, "end_ns": (place + 1) * STEP_NS}
                rows.append({**row, "group": host, "direction": direction, **times})
    return pl.DataFrame(rows, infer_schema_length=None).select(EVIDENCE_COLUMNS)


def stretch_of(group: str) -> RaisedStretch:
    times = (BEGIN * STEP_NS, END * STEP_NS)
    counts = {"severe": 0, "value": 0.0, "n": 30, "at_ns": times[0]}
    return RaisedStretch(0, group, times[0], times[1], times[0], times[1], 12, **counts, ended="recovered")


def found_of(kind: str, hosts: list[str], changes: dict, *, groups=("link",), near=CLIENTS):
    objective = parse_objective({"require": REQUIRE[kind]})
    times = (BEGIN * STEP_NS, END * STEP_NS)
    incident = Incident("link", *times, list(map(stretch_of, groups)))
    spans = [(incident.begin_ns, incident.end_ns)]
    return attribution_of(incident, [objective], evidence(hosts, changes), near, spans)


def test_a_longer_way_to_clients_is_on_their_side():
    found = found_of("delay", CLIENTS, {"received": {"rtt_p50_ms": 100}, "sent": {}})
    assert (found.place, found.scope, found.confidence, found.under_load) == (
        "client side",
        "unknown",
        "high",
        False,
    )
    changed = [SIGNAL_NAMES[one.key] for one in found.signals if one.has_changed]
    assert changed == ["RTT on the client side"]
    assert "RTT on the server side, time of replies to pings did not" in reason_text(found.reason)


@pytest.mark.parametrize(
    ("trouble", "key"), [(name, key) for name in WIRINGS for key in sorted(WIRINGS[name])]
)
def test_each_signal_alone_names_the_attribution_of_the_troubles_that_it_explains(trouble, key):
    place, changes = INCIDENTS[key]
    found = found_of(trouble, CLIENTS, changes)
    assert [signal.key for signal in found.signals if signal.has_changed] == [key]
    assert (found.place, [signal.key for signal in found.reason.worse]) == (place, [key])


@pytest.mark.parametrize("trouble", WIRINGS)
def test_a_signal_that_does_not_explain_a_trouble_names_no_place(trouble):
    for key in INCIDENTS.keys() - WIRINGS[trouble]:
        _, changes = INCIDENTS[key]
        assert found_of(trouble, CLIENTS, changes).place == "unknown", key


def test_every_signal_and_every_trouble_is_wired_tested_and_worded():
    wired = {
        trouble: {one.key for one in SIGNALS if trouble in one.explains} for trouble in get_args(Trouble)
    }
    assert wired == WIRINGS
    assert list(REQUIRE) == list(WIRINGS)
    # the rate tells whether an incident is under load
    assert {one.key for one in SIGNALS} == {*INCIDENTS, "rate"} == set().union(*WIRINGS.values(), {"rate"})
    assert set(get_args(SignalKey)) == set(SIGNAL_NAMES) == {one.key for one in SIGNALS}


def test_every_reason_has_words():
    near = found_of("delay", CLIENTS, INCIDENTS["near_rtt"][1])
    reasons = {kind: reason_text(Reason(kind, worse=near.signals[:2])) for kind in get_args(ReasonKind)}
    assert len(set(reasons.values())) == len(reasons) == 6


def test_what_the_capture_missed_is_of_the_capture_without_anything_to_compare_with():
    """Acknowledged and never captured: the capture lost it, not the network."""
    missed = parse_objective({"require": "sum(capture_gap_bytes) / sum(payload_bytes) < 0.5 %"})
    whole = (0, LAST * STEP_NS)
    incident = Incident("link", *whole, [stretch_of("link")])
    gaps = evidence(CLIENTS, {"sent": {"capture_gap_bytes": 20_000}})
    found = attribution_of(incident, [missed], gaps, CLIENTS, [whole])
    assert (found.place, found.confidence) == ("capture", "high")
    lost = parse_objective({"require": REQUIRE["loss"]})
    assert attribution_of(incident, [lost], gaps, CLIENTS, [whole]).place == "unknown"


def test_delay_of_all_with_more_load_is_that_of_load():
    far = {"rtt_p50_ms": 100.0, "wire_bytes": 400_000}
    found = found_of("delay", CLIENTS, {"sent": far})
    assert (found.place, found.under_load) == ("server side", True)


def test_losses_of_one_host_are_on_its_side():
    lossy = {"received": {"lost_behind_capture": 8}}
    found = found_of("loss", CLIENTS[:1], lossy, groups=CLIENTS[:1])
    assert (found.place, found.scope, found.hosts) == ("client side", "one host", ("10.0.0.1",))
    assert found.confidence == "high"


def test_losses_before_the_capture_of_one_server_are_on_the_side_of_servers():
    lossy = {"sent": {"lost_before_capture": 8}}
    found = found_of("loss", SERVERS[1:2], lossy, groups=SERVERS[1:2])
    assert (found.place, found.scope, found.hosts) == ("server side", "one server", ("192.0.2.2",))


def test_connections_without_an_answer_are_behind_the_capture_and_refused_ones_at_the_server():
    fail = {"connections_established": -5}
    found = found_of("connections", CLIENTS, {"sent": {**fail, "connections_unanswered": 5}})
    assert found.place == "server side"
    found = found_of("connections", CLIENTS, {"sent": {**fail, "connections_refused": 5}})
    assert found.place == "server"


def test_slow_answers_of_one_server_are_found_though_those_of_all_did_not_change():
    found = found_of("answers", SERVERS[:1], {"received": {"response_p50_ms": 900}})
    assert (found.place, found.scope, found.hosts) == ("server", "one server", ("192.0.2.1",))
    assert found.confidence == "medium"


@pytest.mark.parametrize("kind", REQUIRE)
def test_without_any_change_the_place_is_unknown(kind):
    found = found_of(kind, [], {})
    assert (found.place, found.confidence) == ("unknown", "low")
    assert not any(one.has_changed for one in found.signals)


def test_delays_on_both_sides_are_of_an_unknown_place():
    found = found_of("delay", CLIENTS, {"received": {"rtt_p50_ms": 50}, "sent": {"rtt_p50_ms": 50}})
    assert found.place == "unknown"
    assert "several places: client side and server side" in reason_text(found.reason)


def test_without_known_sides_a_place_is_named_with_low_confidence_only():
    found = found_of("delay", CLIENTS, {"received": {"rtt_p50_ms": 100}}, near=None)
    assert found.confidence == "low"


def test_a_silence_is_of_the_capture():
    rows = evidence([], {}).filter(~pl.col("start_ns").is_between(BEGIN * STEP_NS, END * STEP_NS - 1))
    silence = Incident("link", BEGIN * STEP_NS, END * STEP_NS)
    found = attribution_of(silence, [], rows, CLIENTS, [(silence.begin_ns, silence.end_ns)])
    assert (found.place, found.confidence) == ("capture", "low")
    assert "no packet of any host" in reason_text(found.reason)


@pytest.mark.parametrize(
    ("facts", "where"),
    [
        (SilenceFacts("link dead", ("empty files",)), ("link", "high")),
        (SilenceFacts("link dead", ("one file",)), ("link", "medium")),
        (SilenceFacts("capture stopped", ("missing files",)), ("capture", "high")),
        (SilenceFacts("capture stopped", ("all links silent",)), ("capture", "medium")),
        (SilenceFacts("unknown", ("other links",)), ("capture", "low")),
    ],
)
def test_a_silence_is_where_its_proofs_say(facts, where):
    silence = Incident("link", BEGIN * STEP_NS, END * STEP_NS, silence=facts)
    found = attribution_of(silence, [], evidence([], {}), CLIENTS, [(silence.begin_ns, silence.end_ns)])
    assert (found.place, found.confidence) == where
    assert len(reason_text(found.reason)) > 100


@pytest.mark.parametrize(("lost", "place"), [(20, "client side"), (1, "capture")])
def test_what_the_capture_missed_explains_failures_that_are_no_more_frequent(lost, place):
    # 2 % of the data were missed, of which a failure may have four packets
    missed = {"capture_gap_bytes": 1_800}
    changes = {"received": {"lost_behind_capture": lost, **missed}, "sent": missed}
    found = found_of("loss", CLIENTS, changes)
    assert {one.key for one in found.signals if one.has_changed} == {"near_loss", "capture_gaps"}
    assert found.place == place


def test_delay_is_under_load_only_if_those_who_waited_had_more():
    more = {"received": {"rtt_p50_ms": 100, "wire_bytes": 400_000}, "sent": {}}
    assert found_of("delay", CLIENTS[:1], more, groups=CLIENTS[:1]).under_load
    waits = {"received": {"rtt_p50_ms": 100}, "sent": {}}
    rows = evidence(CLIENTS[:1], waits)
    # another host loads the link
    is_other = (pl.col("group") == CLIENTS[1]) & pl.col("start_ns").is_between(BEGIN * STEP_NS, END * STEP_NS)
    loaded = rows.with_columns(wire_bytes=pl.col("wire_bytes") + pl.when(is_other).then(900_000).otherwise(0))
    incident = Incident("link", BEGIN * STEP_NS, END * STEP_NS, [stretch_of(CLIENTS[0])])
    spans = [(incident.begin_ns, incident.end_ns)]
    found = attribution_of(incident, [parse_objective({"require": REQUIRE["delay"]})], loaded, CLIENTS, spans)
    assert (found.place, found.hosts, found.under_load) == ("client side", (CLIENTS[0],), False)


def test_an_incident_within_a_longer_one_is_part_of_it_unless_it_is_elsewhere():
    objectives = [parse_objective({"require": REQUIRE[name]}) for name in ("delay", "loss")]

    def part(begin: int, end: int, place: str, *hosts: str, objective: int = 0):
        stretch = replace(stretch_of("x"), objective=objective)
        reason = Reason("no change")
        where = Attribution(place, "some hosts", hosts, (), "high", reason, "", ())
        return Incident("link", begin * STEP_NS, end * STEP_NS, [stretch]), where

    whole = part(0, 100, "client side", "a", "b")
    own = [part(10, 20, "unknown"), part(30, 40, "client side", "a")]
    others = [
        part(50, 60, "server side", "s"),
        part(60, 70, "client side", "c"),
        part(70, 80, "unknown", objective=1),
        part(95, 110, "unknown"),
    ]
    (first, where), *rest = explained([*own, whole, *others], objectives)
    assert (len(first.stretches), where.hosts) == (3, ("a", "b"))
    assert sorted(one.begin_ns // STEP_NS for one, _ in rest) == [50, 60, 70, 95]


def test_rates_of_other_hours_tell_nothing_of_load():
    # in the hours before the last one hardly anybody was there
    is_early = pl.col("start_ns") < (BEGIN - 12) * STEP_NS
    rows = evidence(CLIENTS, {"received": {"rtt_p50_ms": 100}, "sent": {}})
    quiet = rows.with_columns(wire_bytes=pl.when(is_early).then(1_000).otherwise("wire_bytes"))
    incident = Incident("link", BEGIN * STEP_NS, END * STEP_NS, [stretch_of("link")])
    spans = [(incident.begin_ns, incident.end_ns)]
    found = attribution_of(incident, [parse_objective({"require": REQUIRE["delay"]})], quiet, CLIENTS, spans)
    assert (found.place, found.under_load) == ("client side", False)


@pytest.mark.parametrize(
    ("require", "kind"),
    [
        ("p95(rtt_ms) < 80 ms", "delay"),
        ("p95(echo_ms) < 80 ms", "delay"),
        ("sum(lost_before_capture) / sum(arrivals_shown) < 1 %", "loss"),
        ("sum(connections_refused) < 3", "connections"),
        ("p95(response_ms) < 1000 ms", "answers"),
        ("p95(dns_ms) < 1000 ms", "names"),
        ("wifi_retry_ratio < 0.2", "radio"),
        ("goodput_bps > 1 Mbit/s", None),
    ],
)
def test_the_quantity_of_an_objective_names_the_kind_of_trouble(require, kind):
    assert trouble_of(parse_objective({"require": require})) == kind


def test_an_hour_is_compared_with_the_same_hour_of_earlier_weeks():
    hour_ns = 3_600 * 10**9
    values = {hour * hour_ns: float(hour % 24) for hour in range(24 * 7 * 5)}
    assert best_period(values) == "week"
    last = usual_hours(values, "week")[-1]
    assert (last.value, last.median, last.n) == (23.0, 23.0, 4)
    few = {hour * hour_ns: 1.0 for hour in range(48)}
    assert best_period(few) == "day"
    assert usual_hours(few, "day")[-1].median is None
    assert usual_hours({}, "day") == []
