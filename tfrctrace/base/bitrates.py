"""Bit rates as users write them: `200k`, `1.5M`, `64 kbit/s`."""

from __future__ import annotations

import re
from typing import Final

from tfrctrace.base.errors import UsageError

_FACTORS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_BITRATE: Final = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]+)?)\s*([kMG]?)(?:bit/s|bps)?\s*", re.ASCII)


def parse_bitrate_bps(text: str) -> float:
    """Return a rate in bit/s. The prefixes k, M and G are decimal."""
    match = _BITRATE.fullmatch(text)
    if not match:
        raise UsageError(
            f"`{text}` is not a bit rate", hint="write bit/s with k, M or G, such as `200k` or `1.5M`"
        )
    return float(match[1]) * _FACTORS[match[2]]


def parse_capacity_bps(text: str) -> float:
    """Return the capacity of a link in bit/s; it must be above 0."""
    capacity_bps = parse_bitrate_bps(text)
    if not capacity_bps:
        raise UsageError(f"capacity must be above 0, not `{text}`", hint="for example `10M`")
    return capacity_bps
