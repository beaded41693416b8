"""Convergence: when a rate or fairness reaches its steady value. Project definitions, times in s.

Rates are series over equal windows of `width_s`, zeros included, in any one unit. Times are those at which a
window starts, counted from the start of the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

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


def convergence_time_s(rates: Rates, width_s: float, *, hold_s: float = HOLD_S) -> float | None:
    """Return the first time from which the rate stays within `TOLERANCE` of B_ss for `hold_s`.

    None if it never does, or if B_ss is 0.
    """
    import numpy as np

    steady = steady_rate(rates)
    if not steady:
        return None
    return _first_run_s(abs(np.asarray(rates) - steady) <= TOLERANCE * steady, width_s, hold_s)


def rise_time_s(rates: Rates, width_s: float) -> float | None:
    """Return the time of the first window with at least 0.9 B_ss. None if B_ss is 0."""
    import numpy as np

    steady = steady_rate(rates)
    return _first_run_s(np.asarray(rates) >= RISEN * steady, width_s, width_s) if steady else None


def stability(rates: Rates) -> float | None:
    """Return sigma/mean over the last half of the windows, without unit; sigma is the population's.

    None if the mean is 0.
    """
    steady = steady_rate(rates)
    if not steady:
        return None
    return float(_last_half(rates).std()) / steady


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

    needed = max(math.ceil(hold_s / width_s - 1e-9), 1)
    bad = np.concatenate([[-1], (~good).nonzero()[0], [len(good)]])
    long_enough = (np.diff(bad) > needed).nonzero()[0]
    return float(bad[long_enough[0]] + 1) * width_s if len(long_enough) else None
