"""Predict each decision of a window from what was observed before it.

The predictor is that of the naming (`naming/predict.py`), by single rounds. What limited the window besides
(delayed acknowledgements, the application, the receive window) is taken as observed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.parts import parts_by_flows
from tfrctrace.metrics.results.one_step import Agreement, ObservedFlow, OneStepRun, OneSteps
from tfrctrace.metrics.results.replay import OF_DIRECTION, NotReplayable, ReplayHead
from tfrctrace.replay.lacking import lacking_frame
from tfrctrace.replay.logged_windows import logged_directions
from tfrctrace.replay.naming.answer import LEAST_CUTS, LEAST_ROUNDS, likeliest
from tfrctrace.replay.naming.candidates import candidates_of
from tfrctrace.replay.naming.observations import Cut, Growth, Settled, SlowStart, at, shows_window
from tfrctrace.replay.naming.of_trace import (
    MARKS,
    NOT_AT_SENDER,
    NOT_LIMITED_BY_PATH,
    OF_FLOWS,
    OF_ROUNDS,
    OF_STRETCHES,
    directions_of,
    seen_directions,
)
from tfrctrace.trace.passes import OF_CONTROLS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import polars as pl

    from tfrctrace.replay.algorithms import Algorithm
    from tfrctrace.replay.naming.observations import Observation
    from tfrctrace.replay.naming.of_trace import Seen
    from tfrctrace.replay.naming.predict import Prediction
    from tfrctrace.trace.tables import Tables

    Decision = tuple[SlowStart | Growth | Cut, Prediction]
    Repair = tuple[int, int | None]
    Repairs = defaultdict[tuple[int, str], list[Repair]]

NOTE: Final = (
    "open loop of window algorithms: each decision is predicted from the window and the round-trip times "
    "that were observed before it"
)

WITHIN_SEGMENTS: Final = 1.0
WITHIN_SHARE: Final = 0.01
"""Deviation of a window, in segments or as a share of it, up to which a decision is that of the algorithm."""

_SERIES: Final = (
    "time_ns",
    "packet",
    "event",
    "before_bytes",
    "predicted_bytes",
    "observed_bytes",
    "deviation_segments",
)
_OF_FLOWS: Final = (*OF_DIRECTION, "transport", "data_packets")

_NOT_TCP: Final = ("it is not TCP: it has no congestion window", "`--algorithm tfrc` replays it")
_NO_ROUNDS: Final = (
    "the trace does not show its window: it is simulated, or shows no acknowledgements or no round trip",
    "a capture at the sender with both directions does, or the `cwnd_` that an agent of ns-2 logs, given "
    "beside its trace; `--loop closed` needs no window",
)
_LACKS: Final[Mapping[str, tuple[str, str]]] = {
    NOT_AT_SENDER: (
        "it was captured away from its sender, or may have been, where its window does not show",
        "a capture at the sender does",
    ),
    MARKS: (
        "its congestion marks are reported as counts (accurate ECN), by which no round is known to have some",
        "a connection with RFC 3168's ECN, or without",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OneStepReplay:
    """All decisions of all algorithms, and what they come to."""

    frame: pl.DataFrame
    """With the columns of `tfrctrace.parsers.schema.TABLES["one_step"]`."""
    results: OneSteps

    @property
    def lacking(self) -> tuple[NotReplayable, ...]:
        """Flows whose window does not show."""
        return self.results.lacking


def one_steps(
    trace: Tables, algorithms: Sequence[Algorithm], *, flows: Collection[int] | None, least_packets: int
) -> OneStepReplay:
    """Predict the decisions of each direction with data, or say why its window does not show."""
    import polars as pl

    trace.read("flows", "rtt", "losses", "variables", *OF_CONTROLS)
    wanted = {
        (row["flow"], row["direction"]): row
        for row in trace.table("flows").rows(_OF_FLOWS)
        if (row["data_packets"] or 0) >= max(least_packets, 1) and (flows is None or row["flow"] in flows)
    }
    # of many flows most are too short
    is_wanted = pl.col("flow").is_in({flow for flow, _ in wanted})
    parts = parts_by_flows(trace.table("cause_sums").frames(), trace.table("flows").frames(OF_FLOWS))
    directions = directions_of(([one.filter(is_wanted) for one in part] for part in parts), with_others=True)
    reasons = {
        (row["flow"], row["direction"]): row["reason"] if row["is_at_sender"] else NOT_AT_SENDER
        for row in directions.reasons.iter_rows(named=True)
    }
    frames = (trace.table("rounds").frames(OF_ROUNDS), trace.table("causes").frames(OF_STRETCHES))
    repairs = _repairs(trace, directions.reasons.filter("is_seen"))
    found = {
        key: _of_direction(wanted[key], _with_rtts(seen, repairs[key]), algorithms, reasons[key])
        for key, seen in seen_directions(*frames, directions)
        if key in wanted and reasons[key] not in (MARKS, NOT_AT_SENDER)
    }
    left = {key for key, facts in wanted.items() if facts["transport"] == "tcp"} - reasons.keys()
    found |= {
        key: _of_direction(wanted[key], seen, algorithms, None)
        for key, seen in logged_directions(trace, left)
    }
    made = [found.get(key) or _unseen(facts, reasons) for key, facts in wanted.items()]
    flows_seen = [one for one in made if not isinstance(one, NotReplayable)]
    lacking = [one for one in made if isinstance(one, NotReplayable)]
    results = OneSteps(
        head=ReplayHead(loop="open", notes=(NOTE,)),
        flows=tuple(flow for flow, _ in flows_seen),
        lacking=tuple(lacking),
        replays=tuple(run for _, runs in flows_seen for run in runs),
    )
    return OneStepReplay(frame=_frame(results, algorithms), results=results)


def _repairs(trace: Tables, looked_at: pl.DataFrame) -> Repairs:
    """Return when each direction repaired losses, and the last round-trip time before, in order of time."""
    import polars as pl

    keys = ("flow", "direction")
    losses = trace.table("losses").frame((*keys, "time_ns")).join(looked_at, on=keys, how="semi")
    rtts = pl.concat(
        [
            frame.filter(method="ack").join(losses, on=keys, how="semi").drop("method")
            for frame in trace.table("rtt").frames((*keys, "time_ns", "rtt_ns", "method"))
        ]
    )
    before = losses.sort("time_ns").join_asof(
        rtts.sort("time_ns", maintain_order=True), on="time_ns", by=keys, check_sortedness=False
    )
    found: Repairs = defaultdict(list)
    for flow, direction, time_ns, rtt_ns in before.iter_rows():
        found[flow, direction].append((time_ns, rtt_ns))
    return found


def _with_rtts(seen: Seen, repairs: Sequence[Repair]) -> Seen:
    """Return what is seen of a direction with `rtt_before_repair_s` of the rounds that have a repair."""

    def with_rtt(row: Mapping[str, Any]) -> Mapping[str, Any]:
        place = bisect_left(repairs, row["time_ns"], key=itemgetter(0))
        if place == len(repairs):
            return row
        time_ns, rtt_ns = repairs[place]
        if rtt_ns is None or time_ns > at(row).time_ns:
            return row
        return {**row, "rtt_before_repair_s": rtt_ns / 1e9}

    return replace(seen, rounds=list(map(with_rtt, seen.rounds)))


def _of_direction(
    facts: Mapping[str, Any], seen: Seen, algorithms: Sequence[Algorithm], reason: str | None
) -> tuple[ObservedFlow, list[OneStepRun]] | NotReplayable:
    observed = seen.observed(by_round=True)
    cuts = sum(isinstance(one, Cut) and shows_window(one) for one in observed)
    rounds = sum(isinstance(one, SlowStart | Growth) for one in observed)
    if cuts < LEAST_CUTS and rounds < LEAST_ROUNDS:
        return _lacking(facts, *_few(cuts, rounds, reason))
    flow = ObservedFlow(
        **_ends(facts),
        transport=str(facts["transport"]),
        segment_bytes=seen.segment_bytes,
        segments_per_ack=seen.segments_per_ack,
    )
    return flow, [_run(facts, seen, observed, algorithm) for algorithm in algorithms]


def _run(
    facts: Mapping[str, Any], seen: Seen, observed: Sequence[Observation], algorithm: Algorithm
) -> OneStepRun:
    """Return the decisions of one algorithm, by the variant of it that predicts best."""
    candidate, made = likeliest(candidates_of(algorithm), observed, seen.start, seen.segments_per_ack)
    shown = (one for one in observed if shows_window(one))
    # the end of a recovery is observed together with the growth of a round
    decisions = [
        (one, prediction) for one, prediction in zip(shown, made, strict=True) if not isinstance(one, Settled)
    ]
    within: defaultdict[str, list[bool]] = defaultdict(list)
    for one, prediction in decisions:
        within[_event(one)].append(_is_within(prediction))
    return OneStepRun(
        **_ends(facts),
        algorithm=algorithm.name,
        profile=None,
        settings=candidate.settings_for(seen.segments_per_ack),
        decisions=len(decisions),
        within_share=sum(map(sum, within.values())) / len(decisions),
        deviation_median_segments=median(one.predicted - one.observed for _, one in decisions),
        by_event={event: Agreement(len(those), sum(those)) for event, those in within.items()},
        series=_series(decisions, seen.segment_bytes),
    )


def _event(seen: SlowStart | Growth | Cut) -> str:
    match seen:
        case SlowStart():
            return "slow_start"
        case Growth():
            return "congestion_avoidance"
        case Cut():
            return "mark" if seen.is_mark else "loss"


def _is_within(one: Prediction) -> bool:
    """Return whether a prediction is within one segment or 1 % of the observed window, whichever is more."""
    return abs(one.predicted - one.observed) <= max(WITHIN_SEGMENTS, WITHIN_SHARE * one.observed)


def _series(decisions: Sequence[Decision], segment_bytes: float) -> dict[str, list[Any]]:
    rows = [
        (
            *one.at,
            _event(one),
            *(segment_bytes * window for window in (made.before, made.predicted, made.observed)),
            made.predicted - made.observed,
        )
        for one, made in decisions
    ]
    return dict(zip(_SERIES, map(list, zip(*rows, strict=True)), strict=True))


def _frame(results: OneSteps, algorithms: Sequence[Algorithm]) -> pl.DataFrame:
    """Return a row for each decision, and one for each algorithm on a flow that lacks something."""
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    schema = polars_schema("one_step")
    names = [{"algorithm": one.name} for one in algorithms]

    def decisions(run: OneStepRun) -> pl.DataFrame:
        own = {name: getattr(run, name) for name in (*OF_DIRECTION, "algorithm")}
        return pl.DataFrame({**own, **run.series, "lacking": None}, schema=schema)

    return pl.concat([*map(decisions, results.replays), lacking_frame("one_step", results.lacking, names)])


def _ends(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in OF_DIRECTION}


def _unseen(facts: Mapping[str, Any], reasons: Mapping[tuple[int, str], str | None]) -> NotReplayable:
    if facts["transport"] != "tcp":
        return _lacking(facts, *_NOT_TCP)
    return _lacking(facts, *_LACKS.get(reasons.get((facts["flow"], facts["direction"])) or "", _NO_ROUNDS))


def _few(cuts: int, rounds: int, reason: str | None) -> tuple[str, str]:
    why = "" if reason is None else ": what limited it is not known"
    if reason == NOT_LIMITED_BY_PATH:
        why = ": its application, receiver or send buffer limited it"
    return (
        f"its window shows in {rounds} rounds of growth and after {cuts} losses{why}",
        f"{LEAST_ROUNDS} rounds, or {LEAST_CUTS} losses, are needed",
    )


def _lacking(facts: Mapping[str, Any], what: str, hint: str) -> NotReplayable:
    return NotReplayable(**_ends(facts), transport=str(facts["transport"]), what=what, hint=hint)
