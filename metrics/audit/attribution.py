"""Where an incident was, by what changed with it and what did not.

The violated objectives name what kind of trouble it is: delay, loss, connections, answers of servers. Of the
signals of this kind those count that became worse than chance explains; the place with nearly all of the
increase is that of the incident, if the other places were measured. Whatever is not shown stays unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

from tfrctrace.metrics.audit.incidents import Incident
from tfrctrace.metrics.audit.signals import (
    UNSEEN_TIMES,
    Place,
    Signal,
    Trouble,
    by_place,
    is_of_capture,
    signals_about,
    signals_between,
    signals_of_hosts,
    together,
    trouble_of,
)
from tfrctrace.metrics.audit.silence_proofs import SURE_PROOFS
from tfrctrace.metrics.statistics.confidence import median_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    import polars as pl

    from tfrctrace.metrics.audit.incidents import RaisedStretch
    from tfrctrace.metrics.audit.silence_proofs import SilenceFacts
    from tfrctrace.metrics.objectives import Objective

Confidence = Literal["high", "medium", "low"]
Way = Literal["up", "down"]
"""From the hosts that open connections, or towards them."""
WAYS: Final[tuple[Way, ...]] = get_args(Way)
Scope = Literal["all hosts", "one host", "some hosts", "one server", "some servers", "unknown"]

_MOST: Final = 2 / 3
"""Share of the increase that a place needs to be that of the incident."""
_NEARLY_ALL: Final = 0.9
"""Share with which the confidence is high."""
_ALL_HOSTS: Final = 0.7
"""Share of the hosts of both sides that suffered, from which all did."""
_LEAST_OF_HOST: Final = 0.5
"""Increase of a host that suffered, as a share of that of the link."""
_LEAST_HOSTS: Final = 2
_BUSY: Final = 0.9
"""Share of the usual intervals with a lower rate, from which delay is that of load."""
_MORE_LOAD: Final = 1.3
"""Rate during an incident, as a multiple of the usual one, from which it may be."""

_SCOPES: Final[Mapping[bool, tuple[Scope, Scope]]] = {
    True: ("one host", "some hosts"),
    False: ("one server", "some servers"),
}
_NOBODY: Final = ""
"""Stands for hosts of a side of which none got worse by itself."""

_DAY_NS: Final = 86_400 * 10**9
_HOUR_NS: Final = 3_600 * 10**9
LOADED_NS: Final = _HOUR_NS
"""From the begin of an incident: the time whose rate tells whether there was load."""
_LEAST_OF_HOUR: Final = 6
"""Intervals of the hour before an incident, with which its load is compared."""
_NEARLY_WITHIN: Final = 0.9
"""Share of a shorter incident that another one covers, if it explains it."""
_LEAST_BASELINE: Final = 20
"""Intervals of a baseline."""

ReasonKind = Literal["worse", "several places", "no change", "no baseline", "silence", "own objective"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the place of an incident is what it is, or why it is unknown."""

    kind: ReasonKind
    worse: tuple[Signal, ...] = ()
    """The signal that names the place; of several places all that got worse."""
    unchanged: tuple[Signal, ...] = ()
    """Those of other places that did not."""
    silence: SilenceFacts | None = None
    """What a silence was."""
    dropped: int | None = None
    """Where the capture missed data: packets that it counted as dropped, in the files of the incident."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where an incident was."""

    place: Place
    scope: Scope
    hosts: tuple[str, ...]
    """Hosts, or servers, that the scope names."""
    loaded: tuple[Way, ...]
    """The directions whose rate was higher than usual while delays were longer."""
    confidence: Confidence
    reason: Reason
    baseline: str
    """What the incident was compared with."""
    signals: tuple[Signal, ...]
    """Every signal that is known: what changed, and what did not."""

    @property
    def under_load(self) -> bool:
        """Whether a rate was higher than usual while delays were longer."""
        return bool(self.loaded)


