"""Verdicts of a gate: a table, JSON, a summary in Markdown, and annotations for GitHub."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, TextIO

from tfrctrace.reports.files.result_json import write_json
from tfrctrace.reports.printers.aligned import aligned
from tfrctrace.reports.printers.build_trends import trend_lines
from tfrctrace.reports.printers.objectives import share_text, stretch_lines, verdict_line
from tfrctrace.reports.printers.terminal import GREEN, RED, YELLOW, coloured, has_colours
from tfrctrace.reports.safe_text import markdown_text, plain_text
from tfrctrace.reports.units import MISSING, counted, format_count, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.verdict import Effect, GateResult, ObjectiveFacts, RunOutcome, Verdict

GateFormat = Literal["table", "json"]

GATE_SCHEMA_VERSION: Final = 1

MOST_SUMMARY_BYTES: Final = 1_000_000
"""GitHub rejects step summaries above 1 MiB."""

MOST_ANNOTATIONS: Final = 10
"""GitHub shows ten errors and ten warnings of a step."""

MOST_GROUPS: Final = 20
"""Groups of a run that are named where they missed an objective, and stretches of each."""

MOST_STRETCHES: Final = 5

_ORDER: Final[Mapping[Effect, int]] = {"fail": 0, "warn": 1, "pass": 2}
_TOLD: Final[Mapping[Effect, str]] = {"fail": "failed", "warn": "warned"}
_MARKS: Final = {"fail": "❌ fail", "warn": "⚠️ warn", "pass": "✅ pass"}
_COLOURS: Final = {"fail": RED, "warn": YELLOW, "pass": GREEN}
_VERDICT: Final = re.compile("^(?:fail|warn|pass)")
_FACTORS: Final = {"%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9}
"""What the units of limits begin with, if they are not those of the quantity."""
_INDENT: Final = " " * 6
_HEADS: Final = ("", "check", "value", "limit or baseline", "why")


def gate_status(verdicts: Sequence[Verdict]) -> Effect:
    """Return the gravest effect of all verdicts; `pass` without any."""
    return min((verdict.effect for verdict in verdicts), key=_ORDER.__getitem__, default="pass")


def write_gate(
    file: TextIO,
    form: GateFormat,
    gate: GateResult,
    zone: TimeZone | None = None,
    *,
    width: int | None = None,
) -> None:
    """Write all verdicts and the trends of a history, as a table or as JSON.

    If the table is wider than `width` (of a terminal, in columns), each verdict has lines of its own.
    """
    if form == "json":
        write_json(file, gate)
        return
    if gate.checks:
        rows = [_HEADS, *(tuple(map(plain_text, _cells(verdict))) for verdict in gate.checks)]
        lines = aligned(rows, left=range(len(_HEADS)))
        if width is not None and max(map(len, lines)) > width:
            lines = [line for row in rows[1:] for line in _stacked(row, width)]
        if has_colours(file):
            lines = [_VERDICT.sub(_in_colour, line) for line in lines]
        file.writelines(f"{line}\n" for line in [*lines, ""])
    for verdict in gate.checks:
        lines = list(map(plain_text, detail_lines(verdict, zone)))
        if lines:
            file.writelines(f"{line}\n" for line in [*lines, ""])
    if gate.trends:
        file.writelines(f"{line}\n" for line in trend_lines(gate.trends, zone))
    if gate.trends and gate.checks:
        file.write("\n")
    if gate.checks or not gate.trends:
        file.write(_totals(gate) + "\n")


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


def difference(verdict: Verdict) -> str:
    """Return what a quantity was in the baseline, and what it is now."""
    before, now = verdict.against, verdict.value or 0.0
    if before is None:
        return f"{verdict.check} {_amount(verdict, now)}, new"
    share = f" ({(now - before) / abs(before):+.1%})" if before else ""
    return f"{verdict.check} {_amount(verdict, before)} to {_amount(verdict, now)}{share}"


def detail_lines(verdict: Verdict, zone: TimeZone | None = None) -> Iterator[str]:
    """Give the groups and stretches that missed an objective, those of each run under its name."""
    objective = verdict.objective
    for run in objective.runs if objective else ():
        if objective and run.failing:
            yield f"{verdict.name or objective.require}: `{run.run}`"
            yield from _run_lines(run, objective, zone)


def _run_lines(run: RunOutcome, objective: ObjectiveFacts, zone: TimeZone | None) -> Iterator[str]:
    for outcome in run.failing[:MOST_GROUPS]:
        name = "" if objective.by == "link" else f"{outcome.group or MISSING}: "
        yield f"  {name}{verdict_line(outcome, objective.every_ns)}"
        shown = [stretch for stretch in run.stretches if stretch.group == outcome.group][:MOST_STRETCHES]
        yield from (f"    {line}" for line in stretch_lines(shown, objective.unit, zone))
        if outcome.stretches > len(shown):
            yield f"    and {format_count(outcome.stretches - len(shown))} more"
    if run.failing_groups > MOST_GROUPS:
        yield f"  and {counted(run.failing_groups - MOST_GROUPS, 'group')} more (`--format json`)"


def write_summary(file: TextIO, gate: GateResult, zone: TimeZone | None = None) -> None:
    """Write the verdicts as Markdown, the gravest first, in less than a mebibyte."""
    text = [f"### {_MARKS[gate.status]}: tfrctrace check\n\n", f"{_totals(gate)}\n\n"]
    if gate.checks:
        text += [f"| {' | '.join(_HEADS)} |\n", f"|{' --- |' * len(_HEADS)}\n"]
    room = MOST_SUMMARY_BYTES - sum(len(line.encode()) for line in text) - 100
    ordered = sorted(gate.checks, key=lambda verdict: _ORDER[verdict.effect])
    for place, verdict in enumerate(ordered):
        mark, *cells = _cells(verdict)
        line = f"| {' | '.join((_MARKS[mark], *map(markdown_text, cells)))} |\n"
        room -= len(line.encode())
        if room < 0:
            text.append(f"\nand {counted(len(ordered) - place, 'check')} more\n")
            break
        text.append(line)
    for verdict in ordered:
        for place, line in enumerate(detail_lines(verdict, zone)):
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


def annotation_lines(verdicts: Sequence[Verdict], limits: str | None = None) -> Iterator[str]:
    """Give the workflow commands of GitHub that show what failed and what warns, in the file of `limits`."""
    for effect, command in (("fail", "error"), ("warn", "warning")):
        for verdict in [verdict for verdict in verdicts if verdict.effect == effect][:MOST_ANNOTATIONS]:
            file = _property_text(str(limits))
            place = "" if verdict.line is None else f"file={file},line={verdict.line},"
            title = _property_text(verdict.name or verdict.check)
            yield f"::{command} {place}title={title}::{_command_text(words(verdict))}"


def words(verdict: Verdict) -> str:
    """Return a verdict as one sentence."""
    sentence = f"{verdict.check}: {value_words(verdict)}"
    if verdict.kind == "baseline" and verdict.against is not None:
        sentence += f" after {_amount(verdict, verdict.against)}"
    return f"{sentence} ({verdict.reason})" if verdict.reason else sentence


def value_words(verdict: Verdict) -> str:
    """Return the value of a verdict with its unit, or that it is not known."""
    return "not known" if verdict.value is None else _amount(verdict, verdict.value)


def _cells(verdict: Verdict) -> tuple[str, ...]:
    unknown = "not known: " if verdict.outcome == "unknown" else ""
    return (
        verdict.effect,
        verdict.check if verdict.name is None else f"{verdict.name}: {verdict.check}",
        MISSING if verdict.value is None else _amount(verdict, verdict.value),
        MISSING if verdict.against is None else _amount(verdict, verdict.against),
        f"{unknown}{verdict.reason}",
    )


def _totals(gate: GateResult) -> str:
    runs = counted(len(gate.runs), "run")
    if not gate.checks:
        return f"nothing to check in {runs}"
    found = Counter(verdict.effect for verdict in gate.checks)
    parts = [f"{found['pass']} of {counted(len(gate.checks), 'check')} of {runs} passed"]
    parts += [f"{found[effect]} {word}" for effect, word in _TOLD.items() if found[effect]]
    return ", ".join(parts)


def _amount(verdict: Verdict, value: float) -> str:
    if verdict.kind == "objective":
        return share_text(value)
    unit, asked = verdict.unit, verdict.asked_unit
    if asked != unit and asked[:1] in _FACTORS:
        prefix = "" if asked[1:].strip() or asked == "%" else unit
        return f"{value / _FACTORS[asked[0]]:.4g} {asked}{prefix}"
    return format_value(value, unit)


def _property_text(text: str) -> str:
    """Return text escaped for a property of a workflow command, which a colon or a comma ends."""
    return _command_text(text).replace(":", "%3A").replace(",", "%2C")


def _command_text(text: str) -> str:
    """Return text escaped for a workflow command, which ends at a line end."""
    return plain_text(text).replace("%", "%25")
