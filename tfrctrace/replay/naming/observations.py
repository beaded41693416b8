"""What the rounds of a direction show of its window: how it grew, and what a loss left of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from tfrctrace.replay.controller import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Round = Mapping[str, Any]

_ROUNDS_OF_A_GROWTH: Final = 6
"""Windows have whole segments: the fractions of several rounds show, those of one do not."""

_LONGEST_REPAIR: Final = 3
"""Rounds of a recovery; in a longer one other losses may have cut the window again."""

_START_GROWTH: Final = 1.25
"""Growth in a round from which on a window may still be in slow start."""

_CALM_ROUNDS: Final = 3
"""Rounds of less growth in a row that end a slow start."""

_MOST_SHARE: Final = 1.5
"""Of a window that a round may acknowledge; more shows that it is no round."""


class At(NamedTuple):
    """The acknowledgement that ended a round."""

    time_ns: int
    packet: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A round that shows round-trip time and rate, but not how the window grew."""

    report: Report


@dataclass(frozen=True, slots=True)
class Growth:
    """Rounds of congestion avoidance, and the windows before and after them, in segments."""

    rounds: tuple[tuple[Report, float], ...]
    """With the share of a window that was acknowledged in each."""
    before: float
    after: float
    at: At
    """The end of the round that shows the window after them."""


