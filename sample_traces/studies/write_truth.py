"""What the agents of runs, or programs, themselves counted, in a file beside the traces."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_truth(folder: Path, counted: Mapping[str, Any]) -> None:
    """Write `truth.json.xz`, a line for each run."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(facts)}" for name, facts in counted.items())
    with lzma.open(folder / "truth.json.xz", "wt", preset=9) as file:
        file.write("{\n" + lines + "\n}\n")
