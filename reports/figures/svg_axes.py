"""Axes of a drawing as SVG: where values are drawn, ticks with their words, lines and text.

Ends and ticks are those that matplotlib chooses, which draws the same figures for paper. Lengths are in pt.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tfrctrace.reports.figures.svg import PAGE
from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfrctrace.reports.elements import Figure
    from tfrctrace.reports.figures.charts import Chart
    from tfrctrace.reports.figures.svg import Place

    Ticks = Sequence[tuple[float, str]]

POINTS_PER_PIXEL: Final = 0.75

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS: Final = 9
_HIGH_PT: Final = 2 * PAGE.text_pt
_WIDE_PT: Final = 3 * PAGE.text_pt
"""Room of a tick on an axis that goes up, and on one that goes to the right."""

_MARGIN: Final = 0.05
"""Share of an axis that is free before the first and after the last value."""

_MOST_DIVIDED: Final = 1e4
"""Ratio of the ends of a logarithmic axis up to which decades are divided."""

_WHOLE_BELOW: Final = 1e7
"""Values from which on numbers are shortened."""

_LEAST_POWER: Final = -307.0
_LARGEST_POWER: Final = 307.0
"""Powers of ten that are numbers; what a log says may be anything."""

_LEAST_SPAN: Final = 1e-300
"""Span of values that can be divided into ticks."""

_BELOW_AXIS: Final = -10.0
"""Where a logarithmic axis has what is not positive: far outside, as a share of its length."""

_MIDDLE: Final = 0.38
"""How far below its middle a text begins, of its size."""

_TICK_PT: Final = 5.0 + 0.76 * PAGE.text_pt
"""From an axis to the foot of the words below it."""

_FOOT_PT: Final = 0.24 * PAGE.text_pt
"""From the foot of a text to its lowest point."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the values of an axis are drawn: `low` at the place `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return where a value is drawn."""
        if not self.is_log:
            share = (value - self.low) / (self.high - self.low)
        elif value > 0:
            low = math.log(self.low)
            share = (math.log(value) - low) / (math.log(self.high) - low)
        else:
            share = _BELOW_AXIS
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Ticks:
        """Return the values at which numbers stand, and these."""
        if self.is_log and len(found := self._decades()) > 1:
            return found
        room = _WIDE_PT if self.end > self.start else _HIGH_PT
        most = min(max(int(abs(self.end - self.start) / room), 1), _MOST_TICKS)
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step = next(factor * power for factor in _STEPS if factor * power * most >= self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        if max(abs(self.low), abs(self.high)) >= _WHOLE_BELOW:
            return [(value, _number(value)) for value in values]
        exponent = math.floor(math.log10(step) + 1e-9)
        is_halved = round(step / 10.0**exponent, 1) % 1 > 0
        digits = max(is_halved - exponent, 0)
        return [(value, f"{value:.{digits}f}".replace("-", "\u2212")) for value in values]

    def _decades(self) -> Ticks:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        factors: tuple[int, ...] = (1, 2, 5)
        stride = 1
        if self.high > _MOST_DIVIDED * self.low:
            factors, stride = (1,), (last - first) // _MOST_TICKS + 1
        powers = range(first // stride * stride, last + 1, stride)
        values = (factor * 10.0**power for power in powers for factor in factors)
        return [(value, _number(value)) for value in values if self.low <= value <= self.high]


def _number(value: float) -> str:
    return f"{value:,g}"


def with_margin(values: Iterable[float], *, is_log: bool = False) -> tuple[float, float]:
    """Return the ends of an axis with some room around all of `values`."""
    known = [value for value in values if value > 0 or not is_log]
    if not known:
        return (1.0, 10.0) if is_log else (0.0, 1.0)
    low, high = min(known), max(known)
    if is_log:
        first, last = math.log10(low), math.log10(high)
        if first == last:
            first, last = math.ceil(first) - 1.0, math.floor(last) + 1.0
        room = _MARGIN * (last - first)
        return 10.0 ** max(first - room, _LEAST_POWER), 10.0 ** min(last + room, _LARGEST_POWER)
    if high - low < _LEAST_SPAN:
        around = _MARGIN * abs(low)
        around = around if around > _LEAST_SPAN else _MARGIN
        low, high = low - around, high + around
    room = _MARGIN * (high - low)
    return low - room, high + room


@dataclass(frozen=True, slots=True)
class Box:
    """The axes of a drawing at a place of a page."""

    place: Place
    left: float
    right: float
    top: float
    bottom: float
    width: float
    height: float

    @classmethod
    def within(cls, place: Place, margins_px: tuple[float, float, float, float]) -> Box:
        """Return the axes with these margins left, right, above and below."""
        left, right, top, bottom = (margin * POINTS_PER_PIXEL for margin in margins_px)
        width, height = place.width_px * POINTS_PER_PIXEL, place.height_px * POINTS_PER_PIXEL
        return cls(place, left, width - right, top, height - bottom, width, height)

    @property
    def clip(self) -> str:
        """The attribute of what is drawn within the axes only."""
        return f' clip-path="url(#{escaped(self.place.key)}-axes)"'

    @property
    def area(self) -> str:
        """The area of the axes."""
        return (
            f'<rect x="{self.left:g}" y="{self.top:g}" width="{self.right - self.left:g}" '
            f'height="{self.bottom - self.top:g}"></rect>'
        )

    def below(self, scale: Scale, ticks: Ticks) -> str:
        """Return words below the axes."""
        y = self.bottom + _TICK_PT
        return "".join(words(text, scale.place(at), y) for at, text in ticks)

    def beside(self, scale: Scale, ticks: Ticks, size_pt: float = PAGE.text_pt) -> str:
        """Return words on the left of the axes, and a line through these at each."""
        drawn = []
        for at, text in ticks:
            y = scale.place(at)
            drawn.append(line(f"M {self.left:g} {y:.2f} L {self.right:g} {y:.2f}", "grid", 0.6))
            drawn.append(words(text, self.left - 5, y + _MIDDLE * size_pt, size_pt=size_pt, anchor="end"))
        return "".join(drawn)

    def named(self, x_label: str, y_label: str) -> str:
        """Return the names of both axes, and the line below."""
        x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        beside = words(y_label, 0.76 * PAGE.text_pt, y, turned=-90) if y_label else ""
        foot = line(f"M {self.left:g} {self.bottom:g} L {self.right:g} {self.bottom:g}", "grid", 0.8)
        return words(x_label, x, self.height - _FOOT_PT) + beside + foot

    def element(self, drawn: Figure | Chart, content: str) -> str:
        """Return the drawing as an element: named for those who do not see it; its size is up to the page."""
        key = escaped(self.place.key)
        css = f' class="{self.place.css}"' if self.place.css else ""
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-labelledby="{key}-title {key}-desc"{css}>'
            f'<title id="{key}-title">{escaped(drawn.title)}</title>'
            f'<desc id="{key}-desc">{escaped(drawn.description)}</desc>'
            f'<defs><clipPath id="{key}-axes">{self.area}</clipPath></defs>{content}</svg>'
        )


def line(course: str, role: str, width_pt: float, more: str = "") -> str:
    """Return a line along `course`."""
    return f'<path class="s-{role}" d="{course}" fill="none" stroke-width="{width_pt:g}"{more}></path>'


def words(
    text: str,
    x: float,
    y: float,
    *,
    size_pt: float = PAGE.text_pt,
    anchor: str = "middle",
    turned: int = 0,
) -> str:
    """Return a text that begins, ends or has its middle at a place."""
    turn = f' transform="rotate({turned} {x:.2f} {y:.2f})"' if turned else ""
    return (
        f'<text class="f-ink" x="{x:.2f}" y="{y:.2f}" font-size="{size_pt:g}px" '
        f'text-anchor="{anchor}"{turn}>{escaped(text)}</text>'
    )


def escaped(text: str) -> str:
    """Return a text as content or attribute of an element."""
    return html.escape(plain_text(text), quote=True)
