"""MTFRC: TFRC's rate, limited by the capacity of the 802.11 MAC and by fairness to downloads.

X_send = min(X_tfrc, X_t, X_fair) as Zhang et al. (WoWMoM 2008) have it; `tfrctrace.wlan` has the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrctrace.base.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from tfrctrace.replay.recordings.recording import Recording
    from tfrctrace.wlan.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the MAC from `time_ns` until the next bounds."""

    time_ns: int
    x_t_bps: float | None
    """None while no station is limited."""
    x_fair_bps: float | None


def bounds_of(scenario: Scenario, zero_ns: int) -> list[Bounds]:
    """Return the bounds of each step of a scenario whose 0 s is `zero_ns`; in bit/s of payload.

    In the preset `paper` they count whole frames, as its authors did.
    """
    from tfrctrace.wlan.capacity import capacity
    from tfrctrace.wlan.terms import capacity_terms

    found = []
    for step in scenario.steps:
        time_ns = zero_ns + round(step.from_s * 1e9)
        if not step.population.has_greedy:
            found.append(Bounds(time_ns=time_ns, x_t_bps=None, x_fair_bps=None))
            continue
        of_step = capacity(scenario.cell, step.population)
        if not of_step.is_feasible:
            raise UsageError(
                f"from {step.from_s:g} s the access point's own frames leave no time (U >= 1)",
                hint="use fewer, shorter or faster frames",
            )
        bounds = capacity_terms(scenario.cell, of_step).bounds
        found.append(Bounds(time_ns=time_ns, x_t_bps=bounds.x_t_bps, x_fair_bps=bounds.x_fair_bps))
    return found


def bounded(tfrc: pl.DataFrame, bounds: list[Bounds], recording: Recording) -> pl.DataFrame:
    """Return the steps of TFRC with the bounds at their times, and a step wherever the bounds change."""
    import polars as pl

    of_mac = pl.DataFrame(
        {
            "time_ns": [bound.time_ns for bound in bounds],
            "x_t_bps": [bound.x_t_bps for bound in bounds],
            "x_fair_bps": [bound.x_fair_bps for bound in bounds],
        },
        schema={"time_ns": pl.Int64, "x_t_bps": pl.Float64, "x_fair_bps": pl.Float64},
    )
    inside = pl.col("time_ns").is_between(recording.start_ns, recording.end_ns, closed="none")
    changes = (
        of_mac.filter(inside)
        .select("time_ns")
        .join_asof(tfrc.select("time_ns", "x_bps", "mode", "r_ms", "x_calc_bps", "x_limit_bps"), on="time_ns")
    )
    changes = changes.filter(pl.col("x_bps").is_not_null()).with_columns(
        pl.lit("population").alias("event"), pl.lit("population").alias("reason")
    )
    steps = pl.concat([tfrc, changes], how="diagonal").sort("time_ns", maintain_order=True)
    lowest = pl.min_horizontal("x_bps", "x_t_bps", "x_fair_bps")
    return steps.join_asof(of_mac, on="time_ns").with_columns(
        pl.col("x_bps").alias("x_tfrc_bps"),
        lowest.alias("x_bps"),
        # of equal bounds the first one, as `wlan.mtfrc.send_rate_bps` has it
        pl.when(pl.col("x_bps") <= lowest)
        .then("mode")
        .when(pl.col("x_t_bps") <= lowest)
        .then(pl.lit("x_t"))
        .otherwise(pl.lit("x_fair"))
        .alias("mode"),
    )
