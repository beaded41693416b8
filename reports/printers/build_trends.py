"""Trends of a gate's quantities over builds, as lines of text and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.reports.safe_text import markdown_text, plain_text
from tfrctrace.reports.units import counted, format_time_ns, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfrctrace.base.timezones import TimeZone
    from tfrctrace.metrics.results.trend import Change, Trend


def trend_lines(trends: Sequence[Trend], zone: TimeZone | None = None) -> Iterator[str]:
    """Give a line for each quantity: its last value, and since when it is so."""
    for trend in trends:
        yield plain_text(f"{trend.quantity}: {sentence(trend, zone)}")


def trend_markdown(trends: Sequence[Trend], zone: TimeZone | None = None) -> Iterator[str]:
    """Give the lines of a section of a summary."""
    if trends:
        yield f"\n#### {counted(max(len(trend.builds) for trend in trends), 'build')}\n\n"
    for trend in trends:
        mark = "❌ " if trend.first_worse is not None else ""
        yield f"- {mark}{markdown_text(trend.quantity)}: {markdown_text(sentence(trend, zone))}\n"


def sentence(trend: Trend, zone: TimeZone | None = None) -> str:
    """Return what the trend of a quantity says."""
    last = amount(trend, trend.means[-1])
    if len(trend.builds) < trend.least_builds:
        return f"{last}; too few builds to find a change ({len(trend.builds)} of {trend.least_builds})"
    if not trend.changes:
        return f"{last}; no change over {counted(len(trend.builds), 'build')}"
    worse = trend.first_worse
    told = next((change for change in trend.changes if change.build == worse), trend.changes[-1])
    return f"{last}; {change_words(trend, told, zone)}"


def change_words(trend: Trend, change: Change, zone: TimeZone | None = None) -> str:
    """Return since which build a quantity is better, worse or another, and by how much."""
    before, after = change.before, change.after
    share = f", {(after - before) / abs(before):+.1%}" if before else ""
    word = "different" if change.direction == "changed" else change.direction
    return (
        f"{word} since build `{change.build}` of {format_time_ns(change.time_ns, zone)}: "
        f"{amount(trend, before)} to {amount(trend, after)}{share} (p = {change.p_value:.2g})"
    )


def amount(trend: Trend, value: float) -> str:
    """Return a value of the quantity with its unit."""
    return format_value(value, trend.unit)
