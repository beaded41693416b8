"""Metrics of many flows as columns, which take far less memory than an object for each value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from tfrctrace.metrics.catalogue import BY_NAME
from tfrctrace.metrics.results.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import polars as pl

FLOWS_AT_ONCE: Final = 4096
"""Flows whose metrics are rows at one time."""


def metric_schema() -> dict[str, pl.DataType | type[pl.DataType]]:
    """Return the columns of a table of metrics, those of `Metric`."""
    import polars as pl

    return {
        "name": pl.String,
        "value": pl.Float64,
        "unit": pl.String,
        "n": pl.Int64,
        "window_s": pl.Float64,
        "warmup_s": pl.Float64,
        "flows": pl.List(pl.UInt32),
        "group": pl.String,
        "competing_set": pl.Int64,
        "reason": pl.String,
    }


@dataclass(frozen=True, slots=True)
class FlowColumn:
    """One metric of many flows, in their order."""

    name: str
    values: pl.Series
    """Null where the metric is undefined."""
    n: pl.Series | int
    window_s: float | None = None
    reasons: pl.Series | None = None
    """Why a value is null, where that is not what the catalogue says."""

    @property
    def is_unknown(self) -> bool:
        """Whether no flow has a value."""
        return self.values.null_count() == len(self.values)

    def reason_at(self, place: int) -> str:
        """Return why the value at this place is null."""
        own = None if self.reasons is None else self.reasons[place]
        return own or BY_NAME[self.name].null_when


@dataclass(frozen=True, slots=True)
class FlowMetrics:
    """Some metrics of flows, of each a column."""

    flows: pl.Series
    groups: pl.Series
    """Label or transport of each flow."""
    columns: tuple[FlowColumn, ...]
    competing_set: int | None = None
    warmup_s: float = 0.0

    def named(self, names: Collection[str]) -> FlowMetrics:
        """Return the metrics with these names."""
        return replace(self, columns=tuple(column for column in self.columns if column.name in names))

    def frames(self) -> Iterator[pl.DataFrame]:
        """Give a row for each metric of each flow, in frames of bounded size."""
        for start in range(0, len(self.flows), FLOWS_AT_ONCE):
            yield self._frame(start, min(start + FLOWS_AT_ONCE, len(self.flows)))

    def metrics(self) -> Iterator[Metric]:
        """Give each metric of each flow as an object."""
        for frame in self.frames():
            for row in frame.iter_rows(named=True):
                yield Metric(**{**row, "flows": tuple(row["flows"])})

    def _frame(self, start: int, stop: int) -> pl.DataFrame:
        """Return the rows of the flows in these places: all metrics of the first flow, then of the next."""
        import numpy as np
        import polars as pl

        if not self.columns:
            return pl.DataFrame(schema=metric_schema())
        flows, groups = self.flows[start:stop], self.groups[start:stop]
        parts = [self._rows(column, flows, groups, start) for column in self.columns]
        # row by row instead of column by column
        order = np.arange(len(parts) * len(flows)).reshape(len(parts), len(flows)).T.ravel()
        return pl.concat(parts)[order]

    def _rows(self, column: FlowColumn, flows: pl.Series, groups: pl.Series, start: int) -> pl.DataFrame:
        import polars as pl

        described, values = BY_NAME[column.name], column.values[start : start + len(flows)]
        n = column.n if isinstance(column.n, int) else column.n[start : start + len(flows)]
        reason = pl.lit(described.null_when)
        if column.reasons is not None:
            reason = pl.coalesce(pl.lit(column.reasons[start : start + len(flows)]), reason)
        return pl.DataFrame({"value": values, "flow": flows, "group": groups}).select(
            pl.lit(column.name).alias("name"),
            pl.col("value"),
            pl.lit(described.unit).alias("unit"),
            pl.lit(n).cast(pl.Int64).alias("n"),
            pl.lit(column.window_s, dtype=pl.Float64).alias("window_s"),
            pl.lit(self.warmup_s, dtype=pl.Float64).alias("warmup_s"),
            pl.concat_list("flow").alias("flows"),
            pl.col("group"),
            pl.lit(self.competing_set, dtype=pl.Int64).alias("competing_set"),
            pl.when(pl.col("value").is_null()).then(reason).alias("reason"),
        )


MetricRows = Metric | FlowMetrics
"""One metric, or those of many flows."""


def each_metric(rows: Iterable[MetricRows]) -> Iterator[Metric]:
    """Give each metric as an object, in order."""
    for one in rows:
        if isinstance(one, Metric):
            yield one
        else:
            yield from one.metrics()


def metric_frames(rows: Iterable[MetricRows]) -> Iterator[pl.DataFrame]:
    """Give a row for each metric, in frames of bounded size and in order."""
    single: list[Metric] = []
    for one in rows:
        if isinstance(one, Metric):
            single.append(one)
            continue
        yield _frame_of(single)
        single.clear()
        yield from one.frames()
    yield _frame_of(single)


def _frame_of(metrics: Iterable[Metric]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame([asdict(metric) for metric in metrics], schema=metric_schema())
