"""What every document begins with."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """The program that wrote a document."""

    name: Literal["tfrctrace"]
    version: str
