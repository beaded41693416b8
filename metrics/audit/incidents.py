"""When something was wrong: violated intervals as stretches with hysteresis, and stretches as incidents.

A stretch is raised by so many consecutive violated intervals of a group, and cleared by so many that met the
objective. Intervals without data do neither, but a long silence ends a stretch: nothing is known of it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from tfrctrace.metrics.objectives import summed_stretches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tfrctrace.base.hours_of_use import HoursOfUse
    from tfrctrace.metrics.audit.silence_proofs import SilenceFacts
    from tfrctrace.metrics.objectives import Objective

RAISE_AFTER: Final = 2

SILENT_INTERVALS: Final = 6
"""Intervals without data that end a stretch, unless more are needed to clear it."""

Ended = Literal["recovered", "no data", "end of data"]
"""Why a stretch ended: enough intervals met the objective, nothing is known for long, or the captures end."""

_SAME_SHARE: Final = 0.5
"""Share of the shorter of two stretches that both have in common, if they are one incident."""

_MUCH_LONGER: Final = 3.0
"""A stretch of another group that lasts so many times longer is an incident of its own."""

_AROUND: Final = 12
"""Widths of an interval before and after a begin or an end in which flows show what is usual."""

_LONGEST_NS: Final = 12 * 3600 * 10**9
"""A state that lasts longer does not take in what happens to other groups meanwhile."""

SILENCE_CHANCE: Final = 1e-6
"""A silence of the whole link is an incident if chance makes one as long so rarely."""

_HOUR_NS: Final = 3_600 * 10**9
_DAY_HOURS: Final = 24
_DAY_NS: Final = _DAY_HOURS * _HOUR_NS
_LEAST_DAYS: Final = 2
"""Other days on which it is seen what an hour is like."""
_AWAKE: Final = 0.95
"""Share of all hours with packets, from which a link never sleeps."""
_LONGEST_UNKNOWN_NS: Final = 6 * _HOUR_NS
"""A longer silence may be a night, unless other days show what its hours are like."""


@dataclass(frozen=True, slots=True)
class RaisedStretch:
    """Violated intervals of a group in a row: a row with `STRETCH_COLUMNS`."""

    objective: int
    """Number of the objective."""
    group: str | None
    begin_ns: int
    first_end_ns: int
    """End of its first interval: it began between the two."""
    last_begin_ns: int
    end_ns: int
    intervals: int
    severe: int
    value: float
    """The worst."""
    n: int
    """Samples of the worst value."""
    at_ns: int
    ended: Ended

    @property
    def lasted_ns(self) -> int:
        """From begin to end."""
        return self.end_ns - self.begin_ns

    def is_within(self, incident: Incident) -> bool:
        """Whether an incident explains it: it covers most, or is of its group and not much shorter."""
        is_own = any(one.group == self.group for one in incident.stretches)
        is_like = is_own and self.lasted_ns <= _MUCH_LONGER * incident.lasted_ns
        least_ns = min(self.lasted_ns, incident.lasted_ns) if is_like else self.lasted_ns
        return incident.shared_ns(self.begin_ns, self.end_ns) >= _SAME_SHARE * least_ns


STRETCH_COLUMNS: Final = tuple(column.name for column in fields(RaisedStretch))


@dataclass(slots=True)
class Incident:
    """Stretches of one link that belong together by their times."""

    link: str
    begin_ns: int
    end_ns: int
    stretches: list[RaisedStretch] = field(default_factory=list)
    """The longest first; none of a silence."""
    silence: SilenceFacts | None = None
    """What a silence was, as far as that was looked for."""
    began_ns: tuple[int, int] = (0, 0)
    """Between which times it began."""
    ended_ns: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, link: str, stretches: Sequence[RaisedStretch]) -> Incident:
        """Return what these stretches, of which there is one at least, are together."""
        longest_first = sorted(stretches, key=lambda one: (-one.lasted_ns, one.begin_ns, one.objective))
        first, last = _first(stretches), _last(stretches)
        # what happens in a part of an interval may leave it as it was
        began_ns = (2 * first.begin_ns - first.first_end_ns, first.first_end_ns)
        ended_ns = (last.last_begin_ns, 2 * last.end_ns - last.last_begin_ns)
        return cls(link, first.begin_ns, last.end_ns, longest_first, began_ns=began_ns, ended_ns=ended_ns)

    @property
    def lasted_ns(self) -> int:
        """From begin to end."""
        return self.end_ns - self.begin_ns

    @property
    def width_ns(self) -> int:
        """Width of the intervals that say when it began and ended."""
        widths_ns = (until_ns - from_ns for from_ns, until_ns in (self.began_ns, self.ended_ns))
        return max(*widths_ns, 2) // (1 if self.is_silence else 2)

    @property
    def surroundings_ns(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The times around its begin and its end which show what is usual, and what it was."""
        reach_ns = _AROUND * self.width_ns
        return (
            (self.begin_ns - reach_ns, self.begin_ns + reach_ns),
            (self.end_ns - reach_ns, self.end_ns + reach_ns),
        )

    @property
    def is_silence(self) -> bool:
        """Whether the link had no packet at all."""
        return not self.stretches

    def captured(self, first_ns: int, last_ns: int) -> Incident:
        """Return it from the first packet to the last one: intervals begin before and end after them."""

        def within(time_ns: int) -> int:
            return min(max(time_ns, first_ns), last_ns)

        stretches = [
            replace(
                stretch,
                begin_ns=within(stretch.begin_ns),
                first_end_ns=within(stretch.first_end_ns),
                last_begin_ns=within(stretch.last_begin_ns),
                end_ns=within(stretch.end_ns),
            )
            for stretch in self.stretches
        ]
        began_ns, ended_ns = ((within(one), within(other)) for one, other in (self.began_ns, self.ended_ns))
        return replace(
            self,
            begin_ns=within(self.begin_ns),
            end_ns=within(self.end_ns),
            stretches=stretches,
            began_ns=began_ns,
            ended_ns=ended_ns,
        )

    def shared_ns(self, begin_ns: int, end_ns: int) -> int:
        """Return how long it overlaps a time."""
        return max(min(self.end_ns, end_ns) - max(self.begin_ns, begin_ns), 0)


