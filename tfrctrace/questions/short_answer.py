"""Answers as JSON that are no longer than asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.reports.safe_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

USUAL_BYTES: Final = 2_000
MOST_BYTES: Final = 100_000

_LONGEST_TEXT: Final = 400
"""Characters of a name from a capture; the rest is left out."""

_DIGITS: Final = 6


def short_answer(
    facts: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    called: str,
    total: int,
    next_of: Callable[[int], Mapping[str, Any]],
    max_bytes: int = USUAL_BYTES,
) -> str:
    """Return JSON of `facts`, and of as many `rows` as fit, at least of one.

    There are `total` rows from the first one on; if fewer fit, `next_of` their number says how to go on.
    """
    head = _json(_plain(facts))[:-1]
    kept: list[str] = []
    document = _document(head, kept, called, next_of(0) if total else {})
    for row in rows:
        kept.append(_json(_plain(row)))
        longer = _document(head, kept, called, next_of(len(kept)) if len(kept) < total else {})
        if len(kept) > 1 and len(longer.encode()) > max_bytes:
            break
        document = longer
    return document


def _document(head: str, rows: Sequence[str], called: str, place: Mapping[str, Any]) -> str:
    more = "".join(f",{_json(name)}:{_json(value)}" for name, value in place.items())
    comma = "," if len(head) > 1 else ""
    return f"{head}{comma}{_json(called)}:[{','.join(rows)}]{more}}}"


def from_offset(offset: int) -> Callable[[int], Mapping[str, Any]]:
    """Return how to go on after so many rows from `offset` on."""
    return lambda rows: {"next_offset": offset + rows}


def _json(value: Any) -> str:  # noqa: ANN401  whatever JSON has
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return a value without what moves a cursor or hides text, with six digits, without what is null."""
    match value:
        case str():
            text = plain_text(value)
            return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
        case float():
            return float(f"{value:.{_DIGITS}g}") if value == value else None  # noqa: PLR0124  not a number
        case dict():
            return {key: _plain(one) for key, one in value.items() if one is not None}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value


def rows_of(records: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return records with these names only."""
    return [{name: record[name] for name in names} for record in records]
