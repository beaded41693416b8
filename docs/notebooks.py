"""Notebooks as pages: each code cell is run when the documentation is built, and what it shows stands below.

No output is kept in the notebook itself, so that none can be out of date. What a cell shows is what Jupyter
would be given of it: IPython's own formatter asks the object.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.formatters import DisplayFormatter

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parent
FENCE = "`" * 5
"""Longer than any that stands in a cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, and what it shows: by MIME type, and what it printed."""

    kind: str
    source: str
    shown: dict[str, Any]
    printed: str = ""


def run(notebook: dict[str, Any], folder: Path = FOLDER) -> Iterator[Cell]:
    """Give the cells of `notebook`, whose code is run in `folder` one after the other."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield Cell("markdown", source, {})
            continue
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            shown = _shown(_value_of(source, names))
        yield Cell("code", source, shown, printed.getvalue())


def _value_of(source: str, names: dict[str, Any]) -> object:
    """Run `source` and return the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    is_value = isinstance(last, ast.Expr)
    exec(compile(ast.Module(tree.body[:-1] if is_value else tree.body, []), "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if is_value else None


def _shown(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    data, _ = DisplayFormatter().format(value)
    return dict(data)


def page(notebook: dict[str, Any]) -> str:
    """Return `notebook` as a page of Markdown, with what its cells show."""
    return "\n\n".join(part for cell in run(notebook) for part in _parts(cell)) + "\n"


def _parts(cell: Cell) -> Iterator[str]:
    if cell.kind == "markdown":
        yield cell.source
        return
    yield _fenced("python", cell.source)
    if cell.printed:
        yield _fenced("text", cell.printed)
    if "text/html" in cell.shown:
        yield _fenced("{raw} html", f'<div style="overflow-x: auto">{cell.shown["text/html"]}</div>')
    elif "image/svg+xml" in cell.shown:
        # as an image: names in one drawing are no names of the page
        image = base64.b64encode(cell.shown["image/svg+xml"].encode()).decode()
        yield _fenced("{raw} html", f'<img alt="the figure" src="data:image/svg+xml;base64,{image}">')
    elif "text/plain" in cell.shown:
        yield _fenced("text", cell.shown["text/plain"])


def _fenced(kind: str, text: str) -> str:
    return f"{FENCE}{kind}\n{text.rstrip()}\n{FENCE}"
