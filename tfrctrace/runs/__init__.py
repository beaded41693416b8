"""Many runs, for studies and gates alike: measure each once, keep the records, take quantities, compare them.

`pool.py` measures runs side by side, `cache.py` keeps their records, `problems.py` merges what was wrong
with them.
"""
