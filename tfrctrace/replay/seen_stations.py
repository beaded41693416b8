"""The stations that share the medium, as `tfrctrace replay` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrctrace.metrics.results.replay import SparingStation, StationsStep

if TYPE_CHECKING:
    from tfrctrace.wlan.scenario import Scenario, Step


def seen_stations(network: Scenario) -> tuple[StationsStep, ...]:
    """Return the stations of each stretch of time; docs/replay.md explains the names."""
    return tuple(map(_stations, network.steps))


def _stations(step: Step) -> StationsStep:
    population = step.population
    access_point = population.access_point
    return StationsStep(
        from_s=step.from_s,
        until_s=step.until_s,
        uploads_mbps=tuple(sorted((rate.mbps for rate in population.greedy), reverse=True)),
        sparing=tuple(SparingStation(one.rate.mbps, one.load_bps) for one in population.sparing),
        access_point_mbps=access_point.rate.mbps if access_point else None,
        downloads=access_point.downloads if access_point else 0,
    )
