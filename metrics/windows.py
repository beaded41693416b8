"""Windows: one stretch of time for several flows, cut into equal parts, and the bytes of each flow in each.

A windowed frame has the columns `flow`, `window` (from 0) and `bytes`, in order of flow and window, and no
row where a flow has no bytes: zeros are known from the number of windows. Several quantities are defined on
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl
    from numpy.typing import NDArray

    Dense = tuple[NDArray[Any], NDArray[Any]]
    """Flows, and a row of bytes per window for each."""

NS_PER_S: Final = 1_000_000_000
BITS_PER_BYTE: Final = 8

_UINT64_VALUES: Final = 2**64
_EXACT_FLOATS: Final = 2**53
_SPARSE: Final = 4
"""Ratio of windows to rows above which only windows with rows are counted."""
_ROWS_OF_PART: Final = 1 << 19


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


@dataclass(frozen=True, slots=True)
class LifeWindows:
    """The windows of several flows, those of each counted from its own first bin."""

    starts_ns: NDArray[Any]
    counts: NDArray[Any]
    width_ns: int

    @property
    def width_s(self) -> float:
        """Width of one in s."""
        return self.width_ns / NS_PER_S

    def of(self, place: int) -> Windows:
        """Return the windows of the flow at this place."""
        return Windows(int(self.starts_ns[place]), self.width_ns, int(self.counts[place]))


class FlowBins:
    """Bins of many flows, one direction of each; those of some flows are selected without copying all."""

    def __init__(self, bins: pl.DataFrame) -> None:
        """Take bins of one width, in order of flow and time or not."""
        import numpy as np

        first = first_of_each(bins["flow"].to_numpy())
        if not _is_in_order(bins, first):
            bins = bins.sort("flow", "time_ns")
            first = first_of_each(bins["flow"].to_numpy())
        self._bins = bins
        self._flows = bins["flow"].to_numpy()[first]
        self._firsts, self._ends = first, np.append(first, len(bins))[1:]
        self._times_ns = bins["time_ns"].to_numpy()
        self._sizes: dict[str, NDArray[Any]] = {}

    @property
    def width_ns(self) -> int | None:
        """Width of the bins; None if there are none."""
        return int(self._bins["width_ns"][0]) if len(self._bins) else None

    def has(self, column: str) -> bool:
        """Return whether bins have a column."""
        return column in self._bins.columns

    def first_ns(self, flow: int) -> int | None:
        """Return when the first bin of a flow begins; None if it has none."""
        import polars as pl

        (start,), (end,) = self._places(pl.Series([flow]))
        return int(self._times_ns[start]) if start < end else None

    def life_windows(
        self, flows: pl.Series, starts_ns: pl.Series, ends_ns: pl.Series, window_ns: int
    ) -> LifeWindows:
        """Return the whole windows of each flow, counted from its first bin."""
        import numpy as np

        width_ns = self.width_ns or window_ns
        starts, ends = starts_ns.to_numpy(), ends_ns.to_numpy()
        firsts, row_ends = self._places(flows)
        origins = starts.copy()
        has_bins = row_ends > firsts
        origins[has_bins] = self._times_ns[firsts[has_bins]]
        begin = -((origins - starts) // width_ns)
        counts = np.maximum((ends - origins) // width_ns - begin, 0) // (window_ns // width_ns)
        return LifeWindows(origins + begin * width_ns, counts, window_ns)

    def life_windowed(self, flows: pl.Series, windows: LifeWindows, column: str) -> pl.DataFrame:
        """Return the windowed frame of `flows` in their own windows; `flow` is a place in `flows`."""
        import numpy as np
        import polars as pl

        firsts, ends = self._places(flows)
        # no part shares a flow with another
        part = np.cumsum(ends - firsts) // _ROWS_OF_PART
        bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        windowed = pl.concat(
            self._in_own_windows(firsts[start:end], ends[start:end], start, windows, column)
            for start, end in pairwise(bounds)
        )
        return windowed.with_columns(pl.col("flow").set_sorted())

    def _in_own_windows(
        self, firsts: NDArray[Any], ends: NDArray[Any], first_place: int, windows: LifeWindows, column: str
    ) -> pl.DataFrame:
        """Return the windowed frame of the flows from `first_place`, whose bins are `firsts` to `ends`."""
        import numpy as np
        import polars as pl

        lengths = ends - firsts
        place = np.repeat(np.arange(first_place, first_place + len(lengths)), lengths)
        row = np.arange(len(place)) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
        window = (self._times_ns[row] - windows.starts_ns[place]) // windows.width_ns
        sizes = self._column(column)[row].astype(np.uint64)
        counts = (window >= 0) & (window < windows.counts[place]) & (sizes > 0)
        return _merged(place[counts], window[counts], sizes[counts], pl.Int64())

    def _places(self, flows: pl.Series) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return where the bins of each flow begin and end; both are 0 for a flow without bins."""
        import numpy as np

        wanted = flows.to_numpy()
        if not len(self._flows):
            return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.int64)
        at = np.minimum(np.searchsorted(self._flows, wanted), len(self._flows) - 1)
        is_known = self._flows[at] == wanted
        return np.where(is_known, self._firsts[at], 0), np.where(is_known, self._ends[at], 0)

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._sizes:
            self._sizes[name] = self._bins[name].to_numpy()
        return self._sizes[name]

    def rates(self, flow: int, windows: Windows, column: str) -> NDArray[Any]:
        """Return the bytes of one flow in all windows, with the zeros; exact below 2^53."""
        import numpy as np
        import polars as pl

        (start,), (end,) = self._places(pl.Series([flow]))
        bounds = (windows.start_ns, windows.end_ns)
        start, end = (start + int(place) for place in np.searchsorted(self._times_ns[start:end], bounds))
        window = (self._times_ns[start:end] - windows.start_ns) // windows.width_ns
        rates = np.zeros(windows.count)
        # they are in order of time, so that those of a window are together
        first = first_of_each(window)
        if len(first):
            rates[window[first]] = np.add.reduceat(self._column(column)[start:end], first)
        return rates

    def parts(self, flows: Iterable[int]) -> Iterator[pl.DataFrame]:
        """Give the bins of `flows`, in order, in frames of a size that suits caches and memory."""
        import polars as pl

        stretches: list[tuple[int, int]] = [(0, 0)]
        rows = 0
        for start, end in zip(
            *(place.tolist() for place in self._places(pl.Series(sorted(flows)))), strict=True
        ):
            if start == stretches[-1][1]:
                stretches[-1] = (stretches[-1][0], end)  # neighbours are one slice, without a copy
            else:
                stretches.append((start, end))
            rows += end - start
            if rows >= _ROWS_OF_PART:
                yield pl.concat([self._bins[start:end] for start, end in stretches])
                stretches, rows = [(end, end)], 0
        if stretches:
            yield pl.concat([self._bins[start:end] for start, end in stretches])