def attribution_of(
    incident: Incident,
    objectives: Sequence[Objective],
    evidence: pl.DataFrame,
    near: Sequence[str] | None,
    bad_ns: Sequence[tuple[int, int]],
) -> Attribution:
    """Return where an incident was.

    `evidence` are the hosts of its link around it, `near` those that open connections, and `bad_ns` the times
    of all incidents of the link, which are no baseline.
    """
    import polars as pl

    rows = by_place(evidence, near)
    start = pl.col("start_ns")
    during = rows.filter(start >= incident.begin_ns, start < incident.end_ns)
    before, words = _baseline(rows, incident, bad_ns)
    if incident.is_silence:
        return _silence(words, incident.silence)
    trouble = main_trouble(incident, objectives)
    found = _by_signals(incident, trouble, rows, (before, during), words=words, near=near)
    if found.place == "unknown" and all(
        is_of_capture(objectives[stretch.objective]) for stretch in incident.stretches
    ):
        return replace(found, place="capture", confidence="high", reason=Reason("own objective"))
    return found


def _by_signals(
    incident: Incident,
    trouble: Trouble | None,
    rows: pl.DataFrame,
    times: tuple[pl.DataFrame, pl.DataFrame],
    *,
    words: str,
    near: Sequence[str] | None,
) -> Attribution:
    """Return where an incident was by the signals that got worse from the first to the second of `times`."""
    before, during = times
    found = None
    for chosen in _views(incident, rows):
        sides = [together(frame.filter(chosen)) for frame in times]
        signals = signals_between(*sides)
        found = found or _unknown(signals, words, Reason("no change"))
        if before.is_empty():
            return _unknown(signals, words, Reason("no baseline"))
        relevant = _relevant(trouble, signals)
        if any(signal.has_changed for signal in relevant):
            return _decided(
                relevant, signals, before, during, words, has_sides=near is not None, hit=_groups(incident)
            )
    assert found is not None
    return _of_one_host(trouble, before, during, words) or found


def separated(
    incident: Incident, objectives: Sequence[Objective], where_of: Callable[[Incident], Attribution]
) -> Iterator[tuple[Incident, Attribution]]:
    """Give what an incident consists of: kinds of trouble at several places are several faults.

    `where_of` returns where a part was. Parts at one place are one, those at none belong to the largest.
    """
    troubles: dict[Trouble | None, list[RaisedStretch]] = {}
    for stretch in incident.stretches:
        troubles.setdefault(trouble_of(objectives[stretch.objective]), []).append(stretch)
    if len(troubles) < 2:
        yield incident, where_of(incident)
        return
    parts = [Incident.of(incident.link, stretches) for stretches in troubles.values()]
    parts.sort(key=lambda part: -sum(stretch.intervals for stretch in part.stretches))
    found: dict[Place, tuple[Incident, Attribution]] = {}
    rest: list[RaisedStretch] = []
    for part in parts:
        where = where_of(part)
        if where.place == "unknown":
            rest += part.stretches
        elif where.place in found:
            whole, known = found[where.place]
            found[where.place] = Incident.of(incident.link, [*whole.stretches, *part.stretches]), known
        else:
            found[where.place] = part, where
    if not found:
        yield incident, where_of(incident)
        return
    for place, (part, where) in found.items():
        is_largest = place == next(iter(found))
        yield Incident.of(incident.link, [*part.stretches, *(rest if is_largest else ())]), where


