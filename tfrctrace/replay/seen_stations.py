"""The stations that share the medium as names and numbers, as `tfrctrace replay` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrctrace.wlan.scenario import Scenario, Step


def medium_facts(network: Scenario) -> list[dict[str, Any]]:
    """Return the stations of each stretch of time; docs/replay.md explains the names."""
    return [_facts(step) for step in network.steps]


def _facts(step: Step) -> dict[str, Any]:
    population = step.population
    access_point = population.access_point
    return {
        "from_s": step.from_s,
        "until_s": step.until_s,
        "uploads_mbps": sorted((rate.mbps for rate in population.greedy), reverse=True),
        "sparing": [{"mbps": one.rate.mbps, "load_bps": one.load_bps} for one in population.sparing],
        "access_point_mbps": access_point.rate.mbps if access_point else None,
        "downloads": access_point.downloads if access_point else 0,
    }
