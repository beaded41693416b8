"""Tables of what was found on links, printed or written into the documentation."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"


def options(description: str | None, first: int, links: int, kinds: Sequence[str] = ()) -> argparse.Namespace:
    """Return what links are drawn, of which kinds of faults, and whether the table is written."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--first", type=int, default=first, help="the first seed")
    parser.add_argument("--links", type=int, default=links)
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    if kinds:
        parser.add_argument("--fault", action="append", choices=kinds, help="a kind that is drawn")
    return parser.parse_args()


def table_text(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of Markdown."""
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += (f"| {' | '.join(map(str, cells))} |" for cells in rows)
    return "\n".join(lines) + "\n"


def show(text: str, name: str, *, write: bool) -> None:
    """Print a table, or write it into `docs/validation.md` between its marks."""
    if not write:
        sys.stdout.write(text)
        return
    begin, end = f"<!-- measured: {name} -->\n", f"<!-- end of {name} -->"
    page = DOCS / "validation.md"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page.read_text()))
