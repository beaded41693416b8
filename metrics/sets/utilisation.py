"""Link utilisation, and the rates of uploads against those of downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.exact_sums import mean, ratio
from tfrctrace.metrics.windows import BITS_PER_BYTE

if TYPE_CHECKING:
    import polars as pl


def link_utilisation(wire_bytes: int, duration_s: float, capacity_bps: float) -> float | None:
    """Return the bits of all flows on the wire over what the link could carry; above 1 the capacity is wrong.

    `wire_bytes` is the sum over the flows, `capacity_bps` in bit/s. None if duration or capacity is 0.
    """
    carried_bits = capacity_bps * duration_s
    return wire_bytes * BITS_PER_BYTE / carried_bits if carried_bits else None


def upload_download_ratio(uploads: pl.Series, downloads: pl.Series) -> float | None:
    """Return the mean rate of the uploads over that of the downloads: 1 is fair (Zhang et al., figure 7).

    None without uploads or downloads, or if all downloads have 0.
    """
    up, down = mean(uploads), mean(downloads)
    return None if up is None or down is None else ratio(up, down)