def explained(
    parts: Sequence[tuple[Incident, Attribution]], objectives: Sequence[Objective]
) -> list[tuple[Incident, Attribution]]:
    """Return incidents without those that longer ones explain, whose stretches these have then.

    So it is if the shorter one is of the same kind of trouble, and its place is that of the longer one, or
    unknown.
    """
    longest_first = sorted(parts, key=lambda part: (-part[0].lasted_ns, part[0].begin_ns))
    kept: list[tuple[Incident, Attribution, set[Trouble | None]]] = []
    for part, where in longest_first:
        troubles: set[Trouble | None] = {
            trouble_of(objectives[stretch.objective]) for stretch in part.stretches
        }
        for whole, known, of_whole in kept:
            is_within = whole.shared_ns(part.begin_ns, part.end_ns) >= _NEARLY_WITHIN * part.lasted_ns
            is_same = where.place == known.place and set(where.hosts) <= set(known.hosts)
            if is_within and troubles & of_whole and (where.place == "unknown" or is_same):
                whole.stretches += part.stretches
                break
        else:
            kept.append((replace(part, stretches=list(part.stretches)), where, troubles))
    return [(whole, where) for whole, where, _ in kept]


def main_trouble(incident: Incident, objectives: Sequence[Objective]) -> Trouble | None:
    """Return the kind of trouble of most violated intervals."""
    counts: dict[Trouble | None, int] = {}
    for stretch in incident.stretches:
        trouble = trouble_of(objectives[stretch.objective])
        counts[trouble] = counts.get(trouble, 0) + stretch.intervals
    return max(counts, key=counts.__getitem__)


def _views(incident: Incident, rows: pl.DataFrame) -> Iterator[pl.Expr]:
    """Give which rows are looked at: the link if it violated an objective, and the hosts that did."""
    import polars as pl

    groups = _groups(incident)
    link = pl.col("is_near")
    if incident.link in groups:
        yield link
    for is_near in (True, False):
        hit = (pl.col("is_near") == is_near) & pl.col("group").is_in(sorted(groups))
        if not rows.filter(hit).is_empty():
            yield hit
    if incident.link not in groups:
        yield link


def _groups(incident: Incident) -> set[str]:
    return {stretch.group for stretch in incident.stretches if stretch.group is not None}


def _unknown(signals: Sequence[Signal], words: str, reason: Reason) -> Attribution:
    known = tuple(signal for signal in signals if signal.has_changed is not None)
    return Attribution("unknown", "unknown", (), (), "low", reason, words, known)


def _relevant(trouble: Trouble | None, signals: Sequence[Signal]) -> list[Signal]:
    keys = {signal.key for signal in signals_about(trouble)}
    return [signal for signal in signals if signal.key in keys]


def _of_one_host(
    trouble: Trouble | None, before: pl.DataFrame, during: pl.DataFrame, words: str
) -> Attribution | None:
    """Return the place where only single hosts got worse, too few to be seen in the sum of all."""
    import polars as pl

    if trouble is None:
        return None
    worse = [
        (_weight(signal), host, signal)
        for definition in signals_about(trouble)
        for host, signal in signals_of_hosts(definition.key, before, during).items()
        if signal.has_changed
    ]
    if not worse:
        return None
    most, name, _ = max(worse, key=lambda one: one[0])
    tied = tuple(signal for weight, _, signal in worse if weight == most)
    if len({host for weight, host, _ in worse if weight == most}) > 1:
        return _unknown(tied, words, Reason("several places", worse=tied))
    own = pl.col("group") == name
    signals = signals_between(before.filter(own), during.filter(own))
    relevant = _relevant(trouble, signals)
    if not any(signal.has_changed for signal in relevant):
        return None
    is_near = bool(during.filter(own)["is_near"][0])
    chosen = pl.col("is_near") == is_near
    found = _decided(relevant, signals, before.filter(chosen), during.filter(chosen), words, has_sides=True)
    if found.hosts or found.place == "unknown":
        return replace(found, confidence="medium" if found.confidence == "high" else found.confidence)
    scope: Scope = "one host" if is_near else "one server"
    return replace(found, scope=scope, hosts=(name,), confidence="low")


