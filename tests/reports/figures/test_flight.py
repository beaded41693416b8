"""The figure of flight and windows: its drawing and its caption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tfrctrace.parsers.schema import polars_schema
from tfrctrace.reports.drawn_traces import DrawnTrace
from tfrctrace.reports.figures.flight import flight_figure

if TYPE_CHECKING:
    from tfrctrace.reports.elements import Curve, Figure

FLOW = {
    "flow": 1,
    "direction": "fwd",
    "transport": "tcp",
    "src": "10.0.0.1",
    "src_port": 1,
    "dst": "10.0.0.2",
    "dst_port": 2,
    "unique_bytes": 10**6,
    "rounds": 600,
    "recovery_episodes": 1,
    "rto_episodes": 0,
}


def table(name: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides=polars_schema(name), schema=list(polars_schema(name)))


def drawn(*, window: int | None, rounds: int = 600, samples: list[dict[str, object]] | None = None) -> Figure:
    rows = [
        {
            "flow": 1,
            "direction": "fwd",
            "time_ns": 10**7 * number,
            "flight_bytes": 1000 * (number % 50 + 1),
            "window_bytes": window,
            "repair": "recovery" if number == 99 else None,
        }
        for number in range(rounds)
    ]
    trace = DrawnTrace(1, "", 0, table("flows", [FLOW]), table("bins", []))
    figure = flight_figure(trace, table("rounds", rows), table("variables", samples or []))
    assert figure is not None
    return figure


def curves(figure: Figure) -> dict[str, Curve]:
    return {curve.label: curve for curve in figure.curves}


def test_of_many_rounds_the_largest_flight_in_each_stretch_is_drawn() -> None:
    curve = curves(drawn(window=None))["flight of each round"]
    assert len(curve.x) <= 241
    assert max(value or 0 for value in curve.values) == 50_000
    assert len(curve.marked) == 1


def test_a_near_receive_window_is_drawn_and_a_far_one_named() -> None:
    assert "receive window" in curves(drawn(window=100_000))
    far = drawn(window=10**7)
    assert "receive window" not in curves(far)
    assert "The receive window (median 10.0 MB) is far above." in far.caption


def test_a_logged_window_in_packets_is_drawn_in_bytes() -> None:
    samples: list[dict[str, object]] = [
        {"flow": 1, "direction": "fwd", "time_ns": 10**8, "name": "mss", "unit": "bytes", "value": 1448.0},
        {"flow": 1, "direction": "fwd", "time_ns": 10**8, "name": "cwnd", "unit": "packets", "value": 10.0},
        {"flow": 2, "direction": "fwd", "time_ns": 10**8, "name": "cwnd", "unit": "packets", "value": 99.0},
    ]
    curve = curves(drawn(window=None, samples=samples))["congestion window in the sender's log"]
    assert (curve.x, curve.values) == ((0.1,), (14_480.0,))


def test_the_caption_explains_rings() -> None:
    assert "A ring marks recoveries" in drawn(window=None).caption


def test_a_few_rounds_are_no_figure() -> None:
    rounds = table("rounds", [{"flow": 1, "direction": "fwd", "time_ns": 1, "flight_bytes": 1}])
    variables = table("variables", [])
    flows = table("flows", [FLOW])
    assert flight_figure(DrawnTrace(1, "", 0, flows, table("bins", [])), rounds, variables) is None
