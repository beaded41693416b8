"""Rules for every congestion control: timers, the initial window, echoed marks, growth without data."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.replay.conformance import rules
from tfrctrace.replay.conformance.rules import Departure
from tfrctrace.replay.naming.observations import At, at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tfrctrace.replay.conformance.rules import Rule
    from tfrctrace.replay.naming.observations import Round

_INITIAL_SEGMENTS: Final = 10.0
"""RFC 6928 section 2."""

_ROUNDING: Final = 0.5
"""Of a segment: some have fewer bytes for their options."""

_LEAST_BACKOFF: Final = 1.5
"""Of a timer that doubles: acknowledgements, and timers with coarse steps, move both ends of a silence."""

_LONGEST_RTO_S: Final = 60.0
"""A timer need not grow beyond that (RFC 6298 section 2.5)."""

_LEAST_EXPIRIES: Final = 3

_ROUNDS_OF_REACTION: Final = 4
"""Rounds with echoed marks in a row; a sender that reduced its window and said so would have ended them."""

_LEAST_GROWTH: Final = 1.1
_LEAST_SEGMENTS: Final = 8
"""Window after a time without enough data over the largest one before, and what it has more."""

_LEAST_ROUNDS_WITHOUT: Final = 5
"""Rounds without enough data."""


_IN_SLOW_START: Final = 2.0
"""Flights to which a window that they fill in part may grow, as in Linux, before the first reduction."""


def initial_window(window_bytes: int | None, first: Round, segment_bytes: float) -> Iterator[Departure]:
    """Give an initial window of more than ten full segments; `first` is the first round."""
    segments = (window_bytes or 0) / segment_bytes
    if segments >= _INITIAL_SEGMENTS + _ROUNDING:
        yield Departure(rules.INITIAL_WINDOW, at(first), segments, _INITIAL_SEGMENTS)


def missing_backoff(losses: Iterable[Mapping[str, Any]]) -> Iterator[Departure]:
    """Give retransmissions by a timer that expired again without having doubled.

    `losses` are retransmissions of a direction, in order.
    """
    for _, group in groupby(losses, lambda row: (row["seq_rel"], row["class"])):
        tries = list(group)
        if len(tries) < _LEAST_EXPIRIES or tries[0]["class"] != "rto_retransmission":
            continue
        waits_s = [(late["time_ns"] - early["time_ns"]) / 1e9 for early, late in pairwise(tries)]
        for (before_s, wait_s), row in zip(pairwise(waits_s), tries[2:], strict=True):
            if wait_s < _LEAST_BACKOFF * before_s and before_s < _LONGEST_RTO_S / 2:
                found = At(row["time_ns"], row["packet"])
                yield Departure(rules.NO_BACKOFF, found, wait_s, 2 * before_s)


def ignored_marks(rounds: Sequence[Round], cwr_packets: int | None) -> Iterator[Departure]:
    """Give the first marks that were echoed for rounds on end to a sender that neither sent CWR nor less."""
    if cwr_packets != 0:
        return
    place = 0
    for is_marked, group in groupby(rounds, lambda row: bool(row["ece_packets"])):
        marked = list(group)
        before = rounds[place - 1] if place else marked[0]
        place += len(marked)
        if not is_marked or len(marked) < _ROUNDS_OF_REACTION or any(row["repair"] for row in marked):
            continue
        last = marked[_ROUNDS_OF_REACTION - 1]
        if before["flight_bytes"] and last["flight_bytes"] >= before["flight_bytes"]:
            left = last["flight_bytes"] / before["flight_bytes"]
            yield Departure(rules.MARKS_IGNORED, at(marked[0]), left, 0.5)
            return


def growth_without_data(rounds: Sequence[Round], segment_bytes: float, rule: Rule) -> Iterator[Departure]:
    """Give windows that grew while the application had less data than the window allowed.

    A round without `cwnd_bytes` is one that something else than the window limited.
    """
    known: float | None = None
    without: list[Round] = []
    growth = _IN_SLOW_START
    for row in rounds:
        if row["repair"] is not None or row["ece_packets"]:
            known, without, growth = None, [], 1.0
        elif row["cwnd_bytes"] is None:
            without.append(row)
        else:
            if known is not None and len(without) >= _LEAST_ROUNDS_WITHOUT:
                most = max(known, *(growth * one["flight_bytes"] for one in without))
                least = max(_LEAST_GROWTH * most, most + _LEAST_SEGMENTS * segment_bytes)
                if row["cwnd_bytes"] > least:
                    yield Departure(rule, at(row), float(row["cwnd_bytes"]), most)
            known, without = float(row["cwnd_bytes"]), []