def _silence(words: str, facts: SilenceFacts | None) -> Attribution:
    kind = "unknown" if facts is None else facts.kind
    place: Place = "link" if kind == "link dead" else "unknown" if kind == "nobody there" else "capture"
    confidence: Confidence = "low" if kind in {"unknown", "nobody there"} else "medium"
    if facts is not None and place != "unknown" and SURE_PROOFS.intersection(facts.proofs):
        confidence = "high"
    reason = Reason("silence", silence=facts)
    return Attribution(place, "all hosts", (), (), confidence, reason, words, ())


def _baseline(
    rows: pl.DataFrame, incident: Incident, bad_ns: Sequence[tuple[int, int]]
) -> tuple[pl.DataFrame, str]:
    """Return the usual state, and what it is: the same hours of earlier days, else the hours around it."""
    import polars as pl

    start = pl.col("start_ns")
    usual = rows
    for begin_ns, end_ns in bad_ns:
        usual = usual.filter((start < begin_ns) | (start >= end_ns))
    earlier = usual.filter(start < incident.begin_ns)
    days = (incident.begin_ns - start - 1) // _DAY_NS + 1
    shifted = start + days * _DAY_NS
    same = earlier.filter((shifted >= incident.begin_ns - _HOUR_NS) & (shifted < incident.end_ns + _HOUR_NS))
    same_days = same.select((start // _DAY_NS).n_unique()).item()
    if same_days > 1 and same["start_ns"].n_unique() >= _LEAST_BASELINE:
        return same, f"the same hours of {same_days} earlier days"
    last = earlier.filter(start >= incident.begin_ns - _DAY_NS)
    if last["start_ns"].n_unique() >= _LEAST_BASELINE:
        return last, "up to 24 hours before"
    around = usual.filter(start >= incident.begin_ns - _DAY_NS, start < incident.end_ns + _DAY_NS)
    return around, "up to 24 hours before and after"


def _decided(
    relevant: Sequence[Signal],
    signals: Sequence[Signal],
    before: pl.DataFrame,
    during: pl.DataFrame,
    words: str,
    *,
    has_sides: bool,
    hit: Set[str] = frozenset(),
) -> Attribution:
    """Return the place that the relevant signals show, of which at least one has changed."""
    known = tuple(signal for signal in signals if signal.has_changed is not None)
    changed = _unexplained([signal for signal in relevant if signal.has_changed], signals)
    best = _largest(changed)
    assert best is not None
    share = _share_of(best, changed)
    if share < _MOST:
        return _unknown(signals, words, Reason("several places", worse=tuple(changed)))
    scope, hosts = _scope(best, before, during, hit)
    others = [signal for signal in relevant if signal.place != best.place and signal.unit == best.unit]
    is_compared = any(signal.has_changed is not None for signal in others)
    confidence: Confidence = "high" if share >= _NEARLY_ALL and is_compared else "medium"
    place = best.place
    if not has_sides and place in {"client side", "server side"}:
        confidence = "low"
    is_delay = best.unit == "ms" and place != "server"
    loaded = _loaded(before, during, hosts) if is_delay else ()
    unchanged = tuple(signal for signal in others if signal.has_changed is False)
    reason = Reason("worse", worse=(best,), unchanged=unchanged)
    return Attribution(place, scope, hosts, loaded, confidence, reason, words, known)


def _unexplained(changed: list[Signal], signals: Sequence[Signal]) -> list[Signal]:
    """Return what changed beyond what the capture missed: a handshake or a question without an answer in it.

    Where that explains all, the capture is left.
    """
    gaps = next(
        (signal for signal in signals if signal.key == "capture_gaps" and signal.has_changed is True), None
    )
    if gaps is None or gaps.during.value is None:
        return changed
    missed = UNSEEN_TIMES * gaps.during.value
    left = [signal for signal in changed if signal.unit or signal is gaps or signal.increase > missed]
    return left or [gaps]


def _loaded(before: pl.DataFrame, during: pl.DataFrame, hosts: Sequence[str]) -> tuple[Way, ...]:
    """Return the directions with a rate that is rare in usual times, by more than chance.

    Of the hosts that suffered, or of all: what others sent fills no queue of theirs.
    """
    import polars as pl

    own = pl.col("group").is_in(list(hosts)) if hosts else pl.lit(value=True)
    start = pl.col("start_ns")
    begin_ns: int = during.select(start.min()).item()
    last = before.filter(start >= begin_ns - _HOUR_NS, start < begin_ns)
    if last["start_ns"].n_unique() >= _LEAST_OF_HOUR:
        # most rates rise and fall with the day: of other hours they tell nothing
        before, during = last, during.filter(start < begin_ns + LOADED_NS)
    usual, now = (together(frame.filter(own)) for frame in (before, during))
    return tuple(way for way in WAYS if _is_higher(*(one[f"{way}_bps"].drop_nulls() for one in (usual, now))))


def _is_higher(usual: pl.Series, now: pl.Series) -> bool:
    rate, median, high = now.median(), usual.median(), usual.quantile(_BUSY)
    if not isinstance(rate, float) or not isinstance(median, float) or high is None:
        return False
    low, _ = median_limits(now.sort().to_list())
    return rate > high and low >= _MORE_LOAD * median


def _weight(signal: Signal) -> float:
    """Return how much a signal got worse, comparable among signals of one unit."""
    if signal.unit:
        return abs(signal.increase)
    return max(signal.excess, 0.0)


def _largest(changed: Sequence[Signal]) -> Signal | None:
    """Return the signal that got worse most; counts of what failed come before durations."""
    return max(changed, key=lambda signal: (not signal.unit, _weight(signal)), default=None)


def _share_of(best: Signal, changed: Sequence[Signal]) -> float:
    """Return the share of the increase that is at the place of the largest."""
    alike = [signal for signal in changed if signal.unit == best.unit]
    total = sum(map(_weight, alike))
    at_place = sum(_weight(signal) for signal in alike if signal.place == best.place)
    return at_place / total if total else 1.0


def _scope(
    best: Signal, before: pl.DataFrame, during: pl.DataFrame, hit: Set[str]
) -> tuple[Scope, tuple[str, ...]]:
    """Return which hosts suffered: of the side of the place, if not all of them did, else of the other.

    Where no host of the side of the place shows it by itself, those that violated an objective are named.
    """
    import polars as pl

    known: dict[bool, list[str]] = {}
    for is_near in (True, False):
        bad, measured = _suffering(best, before, during, is_near=is_near)
        if len(measured) >= _LEAST_HOSTS:
            known[is_near] = [] if len(bad) >= _ALL_HOSTS * len(measured) else bad or [_NOBODY]
    if known and not any(known.values()):
        return "all hosts", ()
    is_own_near = best.place == "client side"
    side = during.filter(pl.col("is_near") == is_own_near)["group"].drop_nulls().unique()
    own_hit = sorted(hit & set(side))
    if own_hit and len(own_hit) < _ALL_HOSTS * len(side) and known.get(is_own_near, [_NOBODY]) == [_NOBODY]:
        known[is_own_near] = own_hit
    for is_near in (is_own_near, not is_own_near):
        names = known.get(is_near, [])
        if names and names != [_NOBODY]:
            one, some = _SCOPES[is_near]
            return (one if len(names) == 1 else some), tuple(names)
    return "unknown", ()


def _suffering(
    best: Signal, before: pl.DataFrame, during: pl.DataFrame, *, is_near: bool
) -> tuple[list[str], list[str]]:
    """Return the hosts of a side that suffered, and all of which that is known."""
    import polars as pl

    side = pl.col("is_near") == is_near
    found = signals_of_hosts(best.key, before.filter(side), during.filter(side))
    measured = {host: signal for host, signal in found.items() if signal.has_changed is not None}
    least = _LEAST_OF_HOST * abs(best.increase)
    bad = [host for host, signal in measured.items() if signal.has_changed and abs(signal.increase) >= least]
    return bad, list(measured)