def raised_stretches(
    objective: Objective, intervals: pl.DataFrame, number: int, last_ns: int
) -> pl.DataFrame:
    """Return the stretches of judged intervals of one link, with `STRETCH_COLUMNS`; the worst first.

    `number` is that of the objective; the captures end at `last_ns`.
    """
    import polars as pl

    every_ns = objective.grouping.every_ns or 1
    silent_ns = max(SILENT_INTERVALS, objective.clear_after) * every_ns
    known = intervals.filter(pl.col("verdict") != "no_data")
    broken = known.filter(pl.col("verdict") != "met")["group"].unique()
    if broken.is_empty():
        return pl.DataFrame(schema=dict(zip(STRETCH_COLUMNS, _stretch_types(), strict=True)))
    known = known.filter(pl.col("group").is_in(broken.implode(), nulls_equal=True)).sort("group", "start_ns")
    is_bad = pl.col("verdict") != "met"
    is_other = pl.col("group").ne_missing(pl.col("group").shift())
    is_after_silence = (pl.col("start_ns") - pl.col("end_ns").shift() >= silent_ns) | is_other

    def numbered(begins: pl.Expr) -> pl.Expr:
        return begins.fill_null(value=True).cast(pl.UInt32).cum_sum()

    runs = known.with_columns(
        is_bad=is_bad,
        is_cut=is_after_silence,
        run=numbered(is_after_silence | (is_bad != is_bad.shift())),
    ).with_columns(length=pl.len().over("run"))
    clears = ~pl.col("is_bad") & (pl.col("length") >= objective.clear_after)
    # what begins after a silence, or after a run that clears
    parts = runs.with_columns(stretch=numbered(pl.col("is_cut") | clears | clears.shift()))
    is_raised = (pl.col("length") >= objective.raise_after).any().over("stretch")
    bad = parts.filter("is_bad").filter(is_raised)
    found = summed_stretches(objective, bad).join(
        _edges(bad), on=("group", "begin_ns"), how="left", nulls_equal=True, maintain_order="left"
    )
    cleared = parts.filter(clears).group_by("group").agg(met="start_ns")
    ended = pl.struct("end_ns", "met").map_elements(
        lambda row: _ended(row["end_ns"], row["met"] or (), silent_ns, last_ns), pl.String
    )
    return (
        found.join(cleared, on="group", how="left", nulls_equal=True, maintain_order="left")
        .with_columns(objective=pl.lit(number), ended=ended)
        .select(STRETCH_COLUMNS)
    )


def _stretch_types() -> tuple[type[pl.DataType], ...]:
    import polars as pl

    return (pl.Int32, pl.String, *(6 * (pl.Int64,)), pl.Float64, pl.Int64, pl.Int64, pl.String)


def _edges(broken: pl.DataFrame) -> pl.DataFrame:
    """Return where the first interval of each stretch ends, and where the last one begins."""
    import polars as pl

    return (
        broken.group_by("stretch")
        .agg(
            pl.col("group").first(),
            begin_ns=pl.col("start_ns").min(),
            first_end_ns=pl.col("end_ns").get(pl.col("start_ns").arg_min()),
            last_begin_ns=pl.col("start_ns").get(pl.col("end_ns").arg_max()),
        )
        .drop("stretch")
    )


