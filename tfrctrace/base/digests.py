"""Digests of saved tables, compared before one is read: over damage Polars panics, or ends the process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file's content, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
