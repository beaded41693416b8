"""Gates: judge runs by limits, by objectives over time, and by a baseline.

`values.py` takes quantities (`tfrctrace.runs.quantity`) from a trace, `requirement.py`, `objective.py` and
`limits_file.py` parse limits, `verdict.py` judges them, `objective_results.py` and `objective_verdict.py`
judge objectives (`metrics/objectives.py`), and `regression.py` compares runs with a `baseline.py`.
"""
