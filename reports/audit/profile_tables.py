"""Scores by profiles, with the thresholds that they follow and what they were made of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from tfrctrace.base.timezones import EPOCH
from tfrctrace.metrics.profiles.delay_grades import DelayGrades
from tfrctrace.metrics.profiles.outcome import Requirement
from tfrctrace.metrics.profiles.voice import Voice, opinion
from tfrctrace.metrics.results.audit import Metadata
from tfrctrace.reports.elements import Cell, Heading, Row, Section, TableView, Term
from tfrctrace.reports.units import (
    MISSING,
    counted,
    enumerated,
    format_count,
    format_ms,
    format_rate_bps,
    format_share,
    format_stretch_ns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.profiles.score import Profile, Rules
    from tfrctrace.metrics.results.audit import Audit, AuditedLink, Score

MOST_SCORES: Final = 1_000
"""Scores of a link in JSON; those of `scores.parquet` are all."""

_INPUTS: Final[Mapping[str, tuple[str, Callable[[float | None], str]]]] = {
    "loss": ("Lost", format_share),
    "loss_segments": ("Of segments", lambda value: format_count(None if value is None else int(value))),
    "largest_bps": ("Largest rate", format_rate_bps),
    "idle_p50_ms": ("Idle p50", format_ms),
    "idle_samples": ("n idle", lambda value: format_count(None if value is None else int(value))),
    "loaded_p50_ms": ("Loaded p50", format_ms),
    "rating": ("R", lambda value: MISSING if value is None else f"{value:.1f}"),
    "rtt_ms": ("RTT", format_ms),
    "jitter_ms": ("Jitter", format_ms),
}
"""Columns of what a score was made of; percentiles of the delay beside them."""

_MEANINGS: Final = {
    "Lost": "on this part of the path",
    "Of packets": "data packets of which losses show",
    "Largest rate": "of payload in an interval and direction: less proves nothing",
}
_METHOD: Final = {
    "method": "round-trip times of data and acknowledgements, of reports of RTCP and DCCP",
    "class": "passive (RFC 7799)",
    "layer": "transport: TCP, DCCP, RTP",
    "packet_size": "that of the traffic",
    "traffic_class": "all that was captured",
    "sampling": "passive: opportunistic sampling of live traffic, at non-uniform intervals",
    "direction": "two-way",
}
"""What draft-ietf-ippm-qoo wants to be said of every measurement, as far as all have it in common."""

_ENDS: Final = {
    "client side": "capture and hosts that open connections",
    "server side": "capture and hosts that accept connections",
    "both sides": "capture and all hosts, whose sides are not known",
    "stream": "sender and receiver of the stream",
}


def metadata(score: Score) -> Metadata:
    """Return how a score was measured."""
    facts = {
        **_METHOD,
        "endpoints": _ENDS.get(score.segment, f"capture and this {score.segment}"),
        "segments": score.segment,
        "first_sample": f"{EPOCH + timedelta(microseconds=score.first_ns // 1000):%Y-%m-%dT%H:%M:%SZ}",
        "duration_ms": (score.last_ns - score.first_ns) // 10**6,
        "samples": score.n,
    }
    return msgspec.convert(facts, Metadata)


def profiles_section(audit: Audit, zone: TimeZone, most: int) -> Section:
    """Return a table for each profile and link with at most so many rows."""
    tables: list[TableView] = []
    terms: list[Term] = []
    for number, profile in enumerate(audit.profiles, 1):
        scored = [link for link in audit.links if _scores(profile, link)]
        tables += (
            _table(f"profile-{number}-{place}", profile, link, zone, most)
            for place, link in enumerate(scored, 1)
        )
        terms += _terms(profile)
        if not scored:
            terms.append(Term(profile.title, f"nothing to score: {_lacking(profile.rules)}."))
    return Section("profiles", "Profiles", tables=tuple(tables), terms=tuple(terms))


def _scores(profile: Profile, link: AuditedLink) -> list[Score]:
    return [score for score in link.scores if score.profile == profile.name]


def _terms(profile: Profile) -> Iterator[Term]:
    """Give what is the same of all scores by a profile."""
    if isinstance(profile.rules, Requirement):
        words = "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in _METHOD.items())
        yield Term("How quality of outcome was measured", f"{words}.")
    elif isinstance(profile.rules, Voice):
        codecs = "; ".join(
            f"{codec.name} (type {codec.payload_type}): Ie {codec.impairment:g}, Bpl {codec.robustness:g}, "
            f"{codec.delay_ms:g} ms"
            for codec in profile.rules.codecs
        )
        yield Term("Codecs of speech", f"{codecs}.")


def _lacking(rules: Rules) -> str:
    return "no source of RTP was captured" if isinstance(rules, Voice) else "no round-trip time is known"


def _table(key: str, profile: Profile, link: AuditedLink, zone: TimeZone, most: int) -> TableView:
    """Return the scores of one link with their thresholds."""
    scores = _scores(profile, link)
    names = list(dict.fromkeys(name for score in scores for name in score.inputs if _heading(name)))
    hours = any(hour_score.profile == profile.name for hour_score in link.hour_scores)
    has_grades = any(score.grade for score in scores)
    headings = [
        Heading("Of", numeric=False),
        Heading("Between", numeric=False, meaning="the capture and these hosts"),
        Heading("Score"),
        *((Heading("Grade", numeric=False),) if has_grades else ()),
        Heading("n", meaning="samples of the delay, or packets"),
        *(Heading(_heading(name), meaning=_MEANINGS.get(_heading(name), "")) for name in names),
        *((Heading("Worst hour"),) if hours else ()),
        Heading("Not known", numeric=False, is_prose=True),
    ]
    worst = _worst_hours(profile, link) if hours else {}
    rows = []
    for place, one in enumerate(scores[:most], 1):
        cells = [
            Cell(one.group or MISSING),
            Cell(one.segment),
            Cell(score_text(one), sort=one.value),
            *((Cell(one.grade or MISSING),) if has_grades else ()),
            Cell(format_count(one.n), sort=one.n),
            *(Cell(_input_text(name, one.inputs.get(name)), sort=one.inputs.get(name)) for name in names),
        ]
        if hours:
            hour = worst.get((one.group, one.segment))
            when = format_stretch_ns(hour.first_ns, hour.last_ns, zone) if hour else ""
            cells.append(Cell(score_text(hour) if hour else MISSING, when, sort=hour.value if hour else None))
        rows.append(Row(f"{key}-{place}", (*cells, Cell(one.reason))))
    left_out = f"; {counted(len(scores) - most, 'row')} left out" if len(scores) > most else ""
    caption = (
        f"{link.name}: {profile.title}; {profile.source}, {profile.version}. "
        f"{rules_text(profile.rules)}{left_out}."
    )
    return TableView(key, caption, tuple(headings), tuple(rows), sortable=True)


def score_text(one: Score) -> str:
    """Return a score with its unit: `at most 87 %`."""
    if one.value is None:
        return MISSING
    at_most = "at most " if one.is_at_most else ""
    if one.unit == "MOS":
        return f"{one.value:.2f}"
    return f"{at_most}{one.value:+.3g} ms" if one.unit == "ms" else f"{at_most}{one.value:.0f} %"


def _worst_hours(profile: Profile, link: AuditedLink) -> dict[tuple[str, str], Score]:
    """Return the hour with the lowest score of each part of the path."""
    worst: dict[tuple[str, str], Score] = {}
    for one in link.hour_scores:
        if one.profile == profile.name and one.value is not None:
            known = worst.setdefault((one.group, one.segment), one)
            if one.value < (known.value or 0.0):
                worst[one.group, one.segment] = one
    return worst


def _heading(name: str) -> str:
    if name.startswith("p") and name.endswith("_ms"):
        return f"RTT {name.removesuffix('_ms')}"
    return _INPUTS[name][0] if name in _INPUTS else ""


def _input_text(name: str, value: float | None) -> str:
    return _INPUTS[name][1](value) if name in _INPUTS else format_ms(value)


def rules_text(rules: Rules) -> str:
    """Return the thresholds in words."""
    if isinstance(rules, Requirement):
        return enumerated(list(_needs(rules)))
    if isinstance(rules, DelayGrades):
        grades = ", ".join(f"{name} below {limit_ms:g} ms" for name, limit_ms in rules.below)
        return f"Increase of the median round-trip time while the link is loaded: {grades}, else {rules.rest}"
    return _voice_text(rules)


def _needs(rules: Requirement) -> Iterator[str]:
    for one in rules.delays:
        yield (
            f"{one.percentile:g}th percentile of the delay optimal up to {one.optimal_ms:g} ms and "
            f"unacceptable from {one.unacceptable_ms:g} ms"
        )
    if rules.optimal_loss is not None:
        yield (
            f"loss optimal up to {format_share(rules.optimal_loss)} and unacceptable from "
            f"{format_share(rules.unacceptable_loss)}"
        )
    if rules.least_bps is not None:
        yield f"{format_rate_bps(rules.least_bps)} or more"
    yield f"at least {counted(rules.least, 'sample')}"


def _voice_text(voice: Voice) -> str:
    bands = ", ".join(f"{name} from R {least:g} (MOS {opinion(least):.2f})" for name, least in voice.bands)
    return (
        f"{bands[:1].upper()}{bands[1:]}, else {voice.rest}. One-way delay: half of the RTT, "
        f"{voice.buffer_ms:g} ms that receivers are taken to wait, and the codec's"
    )
