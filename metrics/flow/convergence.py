"""Convergence: when a rate or fairness reaches its steady value. Project definitions, times in s.

Rates are series over equal windows of `width_s`, zeros included, in any one unit. Times are those at which a
window starts, counted from the start of the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tfrctrace.metrics.flow.burstiness import spreads
from tfrctrace.metrics.windows import first_of_each, power_sums

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Rates = pl.Series | NDArray[Any]

HOLD_S: Final = 5.0
"""Time for which a rate must stay to have converged, ..."""
TOLERANCE: Final = 0.2
"""... within this share of the steady rate."""
RISEN: Final = 0.9
FAIR: Final = 0.95
"""Jain's index from which shares count as fair."""


def steady_rate(rates: Rates) -> float | None:
    """Return B_ss, the mean of the last half of the windows, in the unit of `rates`. None without windows."""
    last_half = _last_half(rates)
    return float(last_half.sum()) / len(last_half) if len(last_half) else None


def _last_half(rates: Rates) -> NDArray[Any]:
    import numpy as np

    return np.asarray(rates)[len(rates) // 2 :]


def rate_shapes(
    windowed: pl.DataFrame, counts: NDArray[Any], width_s: float, *, hold_s: float = HOLD_S
) -> pl.DataFrame:
    """Return `windows`, `convergence_s`, `rise_s` and `stability` of flows, a row for each of `counts`.

    `windowed` (see `tfrctrace.metrics.windows`) has the place of a flow in `counts` as `flow`, and windows
    of `width_s` counted from the flow's own start, of which there are `counts`. B_ss is the mean of the last
    half of a flow's windows. Values are null if it is 0.

    - `convergence_s`: first time from which the rate stays within `TOLERANCE` of B_ss for `hold_s`, or null;
    - `rise_s`: time of the first window with at least `RISEN` B_ss;
    - `stability`: standard deviation (population) over mean in the last half.
    """
    import numpy as np
    import polars as pl

    flow, window, size = (windowed[name].to_numpy() for name in ("flow", "window", "bytes"))
    is_late = window >= (counts // 2)[flow]
    late_windows = counts - counts // 2
    late = power_sums(windowed.filter(pl.Series(is_late)), "flow")
    totals = late["sum"].to_list()
    spread_of = spreads(totals, late["squares"].to_list(), late_windows[late["flow"]].tolist())
    with_bytes = late["flow"].to_numpy()
    steady, stability = np.zeros(len(counts)), np.full(len(counts), np.nan)
    steady[with_bytes] = np.array(totals, dtype=np.float64) / late_windows[with_bytes]
    stability[with_bytes] = [spread / total for spread, total in zip(spread_of, totals, strict=True)]
    level = steady[flow]
    # a window without bytes is never within the tolerance
    is_within = (level > 0) & (abs(size.astype(np.float64) - level) <= TOLERANCE * level)
    is_risen = (level > 0) & (size >= RISEN * level)
    shapes = {"stability": stability}
    for name, is_good, least_s in (("convergence_s", is_within, hold_s), ("rise_s", is_risen, width_s)):
        found, first = _first_runs(flow[is_good], window[is_good], _windows_of(least_s, width_s))
        shapes[name] = np.full(len(counts), np.nan)
        shapes[name][found] = first * width_s
    return pl.DataFrame({"windows": counts, **shapes}).with_columns(pl.col(*shapes).fill_nan(None))


def _first_runs(flow: NDArray[Any], window: NDArray[Any], least: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the flows that have `least` windows in a row, and where the first such run of each begins."""
    import numpy as np

    first = first_of_each(flow, window - np.arange(len(window)))
    starts = first[np.diff(np.append(first, len(window))) >= least]
    flows, places = np.unique(flow[starts], return_index=True)
    return flows, window[starts[places]]


def fairness_settling_time_s(jain: pl.Series, width_s: float, *, hold_s: float = HOLD_S) -> float | None:
    """Return the first time from which Jain's index stays at 0.95 or more for `hold_s`, or None.

    None if it never does. A window without an index (null: no flow has bytes) does not count as fair.
    """
    return _first_run_s((jain >= FAIR).fill_null(value=False).to_numpy(), width_s, hold_s)


def first_window_after(width_s: float, step_s: float) -> int:
    """Return the number, from 0, of the first window that begins at `step_s` or later; below 0 before all."""
    return math.ceil(step_s / width_s - 1e-9)


def response_time_s(rates: Rates, width_s: float, step_s: float) -> float | None:
    """Return how long after a change of the path at `step_s` the rate is within `TOLERANCE` and stays there.

    `step_s` counts from the start of the first window. The new level is the mean of the last half of the
    whole windows after the change. None if the rate never stays, if the level is 0, or if there is no window
    before or after the change.
    """
    import numpy as np

    first = first_window_after(width_s, step_s)
    after = rates[first:] if first > 0 else rates[:0]
    steady = steady_rate(after)
    if not steady:
        return None
    off = (abs(np.asarray(after) - steady) > TOLERANCE * steady).nonzero()[0]
    settled = int(off[-1]) + 1 if len(off) else 0
    return (first + settled) * width_s - step_s if settled < len(after) else None


def aggressiveness(rates: Rates) -> float | None:
    """Return the largest increase from one window to the next, in the unit of `rates`, per window.

    With windows of one RTT it is the aggressiveness of S. Floyd et al. (2000): bit/s per RTT. None below two
    windows; 0 if the rate never grows.
    """
    import numpy as np

    if len(rates) < 2:
        return None
    # a list of ten million windows would take a gigabyte
    return max(0.0, float(np.diff(np.asarray(rates, dtype=float)).max()))


def _first_run_s(good: NDArray[Any], width_s: float, hold_s: float) -> float | None:
    """Return the start of the first run of good windows that together last for `hold_s`."""
    import numpy as np

    needed = _windows_of(hold_s, width_s)
    bad = np.concatenate([[-1], (~good).nonzero()[0], [len(good)]])
    long_enough = (np.diff(bad) > needed).nonzero()[0]
    return float(bad[long_enough[0]] + 1) * width_s if len(long_enough) else None


def _windows_of(hold_s: float, width_s: float) -> int:
    return max(math.ceil(hold_s / width_s - 1e-9), 1)
