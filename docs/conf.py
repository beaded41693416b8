"""How Sphinx builds these pages: `make docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from myst_parser.parsers.sphinx_ import MystParser

sys.path.insert(0, str(Path(__file__).resolve().parent))

from notebooks import page

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx

project = "tfrctrace"
author = "the tfrctrace authors"
extensions = ["myst_parser"]
myst_heading_anchors = 3
# links to files of the repository are checked by tests/test_docs.py
suppress_warnings = ["myst.xref_missing"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tfrctrace"


class NotebookParser(MystParser):
    """A notebook is run, and read as the page that it makes."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: document) -> None:
        super().parse(page(json.loads(inputstring)), document)


def setup(app: Sphinx) -> None:
    """Let Sphinx read notebooks."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
