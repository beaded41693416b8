"""Begin and end of incidents by flows, each at its own time."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest

from tfrctrace.gate.objective import parse_objective
from tfrctrace.metrics.audit.attribution import Attribution, Reason
from tfrctrace.metrics.audit.flow_events import FLOW_COLUMNS, with_edges_of_flows, without_packets
from tfrctrace.metrics.audit.incidents import Incident, RaisedStretch, silences
from tfrctrace.metrics.audit.signals import Measured, Place, Signal
from tfrctrace.parsers.schema import polars_schema

S = 10**9
STEP_NS = 300 * S
BAD_NS = (10_130 * S, 12_470 * S)
"""From when to when flows suffer: within intervals, not at their edges."""
NEAR = ["10.0.0.1", "10.0.0.2"]
SERVER = "192.0.2.1"


def flow(number: int, at_ns: int, kind: str, *, is_bad: bool) -> list[dict[str, Any]]:
    """Return both directions of a flow that shows a kind of trouble, or does not."""
    forth = {
        **dict.fromkeys(FLOW_COLUMNS, 0),
        "flow": number,
        "direction": "fwd",
        "transport": "udp" if kind == "names" else "tcp",
        "src": NEAR[number % 2],
        "dst": SERVER,
        "dst_port": 53 if kind == "names" else 443,
        "state": "attempted" if kind == "connections" and is_bad else "closed",
        "start_ns": at_ns,
        "end_ns": at_ns + S,
        "payload_bytes": 300,
        "rtt_p50_ms": 190.0 if kind == "delay" and is_bad else 40.0,
    }
    back = {**forth, "direction": "rev", "src": SERVER, "dst": forth["src"], "start_ns": at_ns + S // 20}
    back["rtt_p50_ms"] = 1.0
    if kind in {"requests", "names"} and is_bad:
        back["payload_bytes"] = 0
    if kind == "loss" and is_bad:
        forth["lost_behind_capture"] = 1
    return [forth, back]


def incident(kind: str) -> tuple[Incident, Attribution, pl.DataFrame, Any]:
    """Return an incident of intervals, where it was, and flows around it."""
    random = Random(5)
    rows: list[dict[str, Any]] = []
    at_ns = 6_000 * S
    while at_ns < 17_000 * S:
        at_ns += round(random.expovariate(1 / (6 * S)))
        rows += flow(len(rows), at_ns, kind, is_bad=BAD_NS[0] <= at_ns < BAD_NS[1] and random.random() < 0.9)
    flows = pl.DataFrame(rows, schema={name: polars_schema("flows")[name] for name in FLOW_COLUMNS})
    begin_ns, end_ns = (one // STEP_NS * STEP_NS for one in BAD_NS)
    stretch = RaisedStretch(
        *(0, "link", begin_ns, begin_ns + STEP_NS, end_ns, end_ns + STEP_NS),
        *(8, 0, 1.0, 20, begin_ns, "recovered"),
    )
    usual, ill = (Measured(value, value, value, 20) for value in (40.0, 190.0))
    signal = Signal("far_rtt", "server side", "ms", 1.0, usual, ill, has_changed=True)
    place: Place = "server" if kind in {"requests", "names"} else "server side"
    where = Attribution(place, "all hosts", (), (), "high", Reason("worse"), "", (signal,))
    require = {
        "delay": "median(rtt_ms) < 100 ms",
        "loss": "sum(lost_behind_capture) / sum(losses_shown) < 1 %",
        "connections": "sum(connections_established) / sum(connection_attempts) > 90 %",
        "requests": "sum(requests_unanswered) / sum(requests) < 20 %",
        "names": "sum(dns_unanswered) / sum(dns_queries) < 10 %",
        "ping": "sum(echo_unanswered) / sum(echo_requests) < 10 %",
    }[kind]
    objective = parse_objective({"name": kind, "require": require, "by": "link", "every": "5min"})
    return Incident.of("link", [stretch]), where, flows, objective


@pytest.mark.parametrize("kind", ["delay", "loss", "connections", "requests", "names"])
def test_ten_flows_a_minute_show_begin_and_end_within_a_minute(kind: str) -> None:
    whole, where, flows, objective = incident(kind)
    found = with_edges_of_flows(whole, where, [objective], flows, NEAR)
    for at_ns, span_ns, true_ns in zip(
        (found.begin_ns, found.end_ns), (found.began_ns, found.ended_ns), BAD_NS, strict=True
    ):
        assert abs(at_ns - true_ns) < 60 * S
        assert span_ns[0] <= true_ns <= span_ns[1]
        assert span_ns[1] - span_ns[0] < 120 * S
    assert found.stretches == whole.stretches


def test_what_flows_do_not_show_stays_as_wide_as_the_intervals() -> None:
    whole, where, flows, objective = incident("ping")
    found = with_edges_of_flows(whole, where, [objective], flows, NEAR)
    assert found == whole
    for span_ns, true_ns in zip((found.began_ns, found.ended_ns), BAD_NS, strict=True):
        assert span_ns[0] <= true_ns <= span_ns[1]
        assert span_ns[1] - span_ns[0] == 2 * STEP_NS


def test_a_silence_lasts_from_the_last_packet_to_the_first() -> None:
    starts_ns = [one * STEP_NS for one in range(500) if not 300 <= one < 310]
    (gap,) = silences("link", starts_ns, STEP_NS)
    times_ns = [
        one for one in range(60 * S, 500 * STEP_NS, 40 * S) if not 299.5 * STEP_NS < one < 310.7 * STEP_NS
    ]
    rows = [row for number, at_ns in enumerate(times_ns) for row in flow(number, at_ns, "", is_bad=False)]
    flows = pl.DataFrame(rows, schema={name: polars_schema("flows")[name] for name in FLOW_COLUMNS})
    found = without_packets(gap, (gap.begin_ns, gap.end_ns), flows)
    assert found.begin_ns == max(one for one in times_ns if one < gap.begin_ns) + S
    assert found.end_ns == min(one for one in times_ns if one > gap.begin_ns)
    # packets are 1 s and 39 s apart: 95 % of moments are within (0.95 * 40 s - 1 s) after one
    assert found.began_ns == pytest.approx((found.begin_ns, found.begin_ns + 37 * S), abs=S / 10)
    assert found.ended_ns == pytest.approx((found.end_ns - 37 * S, found.end_ns), abs=S / 10)
    # files that end or begin with it know better
    of_files = without_packets(gap, (gap.begin_ns - 7, gap.end_ns + 7), flows)
    assert (of_files.begin_ns, of_files.end_ns) == (gap.begin_ns - 7, gap.end_ns + 7)
    assert of_files.began_ns == pytest.approx((gap.begin_ns, gap.begin_ns + 37 * S), abs=S / 10)
    # nothing is known of packets: what whole intervals without any show
    unknown = without_packets(gap, (gap.begin_ns - 7, gap.end_ns + 7), flows.clear())
    assert (unknown.began_ns, unknown.ended_ns) == (
        (gap.begin_ns - 7, gap.begin_ns),
        (gap.end_ns, gap.end_ns + 7),
    )


def test_a_link_stops_within_three_mean_waits_after_its_last_packet() -> None:
    """With 95 %: the rule of three of Poisson's process (Hanley and Lippman-Hand, JAMA 249(13), 1983)."""
    random, rate_hz = Random(7), 0.2
    widths, held = [], 0
    for _ in range(100):
        stopped_ns, resumed_ns = 3_600 * S + random.randrange(300 * S), 7_200 * S + random.randrange(300 * S)
        at_s, times_ns = 0.0, list[int]()
        while (at_s := at_s + random.expovariate(rate_hz)) < 10_800:
            if not stopped_ns <= at_s * S < resumed_ns:
                times_ns.append(round(at_s * S))
        starts_ns = sorted({one // STEP_NS * STEP_NS for one in times_ns})
        gap = next(silences("link", [one * STEP_NS for one in range(-500, 0)] + starts_ns, STEP_NS))
        rows = {
            **dict.fromkeys(FLOW_COLUMNS, [None] * len(times_ns)),
            "start_ns": times_ns,
            "end_ns": times_ns,
        }
        flows = pl.DataFrame(rows, schema={name: polars_schema("flows")[name] for name in FLOW_COLUMNS})
        found = without_packets(gap, (gap.begin_ns, gap.end_ns), flows)
        for true_ns, span_ns in ((stopped_ns, found.began_ns), (resumed_ns, found.ended_ns)):
            held += span_ns[0] <= true_ns <= span_ns[1]
            widths.append((span_ns[1] - span_ns[0]) / S)
    assert sum(widths) / len(widths) == pytest.approx(3 / rate_hz, rel=0.03)
    assert 0.92 * 200 < held < 0.98 * 200
