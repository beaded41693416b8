"""Scores of a network by published profiles: thresholds of applications, with their source and version.

`score.py` says what a profile and a score are; `outcome.py`, `delay_grades.py` and `voice.py` compute them.
"""