def _ended(end_ns: int, met_ns: Sequence[int], silent_ns: int, last_ns: int) -> Ended:
    """Return why a stretch ended: `met_ns` are the intervals of its group that clear one."""
    if any(end_ns <= start_ns < end_ns + silent_ns for start_ns in met_ns):
        return "recovered"
    return "end of data" if last_ns - end_ns < silent_ns else "no data"


def incidents_of(link: str, stretches: Sequence[RaisedStretch]) -> list[Incident]:
    """Return the incidents of a link by their begin: stretches that overlap in time are one.

    Those of the whole link come first, then longer ones. What lasted much longer than another group's
    stretch, or half a day, does not take it in.
    """
    found: list[Incident] = []
    longest_first = sorted(
        stretches,
        key=lambda stretch: (
            stretch.group != link,
            -stretch.lasted_ns,
            stretch.begin_ns,
            stretch.group or "",
            stretch.objective,
        ),
    )
    for stretch in longest_first:
        begin_ns, end_ns = stretch.begin_ns, stretch.end_ns
        together = [incident for incident in found if _belongs(incident, stretch)]
        if not together:
            found.append(Incident(link, begin_ns, end_ns, [stretch]))
            continue
        home = max(together, key=lambda incident: incident.shared_ns(begin_ns, end_ns))
        home.begin_ns, home.end_ns = min(home.begin_ns, begin_ns), max(home.end_ns, end_ns)
        home.stretches.append(stretch)
    whole = (Incident.of(link, incident.stretches) for incident in found)
    return sorted(whole, key=lambda incident: (incident.begin_ns, incident.end_ns))


def _first(stretches: Sequence[RaisedStretch]) -> RaisedStretch:
    """Return the stretch that begins first, or a narrower one that begins within its first interval."""
    first = min(stretches, key=lambda one: (one.begin_ns, one.first_end_ns))
    within = range(first.begin_ns, first.first_end_ns)
    width_ns = len(within)
    finer = [
        one for one in stretches if one.begin_ns in within and one.first_end_ns - one.begin_ns < width_ns
    ]
    return _first(finer) if finer else first


def _last(stretches: Sequence[RaisedStretch]) -> RaisedStretch:
    """Return the stretch that ends last, or a narrower one that ends within its last interval."""
    last = max(stretches, key=lambda one: (one.end_ns, one.last_begin_ns))
    within = range(last.last_begin_ns + 1, last.end_ns + 1)
    width_ns = len(within)
    finer = [one for one in stretches if one.end_ns in within and one.end_ns - one.last_begin_ns < width_ns]
    return _last(finer) if finer else last


def _belongs(incident: Incident, stretch: RaisedStretch) -> bool:
    shared_ns = incident.shared_ns(stretch.begin_ns, stretch.end_ns)
    if shared_ns < _SAME_SHARE * min(stretch.lasted_ns, incident.lasted_ns) or not shared_ns:
        return False
    if any(known.group == stretch.group for known in incident.stretches):
        return True
    if stretch.lasted_ns > _MUCH_LONGER * incident.lasted_ns:
        return False
    shorter_ns, longer_ns = sorted((stretch.lasted_ns, incident.lasted_ns))
    return longer_ns <= _LONGEST_NS or longer_ns <= _MUCH_LONGER * shorter_ns


def silences(
    link: str, starts_ns: Sequence[int], every_ns: int, hours: HoursOfUse | None = None
) -> Iterator[Incident]:
    """Give the times in which a link had no packet, though it usually has; of ascending intervals with some.

    How usual packets are is taken from the same hours of other days of the same kind: an office is empty at
    night. Where there are none it is taken from the 24 hours on both sides, without the silence itself, but
    then a long silence is only judged if the link never sleeps: it may be a night. Where hours of use are
    given, those and no others are judged.
    """
    if hours is not None:
        yield from _silences_in_use(link, starts_ns, every_ns, hours)
        return
    usual = _UsualHours.of(starts_ns, every_ns)
    for place in range(1, len(starts_ns)):
        begin_ns, end_ns = starts_ns[place - 1] + every_ns, starts_ns[place]
        empty = (end_ns - begin_ns) // every_ns
        if empty < RAISE_AFTER:
            continue
        around = _share_empty_around(starts_ns, place, every_ns, empty)
        if end_ns - begin_ns > _LONGEST_UNKNOWN_NS and not usual.never_sleeps:
            around = 1.0
        if usual.evidence(begin_ns, end_ns, around) > -math.log(SILENCE_CHANCE):
            yield _silence(link, (begin_ns, end_ns), every_ns)


