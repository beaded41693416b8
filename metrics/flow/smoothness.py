"""Smoothness of a flow's rate, and how alike the rates of two flows are, window by window.

Both are of S. Floyd, M. Handley, J. Padhye and J. Widmer, "Equation-based congestion control for unicast
applications" (SIGCOMM 2000). All work on a windowed frame (see `tfrctrace.metrics.windows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.windows import first_of_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def rate_changes(windowed: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return how the bytes of each flow change from one of `count` windows to the next, a row for each flow.

    `mean_relative_change` is the mean of |r' - r|/r over the `changes` with r > 0; `worst_ratio` the largest
    max/min of neighbours that both have bytes; `zero_pairs` counts neighbours of which one or both have none.
    Null where nothing is left to take it of; a flow without bytes has no row.
    """
    import numpy as np
    import polars as pl

    flow, window = windowed["flow"].to_numpy(), windowed["window"].to_numpy()
    size = windowed["bytes"].to_numpy().astype(np.float64)
    first = first_of_each(flow)
    this, following = size[:-1], size[1:]
    has_next = (flow[1:] == flow[:-1]) & (window[1:] == window[:-1] + 1)
    # what follows a window without a row is 0, except after the last
    change, ratio = np.ones(len(size)), np.zeros(len(size))
    np.divide(np.abs(following - this), this, out=change[:-1], where=has_next)
    np.divide(np.maximum(this, following), np.minimum(this, following), out=ratio[:-1], where=has_next)
    counts = window < count - 1
    change[~counts] = 0
    neighbours = np.zeros(len(size), dtype=np.int64)
    neighbours[:-1] = has_next
    changes = np.add.reduceat(counts.astype(np.int64), first)
    pairs = np.add.reduceat(neighbours, first)
    means = (np.add.reduceat(change, first) / np.maximum(changes, 1)).tolist()
    worst = np.maximum.reduceat(ratio, first).tolist()
    return pl.DataFrame(
        {
            "flow": pl.Series(flow[first], dtype=windowed.schema["flow"]),
            "mean_relative_change": [mean if n else None for mean, n in zip(means, changes, strict=True)],
            "worst_ratio": [largest if n else None for largest, n in zip(worst, pairs, strict=True)],
            "changes": changes,
            "zero_pairs": count - 1 - pairs,
        },
        schema_overrides=dict.fromkeys(("mean_relative_change", "worst_ratio"), pl.Float64),
    )


def equivalence_ratios(windowed: pl.DataFrame, flows: Sequence[int]) -> pl.DataFrame:
    """Return the mean equivalence ratio of each pair of `flows`, as `a`, `b`, `windows` and `ratio`.

    In each window it is min(R_a/R_b, R_b/R_a), and 0 if only one of them is 0; windows in which both are 0
    are not counted. Null if that leaves none.
    """
    import numpy as np
    import polars as pl

    own = windowed.filter(pl.col("flow").is_in(list(flows)))
    # windows in which none of them has bytes count for no pair
    present, place = np.unique(own["window"].to_numpy(), return_inverse=True)
    row_of = {flow: row for row, flow in enumerate(flows)}
    sizes = np.zeros((len(flows), len(present)))
    sizes[[row_of[flow] for flow in own["flow"].to_list()], place] = own["bytes"].to_numpy()
    rows: list[tuple[int, int, int, float | None]] = []
    for first, flow in enumerate(flows[:-1]):
        least = np.minimum(sizes[first], sizes[first + 1 :])
        most = np.maximum(sizes[first], sizes[first + 1 :])
        windows = np.count_nonzero(most, axis=1).tolist()
        totals = np.divide(least, most, out=np.zeros_like(most), where=most > 0).sum(axis=1).tolist()
        rows += (
            (flow, other, count, total / count if count else None)
            for other, count, total in zip(flows[first + 1 :], windows, totals, strict=True)
        )
    schema = {"a": pl.UInt32, "b": pl.UInt32, "windows": pl.Int64, "ratio": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")
