"""How a window departs from the rule of a congestion control: another parameter, or two reductions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from tfrctrace.replay.conformance import rules
from tfrctrace.replay.conformance.rules import Departure
from tfrctrace.replay.naming.answer import LEAST_CUTS, beats, explains, likelihood, predicted_by
from tfrctrace.replay.naming.candidates import CANDIDATES, CUBIC, possible_candidates
from tfrctrace.replay.naming.observations import Cut, shows_window
from tfrctrace.replay.naming.predict import smooth_log_likelihoods
from tfrctrace.replay.tcp.cubic import CUBIC_BETA, CUBIC_C

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tfrctrace.replay.conformance.rules import Rule
    from tfrctrace.replay.naming.candidates import Candidate
    from tfrctrace.replay.naming.observations import Observation
    from tfrctrace.replay.naming.of_trace import Seen
    from tfrctrace.replay.naming.predict import Prediction

_GROWTHS: Final = (0.25, 0.5, 2.0, 4.0)
"""Multiples of C that are tried."""

_LEAST_CHANGE: Final = 0.04
"""Of what a loss leaves of a window: less is within what windows of whole segments show."""


_LEAST_DEVIATIONS: Final = 1.5
"""As in the naming, but against what is the same but for a parameter, or has another changed parameter."""

_LEAST_TWICE: Final = 3
_LEAST_SHARE_TWICE: Final = 0.2
"""Losses with two reductions, and their share of all; single ones may be two losses that look like one."""


_ROUNDS_OF_ONE: Final = 2
"""Rounds of a recovery: that in which the loss is seen, and that of the repair; more have several losses."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """CUBIC with another value of a parameter."""

    rule: Rule
    candidate: Candidate
    value: float
    limit: float


def window_departures(seen: Seen, names: Collection[str]) -> Iterator[Departure]:
    """Give where windows depart from the rules of the congestion control that was named, or was not."""
    observed = seen.observed()
    possible = possible_candidates(has_ecn=seen.has_ecn)
    known = predicted_by(possible, observed, seen.start, seen.segments_per_ack)
    shown = [one for one in observed if shows_window(one)]
    changed = _likeliest_change(seen, observed, known)
    if changed is not None:
        yield from _by_change(changed, shown)
    elif names and not seen.has_ecn:
        # with marks a reduction may have two reasons
        twice = list(_reduced_twice(shown, [made for name, made in known.items() if name in names]))
        cuts = sum(isinstance(one, Cut) for one in shown)
        yield from twice if len(twice) >= max(_LEAST_TWICE, _LEAST_SHARE_TWICE * cuts) else ()


def _changes(observed: Sequence[Observation]) -> Iterator[_Changed]:
    """Give CUBIC with other parameters, which these windows may show."""
    cuts = [one for one in observed if isinstance(one, Cut) and one.before and one.after and not one.is_mark]
    if len(cuts) < LEAST_CUTS:
        return
    for place in (0, -1):
        beta = median(cut.after[place] / cut.before[place] for cut in cuts)
        if 0 < beta < 1 and abs(beta - CUBIC_BETA) >= _LEAST_CHANGE:
            yield from _changed(rules.WINDOW_LEFT, "beta", beta, (beta, CUBIC_BETA))
    yield from _changed(rules.FAST_CONVERGENCE, "fast_convergence", 0, (1.0, (1 + CUBIC_BETA) / 2))
    for factor in _GROWTHS:
        c = factor * CUBIC_C
        yield from _changed(rules.WINDOW_GROWTH, "c", c, (c, CUBIC_C))


def _changed(rule: Rule, name: str, setting: float, found: tuple[float, float]) -> Iterator[_Changed]:
    """Give the candidates of CUBIC with another setting, which has a value instead of that allowed."""
    for one in CANDIDATES:
        if one.name == CUBIC:
            yield _Changed(rule, replace(one, settings={**one.settings, name: setting}), *found)


def _likeliest_change(
    seen: Seen, observed: Sequence[Observation], known: Mapping[str, Sequence[Prediction]]
) -> _Changed | None:
    """Return the change that explains the windows as nothing else does, None without one."""
    tried = [
        (one, predicted_by([one.candidate], observed, seen.start, seen.segments_per_ack)[CUBIC])
        for one in _changes(observed)
    ]
    if not tried:
        return None
    best, made = max(tried, key=lambda one: likelihood(one[1]))
    likely = _log_likelihoods(made)
    of_others = [other for name, other in known.items() if name != CUBIC]
    alike = [known[CUBIC], *(other for one, other in tried if one.rule != best.rule)]
    wins = all(beats(likely, _log_likelihoods(other)) for other in of_others) and all(
        beats(likely, _log_likelihoods(other), least_deviations=_LEAST_DEVIATIONS) for other in alike
    )
    return best if wins and explains(made, smooth_log_likelihoods(observed)) else None


def _log_likelihoods(made: Sequence[Prediction]) -> list[float]:
    return [one.log_likelihood for one in made]


def _by_change(changed: _Changed, shown: Sequence[Observation]) -> Iterator[Departure]:
    """Give the losses that left another share of the window, or once what else is changed."""
    cuts = [one for one in shown if isinstance(one, Cut) and not one.is_mark]
    if changed.rule != rules.WINDOW_LEFT:
        yield Departure(changed.rule, cuts[0].at, changed.value, changed.limit)
        return
    for cut in cuts:
        left = cut.after[0] / cut.before[0]
        if abs(left - changed.limit) >= _LEAST_CHANGE:
            yield Departure(changed.rule, cut.at, left, changed.limit)


def _reduced_twice(
    shown: Sequence[Observation], predicted: Sequence[Sequence[Prediction]]
) -> Iterator[Departure]:
    """Give losses within one round after which all of some congestion controls would have reduced twice."""
    for place, cut in enumerate(shown):
        if (
            not isinstance(cut, Cut)
            or cut.rounds > _ROUNDS_OF_ONE
            or cut.is_mark
            or len(cut.after) < len(cut.before)
        ):
            continue
        made = [one[place] for one in predicted]
        if made and all(_is_of_two(one, max(cut.after)) for one in made):
            yield Departure(
                rules.REDUCED_TWICE,
                cut.at,
                max(cut.after) / cut.before[0],
                max(one.predicted / one.before for one in made),
            )


def _is_of_two(one: Prediction, after: float) -> bool:
    """Return whether a window is what two reductions leave, and not what one leaves."""
    twice = one.predicted**2 / one.before
    return after < one.predicted - 2 * one.scale and abs(after - twice) <= 2 * one.scale
