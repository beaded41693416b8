"""Rows of frames and facts of the core as records: a class names the columns that its readers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

Record = TypeVar("Record", bound=NamedTuple)


def records(frame: pl.DataFrame, kind: type[Record]) -> list[Record]:
    """Return the rows of a frame; columns that it lacks, as results of an earlier version may, are None."""
    import polars as pl

    columns = [pl.col(name) if name in frame.columns else pl.lit(None).alias(name) for name in kind._fields]
    return [kind._make(row) for row in frame.select(columns).iter_rows()]


def record(facts: Mapping[str, Any], kind: type[Record]) -> Record:
    """Return what a dictionary of the core says, as a record."""
    return kind._make(facts.get(name) for name in kind._fields)
