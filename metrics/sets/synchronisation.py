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


def flows_with_losses(flows: pl.DataFrame) -> frozenset[int]:
    """Return the flows of which a trace shows losses: those of TCP, and those that it shows at both ends."""
    import polars as pl

    if not {"transport", "lost_packets"} <= set(flows.columns):
        return frozenset()
    shown = (pl.col("transport").cast(pl.String) == "tcp") | pl.col("lost_packets").is_not_null()
    return frozenset(flows.filter(shown)["flow"])


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
