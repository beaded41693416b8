"""Shares of causes, of rows written out."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import polars as pl
import pytest

import tfrctrace
from tfrctrace.metrics.flow.causes import (
    CAUSES,
    CausesOfRows,
    cause_shares,
    main_causes,
    no_data_shares,
    rows_of_causes,
    untold_flows,
)
from tfrctrace.metrics.results.why import UntoldFlow
from tfrctrace.parsers.schema import TABLES, polars_schema
from tfrctrace.reports.why_words import CAUSE_WORDS, SIGN_WORDS, bloat, by_reason, sentences, untold

RUNS = Path(__file__).resolve().parents[2] / "data" / "causes"

S = 1_000_000_000


def table_of(name, rows):
    schema = polars_schema(name)
    full = [{**dict.fromkeys(schema), **row} for row in rows]
    return pl.DataFrame(full, schema=schema)


def held(duration_s, cause, sign="no_sign", **more):
    facts = {"flow": 1, "direction": "fwd", "start_ns": 0, "stretches": 1, "flight_bytes": 1_000}
    return {**facts, "duration_ns": duration_s * S, "cause": cause, "sign": sign, **more}


ROWS = [
    held(1, "handshake", "no_data_yet"),
    held(5, "receiver", "window_edge", flight_bytes=63_000, window_bytes=64_000, base_rtt_ms=200.0),
    held(1, "application", "write", second_cause="send_buffer"),
    held(3, "receiver", "closed_window", window_bytes=0, base_rtt_ms=200.0),
]
FLOWS = [
    {
        "flow": 1,
        "direction": "fwd",
        "src": "192.0.2.1",
        "src_port": 1,
        "dst": "192.0.2.2",
        "dst_port": 2,
        "payload_bytes": 3_000_000,
        "goodput_bps": 2.4e6,
        "rtt_p95_ms": 210.0,
    }
]


@pytest.fixture
def receiver_limited():
    (flow,) = CausesOfRows(rows_of_causes(table_of("cause_sums", ROWS), table_of("flows", FLOWS)))
    return flow


def test_shares_are_those_of_time_and_add_up_to_one():
    shares = cause_shares(table_of("cause_sums", ROWS)).row(0, named=True)
    assert (shares["handshake_share"], shares["receiver_share"], shares["application_share"]) == (
        0.1,
        0.8,
        0.1,
    )
    assert sum(shares[f"{cause}_share"] for cause in CAUSES) == pytest.approx(1)
    assert shares["duration_s"] == 10


def test_the_main_cause_has_the_sign_that_decided_for_most_of_its_time():
    main = main_causes(table_of("cause_sums", ROWS)).row(0, named=True)
    assert (main["cause"], main["sign"], main["changes"]) == ("receiver", "window_edge", 2)
    assert (main["flight_bytes"], main["window_bytes"]) == (63_000, 64_000)


def test_a_flow_without_duration_has_no_shares():
    rows = table_of("cause_sums", [held(0, "application")])
    assert cause_shares(rows).is_empty()
    assert cause_shares(rows.clear()).is_empty()


def test_shares_of_all_times_that_64_bits_hold():
    rows = table_of(
        "cause_sums",
        [
            {"flow": 1, "direction": "fwd", "cause": cause, "duration_ns": duration_ns}
            for cause, duration_ns in (("server", 2**63 - 1), ("loss", 2**63))
        ],
    )
    shares = cause_shares(rows).row(0, named=True)
    assert (shares["server_share"], shares["loss_share"]) == pytest.approx((0.5, 0.5))


def test_a_receiver_limited_flow_is_told_what_its_window_holds(receiver_limited):
    assert receiver_limited.main_cause_share == 0.8
    # 64 kB in each 200 ms are 2.56 Mbit/s
    assert any(
        "64.0 kB holds a path of 200 ms at 2.56 Mbit/s" in line for line in sentences(receiver_limited)
    )


def test_if_nobody_shares_a_rate_that_changes_the_path_itself_changed(receiver_limited):
    shared = msgspec.structs.replace(
        receiver_limited,
        main_cause="shared_bottleneck",
        main_sign="rate_below_capacity",
        second_cause="bottleneck",
    )
    assert "If not that, the rate of the path itself changed." in sentences(shared)


def bloated(like, **more):
    facts = {"base_rtt_ms": 20.0, "rtt_p95_ms": 250.0, "start_ns": 0, "duration_s": 10.0}
    return msgspec.structs.replace(like, **{**facts, **more})


def test_the_flow_with_most_data_in_flight_meanwhile_fills_the_queue(receiver_limited):
    own = bloated(receiver_limited)
    largest = bloated(receiver_limited, flow=2, flight_bytes=900_000)
    later = bloated(receiver_limited, flow=3, flight_bytes=9_000_000, start_ns=11 * S)
    elsewhere = bloated(receiver_limited, flow=4, flight_bytes=9_000_000, src="192.0.2.3", dst="192.0.2.4")
    every = [own, largest, later, elsewhere]
    said = bloat(own, every) or ""
    assert "rose from 20.0 ms to 250 ms" in said
    assert (
        "flow 2 filled it most, if it takes the same path (at most 900 kB in flight, this one 63.0 kB)"
        in said
    )
    assert "this flow filled it most (at most 900 kB in flight)" in (bloat(largest, every) or "")
    assert bloat(bloated(receiver_limited, rtt_p95_ms=119.0), every) is None
    assert bloat(bloated(receiver_limited, base_rtt_ms=None), every) is None


def test_of_flows_in_the_same_row_as_others_only_those_with_data_are_untold():
    flows = table_of(
        "flows",
        [
            {"flow": 1, "direction": "fwd", "transport": "tcp", "payload_bytes": 5, "packets": 1},
            {"flow": 2, "direction": "fwd", "transport": "quic", "payload_bytes": 7, "packets": 1},
            {"flow": 2, "direction": "rev", "transport": "quic", "payload_bytes": 9, "packets": 1},
            {"flow": 3, "direction": "fwd", "transport": "tcp", "payload_bytes": 0, "packets": 3},
            {"flow": 4, "direction": "fwd", "transport": "dccp", "payload_bytes": None, "packets": 3},
        ],
    )
    found = untold_flows(table_of("cause_sums", ROWS), flows)
    assert found == [UntoldFlow(2, "quic", 16), UntoldFlow(4, "dccp", None)]
    assert [line.split(":")[0] for line in untold(found)] == ["Flow 2 (QUIC)", "Flow 4 (DCCP)"]
    (many,) = untold([UntoldFlow(number, "quic", 1) for number in range(1, 9)])
    assert many.startswith("Flows 1, 2, 3, 4, 5 and 3 more (QUIC): cause unknown, because QUIC encrypts")


def test_every_transport_that_flows_have_has_a_reason():
    (meaning,) = (column.meaning for column in TABLES["flows"] if column.name == "transport")
    transports = re.findall(r"`(\w+)`", meaning)
    assert transports
    assert len(by_reason(UntoldFlow(1, name, 1) for name in transports)) == len(transports)
    assert (
        not by_reason(UntoldFlow(1, name, 1) for name in transports).keys()
        & by_reason([UntoldFlow(1, "x", 1)]).keys()
    )


def test_no_data_is_what_application_and_server_leave():
    rows = [held(5, "application"), held(3, "server"), held(2, "receiver")]
    assert no_data_shares(table_of("cause_sums", rows)) == {(1, "fwd"): 0.8}
    # it may be anything
    assert no_data_shares(table_of("cause_sums", [*rows, held(2, "unknown")])) == {}


@pytest.mark.parametrize(
    "run", ["0005-bursts-veno", "0006-interactive-illinois", "0007-paced-htcp", "0009-server-nv"]
)
def test_a_sender_has_no_data_for_as_long_as_its_program_was_idle(run, truth):
    folder = RUNS / run
    _, known = truth.read(folder)
    share = no_data_shares(tfrctrace.open(folder / "sender.pcap.gz").cause_sums)[1, "fwd"]
    assert share == pytest.approx(known.application_s / known.life_s, abs=0.05)


def test_every_cause_and_sign_of_the_core_has_words():
    columns = {column.name: column.meaning for column in TABLES["causes"]}
    assert all(f"`{cause}`" in columns["cause"] for cause in CAUSES)
    assert columns["cause"].count("`") == 2 * len(CAUSES) == 2 * len(CAUSE_WORDS)
    assert all(f"`{sign}`" in columns["sign"] for sign in SIGN_WORDS)
    assert columns["sign"].count("`") == 2 * len(SIGN_WORDS)
