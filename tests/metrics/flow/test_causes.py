"""Shares of causes, of rows written out."""

from __future__ import annotations

import polars as pl
import pytest

from tfrctrace.metrics.flow.causes import CAUSES, cause_shares, flow_causes, main_causes
from tfrctrace.parsers.schema import TABLES, polars_schema
from tfrctrace.reports.why_words import CAUSE_WORDS, SIGN_WORDS, sentences

S = 1_000_000_000


def table_of(name, rows):
    schema = polars_schema(name)
    full = [{**dict.fromkeys(schema), **row} for row in rows]
    return pl.DataFrame(full, schema=schema)


def stretch(start_s, end_s, cause, sign="no_sign", **more):
    facts = {"flow": 1, "direction": "fwd", "flight_bytes": 1_000}
    return {**facts, "start_ns": start_s * S, "end_ns": end_s * S, "cause": cause, "sign": sign, **more}


ROWS = [
    stretch(0, 1, "handshake", "no_data_yet"),
    stretch(1, 6, "receiver", "window_edge", flight_bytes=63_000, window_bytes=64_000, base_rtt_ms=200.0),
    stretch(6, 7, "application", "write", second_cause="send_buffer"),
    stretch(7, 10, "receiver", "closed_window", window_bytes=0, base_rtt_ms=200.0),
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
    (flow,) = flow_causes(table_of("causes", ROWS), table_of("flows", FLOWS))
    return flow


def test_shares_are_those_of_time_and_add_up_to_one():
    shares = cause_shares(table_of("causes", ROWS)).row(0, named=True)
    assert (shares["handshake_share"], shares["receiver_share"], shares["application_share"]) == (
        0.1,
        0.8,
        0.1,
    )
    assert sum(shares[f"{cause}_share"] for cause in CAUSES) == pytest.approx(1)
    assert shares["duration_s"] == 10


def test_the_main_cause_has_the_sign_that_decided_for_most_of_its_time():
    main = main_causes(table_of("causes", ROWS)).row(0, named=True)
    assert (main["cause"], main["sign"], main["changes"]) == ("receiver", "window_edge", 2)
    assert (main["flight_bytes"], main["window_bytes"]) == (63_000, 64_000)


def test_a_flow_without_duration_has_no_shares():
    rows = table_of("causes", [stretch(5, 5, "application")])
    assert cause_shares(rows).is_empty()
    assert cause_shares(rows.clear()).is_empty()


def test_shares_between_times_at_both_ends_of_64_bits():
    rows = table_of(
        "causes",
        [
            {"flow": 1, "direction": "fwd", "cause": cause, "start_ns": start_ns, "end_ns": end_ns}
            for cause, start_ns, end_ns in (("server", -(2**63), -1), ("loss", -1, 2**63 - 1))
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


def test_every_cause_and_sign_of_the_core_has_words():
    columns = {column.name: column.meaning for column in TABLES["causes"]}
    assert all(f"`{cause}`" in columns["cause"] for cause in CAUSES)
    assert columns["cause"].count("`") == 2 * len(CAUSES) == 2 * len(CAUSE_WORDS)
    assert all(f"`{sign}`" in columns["sign"] for sign in SIGN_WORDS)
    assert columns["sign"].count("`") == 2 * len(SIGN_WORDS)
