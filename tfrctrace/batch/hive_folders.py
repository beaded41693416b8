"""Folders by date and link, as Polars, DuckDB and Spark read them: `date=2026-01-05/link=NAME`."""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

_LONGEST_NAME: Final = 200
"""Bytes of a link's name in that of a folder: file systems allow 255."""

_KEPT: Final = 15
"""Characters of a longer name that stay, of at most twelve bytes each."""


def date_and_link(date: str, link: str) -> str:
    """Return the folder of a day of a link; `*` stands for all days."""
    return f"date={date}/link={_quoted(link)}"


def _quoted(link: str) -> str:
    """Return the name of a link without anything that a pattern would obey."""
    name = quote(link, safe="")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{quote(link[:_KEPT], safe='')}-{hashlib.sha256(link.encode()).hexdigest()[:16]}"
