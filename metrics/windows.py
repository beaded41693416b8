"""Windows: one stretch of time for several flows, cut into equal parts, and the bytes of each flow in each.

A windowed frame has the columns `flow`, `window` (from 0) and `bytes`, in order of flow and window, and no
row where a flow has no bytes: zeros are known from the number of windows. Several quantities are defined on
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

NS_PER_S: Final = 1_000_000_000
BITS_PER_BYTE: Final = 8

_UINT64_VALUES: Final = 2**64
_ROWS_OF_PART: Final = 1 << 19
_MOST_WINDOWS: Final = 2**31
"""More than 0.1 s windows of six years; with the number of a flow it fits 64 bits."""


@dataclass(frozen=True, slots=True)
class Windows:
    """`count` windows of `width_ns` from `start_ns` on, all whole."""

    start_ns: int
    width_ns: int
    count: int

    @property
    def end_ns(self) -> int:
        """End of the last window in ns."""
        return self.start_ns + self.width_ns * self.count

    @property
    def width_s(self) -> float:
        """Width of one in s."""
        return self.width_ns / NS_PER_S

    @property
    def duration_s(self) -> float:
        """All of them together in s."""
        return self.width_ns * self.count / NS_PER_S

    def coarser(self, factor: int) -> Windows:
        """Return windows that are `factor` times as wide; what does not fill the last one is left out."""
        return Windows(self.start_ns, self.width_ns * factor, self.count // factor)

    def bps(self, byte_count: float) -> float:
        """Return the rate in bit/s of an amount of bytes in one window."""
        return byte_count * BITS_PER_BYTE * NS_PER_S / self.width_ns


class FlowBins:
    """Bins of many flows, one direction of each, from which those of some are taken without a copy of all."""

    def __init__(self, bins: pl.DataFrame) -> None:
        """Take bins of one width, in order of flow and time or not."""
        import polars as pl

        self._bins = bins if bins["flow"].is_sorted() else bins.sort("flow", "time_ns")
        runs = self._bins.select(pl.col("flow").rle()).unnest("flow")
        ends = runs["len"].cum_sum()
        self._places = {
            flow: (end - length, length)
            for flow, length, end in zip(runs["value"], runs["len"], ends, strict=True)
        }

    @property
    def width_ns(self) -> int | None:
        """Width of the bins; None if there are none."""
        return int(self._bins["width_ns"][0]) if len(self._bins) else None

    def of(self, flow: int) -> pl.DataFrame:
        """Return the bins of one flow, perhaps none."""
        return self._bins.slice(*self._places.get(flow, (0, 0)))

    def parts(self, flows: Iterable[int]) -> Iterator[pl.DataFrame]:
        """Give the bins of `flows`, in order, in frames that a processor's cache and memory find easy."""
        import polars as pl

        part: list[pl.DataFrame] = [self._bins.clear()]
        rows = 0
        for flow in sorted(flows):
            part.append(self.of(flow))
            rows += len(part[-1])
            if rows >= _ROWS_OF_PART:
                yield pl.concat(part)
                part, rows = [], 0
        if part:
            yield pl.concat(part)


def whole_windows(origin_ns: int, width_ns: int, start_ns: int, end_ns: int) -> Windows:
    """Return the windows on the grid from `origin_ns` that lie wholly in [start_ns, end_ns]; perhaps none."""
    first = -((origin_ns - start_ns) // width_ns)
    behind = (end_ns - origin_ns) // width_ns
    return Windows(origin_ns + first * width_ns, width_ns, max(behind - first, 0))


def windowed(bins: pl.DataFrame, windows: Windows, column: str) -> pl.DataFrame:
    """Return the windowed frame of `bins`, whose width divides that of the windows, with `column` as bytes.

    `bins` has one direction of each flow. Bins outside the windows are left out.
    """
    import polars as pl

    window = (pl.col("time_ns") - windows.start_ns).floordiv(windows.width_ns)
    return _merged(
        bins.select("flow", window.alias("window"), pl.col(column).cast(pl.UInt64).alias("bytes")).filter(
            pl.col("window").is_between(0, windows.count - 1) & (pl.col("bytes") > 0)
        )
    )


def joined(frame: pl.DataFrame, factor: int, count: int) -> pl.DataFrame:
    """Return a windowed frame with `factor` of `count` windows made one; what fills no window is left out."""
    import polars as pl

    if factor == 1:
        return frame
    inside = frame.filter(pl.col("window") < count // factor * factor)
    return _merged(inside.with_columns(pl.col("window").floordiv(factor)))


def _merged(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a windowed frame in order of flow and window, with the bytes of equal ones added.

    Bins come in order, and then this is one pass: to sort or hash tens of millions of rows takes longer than
    all that is made of them.
    """
    import numpy as np
    import polars as pl

    place = frame.select(pl.col("flow").cast(pl.Int64) * _MOST_WINDOWS + pl.col("window")).to_series()
    steps = np.diff(place.to_numpy())
    if (steps < 0).any():
        return _merged(frame.sort("flow", "window"))
    if not (steps > 0).all():
        first = np.concatenate([[0], steps.nonzero()[0] + 1])
        sums = np.add.reduceat(frame["bytes"].to_numpy(), first)
        frame = frame[first].with_columns(pl.Series("bytes", sums))
    # tells Polars that the rows of a flow are together
    return frame.set_sorted("flow")


def dense(own: pl.DataFrame, count: int) -> pl.Series:
    """Return the bytes of one flow, whose windowed frame is `own`, in all windows, with the zeros."""
    import numpy as np
    import polars as pl

    sizes = np.zeros(count, dtype=np.uint64)
    sizes[own["window"].to_numpy()] = own["bytes"].to_numpy()
    return pl.Series("bytes", sizes)


def power_sums(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return `sum` and `squares` of the bytes for each value of the column `by`, exactly (Int128)."""
    import polars as pl

    largest = frame["bytes"].max()
    # sums of 128 bits take six times as long, and are hardly ever needed
    is_small = not isinstance(largest, int) or largest * largest * frame.height < _UINT64_VALUES
    size = pl.col("bytes").cast(pl.UInt64 if is_small else pl.Int128)
    return (
        frame.group_by(by)
        .agg(size.sum().cast(pl.Int128).alias("sum"), (size * size).sum().cast(pl.Int128).alias("squares"))
        .sort(by)
    )