def _is_in_order(bins: pl.DataFrame, first: NDArray[Any]) -> bool:
    """Return whether bins are in order of flow, and each flow's, from `first` on, in order of time."""
    import numpy as np

    flows, times_ns = bins["flow"].to_numpy()[first], bins["time_ns"].to_numpy()
    not_later = (times_ns[1:] <= times_ns[:-1]).nonzero()[0] + 1
    return bool((flows[1:] > flows[:-1]).all() and np.isin(not_later, first).all())


def first_of_each(*columns: NDArray[Any]) -> NDArray[Any]:
    """Return the places from which on the values of `columns` are others than before, the first one too."""
    import numpy as np

    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    differs = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        differs |= column[1:] != column[:-1]
    return np.concatenate([[0], differs.nonzero()[0] + 1])


def whole_windows(origin_ns: int, width_ns: int, start_ns: int, end_ns: int) -> Windows:
    """Return the windows on the grid from `origin_ns` that lie wholly in [start_ns, end_ns]; perhaps none."""
    first = -((origin_ns - start_ns) // width_ns)
    end = (end_ns - origin_ns) // width_ns
    return Windows(origin_ns + first * width_ns, width_ns, max(end - first, 0))


def windowed(bins: pl.DataFrame, windows: Windows, column: str) -> pl.DataFrame:
    """Return the windowed frame of `bins`, whose width divides that of the windows, with `column` as bytes.

    `bins` has one direction of each flow. Bins outside the windows are left out.
    """
    import numpy as np
    import polars as pl

    window = (bins["time_ns"].to_numpy() - windows.start_ns) // windows.width_ns
    flow, sizes = bins["flow"].to_numpy(), bins[column].cast(pl.UInt64).to_numpy()
    # mostly all bins are inside: no mask needed
    if len(window) and (window.min() < 0 or window.max() >= windows.count or not sizes.min()):
        counts = (window >= 0) & (window < windows.count) & (sizes > 0)
        flow, window, sizes = (np.compress(counts, one) for one in (flow, window, sizes))
    return _merged(flow, window, sizes, bins.schema["flow"])


def joined(frame: pl.DataFrame, factor: int, count: int, *, dense: Dense | None = None) -> pl.DataFrame:
    """Return a windowed frame whose windows are `factor` times as wide; a partial last window is left out.

    `dense` is the result of `matrix`, if it was computed before.
    """
    import numpy as np

    if factor == 1:
        return frame
    flow_type, whole = frame.schema["flow"], count // factor
    if (found := dense or matrix(frame, count)) is not None:
        flows, rows = found
        sizes = wider(rows, factor).ravel()
        present = sizes.nonzero()[0]
        return _frame(flows[present // whole], present % whole, sizes[present], flow_type)
    flow, window, sizes = (frame[name].to_numpy() for name in ("flow", "window", "bytes"))
    inside = window < whole * factor
    return _merged(
        np.compress(inside, flow),
        np.compress(inside, window) // factor,
        np.compress(inside, sizes),
        flow_type,
    )


def matrix(frame: pl.DataFrame, count: int) -> Dense | None:
    """Return the flows of a windowed frame, and their bytes in each of `count` windows, a row for each flow.

    None if there are none, or if most of the matrix would be zeros: few rows must not need memory for many
    windows.
    """
    import numpy as np

    flow, sizes = frame["flow"].to_numpy(), frame["bytes"].to_numpy()
    first = first_of_each(flow)
    if not len(flow) or len(first) * count > _SPARSE * len(flow):
        return None
    if len(first) * count == len(flow):
        return flow[first], sizes.reshape(len(first), count)
    rows = np.zeros((len(first), count), dtype=np.uint64)
    window = frame["window"].to_numpy()
    for row, (start, end) in zip(rows, pairwise([*first.tolist(), len(flow)]), strict=True):
        row[window[start:end]] = sizes[start:end]
    return flow[first], rows


def wider(rows: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the sums of each `factor` neighbours in a row; a partial last window is left out."""
    whole = rows.shape[1] // factor * factor
    if factor == 1:
        return rows
    total: NDArray[Any] = rows[:, :whole:factor] + rows[:, 1:whole:factor]
    for place in range(2, factor):
        total += rows[:, place:whole:factor]
    return total


def _merged(
    flow: NDArray[Any], window: NDArray[Any], sizes: NDArray[Any], flow_type: pl.DataType
) -> pl.DataFrame:
    """Return a windowed frame in order of flow and window, with the bytes of equal ones added.

    Bins come in order, so one pass is enough; sorting or hashing tens of millions of rows would take longer
    than everything computed from them.
    """
    import numpy as np

    is_later = window[1:] > window[:-1]
    is_other = flow[1:] != flow[:-1]
    if (is_later | is_other).all() and (flow[1:] >= flow[:-1]).all():
        return _frame(flow, window, sizes, flow_type)
    place = flow.astype(np.int64) * (int(window.max(initial=0)) + 1)
    place += window
    before, after = place[:-1], place[1:]
    if (after < before).any():
        order = np.argsort(place, kind="stable")
        return _merged(flow[order], window[order], sizes[order], flow_type)
    if (after == before).any():
        first = first_of_each(place)
        flow, window, sizes = flow[first], window[first], np.add.reduceat(sizes, first)
    return _frame(flow, window, sizes, flow_type)


def _frame(
    flow: NDArray[Any], window: NDArray[Any], sizes: NDArray[Any], flow_type: pl.DataType
) -> pl.DataFrame:
    import polars as pl

    # lets Polars know that the rows of a flow are adjacent
    flows = pl.Series(flow, dtype=flow_type).set_sorted()
    return pl.DataFrame({"flow": flows, "window": window, "bytes": sizes})


def power_sums(frame: pl.DataFrame, by: Literal["flow", "window"]) -> pl.DataFrame:
    """Return `sum` and `squares` of the bytes for each value of the column `by`, exactly (Int128)."""
    import numpy as np
    import polars as pl

    keys, sizes = frame[by].to_numpy(), frame["bytes"].to_numpy()
    is_dense = by == "window" and bool(len(keys)) and keys.max() < _SPARSE * len(keys)
    if by == "window" and not is_dense:
        order = np.argsort(keys, kind="stable")
        keys, sizes = keys[order], sizes[order]
    first = keys[:0] if is_dense else first_of_each(keys)
    in_each = np.bincount(keys) if is_dense else np.diff(np.append(first, len(keys)))
    limit = _EXACT_FLOATS if is_dense else _UINT64_VALUES
    if int(sizes.max(initial=0)) ** 2 * int(in_each.max(initial=0)) >= limit:
        # 128-bit sums are much slower and rarely needed
        size = pl.col("bytes").cast(pl.Int128)
        sums = frame.group_by(by).agg(size.sum().alias("sum"), (size * size).sum().alias("squares"))
        return sums.sort(by)
    if is_dense:
        # floats add integers below 2^53 exactly, in any order
        every, of_squares = np.bincount(keys, weights=sizes), np.bincount(keys, weights=sizes * sizes)
        keys = every.nonzero()[0]
        total, squares = (sums[keys].astype(np.int64).tolist() for sums in (every, of_squares))
    else:
        keys = keys[first]
        total, squares = (np.add.reduceat(one, first).tolist() for one in (sizes, sizes * sizes))
    exact = {"sum": pl.Series(total, dtype=pl.Int128), "squares": pl.Series(squares, dtype=pl.Int128)}
    return pl.DataFrame({by: pl.Series(keys, dtype=frame.schema[by]), **exact})


def row_sums(rows: NDArray[Any]) -> tuple[list[int], list[int]]:
    """Return the sums of bytes and of their squares for each row of a matrix, exactly."""
    import numpy as np

    if int(rows.max(initial=0)) ** 2 * rows.shape[1] >= _UINT64_VALUES:
        rows = rows.astype(object)
        return rows.sum(axis=1).tolist(), (rows * rows).sum(axis=1).tolist()
    return rows.sum(axis=1).tolist(), np.einsum("ij,ij->i", rows, rows).tolist()
