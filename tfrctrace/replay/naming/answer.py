"""Which congestion controls predict a direction: those that the best one does not beat."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Final

from tfrctrace.base.errors import UsageError
from tfrctrace.replay.naming.candidates import possible_candidates
from tfrctrace.replay.naming.observations import Cut, Growth
from tfrctrace.replay.naming.predict import predictions, smooth_log_likelihoods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.replay.controller import Start
    from tfrctrace.replay.naming.candidates import Candidate
    from tfrctrace.replay.naming.observations import Observation
    from tfrctrace.replay.naming.predict import Prediction

LEAST_CUTS: Final = 3
LEAST_ROUNDS: Final = 30
"""Cuts, or rounds of growth, below which nothing is said."""

_LEAST_DIFFERENCE: Final = 5.0
"""Logarithm of the ratio of likelihoods from which on one may beat another."""

_LEAST_DEVIATIONS: Final = 2.6
"""The same in standard deviations (Vuong, Econometrica 1989), for 0.5 %: few odd observations decide nothing,
as neither rules nor paths are quite as modelled."""

_MOST_NAMES: Final = 6
"""More that are equal are no answer."""

_LEAST_RIGHT: Final = 0.6
"""Share of the rounds of growth, and of the cuts, that the best has to predict."""

_LEAST_WINDOW: Final = 4.0
"""Segments: a smaller window shows hardly more than that it is at least two."""

FEW_ROUNDS: Final = "few_rounds"
NOT_PREDICTED: Final = "not_predicted"
ALIKE: Final = "alike"


@dataclass(frozen=True, slots=True)
class Answer:
    """The congestion control of a direction, and the evidence."""

    names: tuple[str, ...]
    """Those that are equal in what was seen; empty if too little is known."""
    reason: str | None = None
    """Why there are no names."""
    rounds: int = 0
    """Rounds that were compared, each cut counts as one."""
    predicted_rounds: int = 0
    """Those that the best of the names predicts."""
    kept: float | None = None
    """Median share of the window that a loss left; None with fewer than three."""
    rtt_probes: int | None = None
    """Times that the base round-trip time was measured with four segments in flight, if that is the sign."""
    delay_backoffs: int | None = None
    """Times that the window fell to 0.7 without a loss, if that is the sign."""


def answer(
    observed: Sequence[Observation],
    start: Start,
    segments_per_ack: float,
    *,
    has_ecn: bool = False,
    own: Iterable[Candidate] = (),
) -> Answer:
    """Name what may have sent the observed windows; the user's `own` take part."""
    cuts = [seen for seen in observed if isinstance(seen, Cut) and seen.before and seen.after]
    rounds = sum(len(seen.rounds) for seen in observed if isinstance(seen, Growth))
    if len(cuts) < LEAST_CUTS and rounds < LEAST_ROUNDS:
        return Answer((), FEW_ROUNDS)
    left = [cut.after[0] / cut.before[0] for cut in cuts if not cut.is_mark]
    found = predicted_by(possible_candidates(own, has_ecn=has_ecn), observed, start, segments_per_ack)
    best = max(found.values(), key=likelihood)
    known = Answer(
        (),
        rounds=sum(one.rounds for one in best),
        predicted_rounds=sum(one.rounds for one in best if one.is_right),
        kept=median(left) if len(left) >= LEAST_CUTS else None,
    )
    if not explains(best, smooth_log_likelihoods(observed)):
        return replace(known, reason=NOT_PREDICTED)
    if median(one.before for one in best) < _LEAST_WINDOW:
        return replace(known, reason=ALIKE)
    equal = [name for name, made in found.items() if not beats(*telling(best, made))]
    if len(equal) > _MOST_NAMES:
        return replace(known, reason=ALIKE)
    return replace(known, names=tuple(sorted(equal)))


def predicted_by(
    candidates: Iterable[Candidate],
    observed: Sequence[Observation],
    start: Start,
    segments_per_ack: float,
) -> dict[str, list[Prediction]]:
    """Return the predictions of each name, by the likeliest of its candidates."""
    return {
        name: likeliest(alike, observed, start, segments_per_ack)[1]
        for name, alike in groupby(candidates, attrgetter("name"))
    }


def likeliest(
    candidates: Iterable[Candidate],
    observed: Sequence[Observation],
    start: Start,
    segments_per_ack: float,
) -> tuple[Candidate, list[Prediction]]:
    """Return the candidate that predicts best, and its predictions; the first of those that are equal."""
    made = ((candidate, _made_by(candidate, observed, start, segments_per_ack)) for candidate in candidates)
    return max(made, key=lambda one: likelihood(one[1]))


def _made_by(
    candidate: Candidate, observed: Sequence[Observation], start: Start, segments_per_ack: float
) -> list[Prediction]:
    try:
        made = list(predictions(candidate.begin(start, segments_per_ack), observed))
        if not all(math.isfinite(one.predicted) for one in made):
            raise ValueError("a window is not finite")
    except Exception as error:
        if not candidate.is_own:
            raise
        raise UsageError(f"`{candidate.name}` failed: {error}") from error
    return made


def explains(made: Sequence[Prediction], smooth: Sequence[float]) -> bool:
    """Return whether growths and cuts are predicted, each, and better than without any rule.

    Many that grow alike differ in what they cut: growth has the most rounds, and would hide a wrong cut.
    """
    return likelihood(made) - sum(smooth) >= _LEAST_DIFFERENCE and all(
        sum(one.rounds for one in made if one.is_cut is of_cuts and one.is_right)
        >= _LEAST_RIGHT * sum(one.rounds for one in made if one.is_cut is of_cuts)
        for of_cuts in (False, True)
    )


def likelihood(made: Sequence[Prediction]) -> float:
    """Return the logarithm of the likelihood of all that was observed."""
    return sum(one.log_likelihood for one in made)


def telling(
    one: Sequence[Prediction], other: Sequence[Prediction]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return how likely two make the observations that one of them does not predict.

    Those that both predict within the error of a window tell neither from the other: the same part of a
    segment returns in each period, so that no number of rounds would make it evidence.
    """
    pairs = [
        (mine.log_likelihood, its.log_likelihood)
        for mine, its in zip(one, other, strict=True)
        if not (mine.is_right and its.is_right)
    ]
    return tuple(mine for mine, _ in pairs), tuple(its for _, its in pairs)


def beats(
    better: Sequence[float], worse: Sequence[float], *, least_deviations: float = _LEAST_DEVIATIONS
) -> bool:
    """Return whether one explains the observations so much better that the other did not send them."""
    differences = [one - other for one, other in zip(better, worse, strict=True)]
    total = sum(differences)
    deviation = math.sqrt(sum(difference**2 for difference in differences))
    return total >= _LEAST_DIFFERENCE and total >= least_deviations * deviation
