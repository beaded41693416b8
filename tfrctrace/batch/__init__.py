"""Thousands of captures: chains of rotated files found, each analysed once, results in a folder.

`capture_files.py` lists files, `chains.py` finds which are parts of one capture, and `chain_task.py` analyses
a chain, of one that has grown only the new files (`growing_chains.py`, `read_chain.py`). `results_folder.py`
keeps what is done, so that a batch goes on where it was stopped. `run_batch.py` performs what is missing by
the engine of `tfrctrace.runs`, `merge_results.py` unites folders, and `write_lake.py` writes their tables by
date and link.
"""

from __future__ import annotations

from typing import Literal

Chaining = Literal["auto", "days", "names", "none"]
"""How files become chains: by names, contents and times; so, and each day by itself; by names alone; each by
itself."""
