"""Departures of TCP senders from their specifications: of kernels whose parameters are changed, and of
senders whose rules are those of a script."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from any_rounds import A_ROUND
from hypothesis import given
from hypothesis import strategies as st
from scripted_sender import Bottleneck, Connection, Sender, write

import tfrctrace
from tfrctrace.replay.conformance.limits import (
    growth_without_data,
    ignored_marks,
    initial_window,
    missing_backoff,
)
from tfrctrace.replay.conformance.rules import GROWTH_WITHOUT_DATA
from tfrctrace.replay.conformance.windows import window_departures
from tfrctrace.replay.naming.of_trace import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

DATA = Path(__file__).resolve().parents[2] / "data"


def found_in(capture: Path) -> pl.DataFrame:
    return tfrctrace.open(capture).findings


def sent_by(
    folder: Path,
    sender: Sender,
    path: Bottleneck,
    *,
    duration_s: float = 20.0,
    available: Iterable[tuple[float, int]] = ((0.0, 1 << 30),),
) -> pl.DataFrame:
    """Return the findings about a scripted sender."""
    made = Connection(sender, path, available).run(duration_s)
    return found_in(write(folder / "sender.pcap", made.frames))


def test_a_kernel_that_halves_as_cubic_departs_from_beta() -> None:
    # run.py --parameter tcp_cubic.beta=512: 512/1024 of the window
    found = found_in(DATA / "conformance" / "beta" / "sender.pcap.gz")
    assert set(found.select("finding", "rule", "level", "end").rows()) == {
        ("window_left", "RFC 9438 section 4.6", "SHOULD", "sender")
    }
    assert found["limit"].unique().to_list() == [0.7]
    assert found["value"].median() == pytest.approx(0.5, abs=0.02)
    assert found.height >= 3
    assert found["packet"].is_sorted()


def test_a_kernel_without_fast_convergence_is_found() -> None:
    # run.py --parameter tcp_cubic.fast_convergence=0
    found = found_in(DATA / "conformance" / "fast" / "sender.pcap.gz")
    assert found.select("finding", "rule", "value", "limit").rows() == [
        ("no_fast_convergence", "RFC 9438 section 4.7", 1.0, 0.85)
    ]


def test_a_kernel_with_another_c_is_found() -> None:
    # run.py --parameter tcp_cubic.bic_scale=164: C is 0.4 times 164 / 41
    found = found_in(DATA / "conformance" / "scale" / "sender.pcap.gz")
    assert found.select("finding", "rule", "limit").rows() == [("window_growth", "RFC 9438 section 5.1", 0.4)]
    assert found["value"][0] == pytest.approx(1.6)


def test_a_timer_that_linux_does_not_double_is_found() -> None:
    # net.ipv4.tcp_thin_linear_timeouts=1: each silence is as long as that before
    found = found_in(DATA / "conformance" / "linear-timeouts.pcap.gz")
    assert found["finding"].unique().to_list() == ["no_backoff"]
    assert found.select("rule", "level", "unit").unique().rows() == [("RFC 6298 section 5.5", "MUST", "s")]
    assert found.height == 5
    assert (found["limit"] / found["value"]).to_list() == pytest.approx([2.0] * 5, abs=0.1)


def test_a_timer_that_doubles_is_none() -> None:
    assert found_in(DATA / "conformance" / "doubled-timeouts.pcap.gz").is_empty()


@pytest.mark.parametrize(
    "capture",
    [
        *sorted((DATA / "congestion_controls").glob("*/sender.pcap.gz")),
        *sorted((DATA / "causes").glob("*/sender.pcap.gz")),
    ],
    ids=lambda path: path.parent.name,
)
def test_stock_kernels_depart_from_nothing(capture: Path) -> None:
    assert found_in(capture).is_empty()


def test_reno_departs_from_nothing(tmp_path: Path) -> None:
    assert sent_by(tmp_path, Sender(), Bottleneck()).is_empty()
    marking = Bottleneck(marks_above=10, buffer=100)
    assert sent_by(tmp_path, Sender(), marking).is_empty()


def test_an_initial_window_of_twenty_segments_is_found(tmp_path: Path) -> None:
    found = sent_by(tmp_path, Sender(cwnd=20.0), Bottleneck(), duration_s=1.0)
    assert found.select("finding", "rule", "level", "value", "limit").rows() == [
        ("initial_window", "RFC 6928 section 2", "paper", 20.0, 10.0)
    ]
    assert sent_by(tmp_path, Sender(cwnd=10.0), Bottleneck(), duration_s=1.0).is_empty()


@dataclass
class Repeating(Sender):
    """Reduces twice for each third loss."""

    losses: int = 0

    def on_loss(self, time_s: float) -> None:
        super().on_loss(time_s)
        self.losses += 1
        if self.losses % 3 == 0:
            super().on_loss(time_s)


def test_two_reductions_for_one_loss_are_found(tmp_path: Path) -> None:
    sender = Repeating()
    found = sent_by(tmp_path, sender, Bottleneck(), duration_s=40.0)
    assert found.select("finding", "level").unique().rows() == [("reduced_twice", "SHOULD")]
    assert found.height == sender.losses // 3
    assert found["value"].to_list() == pytest.approx([0.25] * found.height, abs=0.02)
    assert found["limit"].to_list() == pytest.approx([0.5] * found.height, abs=0.02)


def test_a_sender_that_ignores_marks_is_found(tmp_path: Path) -> None:
    path = Bottleneck(marks_above=10, buffer=100)
    found = sent_by(tmp_path, Sender(reacts_to_marks=False), path)
    assert found.select("finding", "rule", "level").rows() == [
        ("marks_ignored", "RFC 3168 section 5", "MUST")
    ]
    assert found["value"][0] > 1


@dataclass
class Careless(Sender):
    """Grows while its application has few data."""

    def on_acknowledged(self, time_s: float, flight: int) -> None:
        del flight
        super().on_acknowledged(time_s, math.floor(self.cwnd))


@pytest.mark.parametrize("sender", [Careless, Sender])
def test_growth_without_data_is_found(tmp_path: Path, sender: type[Sender]) -> None:
    few = [(5.0 + place * 0.05, 10) for place in range(200)]
    written = [(0.0, 3000), *few, (15.2, 4000)]
    path = Bottleneck(buffer=200)
    found = sent_by(tmp_path, sender(), path, available=written)
    assert found["finding"].to_list() == (["growth_without_data"] if sender is Careless else [])


def test_timers_of_a_minute_need_not_double() -> None:
    def tries(*times_s: float) -> list[dict[str, object]]:
        return [
            {"time_ns": round(time_s * 1e9), "packet": 1, "seq_rel": 0, "class": "rto_retransmission"}
            for time_s in times_s
        ]

    assert not list(missing_backoff(tries(0, 60, 120, 180)))
    assert not list(missing_backoff(tries(0, 1, 3, 7)))
    assert [one.value for one in missing_backoff(tries(0, 1, 2, 3))] == [1.0, 1.0]
    assert not list(missing_backoff(tries(0, 1)))


@given(rows=st.lists(A_ROUND, min_size=1, max_size=60))
def test_any_rounds_have_departures_with_numbers_or_none(rows: list[dict[str, Any]]) -> None:
    seen = Seen(rows, 1448.0, 1.0, has_ecn=False)
    found = [
        *window_departures(seen, ("reno",)),
        *growth_without_data(rows, 1448.0, GROWTH_WITHOUT_DATA),
        *ignored_marks(rows, 0),
        *initial_window(2**40, rows[0], 1448.0),
    ]
    assert all(math.isfinite(one.value) and math.isfinite(one.limit) for one in found)


@pytest.mark.parametrize("vantage", ["middle", "receiver"])
def test_nothing_is_said_away_from_the_sender(vantage: str) -> None:
    capture = DATA / "conformance" / "beta" / "sender.pcap.gz"
    assert tfrctrace.open(capture, vantage=vantage).findings.is_empty()


def test_findings_about_tfrc_stay_and_have_no_level() -> None:
    found = tfrctrace.open(DATA.parents[1] / "sample_traces" / "dccp-ccid3.pcap.gz").findings
    assert found.height
    assert found["level"].null_count() == found.height
