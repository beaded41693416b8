"""How two sides compare: what B is by each metric, in the order of harm to users, and on the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.sets.fairness import times_others
from tfrctrace.metrics.statistics.preference import preference_of
from tfrctrace.metrics.statistics.significance import holm
from tfrctrace.reports.metric_words import change_words, is_between_groups
from tfrctrace.reports.units import MISSING, counted, enumerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tfrctrace.metrics.results.comparison import Conclusion, Difference, Judgement

SIGNIFICANT: Final = 0.05
"""The p value below which a difference is taken for one of the sides, not of chance."""

_HARM: Final = (
    "rate_bps",
    "rtt_p95_ms",
    "rtt_p50_ms",
    "delay_p95_ms",
    "plr",
    "loss_event_rate",
    "retransmission_ratio",
    "timeout_share",
)
"""What users notice, in this order: rate, delay, losses, retransmissions. Their rows come first."""

_FIRST: Final[Mapping[Judgement, int]] = {"worse": 0, "better": 1, "equal": 3}
"""The order of these rows; all other judgements are between."""

_RANKS: Final[Mapping[Judgement | None, int]] = {
    "worse": 0,
    "better": 0,
    "different": 1,
    "no test": 2,
    "unclear": 3,
    "equal": 4,
    None: 5,
}
"""The order of the other rows."""

_LEAST_TIMES: Final = 2.0
"""The change from which it is written as a multiple: 39.7 times reads better than +3,870 %."""

_LEAST_CHANGE: Final = 0.01
"""The change of a single run that is worth a word."""

_NAMED: Final = 4
"""Changes that the conclusion names on each side."""


def judged(found: Iterable[Difference]) -> list[Difference]:
    """Return the differences with `change` and `verdict`, by harm to users."""
    return sorted(
        (replace(one, change=_change(one), verdict=_verdict(one)) for one in found), key=_importance
    )


def _change(found: Difference) -> float | None:
    return found.difference / abs(found.mean_a) if found.difference is not None and found.mean_a else None


def _verdict(found: Difference) -> Judgement | None:
    """Return what B is, compared with A: better or worse only if a test says that it is not chance."""
    if found.difference is None:
        return None
    if not found.difference:
        return "equal"
    if found.tested_p is None:
        return "no test"
    if found.tested_p >= SIGNIFICANT:
        return "unclear"
    preferred = preference_of(found.metric)
    if preferred is None:
        return "different"
    return "better" if (found.difference > 0) == (preferred == "higher") else "worse"


def _importance(found: Difference) -> tuple[int, int, int, float]:
    """Order what users notice by verdict and harm, all else by verdict, preference and size."""
    size = -abs((found.change if found.effect is None else found.effect) or 0.0)
    if _is_noticed(found):
        verdict = found.verdict or "no test"
        return 0, _FIRST.get(verdict, 2), _HARM.index(found.metric), size
    return 1, _RANKS[found.verdict], preference_of(found.metric) is None, size


def _is_noticed(found: Difference) -> bool:
    return found.metric in _HARM and found.verdict is not None


def conclusion_of(differences: Sequence[Difference]) -> Conclusion:
    """Return what B is on the whole, by the metrics that users notice."""
    verdicts = {found.verdict for found in _deciding(differences)}
    if {"worse", "better"} <= verdicts:
        return "mixed"
    for verdict in ("worse", "better"):
        if verdict in verdicts:
            return verdict
    return "not tested" if "no test" in verdicts or not verdicts else "no difference"


def _deciding(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences of metrics that users notice, or without any all that are known.

    What one of so many tests finds by chance is unclear (S. Holm, 1979), if that was not corrected for all.
    """
    known = [found for found in differences if found.verdict is not None]
    deciding = list(filter(_is_noticed, known)) or known
    tested = [
        (place, found.p_value)
        for place, found in enumerate(deciding)
        if found.p_value is not None and found.p_holm is None
    ]
    for (place, p_value), corrected in zip(tested, holm([p for _, p in tested]), strict=True):
        if p_value < SIGNIFICANT <= corrected:
            deciding[place] = replace(deciding[place], verdict="unclear")
    return deciding


def conclusion_words(differences: Sequence[Difference]) -> str:
    """Return what B is on the whole, and the changes that make it so."""
    deciding = _deciding(differences)
    conclusion = conclusion_of(differences)
    worse, better = (
        _named([found for found in deciding if found.verdict == verdict]) for verdict in ("worse", "better")
    )
    match conclusion:
        case "mixed":
            return f"B is worse: {worse}; and better: {better}."
        case "worse" | "better":
            return f"B is {conclusion}: {worse or better}."
        case "not tested":
            return _untested(deciding)
    names = {(found.metric, found.group) for found in deciding}
    rows = [found for found in differences if found.verdict in {"better", "worse", "different"}]
    others = sum((found.metric, found.group) not in names for found in rows)
    rest = f" {counted(others, 'other metric')} {'does' if others == 1 else 'do'}." if others else ""
    by_chance = len(rows) - others
    below = f" p is below {SIGNIFICANT} in {by_chance} of {len(deciding)} rows"
    few = f"{below}, but not with Holm's correction for so many." if by_chance else ""
    return f"{_subject(deciding)} do not differ by more than chance.{few}{rest}"


def _subject(deciding: Sequence[Difference]) -> str:
    are_noticed = any(map(_is_noticed, deciding))
    return "Rate, delay, losses and retransmissions" if are_noticed else "These metrics"


def _untested(deciding: Sequence[Difference]) -> str:
    """Return how B changed where no test says whether that is chance."""
    if not deciding:
        return "Nothing can be compared."
    changed = [
        found
        for found in deciding
        if found.difference and (found.change is None or abs(found.change) >= _LEAST_CHANGE)
    ]
    if not changed:
        return f"{_subject(deciding)} are alike, of too few runs for a test."
    by_word: dict[str, list[Difference]] = {"worse": [], "better": [], "different": []}
    for found in changed:
        preferred, is_more = preference_of(found.metric), (found.difference or 0) > 0
        is_better = is_more == (preferred == "higher")
        by_word["different" if preferred is None else "better" if is_better else "worse"].append(found)
    parts = [f"{word}: {_named(of_word)}" for word, of_word in by_word.items() if of_word]
    return f"Too few runs to tell differences from chance. In these, B is {'; and '.join(parts)}."


def _named(found: Sequence[Difference]) -> str:
    """Return the first changes in words, such as `lower rate of cubic (-12 %)`."""
    named = [
        f"{change_words(one.metric, is_more=(one.difference or 0) > 0)}"
        f"{f' of {one.group}' if one.group else ''} ({change_text(one)})"
        for one in found[:_NAMED]
    ]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    return enumerated([*named, *more]) if named else ""


def change_text(found: Difference) -> str:
    """Return the difference in percent of A, large ones as a multiple, or as it is where A is 0."""
    change = found.change
    if is_between_groups(found.metric):
        before, after = times_others(found.mean_a), times_others(found.mean_b)
        change = after / before - 1 if before and after is not None else None
    if change is None:
        return MISSING if found.difference is None else f"{found.difference:+.3g}"
    if change >= _LEAST_TIMES:
        return f"×{1 + change:,.3g}" if change < 999 else f"×{1 + change:,.0f}"
    return f"{100 * change:+.3g} %"
