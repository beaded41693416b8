"""What the agents of a study's runs, or programs, themselves counted."""

from __future__ import annotations

import json
import lzma
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def truth_of(folder: Path) -> dict[str, Any]:
    """Return what was counted, by run, from the file in this folder."""
    return json.loads(lzma.decompress((folder / "truth.json.xz").read_bytes()))
