"""How Sphinx builds these pages: `make docs`."""

project = "tfrctrace"
author = "the tfrctrace authors"
extensions = ["myst_parser"]
myst_heading_anchors = 3
# links to files of the repository are checked by tests/test_docs.py
suppress_warnings = ["myst.xref_missing"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tfrctrace"
