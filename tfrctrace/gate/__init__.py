"""Gates: what is asked of runs, by limits or by a baseline, and whether they hold it.

`quantity.py` says what is measured, `values.py` takes it from a trace, `requirement.py` and `limits_file.py`
say what must be true of it, `verdict.py` judges limits and `regression.py` runs against a `baseline.py`.
"""
