"""Many runs, for studies, gates and batches: measure each once, keep its record, compare.

`engine.py` performs tasks side by side, `workers.py` says where, and `cache.py` keeps their records;
`problems.py` merges what was wrong with them. `quantity.py` says what is asked of a run, `quantity_values.py`
what its values are, and `compare_groups.py` tests whether groups of runs differ.
"""
