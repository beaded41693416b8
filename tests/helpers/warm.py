"""Runs of the program in processes that have loaded their modules already.

Loading them takes longer than most of what tests ask for. A server imports them once and forks for each
run, which then begins as a process of its own does. What a command loads is tested without this.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import sys
from typing import TYPE_CHECKING

import tfrctrace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


_LIBRARIES = [
    "typer",
    "rich.table",
    "polars",
    "pandas",
    "pyarrow.parquet",
    "matplotlib.figure",
    "matplotlib.style",
    *(f"matplotlib.backends.backend_{form}" for form in ("svg", "pdf", "agg")),
]

_OWN = [module.name for module in pkgutil.walk_packages(tfrctrace.__path__, "tfrctrace.")]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([*_LIBRARIES, *(name for name in _OWN if not name.endswith("__main__"))])


def run_warm(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Path, timeout_s: float
) -> int:
    """Run the program in `folder` and return its exit status; `streams` has `in` and gets `out`, `err`."""
    process = _processes.Process(target=_run, args=(list(arguments), folder, dict(environment), streams))
    process.start()
    process.join(timeout_s)
    if process.exitcode is None:
        process.kill()
        raise TimeoutError(f"{arguments} takes longer than {timeout_s} s")
    return process.exitcode


def _run(arguments: list[str], folder: Path, environment: dict[str, str], streams: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name, flags in (
        (0, "in", os.O_RDONLY),
        (1, "out", os.O_WRONLY | os.O_CREAT),
        (2, "err", os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(streams / name, flags, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  they last as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["tfrctrace", *arguments]
    # an interpreter that starts reads this by itself
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))

    from tfrctrace.__main__ import main

    main()
