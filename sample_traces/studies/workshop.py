"""Where the runs of a study are made: a folder with their traces, and a record of each that is done."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

from simulation import Run, SimulationError, simulate
from write_truth import write_truth

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


class Workshop:
    """The folder of one study. A run whose trace is complete has a record in `.runs`: it is done."""

    def __init__(self, folder: Path, runs: list[Run], scale: str) -> None:
        self.folder, self.runs, self.scale = folder, runs, scale
        self.records = folder / ".runs"
        self.traces = folder / "traces"
        for each in (self.records, self.traces):
            each.mkdir(parents=True, exist_ok=True)
        for unfinished in self.records.glob("making-*"):
            shutil.rmtree(unfinished)

    def target(self, run: Run) -> Path:
        """Return where the trace of `run` goes: a folder if variables go beside it."""
        return self.traces / (run.name if run.has_variables else f"{run.name}.tr.xz")

    def record(self, run: Run) -> dict[str, Any] | None:
        """Return what is known of `run` if it is done as it is defined now."""
        try:
            record = json.loads((self.records / f"{run.name}.json").read_text())
        except (OSError, ValueError):
            return None
        is_current = record["definition"] == json.loads(json.dumps(run.definition()))
        return record if is_current and self.target(run).exists() else None

    def make(self, run: Run, started: Callable[[subprocess.Popen[bytes]], None]) -> dict[str, Any]:
        """Simulate `run` and return its record, which is written last. Raises `SimulationError`."""
        making = self.records / f"making-{run.name}"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        target = self.target(run)
        failure = target.with_name(f"{target.name}.failed")
        since = time.monotonic()
        try:
            flows = simulate(run, making, self.scale, started)
        except SimulationError as error:
            failure.write_text(f"{error}\n")
            raise
        size = sum(file.stat().st_size for file in making.iterdir())
        if run.has_variables:
            shutil.rmtree(target, ignore_errors=True)
            making.rename(target)
        else:
            (making / target.name).replace(target)
            making.rmdir()
        failure.unlink(missing_ok=True)
        seconds = round(time.monotonic() - since, 2)
        record = {"definition": run.definition(), "seconds": seconds, "bytes": size, "flows": flows}
        unnamed = self.records / f"{run.name}.part"
        unnamed.write_text(json.dumps(record))
        unnamed.replace(self.records / f"{run.name}.json")
        return record

    def discard_others(self) -> None:
        """Delete traces that were made here of runs that are not in the list any more."""
        listed = {run.name for run in self.runs}
        for record in self.records.glob("*.json"):
            if record.stem not in listed:
                (self.traces / f"{record.stem}.tr.xz").unlink(missing_ok=True)
                shutil.rmtree(self.traces / record.stem, ignore_errors=True)
                record.unlink()

    def write_truth(self) -> None:
        """Write what the agents of all runs counted."""
        records = {run.name: self.record(run) for run in self.runs}
        write_truth(self.folder, {name: one["flows"] for name, one in records.items() if one})
