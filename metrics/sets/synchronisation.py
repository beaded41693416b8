"""Whether flows that share a bottleneck lose packets together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.windows import windowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tfrctrace.metrics.windows import Windows

LOSS_COLUMNS: Final = ("lost_packets", "retransmitted_packets")
"""Of bins: what was lost where the trace shows it, else what was sent again."""

OF_FLOWS: Final = ("transport", "lost_packets", "lost_before_capture")
"""Columns of flows that tell whether bins show their losses."""


def flows_with_losses(flows: pl.DataFrame) -> frozenset[int]:
    """Return the flows of which bins show all losses.

    They are those that the trace shows at both ends, and those of TCP that lost nothing before the capture:
    what is lost there is not seen twice.
    """
    import polars as pl

    if not set(OF_FLOWS) <= set(flows.columns):
        return frozenset()
    is_tcp = pl.col("transport").cast(pl.String) == "tcp"
    shows_all = is_tcp & (pl.col("lost_before_capture").fill_null(0) == 0)
    return frozenset(flows.filter(shows_all | pl.col("lost_packets").is_not_null())["flow"])


def loss_synchronisation(
    bins: Iterable[pl.DataFrame], windows: Windows, flows: int
) -> tuple[float | None, int]:
    """Return the mean share of `flows` that lose in a window in which one does, and how many such there are.

    It is 1 if all lose whenever one does, and 1 / `flows` if each loses alone. None if no flow loses.
    """
    import polars as pl

    lost = pl.coalesce(LOSS_COLUMNS).fill_null(0).alias("lost")
    frames = [windowed(part.with_columns(lost), windows, "lost") for part in bins]
    losing = pl.concat(frames).group_by("window").len() if frames else pl.DataFrame({"len": []})
    if losing.is_empty():
        return None, 0
    return int(losing["len"].sum()) / (flows * losing.height), losing.height
