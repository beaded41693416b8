"""Cells of numbers, which are sorted by what they show."""

from __future__ import annotations

from tfrctrace.reports.elements import Cell
from tfrctrace.reports.units import format_bytes, format_count, format_ms, format_rate_bps, format_share


def count_cell(count: int | None, back: str = "") -> Cell:
    """Return a cell with a whole number."""
    return Cell(format_count(count), back, count)


def bytes_cell(size: int | None) -> Cell:
    """Return a cell with an amount of data."""
    return Cell(format_bytes(size), sort=size)


def rate_cell(rate_bps: float | None) -> Cell:
    """Return a cell with a rate."""
    return Cell(format_rate_bps(rate_bps), sort=rate_bps)


def ms_cell(time_ms: float | None) -> Cell:
    """Return a cell with a time."""
    return Cell(format_ms(time_ms), sort=time_ms)


def share_cell(share: float | None) -> Cell:
    """Return a cell with a share."""
    return Cell(format_share(share), sort=share)