def _silence(link: str, within_ns: tuple[int, int], every_ns: int) -> Incident:
    """Return a silence of whole intervals, which began in the one before them and ended in the one after."""
    begin_ns, end_ns = within_ns
    return Incident(
        link,
        begin_ns,
        end_ns,
        began_ns=(begin_ns - every_ns, begin_ns),
        ended_ns=(end_ns, end_ns + every_ns),
    )


def _silences_in_use(
    link: str, starts_ns: Sequence[int], every_ns: int, hours: HoursOfUse
) -> Iterator[Incident]:
    """Give the silences of hours of use, compared with all of them."""
    if not starts_ns:
        return
    in_use = list(hours.within(starts_ns[0], starts_ns[-1] + every_ns))
    busy = sum(
        bisect_left(starts_ns, until_ns) - bisect_left(starts_ns, since_ns) for since_ns, until_ns in in_use
    )
    whole = sum(until_ns - since_ns for since_ns, until_ns in in_use) // every_ns
    for before_ns, end_ns in pairwise(starts_ns):
        if end_ns - before_ns <= RAISE_AFTER * every_ns:
            continue
        for since_ns, until_ns in hours.within(before_ns + every_ns, end_ns):
            empty = (until_ns - since_ns) // every_ns
            other = whole - empty
            # one empty interval more than there are, as in `_share_empty_around`
            share = min(max(other - busy + 1, 1) / (other + 2), 1.0)
            if empty >= RAISE_AFTER and -empty * math.log(share) > -math.log(SILENCE_CHANCE):
                yield _silence(link, (since_ns, until_ns), every_ns)


def _share_empty_around(starts_ns: Sequence[int], place: int, every_ns: int, empty: int) -> float:
    """Return the share of empty intervals within 24 hours of the silence before `place`, without it."""
    day = _DAY_NS // every_ns
    first, after = max(place - day, 0), min(place + day, len(starts_ns) - 1)
    around = (starts_ns[after] - starts_ns[first]) // every_ns + 1 - empty
    # one empty interval more than there are: a link that was never silent may be
    return (around - (after - first + 1) + 1) / (around + 2)


@dataclass(frozen=True, slots=True)
class _UsualHours:
    """Intervals with packets by hour, of whole days of work and of weekends."""

    busy: dict[int, int]
    """By number of the hour since the epoch."""
    first: int
    last: int
    """The first and the last hour, which may be captured in part."""
    per_hour: float

    @classmethod
    def of(cls, starts_ns: Sequence[int], every_ns: int) -> _UsualHours:
        busy: dict[int, int] = {}
        for start_ns in starts_ns:
            busy[start_ns // _HOUR_NS] = busy.get(start_ns // _HOUR_NS, 0) + 1
        return cls(busy, min(busy, default=0), max(busy, default=0), _HOUR_NS / every_ns)

    @property
    def never_sleeps(self) -> bool:
        """Whether each hour of the day has packets on nearly all days, of at least two."""
        hours = self.last - self.first - 1
        return hours >= 2 * _DAY_HOURS and len(self.busy) >= _AWAKE * hours

    def evidence(self, begin_ns: int, end_ns: int, unknown: float) -> float:
        """Return the logarithm of how rarely chance makes a silence, up to where that is clear.

        `unknown` is the share of empty intervals in hours of which other days do not tell it.
        """
        first, end = begin_ns // _HOUR_NS, -(-end_ns // _HOUR_NS)
        shares: dict[tuple[int, bool], float] = {}
        found = 0.0
        for hour in range(first, end):
            kind = (hour % _DAY_HOURS, _is_weekend(hour))
            if kind not in shares:
                known = self._share_empty(hour, range(first, end))
                shares[kind] = min(max(unknown if known is None else known, 1e-12), 1.0)
            inside_ns = min(end_ns, (hour + 1) * _HOUR_NS) - max(begin_ns, hour * _HOUR_NS)
            found -= math.log(shares[kind]) * inside_ns / _HOUR_NS * self.per_hour
            if found > -2 * math.log(SILENCE_CHANCE):
                break
        return found

    def _share_empty(self, hour: int, silent: range) -> float | None:
        """Return the share of empty intervals in the same hour of other days; None of less than two."""
        others = [
            other
            for other in range(self.first + 1 + (hour - self.first - 1) % _DAY_HOURS, self.last, _DAY_HOURS)
            if other not in silent and _is_weekend(other) == _is_weekend(hour)
        ]
        if len(others) < _LEAST_DAYS:
            return None
        intervals = len(others) * self.per_hour
        with_packets = sum(self.busy.get(other, 0) for other in others)
        return (intervals - with_packets + 1) / (intervals + 1)


def _is_weekend(hour: int) -> bool:
    # the epoch began on a Thursday
    return (hour // _DAY_HOURS + 3) % 7 >= 5
