"""Rows of tables of replays for flows that cannot be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.results.replay import OF_DIRECTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from tfrctrace.metrics.results.replay import NotReplayable


def lacking_frame(
    table: str, lacking: Iterable[NotReplayable], algorithms: Sequence[Mapping[str, str | None]]
) -> pl.DataFrame:
    """Return a row of `table` for each flow and algorithm (columns that name it): the reason, and nulls."""
    import polars as pl

    from tfrctrace.parsers.schema import polars_schema

    rows = [
        {
            **{name: getattr(one, name) for name in OF_DIRECTION},
            **algorithm,
            "lacking": f"{one.what}; {one.hint}",
        }
        for one in lacking
        for algorithm in algorithms
    ]
    return pl.DataFrame(rows, schema=polars_schema(table))
