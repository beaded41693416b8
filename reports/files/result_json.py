"""A result as JSON: the fields of its type, in their order."""

from __future__ import annotations

import json
from typing import TextIO


def write_json(file: TextIO, result: object) -> None:
    """Write a result of `metrics.results` as a document. Raises `ValueError` for NaN, a bug of ours."""
    import msgspec

    # msgspec writes numbers in another form than `json`
    json.dump(msgspec.to_builtins(result), file, indent=1, allow_nan=False)
    file.write("\n")
