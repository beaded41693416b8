"""Verdicts of a gate: a table, JSON, a summary in Markdown, and annotations for GitHub.

A verdict is a mapping with the fields of `tfrctrace.gate.verdict.Verdict`.
"""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from tfrctrace.metrics.objectives import Outcome, Stretch
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.build_trends import trend_lines
from tfrctrace.reports.printers.objectives import share_text, stretch_lines, verdict_line
from tfrctrace.reports.printers.terminal import GREEN, RED, YELLOW, coloured, has_colours
from tfrctrace.reports.safe_text import markdown_text, plain_text
from tfrctrace.reports.units import MISSING, counted, format_count, format_ms, format_rate_bps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone

    Facts = Mapping[str, Any]

GateFormat = Literal["table", "json"]

GATE_SCHEMA_VERSION: Final = 1

MOST_SUMMARY_BYTES: Final = 1_000_000
"""GitHub rejects step summaries above 1 MiB."""

MOST_ANNOTATIONS: Final = 10
"""GitHub shows ten errors and ten warnings of a step."""

MOST_GROUPS: Final = 20
"""Groups of a run that are named where they missed an objective, and stretches of each."""

MOST_STRETCHES: Final = 5

_ORDER: Final = {"fail": 0, "warn": 1, "pass": 2}
_MARKS: Final = {"fail": "❌ fail", "warn": "⚠️ warn", "pass": "✅ pass"}
_COLOURS: Final = {"fail": RED, "warn": YELLOW, "pass": GREEN}
_VERDICT: Final = re.compile("^(?:fail|warn|pass)")
_FACTORS: Final = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9}
"""What the units of limits begin with, if they are not those of the quantity."""
_INDENT: Final = " " * 6
_HEADS: Final = ("", "check", "value", "limit or baseline", "why")


def gate_status(verdicts: Sequence[Facts]) -> str:
    """Return the gravest effect of all verdicts; `pass` without any."""
    return min((one["effect"] for one in verdicts), key=_ORDER.__getitem__, default="pass")


def write_gate(
    file: TextIO,
    form: GateFormat,
    verdicts: Sequence[Facts],
    head: Facts,
    zone: TimeZone | None = None,
    *,
    trends: Sequence[Facts] = (),
    width: int | None = None,
) -> None:
    """Write all verdicts and the trends of a history, as a table or as JSON with `head`.

    If the table is wider than `width` (of a terminal, in columns), each verdict has lines of its own.
    """
    if form == "json":
        document = {
            "schema_version": GATE_SCHEMA_VERSION,
            **head,
            "status": gate_status(verdicts),
            "checks": list(verdicts),
            "trends": list(trends),
        }
        json.dump(document, file, indent=1, allow_nan=False)
        file.write("\n")
        return
    if verdicts:
        rows = [_HEADS, *(tuple(map(plain_text, _cells(one))) for one in verdicts)]
        lines = aligned(rows, left=range(len(_HEADS)))
        if width is not None and max(map(len, lines)) > width:
            lines = [line for row in rows[1:] for line in _stacked(row, width)]
        if has_colours(file):
            lines = [_VERDICT.sub(_in_colour, line) for line in lines]
        file.writelines(f"{line}\n" for line in [*lines, ""])
    for one in verdicts:
        lines = list(map(plain_text, detail_lines(one, zone)))
        if lines:
            file.writelines(f"{line}\n" for line in [*lines, ""])
    if trends:
        file.writelines(f"{line}\n" for line in trend_lines(trends, zone))
    if trends and verdicts:
        file.write("\n")
    if verdicts or not trends:
        file.write(_totals(verdicts, head) + "\n")


def _in_colour(verdict: re.Match[str]) -> str:
    return coloured(verdict[0], _COLOURS[verdict[0]])


def _stacked(row: Sequence[str], width: int) -> Iterator[str]:
    """Give the cells of a verdict below each other: the check, its value beside the limit, and why."""
    effect, check, value, against, why = row
    beside = "" if against == MISSING else f" (limit or baseline: {against})"
    for place, text in enumerate((check, f"{value}{beside}", why)):
        first = f"{effect}  " if not place else _INDENT
        yield from textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=_INDENT, break_on_hyphens=False
        )


def difference(one: Facts) -> str:
    """Return what a quantity was in the baseline, and what it is now."""
    before, now = one["against"], one["value"]
    if before is None:
        return f"{one['check']} {_amount(one, now)}, new"
    share = f" ({(now - before) / abs(before):+.1%})" if before else ""
    return f"{one['check']} {_amount(one, before)} to {_amount(one, now)}{share}"


