"""Many runs, for studies and gates alike: measure each once, keep its record, take quantities, compare.

`pool.py` measures runs side by side, `cache.py` keeps their records, `problems.py` merges what was wrong with
them. `quantity.py` says what is asked of a run, `quantity_values.py` what its values are, and
`compare_groups.py` tests whether groups of runs differ.
"""
