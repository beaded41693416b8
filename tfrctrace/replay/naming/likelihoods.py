"""How likely each congestion control is to have sent the observed windows, and which parameters they show."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tfrctrace.metrics.statistics.confidence import median_limits
from tfrctrace.replay.naming.answer import LEAST_CUTS, likelihood, predicted_by
from tfrctrace.replay.naming.candidates import CUBIC, possible_candidates
from tfrctrace.replay.naming.cubic_growth import growth_constant
from tfrctrace.replay.naming.observations import Cut
from tfrctrace.replay.naming.predict import smooth_log_likelihoods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from tfrctrace.replay.naming.observations import Observation
    from tfrctrace.replay.naming.of_trace import Directions, Named

_LEAST_WINDOW: Final = 20
"""Segments of a window that shows what a loss left of it: of smaller ones, whole segments say little."""


class Parameter(NamedTuple):
    """A value and its interval of 95 %, in the columns of which each is null if it is not known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def candidates_frame(directions: Directions, every_named: Iterable[Named]) -> pl.DataFrame:
    """Return a row for each candidate of a direction, the likeliest first; one row if none could be tried."""
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    schema = polars_schema("congestion_controls")
    keys = ("flow", "direction")
    rows = [(*named.key, *row) for named in every_named for row in _rows(named)]
    found = pl.DataFrame(rows, schema=schema, orient="row")
    others = directions.reasons.join(found, on=keys, how="anti").select(
        *keys, congestion_control_reason="reason"
    )
    told = pl.concat([found, others], how="diagonal_relaxed").select(*schema)
    # candidates of a direction stay in order of likelihood
    places = directions.reasons.select(*keys).with_row_index("place")
    return told.join(places, on=keys, maintain_order="left").sort("place", maintain_order=True).drop("place")


def _rows(named: Named) -> Iterator[tuple[Any, ...]]:
    """Give the columns of each candidate after its direction."""
    found = named.answer
    answer = ("|".join(found.names) or None, found.reason)
    if named.seen is None or not found.rounds:
        # by a sign that is no window, or with too little of it
        yield (None, *answer, *(None,) * 11)
        return
    observed = named.seen.observed()
    made = predicted_by(
        possible_candidates(has_ecn=named.seen.has_ecn),
        observed,
        named.seen.start,
        named.seen.segments_per_ack,
    )
    likely = {name: likelihood(one) for name, one in made.items()}
    smooth = sum(smooth_log_likelihoods(observed))
    best = max(likely.values())
    left = share_left(observed)
    c = Parameter()
    if CUBIC in found.names:
        c = Parameter(*(growth_constant(observed, named.seen.start) or ()))
    for name in sorted(made, key=lambda name: (-likely[name], name)):
        yield (
            name,
            *answer,
            sum(one.rounds for one in made[name]),
            sum(one.rounds for one in made[name] if one.is_right),
            likely[name],
            likely[name] - best,
            likely[name] - smooth,
            *left,
            *(c if name == CUBIC else Parameter()),
        )


def share_left(observed: Iterable[Observation]) -> Parameter:
    """Return the median share of a window that a loss left, by windows of twenty segments or more.

    Senders round it to whole segments, most of them down: the value is in the middle of that segment, and the
    interval has one segment more on both sides of the limits.
    """
    cuts = [
        (cut.after[0], cut.before[0])
        for cut in observed
        if isinstance(cut, Cut) and cut.after and cut.before and not cut.is_mark
        if cut.before[0] >= _LEAST_WINDOW
    ]
    if len(cuts) < LEAST_CUTS:
        return Parameter()
    low, middle, high = (
        sorted((after + rounded) / before for after, before in cuts) for rounded in (-1, 0.5, 1)
    )
    return Parameter(median(middle), median_limits(low)[0], median_limits(high)[1])
