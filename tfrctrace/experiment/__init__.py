"""Experiments: many runs, described in a study file, and the tables and figures that are made of them.

`study.py` has the parts of a study; `studyfile.py` reads them from TOML, which docs/experiments.md describes.
"""
