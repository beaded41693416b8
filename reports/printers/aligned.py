"""Columns of text that are as wide as their longest cell."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_GAP: Final = "  "
_LEAST_TEXT: Final = 20
"""Columns in which text is still readable."""


def aligned(rows: Sequence[Sequence[str]], *, left: Collection[int]) -> list[str]:
    """Return a line for each row; the columns `left` are aligned to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def noted(rows: Sequence[Sequence[str]], *, left: Collection[int], width: int | None) -> list[str]:
    """Return the aligned rows; the text of the last cells takes further lines where `width` is too small."""
    heads = aligned([row[:-1] for row in rows], left=left)
    room = max(map(len, heads), default=0)
    lines: list[str] = []
    for head, (*_, text) in zip(heads, rows, strict=True):
        first = f"{head:{room}}{_GAP}"
        if width is None or width < room + _LEAST_TEXT:
            lines.append(f"{first}{text}".rstrip())
        else:
            below = " " * len(first)
            lines += textwrap.wrap(
                text, width, initial_indent=first, subsequent_indent=below, break_on_hyphens=False
            ) or [head]
    return lines


def fitted(
    rows: Sequence[Sequence[str]], *, left: Collection[int], keys: int, width: int | None
) -> list[str]:
    """Return the aligned rows in blocks of columns below each other, none wider than `width` if it can be.

    Each block begins with the first columns of all, the `keys`. Without a `width` there is one block.
    """
    widths = [max(map(len, column)) + len(_GAP) for column in zip(*rows, strict=True)]
    blocks: list[list[int]] = [[]]
    used = sum(widths[:keys])
    for place in range(keys, len(widths)):
        if width is not None and blocks[-1] and used + widths[place] - len(_GAP) > width:
            blocks.append([])
            used = sum(widths[:keys])
        blocks[-1].append(place)
        used += widths[place]
    lines: list[str] = []
    for block in blocks:
        places = (*range(keys), *block)
        lines += [""] if lines else []
        cells = [[row[place] for place in places] for row in rows]
        to_left = [at for at, place in enumerate(places) if place in left]
        lines += (
            noted(cells, left=to_left, width=width) if places[-1] in left else aligned(cells, left=to_left)
        )
    return lines
