"""Numbers for people: three significant digits and a unit that fits.

Shared by every form of a report, so that the page and the terminal show the same text. Prefixes are
decimal (1 kB is 1000 bytes, as for bit/s). A missing value is an en dash, never 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfrctrace.base.timezones import TimeZone

MISSING: Final = "–"
"""Stands for an unknown value."""

_SECOND_NS: Final = 1_000_000_000
_MINUTES_NS: Final = 5 * 60 * _SECOND_NS
_HOURS_NS: Final = 3 * 3_600 * _SECOND_NS
_YEAR_NS: Final = 365 * 86_400 * 1_000_000_000
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E")


def format_count(value: int | None) -> str:
    """Return a whole number with commas between groups of three digits: `1,234,567`."""
    return MISSING if value is None else f"{value:,d}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 flow`, `2 flows`."""
    return f"{format_count(number)} {noun}" if number == 1 else f"{format_count(number)} {noun}s"


def enumerated(parts: Sequence[str]) -> str:
    """Return parts of a sentence in a row: `2 TCP`, `2 TCP and 1 UDP`, `3 TCP, 2 UDP and 1 DCCP`."""
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def format_bytes(value: float | None) -> str:
    """Return an amount of data given in bytes: `512 B`, `1.50 kB`, `12.3 MB`."""
    return _with_prefix(value, "B")


def format_rate_bps(value: float | None) -> str:
    """Return a rate given in bit/s: `0 bit/s`, `9.57 Mbit/s`, `1.00 Gbit/s`."""
    return _with_prefix(value, "bit/s")


def format_ms(value: float | None) -> str:
    """Return a time given in milliseconds, always in ms so that a column can be compared: `0.042 ms`.

    Whole microseconds are enough, except for times below one.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.3f} ms" if 0.001 <= abs(value) < 1 else f"{_three_digits(value)} ms"


def format_share(value: float | None) -> str:
    """Return a share from 0 to 1 in percent, two decimals at most: `1.25 %`, `<0.01 %`."""
    if value is None or not math.isfinite(value):
        return MISSING
    percent = value * 100
    if 0 < percent < 0.005:
        return "<0.01 %"  # 0.00 % would read as none at all
    return f"{percent:.2f} %" if 0 < percent < 1 else f"{_three_digits(percent)} %"


def format_duration_s(value: float | None) -> str:
    """Return a duration given in seconds: `250 ms`, `12.3 s`, `2 min 05 s`, `1 h 02 min`, `3 d 04 h`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if 0 < abs(value) < 0.9995:
        return format_ms(value * 1000)
    if abs(value) < 59.95:  # 59.95 and above would round to `60.0 s`
        return f"{_three_digits(value)} s"
    sign = "-" if value < 0 else ""
    minutes, seconds = divmod(round(abs(value)), 60)
    if minutes < 60:
        return f"{sign}{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{sign}{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{sign}{days} d {hours:02d} h"


def format_time_ns(value: int | None, zone: TimeZone | None = None) -> str:
    """Return a time given in ns since the epoch, to the millisecond: `2026-05-09 07:35:25.120 UTC`.

    Simulations and clocks that were not set count from 0; their times are seconds: `12.345 s`.
    """
    if value is None:
        return MISSING
    if is_simulated(value):
        return f"{value / 1e9:.3f} s"
    zone = zone or _utc()
    moment = zone.moment(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} {zone.name}"


def is_simulated(time_ns: int) -> bool:
    """Return whether a time counts from the start of a simulation, or of a clock that was not set."""
    return abs(time_ns) < _YEAR_NS


def _utc() -> TimeZone:
    # help lists the commands without loading time zones
    from tfrctrace.base.timezones import UTC_ZONE

    return UTC_ZONE


def format_stretch_ns(begin_ns: int, end_ns: int, zone: TimeZone) -> str:
    """Return from when to when something lasted: `2026-01-06 11:45 to 14:30 UTC`, or seconds in a simulation.

    Times are as exact as the stretch is short.
    """
    if is_simulated(begin_ns):
        return f"{round(begin_ns / 1e9, 3):,g} to {round(end_ns / 1e9, 3):,g} s"
    begin, end = zone.moment(begin_ns), zone.moment(end_ns)
    cut = -3 if end_ns - begin_ns < 10 * _SECOND_NS else None
    seconds = end_ns - begin_ns < _MINUTES_NS or begin.second or end.second
    form = "%H:%M:%S.%f" if cut else "%H:%M:%S" if seconds and end_ns - begin_ns < _HOURS_NS else "%H:%M"
    day = "" if begin.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{begin:%Y-%m-%d} {f'{begin:{form}}'[:cut]} to {day}{f'{end:{form}}'[:cut]} {zone.name}"


_OF_UNIT: Final[Mapping[str, Callable[[float | None], str]]] = {
    "bit/s": format_rate_bps,
    "bytes": format_bytes,
    "ms": format_ms,
    "s": format_duration_s,
    "%": format_share,
}


def format_value(value: float | None, unit: str) -> str:
    """Return a value in any unit, `%` for a share from 0 to 1: `9.57 Mbit/s`, `1.23 dBm`."""
    if unit in _OF_UNIT:
        return _OF_UNIT[unit](value)
    return MISSING if value is None else f"{value:.4g} {unit}".rstrip()


def _with_prefix(value: float | None, unit: str) -> str:
    """Return `value` with the decimal prefix that leaves one to three digits before the point."""
    if value is None or not math.isfinite(value):
        return MISSING
    scaled = float(value)
    step = 0
    # 999.5 would be written as 1000: it belongs to the next prefix
    while abs(scaled) >= 999.5 and step < len(_PREFIXES) - 1:
        scaled /= 1000
        step += 1
    digits = _whole_or_three_digits(scaled) if step == 0 else _three_digits(scaled)
    return f"{digits} {_PREFIXES[step]}{unit}"


def _whole_or_three_digits(value: float) -> str:
    """Return whole numbers without a fraction (there are no 0.00 bytes), others to three digits."""
    return f"{value:.0f}" if value == int(value) else _three_digits(value)


def _three_digits(value: float) -> str:
    """Return three significant digits without an exponent, at most six decimals; whole above 100."""
    if value == 0:
        return "0"
    # the rounded value decides: 9.996 is written 10.0, not 10.00
    exponent = math.floor(math.log10(abs(float(f"{value:.2e}"))))
    decimals = min(max(2 - exponent, 0), 6)
    return f"{value:,.{decimals}f}"