def detail_lines(one: Facts, zone: TimeZone | None = None) -> Iterator[str]:
    """Give the groups and stretches that missed an objective, those of each run under its name."""
    facts: Facts = one["objective"] if one["kind"] == "objective" else {"runs": ()}
    for run in facts["runs"]:
        if not run["failing"]:
            continue
        yield f"{one['name'] or facts['require']}: `{run['run']}`"
        for group in run["failing"][:MOST_GROUPS]:
            outcome = Outcome.of_facts(group)
            name = "" if facts["by"] == "link" else f"{outcome.group or MISSING}: "
            yield f"  {name}{verdict_line(outcome, facts['every_ns'])}"
            own = [Stretch(**stretch) for stretch in run["stretches"] if stretch["group"] == outcome.group]
            shown = own[:MOST_STRETCHES]
            yield from (f"    {line}" for line in stretch_lines(shown, facts["unit"], zone))
            if outcome.stretches > len(shown):
                yield f"    and {format_count(outcome.stretches - len(shown))} more"
        if run["failing_groups"] > MOST_GROUPS:
            yield f"  and {counted(run['failing_groups'] - MOST_GROUPS, 'group')} more (`--format json`)"


def write_summary(file: TextIO, verdicts: Sequence[Facts], head: Facts, zone: TimeZone | None = None) -> None:
    """Write the verdicts as Markdown, the gravest first, in less than a mebibyte."""
    text = [f"### {_MARKS[gate_status(verdicts)]}: tfrctrace check\n\n", f"{_totals(verdicts, head)}\n\n"]
    if verdicts:
        text += [f"| {' | '.join(_HEADS)} |\n", f"|{' --- |' * len(_HEADS)}\n"]
    room = MOST_SUMMARY_BYTES - sum(len(line.encode()) for line in text) - 100
    ordered = sorted(verdicts, key=lambda one: _ORDER[one["effect"]])
    for place, one in enumerate(ordered):
        mark, *cells = _cells(one)
        line = f"| {' | '.join((_MARKS[mark], *map(markdown_text, cells)))} |\n"
        room -= len(line.encode())
        if room < 0:
            text.append(f"\nand {counted(len(ordered) - place, 'check')} more\n")
            break
        text.append(line)
    for one in ordered:
        for place, line in enumerate(detail_lines(one, zone)):
            item = f"{'' if place else chr(10)}{_item(line)}\n"
            room -= len(item.encode())
            if room < 0:
                break
            text.append(item)
    file.writelines(text)


def _item(line: str) -> str:
    """Return a line as an item of a list in Markdown, as deep as it was indented."""
    depth = (len(line) - len(line.lstrip())) // 2
    return f"{'  ' * depth}- {markdown_text(line.strip())}"


def annotation_lines(verdicts: Sequence[Facts], limits: str | None = None) -> Iterator[str]:
    """Give the workflow commands of GitHub that show what failed and what warns, in the file of `limits`."""
    for effect, command in (("fail", "error"), ("warn", "warning")):
        for one in [one for one in verdicts if one["effect"] == effect][:MOST_ANNOTATIONS]:
            place = "" if one["line"] is None else f"file={_property_text(str(limits))},line={one['line']},"
            title = _property_text(one["name"] or one["check"])
            yield f"::{command} {place}title={title}::{_command_text(words(one))}"


def words(one: Facts) -> str:
    """Return a verdict as one sentence."""
    sentence = f"{one['check']}: {value_words(one)}"
    if one["kind"] == "baseline" and one["against"] is not None:
        sentence += f" after {_amount(one, one['against'])}"
    return f"{sentence} ({one['reason']})" if one["reason"] else sentence


def value_words(one: Facts) -> str:
    """Return the value of a verdict with its unit, or that it is not known."""
    return "not known" if one["value"] is None else _amount(one, one["value"])


def _cells(one: Facts) -> tuple[str, ...]:
    against = MISSING if one["against"] is None else _amount(one, one["against"])
    check = one["check"] if one["name"] is None else f"{one['name']}: {one['check']}"
    unknown = "not known: " if one["outcome"] == "unknown" else ""
    return (
        one["effect"],
        check,
        MISSING if one["value"] is None else _amount(one, one["value"]),
        against,
        f"{unknown}{one['reason']}",
    )


def _totals(verdicts: Sequence[Facts], head: Facts) -> str:
    runs = counted(len(head["runs"]), "run")
    if not verdicts:
        return f"nothing to check in {runs}"
    found = {effect: sum(one["effect"] == effect for one in verdicts) for effect in _ORDER}
    parts = [f"{found['pass']} of {counted(len(verdicts), 'check')} of {runs} passed"]
    parts += [
        f"{found[effect]} {word}"
        for effect, word in (("fail", "failed"), ("warn", "warned"))
        if found[effect]
    ]
    return ", ".join(parts)


def _amount(one: Facts, value: float) -> str:
    if one["kind"] == "objective":
        return share_text(value)
    unit, asked = one["unit"], one["asked_unit"]
    if asked != unit and asked[:1] in _FACTORS:
        prefix = "" if asked[1:].strip() or asked == "%" else unit
        return f"{value / _FACTORS[asked[0]]:.4g} {asked}{prefix}"
    if unit == "bit/s":
        return format_rate_bps(value)
    return format_ms(value) if unit == "ms" else f"{value:.4g} {unit}".rstrip()


def _property_text(text: str) -> str:
    """Return text escaped for a property of a workflow command, which a colon or a comma ends."""
    return _command_text(text).replace(":", "%3A").replace(",", "%2C")


def _command_text(text: str) -> str:
    """Return text escaped for a workflow command, which ends at a line end."""
    return plain_text(text).replace("%", "%25")
