"""The first sentence of an audit."""

import pytest

from tfrctrace.base.timezones import TimeZone
from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.attribution import Attribution, Reason
from tfrctrace.metrics.audit.courses import Course
from tfrctrace.metrics.audit.harm import harm_of
from tfrctrace.metrics.audit.held_back import HeldBack
from tfrctrace.metrics.audit.incidents import Incident, RaisedStretch
from tfrctrace.metrics.results.audit import FoundIncident
from tfrctrace.reports.audit.incident_tables import listed
from tfrctrace.reports.audit.plain_words import plain_sentence

HOUR_NS = 3_600 * 10**9
MONDAY_NS = 1_767_571_200 * 10**9
OBJECTIVES = [parse_objective({"require": "p95(rtt_ms) < 100 ms"})]
NEAR = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


def test_many_hosts_of_one_network_are_named_by_it():
    hosts = [f"10.0.0.{number}" for number in range(1, 14)]
    assert listed(hosts) == "13 of 10.0.0.0/24"
    assert listed([*hosts, "192.0.2.1"]) == "13 of 10.0.0.0/24, 192.0.2.1"
    assert listed(hosts[:3]) == "10.0.0.1, 10.0.0.2, 10.0.0.3"
    assert listed([f"2001:db8::{number}" for number in range(1, 5)]) == "4 of 2001:db8::/64"
    assert listed([f"10.0.{number}.1" for number in range(5)]) == "10.0.0.1, 10.0.1.1, 10.0.2.1 and 2 more"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"


def incident(place, scope, hosts=(), *, hours=2, value=300.0, is_silence=False) -> FoundIncident:
    times = (MONDAY_NS + 10 * HOUR_NS, MONDAY_NS + (10 + hours) * HOUR_NS)
    stretch = RaisedStretch(
        0,
        "link",
        times[0],
        times[1],
        times[0],
        times[1],
        2,
        severe=0,
        value=value,
        n=30,
        at_ns=times[0],
        ended="recovered",
    )
    where = Attribution(place, scope, hosts, (), "high", Reason("no change"), "", ())
    stretches = [] if is_silence else [stretch]
    return FoundIncident(1, Incident("link", *times, stretches), Course("over"), where, HeldBack(), ())


@pytest.mark.parametrize(
    ("found", "begin", "end"),
    [
        (
            incident("server side", "all hosts"),
            "All 3 clients waited for slow round trips for 2 h 00 min, ",
            ": the trouble was between the capture and the servers.",
        ),
        (
            incident("client side", "one host", ("10.0.0.2",)),
            "One host waited for slow round trips for ",
            ": the trouble was between the capture and the clients (10.0.0.2).",
        ),
        (
            incident("server", "some servers", ("192.0.2.1", "192.0.2.2", "192.0.2.3")),
            "Clients of 3 servers waited",
            "at the server (192.0.2.1, 192.0.2.2, 192.0.2.3).",
        ),
        (incident("unknown", "unknown"), "Clients waited", ": the place of the trouble is not known."),
        (
            incident("capture", "all hosts"),
            "The capture missed packets for 2 h",
            "losses there may be its own.",
        ),
        (
            incident("capture", "all hosts", is_silence=True),
            "Nothing was captured for 2 h",
            "the capture or the link stood still.",
        ),
    ],
)
def test_it_says_who_suffered_what_when_and_where(found, begin, end):
    sentence = plain_sentence(found, NEAR, OBJECTIVES, TimeZone.named("UTC"))
    assert sentence.startswith(begin)
    assert sentence.endswith(end)
    if found.incident.stretches:
        assert "2026-01-05 10:00 to 12:00 UTC" in sentence


def test_harm_is_hosts_times_minutes_times_value_over_limit():
    def harm(found):
        return harm_of(found.incident, found.where, OBJECTIVES, NEAR)

    assert harm(incident("server side", "all hosts")) == pytest.approx(3 * 120 * 3)
    assert harm(incident("client side", "one host", NEAR[:1], hours=1)) == pytest.approx(1 * 60 * 3)
    # what is ten times over the limit is as bad as what is more
    assert harm(incident("server", "all hosts", value=1e6)) == harm(
        incident("server", "all hosts", value=1e3)
    )