@dataclass(frozen=True, slots=True)
class SlowStart:
    """A round of slow start, and the windows before and after it, in segments."""

    report: Report
    share: float
    """Of the window before that was acknowledged."""
    before: float
    after: float
    at: At
    """The end of the round that shows the window after it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The end of a recovery: the flight then, and the window of the round after it, in segments."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Cut:
    """A loss event or a congestion mark: the window before it, and what it left, in segments."""

    before: tuple[float, ...]
    """By the round before, and by the flight when the loss was repaired; empty if not known."""
    after: tuple[float, ...]
    """By the flight at the end of the recovery, and by the round after it; empty if they do not show it."""
    is_timeout: bool
    rounds: int
    """Rounds that the repair took, or had marks."""
    at: At
    """The end of the first of them."""
    is_mark: bool = False
    """Whether congestion marks were echoed, and nothing was lost."""
    rtt_s: float | None = None
    """The last round-trip time before the first repair, where it is known."""
    settled: float | None = None
    """The window of the two rounds after a recovery of several rounds, by single rounds: it shows how many
    losses in a row there were."""


Observation = Measured | SlowStart | Growth | Settled | Cut


def shows_window(seen: Observation) -> TypeGuard[SlowStart | Growth | Settled | Cut]:
    """Return whether it shows a window that can be predicted."""
    return isinstance(seen, SlowStart | Growth | Settled) or (
        isinstance(seen, Cut) and bool(seen.before) and bool(seen.after)
    )


def observations(
    rounds: Iterable[Round], segment_bytes: float, segments_per_ack: float = 1.0, *, by_round: bool = False
) -> Iterator[Observation]:
    """Give the observations of the rounds of a direction, in order.

    A round without `cwnd_bytes` shows that something else than the window limited the flight. With `by_round`
    a growth is of one round, and those of slow start show their windows, too.
    """
    ack_bytes = segments_per_ack * segment_bytes
    starts = True
    before: Round | None = None
    repair: list[Round] = []
    for kind, group in groupby(rounds, _kind):
        run = list(group)
        if kind in {"recovery", "timeout", "mark"}:
            repair = [*repair, *run]
            continue
        cut = _cut(before, repair, run, segment_bytes, by_round=by_round) if repair else None
        if cut is not None:
            yield cut
            yield from (Measured(_report(row, ack_bytes)) for row in repair)
            starts = cut.is_timeout
        if kind == "window":
            if cut is not None and len(cut.after) == 2:
                yield Settled(*cut.after)
            calm = _rounds_of_start(run) if starts else 0
            if by_round:
                yield from _starts(run, calm, segment_bytes, ack_bytes)
                yield from _growths_by_round(run[calm:], segment_bytes)
            else:
                yield from (Measured(_report(row, ack_bytes)) for row in run[:calm])
                yield from _growths(run[calm:], segment_bytes)
            yield from (Measured(_report(row, ack_bytes)) for row in run[calm:][-1:])
            starts = starts and calm == len(run)
            before = run[-1]
        else:
            yield from (Measured(_report(row, ack_bytes)) for row in run)
            starts, before = True, None
        repair = []


def _kind(row: Round) -> str:
    if row["repair"] is not None:
        return str(row["repair"])
    if row["ece_packets"]:
        return "mark"
    return "window" if row["cwnd_bytes"] else "other"


def _cut(
    before: Round | None,
    repair: Sequence[Round],
    following: Sequence[Round],
    segment_bytes: float,
    *,
    by_round: bool,
) -> Cut:
    after = following[0]
    is_timeout = any(row["repair"] == "timeout" for row in repair)
    known = [] if before is None else [before["cwnd_bytes"], repair[0]["flight_bytes"]]
    is_mark = all(row["repair"] is None for row in repair)
    # a recovery shows the window at its end; with marks it shrinks for a round, and then grows
    ends = [*repair[1:], after] if is_mark and after["cwnd_bytes"] else [repair[-1], after]
    left = [row["cwnd_bytes"] / segment_bytes for row in ends if row["cwnd_bytes"]]
    left = [min(left)] if is_mark and left else left
    shows = known and left and not is_timeout and len(repair) <= _LONGEST_REPAIR
    shown = tuple(left if shows else ())
    windows = tuple(count / segment_bytes for count in known)
    settled = max((row["cwnd_bytes"] or 0 for row in following[:2]), default=0) / segment_bytes
    shows_several = by_round and len(repair) > 1 and not is_mark and not is_timeout and settled
    return Cut(
        windows,
        shown,
        is_timeout,
        len(repair),
        at(repair[0]),
        is_mark,
        rtt_s=repair[0].get("rtt_before_repair_s"),
        settled=settled if shows_several else None,
    )


def at(row: Round) -> At:
    """Return the end of a round."""
    return At(row["time_ns"] + round(row["duration_ms"] * 1e6), row["packet"])


def _rounds_of_start(run: Sequence[Round]) -> int:
    """Return how many rounds may belong to a slow start: until some in a row grow less."""
    calm = 0
    for place in range(1, len(run)):
        grows = run[place]["cwnd_bytes"] >= _START_GROWTH * run[place - 1]["cwnd_bytes"]
        calm = 0 if grows else calm + 1
        if calm == _CALM_ROUNDS:
            return place
    return len(run)


def _growths(run: Sequence[Round], segment_bytes: float) -> Iterator[Growth]:
    for start in range(0, len(run) - 1, _ROUNDS_OF_A_GROWTH):
        part = run[start : start + _ROUNDS_OF_A_GROWTH + 1]
        windows = [row["cwnd_bytes"] / segment_bytes for row in part]
        rounds = [(_report(row, 0.0), _share(row)) for row in part[:-1]]
        yield Growth(tuple(rounds), windows[0], windows[-1], at(part[-1]))


def _starts(
    run: Sequence[Round], count: int, segment_bytes: float, ack_bytes: float
) -> Iterator[Observation]:
    """Give the first rounds of a run one by one: those that double it, and the calm ones that end that."""
    for row, after in pairwise(run[: count + 1]):
        report = _report(row, ack_bytes)
        if after["cwnd_bytes"] < _START_GROWTH * row["cwnd_bytes"]:
            yield Measured(report)
        else:
            windows = (row["cwnd_bytes"] / segment_bytes, after["cwnd_bytes"] / segment_bytes)
            yield SlowStart(report, _acked_share(row, after), *windows, at(after))
    if count == len(run):
        yield Measured(_report(run[-1], ack_bytes))


def _growths_by_round(run: Sequence[Round], segment_bytes: float) -> Iterator[Growth]:
    for row, after in pairwise(run):
        windows = (row["cwnd_bytes"] / segment_bytes, after["cwnd_bytes"] / segment_bytes)
        yield Growth(((_report(row, 0.0), _acked_share(row, after)),), *windows, at(after))


def _acked_share(row: Round, after: Round) -> float:
    """Return the share of the window of a round that was acknowledged in the next, which shows its growth."""
    return float(min(after["delivered_bytes"] / row["cwnd_bytes"], _MOST_SHARE))


def _share(row: Round) -> float:
    return float(min(row["delivered_bytes"] / row["cwnd_bytes"], _MOST_SHARE))


def _report(row: Round, ack_bytes: float) -> Report:
    delivered = row["delivered_bytes"]
    interval_s = row["duration_ms"] / 1e3
    return Report(
        time_s=row["time_ns"] / 1e9,
        interval_s=interval_s,
        rtt_s=None if row["rtt_ms"] is None else row["rtt_ms"] / 1e3,
        p=0.0,
        x_recv=delivered / interval_s if interval_s > 0 else 0.0,
        marked=min((row["ece_packets"] or 0) * ack_bytes / delivered, 1.0) if delivered else 0.0,
    )
