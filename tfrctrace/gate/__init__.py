"""Gates: judge runs by limits and by a baseline.

`values.py` takes quantities (`tfrctrace.runs.quantity`) from a trace, `requirement.py` and `limits_file.py`
parse limits, `verdict.py` judges them, and `regression.py` compares runs with a `baseline.py`.
"""
