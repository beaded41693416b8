"""What the TFRC agents of the runs in `tests/data/ns2/tfrc` printed of themselves."""

from __future__ import annotations

import csv
import lzma
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "ns2" / "tfrc"


def agent_rows(run: str, table: str) -> list[dict[str, str]]:
    """Return the rows of a run in the table `sender`, `receiver` or `rate`."""
    with lzma.open(FOLDER / f"{table}.csv.xz", "rt") as file:
        return [row for row in csv.DictReader(file) if row["run"] == run]
